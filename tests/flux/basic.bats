#!/usr/bin/env bats
# basic.bats - jobs of a real Flux instance, and what its scheduler counts
# SPDX-License-Identifier: LGPL-3.0-or-later

load flux

setup_file ()
{
    flux_is_there || return 0
    layer
    script 10-first <<'S'
#!/bin/sh
# a test says by files what is to happen on this node
while [ -e /run/hang ]; do sleep 0.1; done
echo "$FLUX_JOB_ID $FLUX_JOB_USERID $FLUX_JOB_RANKS" >/run/env
exit "$(cat /run/exit 2>/dev/null || echo 0)"
S
    flux_up 4
}

teardown_file ()
{
    flux_down
}

env_is () { [ "$(on "$1" cat /run/env)" = "$2" ]; }

teardown ()
{
    local n
    for n in node0 node1 node2 node3; do
        on "$n" rm -f /run/hang /run/exit
    done
    within 20 free_is 4
    within 5 counted ""
    undrain_all
}

@test "a job is inactive at once, its ranks stay until their nodes are done" {
    on node1 touch /run/hang
    id=$(run_job 4)
    state_is "$id" INACTIVE
    within 10 allocated_is 1
    counted 1
    free_is 3
    # no job can be placed there
    blocked=$(f submit -N4 true)
    never 1 state_is "$blocked" RUN
    state_is "$blocked" SCHED
    on node1 rm /run/hang
    within 10 state_is "$blocked" INACTIVE
    within 10 env_is node1 "$(f58plain "$blocked") 0 0-3"
    # where to look afterwards
    [ "$(f jobs -no '{user.housekeeping}' "$id")" \
        = "hkctl history -j $(f58plain "$id")" ]
}

@test "flux housekeeping and flux resource show what is held" {
    on node1 touch /run/hang
    on node3 touch /run/hang
    id=$(run_job 4)
    within 10 allocated_is 2
    [ "$(f housekeeping list -no '{id} {nnodes} {pending.nnodes} {nodelist}')" \
        = "$id 2 2 node[1,3]" ]
    [ "$(f resource status -s housekeeping -no '{nodelist}')" = "node[1,3]" ]
    [ "$(f resource list -s allocated -no '{nodelist}')" = "node[1,3]" ]
    f module stats job-manager | jq -e '.housekeeping.running | length == 1'
    f jobtap query hk-coordinator.so |
        jq -e '."hk-coordinator" | .open and .trouble == ""
            and .scheduler == "ready"'
    # a guest sees as much
    f housekeeping kill -t node1 -s 9
    within 10 allocated_is 1
    within 5 drained node1 "housekeeping@.*"
}

@test "a node whose script fails is drained before it is free" {
    on node2 sh -c 'echo 3 >/run/exit'
    id=$(run_job 4)
    within 10 free_is 3
    drained node2 "housekeeping@$(f58plain "$id") exit-code: .*exited 3.*"
    within 5 counted ""
    f resource undrain node2
}

@test "an admin's drain is neither overwritten nor undone" {
    f resource drain node2 mine
    on node2 sh -c 'echo 3 >/run/exit'
    run_job 3 --requires=hosts:node0,node1,node3
    f resource undrain node2
    on node1 touch /run/hang
    id=$(run_job 4)
    within 10 allocated_is 1
    f resource drain node1 mine
    on node1 rm /run/hang
    within 10 counted ""
    drained node1 mine
    drained node2 "housekeeping@.*"
}

@test "a scheduler that is reloaded is told what is held" {
    on node1 touch /run/hang
    id=$(run_job 4)
    within 10 counted 1
    for _ in 1 2 3; do
        f module reload "$FLUX_SCHED"
        counted 1
        within 10 not_drained node1
    done
    blocked=$(f submit -N4 true)
    never 1 state_is "$blocked" RUN
    on node1 rm /run/hang
    within 10 state_is "$blocked" INACTIVE
}

@test "what is done while there is no scheduler is free when there is one" {
    on node1 touch /run/hang
    on node2 touch /run/hang
    run_job 4
    within 10 counted 1-2
    f module remove "$FLUX_SCHED"
    on node1 rm /run/hang
    within 10 history_has "node1.*success"
    f module load "$FLUX_SCHED"
    within 5 counted 2
}

@test "a job that ends between two schedulers is told by neither twice" {
    on node1 touch /run/hang
    id=$(f submit -N4 sleep 30)
    f job wait-event -t 10 "$id" start
    f module remove "$FLUX_SCHED"
    f cancel "$id"
    f job wait-event -t 10 "$id" clean
    f module load "$FLUX_SCHED"
    within 10 counted 1
}

@test "every way into CLEANUP with ranks holds them, none without" {
    on node1 touch /run/hang
    # canceled while it waits for resources: it never had any
    running=$(f submit -N4 sleep 60)
    f job wait-event -t 10 "$running" start
    waiting=$(f submit -N4 true)
    f cancel "$waiting"
    f job wait-event -t 10 "$waiting" clean
    [ "$(held_jobs)" = "" ]
    # canceled while it runs
    f cancel "$running"
    f job wait-event -t 10 "$running" clean
    within 10 counted 1
    [ "$(held_jobs)" = "$running" ]
    on node1 rm /run/hang
    within 10 free_is 4
    # the command is not there, and the time limit
    for how in "nosuchcommand" "-t 0.2s sleep 30"; do
        on node1 touch /run/hang
        # shellcheck disable=SC2086
        id=$(f submit -N4 $how)
        f job wait-event -t 20 "$id" clean
        within 10 counted 1
        [ "$(held_jobs)" = "$id" ]
        on node1 rm /run/hang
        within 10 free_is 4
    done
}

@test "two jobs share a node by its cores, each is freed with its own" {
    on node0 touch /run/hang
    a=$(f submit -n1 -c1 --requires=host:node0 true)
    f job wait-event -t 10 "$a" clean
    within 10 cores_allocated 1
    b=$(f submit -n1 -c1 --requires=host:node0 true)
    f job wait-event -t 10 "$b" clean
    within 10 cores_allocated 2
    on node0 rm /run/hang
    within 10 cores_allocated 0
}

@test "a user's own alloc-bypass job is not held" {
    f jobtap load alloc-bypass.so
    on node1 touch /run/hang
    id=$(f submit -N4 --setattr=system.alloc-bypass.R="$(f R encode -r0-3)" true)
    f job wait-event -t 10 "$id" clean
    [ "$(held_jobs)" = "" ]
    f jobtap remove alloc-bypass.so
}


@test "a partial release is one free for nodes that end together" {
    before=$(frees)
    id=$(run_job 4)
    within 10 free_is 4
    [ "$(($(frees) - before))" -le 3 ]
}

@test "jobs end in Flux alone: hkctl job-end is refused" {
    run on head hkctl job-end --jobid 1 --userid 0 --hosts node0
    [ "$status" -eq 3 ]
    [[ $output == *"tells it of jobs itself"* ]]
}
