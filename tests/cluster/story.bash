# story.bash - what the tests on a cluster share; loaded by bats files
# SPDX-License-Identifier: LGPL-3.0-or-later
# shellcheck shell=bash disable=SC2154 # bats sets its own variables

# cluster_up N: a head and N nodes with everything installed and running, for
# all tests of a file.  What must lie in each node before it boots goes into
# $CLUSTER_LAYER before.
cluster_up ()
{
    local build=${HK_BUILD:-build}
    export CLUSTER="$BATS_TEST_DIRNAME/cluster"
    export CLUSTER_DIR="/run/hk-story.$$"
    export CLUSTER_WANTS=flux-hkd.service
    export CLUSTER_HEAD_WANTS=flux-hk-coordinator.service
    HK_TOOLS=$(realpath "$build")/tests/tools
    export HK_TOOLS
    make -s O="$build" install DESTDIR="$CLUSTER_LAYER" >/dev/null
    "$CLUSTER" up "$1" --head
    within 20 connected "$1"
}

# layer: where to put files that each node has at boot; before cluster_up
layer ()
{
    export CLUSTER_LAYER="$BATS_FILE_TMPDIR/layer"
    mkdir -p "$CLUSTER_LAYER/etc/flux/system/housekeeping.d" \
        "$CLUSTER_LAYER/etc/flux/hk.conf.d"
    cat >"$CLUSTER_LAYER/etc/flux/hk.conf" <<'S'
[link]
heartbeat = 1s
reconcile = 2s
[housekeeping]
kill-grace = 1s
give-up = 2s
lost-after = 4s
S
}

# script NAME <TEXT: a housekeeping script in the layer
script ()
{
    cat >"$CLUSTER_LAYER/etc/flux/system/housekeeping.d/$1"
    chmod 755 "$CLUSTER_LAYER/etc/flux/system/housekeeping.d/$1"
}

on () { "$CLUSTER" exec "$@" </dev/null; }

# within SECONDS COMMAND..: wait until it succeeds; at the end say what it said
within ()
{
    local end=$((SECONDS + $1))
    shift
    until "$@" >"$BATS_FILE_TMPDIR/within" 2>&1; do
        if [ "$SECONDS" -ge "$end" ]; then
            echo "in vain: $*"
            cat "$BATS_FILE_TMPDIR/within"
            return 1
        fi
        sleep 0.1
    done
}

# never SECONDS COMMAND..: it must not succeed in all that time
never ()
{
    local end=$((SECONDS + $1))
    shift
    while [ "$SECONDS" -lt "$end" ]; do
        if "$@" >/dev/null 2>&1; then
            echo "has happened: $*"
            return 1
        fi
        sleep 0.2
    done
}

connected () { on head hkctl ping | grep -q "nodes: $1 connected"; }

# job_end JOBID HOSTS [OPTION..]: a job of user 1000 has ended there
job_end ()
{
    local id=$1 hosts=$2
    shift 2
    on head hkctl job-end --jobid "$id" --userid 1000 --hosts "$hosts" "$@"
}

# listed REGEX: a row of hkctl list matches
listed () { on head hkctl list | grep -Eq "$1"; }
# history REGEX: a row of hkctl history matches
history_has () { on head hkctl history --json | tr '}' '\n' | grep -Eq "$1"; }

# scheduler FILE [OPTION..]: a manager session whose lines go to FILE; its pid
# is in FILE.pid.  What it was told is asked with said, and how often.
scheduler ()
{
    local file=$1
    shift
    : >"$file"
    "$CLUSTER" exec head hkctl follow --manager "$@" >"$file" 2>&1 \
        </dev/null 3>&- &
    echo $! >"$file.pid"
}
scheduler_end ()
{
    local pid
    pid=$(cat "$1.pid")
    kill "$pid" 2>/dev/null || :
    wait "$pid" 2>/dev/null || :
    rm -f "$1.pid"
}
said () { grep -Eq "$2" "$1"; }
times () { grep -Ec "$2" "$1" || :; }

# freed FILE JOBID RANK: that rank of that job was freed, and exactly once
freed ()
{
    local n
    n=$(jq -c "select(.type == \"free\" and .jobid == $2)" "$1" 2>/dev/null |
        jq -r .ranks | tr ',' '\n' | awk -F- -v r="$3" '
            NF == 1 { if ($1 == r) n++ }
            NF == 2 { if (r >= $1 && r <= $2) n++ }
            END { print n + 0 }')
    [ "$n" = 1 ]
}

# say FILE <LINES: a peer by hand (tests/tools/say); options after FILE
say ()
{
    local file=$1
    shift
    "$CLUSTER" exec head "$HK_TOOLS/say" "$@" >"$file"
}

story_down ()
{
    "$CLUSTER" down
}
