#!/usr/bin/env bats
# schedulers.bats - the schedulers of flux-core, one after the other
# SPDX-License-Identifier: LGPL-3.0-or-later

load flux

setup_file ()
{
    flux_is_there || return 0
    layer
    script 10-first <<'S'
#!/bin/sh
while [ -e /run/hang ]; do sleep 0.1; done
S
    FLUX_R=$({
        flux R encode -r 0 -c 0-1 -H node0
        flux R encode -r 1-2 -c 0-3 -H node[1-2]
        flux R encode -r 3 -c 0-7 -g 0-1 -H node3
    } | flux R append)
    export FLUX_R
    flux_up 4
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
    f module remove -f sched-fifo
    f module remove -f sched-backfill
    f module reload -f sched-simple
}

# scheduler_is_there NAME: older versions have but one
scheduler_is_there ()
{
    f python -c "import os, sys
from flux.conf_builtin import conf_builtin_get as get
dirs = get('module_path').split(':')
sys.exit(not any(os.path.exists(f'{d}/$1{end}')
    for d in dirs for end in ('.so', '.py')))" || skip "no $1"
}

# round NAME: partial frees, reloads with stragglers, and the whole machine is
# not to be had until they are done
round ()
{
    scheduler_is_there "$1"
    f module remove sched-simple
    f module load "$1"
    f dmesg -C
    on node1 touch /run/hang
    on node3 touch /run/hang
    run_job 4
    within 10 account_is "1:core0-3 3:core0-7,gpu0-1"
    f module reload "$1"
    account_is "1:core0-3 3:core0-7,gpu0-1"
    within 5 not_drained node1
    within 5 not_drained node3
    probe=$(f submit -N4 true)
    on node3 rm /run/hang
    within 10 account_is "1:core0-3"
    f module reload "$1"
    account_is "1:core0-3"
    never 1 not state_is "$probe" SCHED
    on node1 rm /run/hang
    within 10 state_is "$probe" INACTIVE
    [ "$(f jobs -no '{result}' "$probe")" = COMPLETED ]
    within 5 account_is ""
    [ "$(f dmesg | grep -E 'err\[0\]' || :)" = "" ]
    f module remove "$1"
}

@test "sched-fifo" { round sched-fifo; }
@test "sched-backfill" { round sched-backfill; }

@test "the scheduler is another one while nodes are held" {
    scheduler_is_there sched-fifo
    on node3 touch /run/hang
    run_job 4
    within 10 account_is "3:core0-7,gpu0-1"
    f module remove sched-simple
    f module load sched-fifo
    account_is "3:core0-7,gpu0-1"
    f module remove sched-fifo
    f module load sched-simple
    account_is "3:core0-7,gpu0-1"
    within 5 not_drained node3
}

@test "not partial-ok: what cannot be told is drained until it is done" {
    on node1 touch /run/hang
    run_job 4
    within 10 account_is "1:core0-3"
    f module remove sched-simple
    f module load sched-simple test-hello-nopartial
    account_is ""
    drained node1 "housekeeping: held .*"
    probe=$(f submit -N4 true)
    never 1 not state_is "$probe" SCHED
    # the script is not ended for it
    listed "running.*node1"
    on node1 rm /run/hang
    within 10 state_is "$probe" INACTIVE
    within 5 not_drained node1
}

@test "not partial-ok: an allocation that is whole is told" {
    for n in node0 node1 node2 node3; do on "$n" touch /run/hang; done
    run_job 4
    is=$(account)
    f module remove sched-simple
    f module load sched-simple test-hello-nopartial
    account_is "$is"
    not_drained node0
    on node0 rm /run/hang
    within 10 account_is "${is#* }"
}
