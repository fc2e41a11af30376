#!/usr/bin/env bats
# online.bats - a scheduler that is online before the plugin, or after a purge
# SPDX-License-Identifier: LGPL-3.0-or-later

load restart

setup_file () { restart_up 4; }
teardown_file () { flux_down; }
teardown () { restart_again; }

@test "a job that is purged while held is drained at the next reload" {
    hang node1
    id=$(run_job 4)
    within 10 counted 1
    f job purge --force --num-limit=0
    not f job eventlog "$id"
    counted 1
    not_drained node1
    f module reload "$FLUX_SCHED"
    within 5 counted ""
    drained node1 "housekeeping.*"
    flux_restart
    counted ""
    drained node1 "housekeeping.*"
    no_place
    let_go node1
    within 10 not_drained node1
    place
}

@test "taken out and loaded again: what the scheduler counts is known" {
    hang node1 node2
    id=$(run_job 4)
    within 10 counted 1-2
    plugin=$(f jobtap query hk-coordinator.so | jq -r .path)
    f jobtap remove hk-coordinator.so
    counted 1-2
    f jobtap load "$plugin"
    within 10 is_ready
    counted 1-2
    within 10 not_drained node1
    # whoever disconnects may be the scheduler: the free comes all the same
    let_go node2
    within 10 counted 1
    # it goes, and nothing is freed until there is another
    f module remove "$FLUX_SCHED"
    within 10 is_none
    before=$(frees)
    let_go node1
    within 10 history_has "node1.*success"
    never 1 test "$(frees)" != "$before"
    f module load "$FLUX_SCHED"
    within 10 is_ready
    within 10 free_is 4
    all_once "$id"
}
is_none () { [ "$(asked .scheduler)" = none ]; }
