#!/usr/bin/env bats
# fluxion.bats - Fluxion as the scheduler, in each of its formats of R
# SPDX-License-Identifier: LGPL-3.0-or-later

load flux

# A job that needs more nodes than are not drained is denied by Fluxion 0.54
# under its policy fcfs ("unsatisfiable"), under the others it waits.
CONF='[sched-fluxion-qmanager]
queue-policy = "easy"
[sched-fluxion-resource]
match-format = "rv1_nosched"'

setup_file ()
{
    flux_is_there || return 0
    fluxion_is_there || return 0
    layer
    script 10-first <<'S'
#!/bin/sh
while [ -e /run/hang ]; do sleep 0.1; done
S
    # no two nodes are alike
    FLUX_R=$({
        flux R encode -r 0 -c 0-1 -H node0 -p a:0
        flux R encode -r 1 -c 0-3 -H node1 -p a:1
        flux R encode -r 2 -c 0-1 -g 0 -H node2 -p b:2
        flux R encode -r 3 -c 0-7 -g 0-1 -H node3 -p b:3
    } | flux R append)
    export FLUX_R FLUX_CONF=$CONF
    flux_up 4 sched-fluxion-qmanager
}

teardown_file ()
{
    flux_down
}

teardown ()
{
    local n
    for n in node0 node1 node2 node3; do
        on "$n" rm -f /run/hang
    done
    within 10 account_is ""
    undrain_all
}

# hang NODE..
hang ()
{
    local n
    for n; do on "$n" touch /run/hang; done
}
go_on ()
{
    local n
    for n; do on "$n" rm -f /run/hang; done
}

# What a site does after a change of configuration.
fluxion_unload ()
{
    f module remove sched-fluxion-qmanager
    f module remove sched-fluxion-feasibility
    f module remove sched-fluxion-resource
}
fluxion_load ()
{
    f module load sched-fluxion-resource
    f module load sched-fluxion-feasibility
    f module load sched-fluxion-qmanager
}
fluxion_reload ()
{
    fluxion_unload
    fluxion_load
}

# configure [TOML]: instead of $CONF, and everything is loaded anew
configure ()
{
    FLUX_CONF=$1 flux_reconf
    fluxion_reload
}

# Fluxion was told of node0 and node2, the job's other ranks were free before.
stragglers ()
{
    hang node0 node2
    id=$(run_job 4)
    within 10 account_is "0:core0-1 2:core0-1,gpu0"
    f dmesg -C
    fluxion_reload
    probe=$(f submit -N4 true)
}

# The whole machine is not to be had, until both nodes are done.
probe_waits ()
{
    never 1 not state_is "$probe" SCHED
    listed "node\[0,2\]"
    go_on node2
    never 1 not state_is "$probe" SCHED
    go_on node0
    within 10 state_is "$probe" INACTIVE
    [ "$(f jobs -no '{result}' "$probe")" = COMPLETED ]
    within 5 account_is ""
    not_drained node0
    not_drained node2
}

# errors: those of the scheduler and of ours
errors () { f dmesg | grep -E '(sched-fluxion.*|job-manager)\.err' || :; }

@test "nothing allocated is an account, too" {
    [ "$(f dmesg | grep -c 'is not known')" = 0 ]
    fluxion_reload
    [ "$(f dmesg | grep -c 'is not known')" = 0 ]
}

@test "each node of a job is freed with all that it has" {
    f dmesg -C
    hang node0 node1 node2 node3
    id=$(run_job 4)
    state_is "$id" INACTIVE
    account_is "0:core0-1 1:core0-3 2:core0-1,gpu0 3:core0-7,gpu0-1"
    go_on node3
    within 10 account_is "0:core0-1 1:core0-3 2:core0-1,gpu0"
    go_on node1
    within 10 account_is "0:core0-1 2:core0-1,gpu0"
    go_on node0 node2
    within 10 account_is ""
    [ "$(errors)" = "" ]
}

@test "two jobs on one node are freed each with its own cores and gpu" {
    hang node3
    a=$(f submit -n1 -c2 -g1 --requires=host:node3 true)
    f job wait-event -t 10 "$a" clean
    b=$(f submit -n1 -c4 -g1 --requires=host:node3 true)
    f job wait-event -t 10 "$b" clean
    is=$(account)
    [[ $is =~ ^3:core.*,gpu0-1$ ]]
    cores_allocated 6
    fluxion_reload
    account_is "$is"
    go_on node3
    within 10 account_is ""
}

@test "rv1_nosched: a reload with stragglers loses none" {
    configure "$CONF"
    stragglers
    account_is "0:core0-1 2:core0-1,gpu0"
    probe_waits
    [ "$(errors)" = "" ]
}

@test "rv1: a reload with stragglers loses none" {
    configure "${CONF/rv1_nosched/rv1}"
    stragglers
    account_is "0:core0-1 2:core0-1,gpu0"
    probe_waits
    [ "$(errors)" = "" ]
}

@test "rv1_shorthand: what Fluxion loses at a reload stays drained" {
    configure "${CONF/rv1_nosched/rv1_shorthand}"
    stragglers
    # a Fluxion that is mended counts both, and nothing is to be drained
    if counted 0; then
        said_log "node2: the scheduler was told of it and does not count it"
        drained node2 "housekeeping: held .*"
        not_drained node0
    else
        account_is "0:core0-1 2:core0-1,gpu0"
    fi
    probe_waits
}

@test "the format changes while nodes are held" {
    configure "$CONF"
    hang node0 node2
    id=$(run_job 4)
    within 10 account_is "0:core0-1 2:core0-1,gpu0"
    configure "${CONF/rv1_nosched/rv1_shorthand}"
    probe=$(f submit -N4 true)
    probe_waits
    configure "$CONF"
}

@test "queues come and go while nodes are held" {
    hang node0 node2
    id=$(run_job 4)
    within 10 account_is "0:core0-1 2:core0-1,gpu0"
    # Fluxion refuses what ran in no queue once there are queues
    configure "$CONF
[queues.a]
requires = [ \"a\" ]
[queues.b]
requires = [ \"b\" ]"
    f queue start --all
    if counted ""; then
        drained node0 "housekeeping: held .*"
        drained node2 "housekeeping: held .*"
    else
        account_is "0:core0-1 2:core0-1,gpu0"
    fi
    probe=$(f submit -q a -N2 true)
    never 1 not state_is "$probe" SCHED
    go_on node0
    within 10 state_is "$probe" INACTIVE
    [ "$(f jobs -no '{result}' "$probe")" = COMPLETED ]
    go_on node2
    within 10 account_is ""
    not_drained node0
    not_drained node2
    # and what ran in a queue when it is taken away
    hang node3
    id=$(f submit -q b -N2 true)
    f job wait-event -t 10 "$id" clean
    within 10 account_is "3:core0-7,gpu0-1"
    configure "$CONF"
    f queue start
    counted 3 || drained node3 "housekeeping: held .*"
    probe=$(f submit -N4 true)
    never 1 not state_is "$probe" SCHED
    go_on node3
    within 10 state_is "$probe" INACTIVE
    [ "$(f jobs -no '{result}' "$probe")" = COMPLETED ]
}

@test "the resource module is loaded anew, too" {
    hang node1
    id=$(run_job 4)
    within 10 account_is "1:core0-3"
    fluxion_unload
    f module reload resource noverify
    fluxion_load
    account_is "1:core0-3"
    within 5 not_drained node1
    go_on node1
}
