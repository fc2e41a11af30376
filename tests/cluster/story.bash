# story.bash - what the tests on a cluster share; loaded by bats files
# SPDX-License-Identifier: LGPL-3.0-or-later
# shellcheck shell=bash disable=SC2154 # bats sets its own variables

# cluster_up N: a head and N nodes with everything installed and running, for
# all tests of a file.  What must lie in each node before it boots goes into
# $CLUSTER_LAYER before.
cluster_up ()
{
    local build=${HK_BUILD:-build}
    export CLUSTER="$BATS_TEST_DIRNAME/../cluster/cluster"
    export CLUSTER_DIR=${CLUSTER_DIR:-/run/hk-story.$$}
    export CLUSTER_WANTS=${CLUSTER_WANTS:-flux-hkd.service}
    export CLUSTER_HEAD_WANTS=${CLUSTER_HEAD_WANTS:-flux-hk-coordinator.service}
    HK_TOOLS=$(realpath "$build")/tests/tools
    export HK_TOOLS
    make -s O="$build" install DESTDIR="$CLUSTER_LAYER" >/dev/null
    "$CLUSTER" up "$1" --head
    within 30 connected "$1"
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

# bats does not see that a line which begins with ! fails
not () { ! "$@"; }

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
    local end=$((${EPOCHREALTIME/./} + $1 * 1000000))
    shift
    while [ "${EPOCHREALTIME/./}" -lt "$end" ]; do
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

# outcomes JOBID TEXT: the runs of it that have ended are "node0 1 success, .."
outcomes ()
{
    local is
    is=$(on head hkctl history -j "$1" --json |
        jq -r '.rows | map ("\(.host) \(.attempt) \(.outcome)")
            | sort | join (", ")')
    [ "$is" = "$2" ] || { echo "not $2, but $is"; return 1; }
}

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
# heard FILE N REGEX: said so many times, or more
heard () { [ "$(times "$1" "$3")" -ge "$2" ]; }

# freed FILE JOBID RANK: that rank of that job was freed, and exactly once
freed ()
{
    local n
    n=$(grep "^{" "$1" | jq -c "select(.type == \"free\" and .jobid == $2)" |
        jq -r .ranks | tr ',' '\n' | awk -F- -v r="$3" '
            NF == 1 { if ($1 == r) n++ }
            NF == 2 { if (r >= $1 && r <= $2) n++ }
            END { print n + 0 }')
    [ "$n" = 1 ]
}

# books FILE: in all that this scheduler was told, no rank of a job was freed
# twice in a life, nothing came for a job after its final, and each number of
# a free says one thing
books ()
{
    grep '^{' "$1" | jq -es '
        def ids: split (",") | map (split ("-") | map (tonumber)
            | range (.[0]; .[-1] + 1));
        map (select (.type == "free")
            | {n, life, jobid, ranks, R, final})
        | (group_by (.n) | all (unique | length == 1))
          and (unique_by (.n) | group_by ([.life, .jobid]) | all (
              (map (.ranks | ids) | add | length == (unique | length))
              and (map (.final == true) | .[:-1] | any | not)))' >/dev/null
}

# before FILE REGEX REGEX: both were said, and the one before the other
before ()
{
    local first second
    first=$(grep -nEm1 "$2" "$1" | cut -d: -f1)
    second=$(grep -nEm1 "$3" "$1" | cut -d: -f1)
    [ -n "$first" ] && [ -n "$second" ] && [ "$first" -lt "$second" ]
}

# peer FILE [OPTION..]: a peer by hand (tests/tools/say) that goes on; what it
# hears goes to FILE, what it is to say is given to it by tell FILE LINE
peer ()
{
    local file=$1 from=head
    shift
    if [ "$1" = --on ]; then
        from=$2
        shift 2
    fi
    rm -f "$file.in"
    mkfifo "$file.in"
    : >"$file"
    "$CLUSTER" exec "$from" "$HK_TOOLS/say" "$@" <>"$file.in" >"$file" 2>&1 \
        3>&- &
    echo $! >"$file.pid"
    within 10 grep -q '"welcome"' "$file"
}
tell () { echo "$2" >"$1.in"; }
# numbers FILE TYPE [REGEX]: the numbers of what it was told of that type
numbers ()
{
    grep -E "\"type\":\"$2\".*${3:-}" "$1" | jq -r .n
}

# fault NODE UNIT SIGNAL: a signal to the unit's main process
fault ()
{
    on "$1" systemctl kill --kill-who=main -s "$3" "$2"
}
main_pid () { on "$1" systemctl show -P MainPID "$2"; }
# reborn NODE UNIT PID: another main process is up
reborn ()
{
    local state
    state=$(on "$1" systemctl show -P ActiveState -P MainPID "$2" | tr '\n' ' ')
    [[ $state != *" $3 "* && $state == *active* && $state != *activating* ]]
}
# murder NODE UNIT: its main process is killed; back when another is up
murder ()
{
    local pid
    pid=$(main_pid "$1" "$2")
    fault "$1" "$2" KILL
    within 15 reborn "$1" "$2" "$pid"
}

# say FILE <LINES: a peer by hand that ends with its input; options after FILE
say ()
{
    local file=$1
    shift
    "$CLUSTER" exec head "$HK_TOOLS/say" "$@" >"$file"
}

story_down ()
{
    local file
    # what talks to the cluster ends before it; a test may have failed anywhere
    for file in "$BATS_FILE_TMPDIR"/*.pid; do
        [ ! -e "$file" ] || scheduler_end "${file%.pid}"
    done
    "$CLUSTER" down
}
