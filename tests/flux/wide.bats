#!/usr/bin/env bats
# wide.bats - one broker that has thousands of nodes: what the reactor feels
# SPDX-License-Identifier: LGPL-3.0-or-later

# The nodes are in R alone: job-exec plays their shells, and no hkd is there.

bats_require_minimum_version 1.5.0
load flux

NODES=16384

setup_file ()
{
    local plugin
    flux_is_there || return 0
    plugin=$(realpath "${HK_BUILD:-build}")/coordinator/hk-coordinator.so
    export DIR=$BATS_FILE_TMPDIR
    mkdir -m 700 "$DIR/state" "$DIR/conf" "$DIR/run"
    flux R encode -r "0-$((NODES - 1))" -c 0-3 -H "node[0-$((NODES - 1))]" \
        >"$DIR/R"
    cat >"$DIR/conf/wide.toml" <<S
[resource]
path = "$DIR/R"
noverify = true
[modules]
alternatives.sched = "sched-simple"
resource.args = ["monitor-force-up"]
[job-manager]
plugins = [ { load = "$plugin", conf = { bind = "127.0.0.1",
  node-port = 28765, client-port = 28766, key-port = 28767,
  coordinator = { state-dir = "$DIR/state" } } } ]
S
    sed -i -z 's/,\n  /, /g' "$DIR/conf/wide.toml"
    flux start --test-size=1 --test-rundir="$DIR/run" \
        --config-path="$DIR/conf" -Slog-filename="$DIR/log" \
        sleep 300 >"$DIR/out" 2>&1 </dev/null 3>&- &
    echo $! >"$DIR/broker"
    within 60 w uptime
}

teardown_file ()
{
    [ -z "${HK_SKIP:-}" ] || return 0
    w shutdown --quiet || :
    within 20 sh -c '! ss -ltn | grep -q 127.0.0.1:28765'
    wait "$(cat "$BATS_FILE_TMPDIR/broker")" 2>/dev/null || :
}

w () { FLUX_URI=local://$DIR/run/local-0 flux "$@"; }
ready () { [[ $(w jobtap query hk-coordinator.so) == *'"scheduler":"ready"'* ]]; }
allocated () { [ "$(w resource list -s allocated -no '{nnodes}')" = "$1" ]; }

@test "a job on $NODES nodes ends: the reactor is kept for 1 ms at most" {
    within 30 ready
    id=$(w submit -N "$NODES" \
        --setattr=system.exec.test.run_duration=0.1s hostname)
    w job wait-event -t 60 "$id" clean
    within 10 allocated "$NODES"
    w module reload sched-simple
    within 30 ready
    allocated "$NODES"
    [ "$(w housekeeping list -no '{id} {pending.nnodes}')" = "$id $NODES" ]
    w jobtap query hk-coordinator.so | jq -c '."hk-coordinator".reactor' >&3
    w jobtap query hk-coordinator.so |
        jq -e '."hk-coordinator".reactor.longest_ms < 1'
}
