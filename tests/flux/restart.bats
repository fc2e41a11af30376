#!/usr/bin/env bats
# restart.bats - a Flux instance that stops or dies while nodes are held
# SPDX-License-Identifier: LGPL-3.0-or-later

load restart

setup_file () { restart_up 4; }
teardown_file () { flux_down; }
teardown () { restart_again; }

@test "a stop and a start: what hangs is held, told and freed when it is done" {
    hang node1
    id=$(run_job 4)
    within 10 counted 1
    for _ in 1 2; do
        flux_restart
        counted 1
        within 5 free_is 3
        [ "$(held_jobs)" = "$id" ]
        within 10 not_drained node1
    done
    no_place
    let_go node1
    place
    all_once "$id"
}

@test "killed while a script runs: the same" {
    hang node1 node2
    id=$(run_job 4)
    within 10 counted 1-2
    checkpoint
    flux_murder
    let_go node2
    flux_start
    within 10 counted 1
    within 10 not_drained node2
    flux_murder
    flux_start
    counted 1
    no_place
    let_go node1
    place
    all_once "$id"
}

@test "killed right after the epilog's end, with all of it on disk" {
    hang node1
    id=$(run_job 4)
    checkpoint
    flux_murder
    flux_start
    ended_once "$id"
    within 10 counted 1
    no_place
    let_go node1
    place
    all_once "$id"
}

@test "killed before a checkpoint: what is begun is held, its job unknown" {
    checkpoint
    hang node1
    run_job 4
    within 10 counted 1
    flux_murder
    flux_start
    # a scheduler cannot be told of a job that is not known
    counted ""
    drained node1 "housekeeping.*"
    no_place
    let_go node1
    within 10 not_drained node1
    place
}

@test "killed after a failure: its drain is not forgotten" {
    hang node1
    fails node2
    id=$(run_job 4)
    within 10 drained node2 "housekeeping@.*"
    within 10 counted 1
    flux_murder
    flux_start
    counted 1
    drained node2 "housekeeping@.*"
    let_go node1
    within 10 counted ""
    drained node2 "housekeeping@.*"
}

@test "killed, and the job runs again: the nodes are held, and then once more" {
    hang node1
    id=$(f submit -N4 sleep 30)
    f job wait-event -t 10 "$id" start
    checkpoint
    f cancel "$id"
    f job wait-event -t 10 "$id" clean
    within 10 counted 1
    flux_murder
    flux_start
    f job wait-event -t 20 "$id" clean
    no_place
    let_go node1
    place
    within 10 counted ""
    within 10 not_drained node1
}

@test "killed, and the job waits for resources again" {
    first=$(f submit -N4 sleep 30)
    f job wait-event -t 10 "$first" start
    id=$(f submit -N4 --urgency=31 sleep 0.1)
    checkpoint
    hang node1
    f cancel "$first"
    f job wait-event -t 10 "$first" clean
    let_go node1
    f job wait-event -t 10 "$id" start
    hang node1
    f job wait-event -t 10 "$id" clean
    within 10 counted 1
    flux_murder
    flux_start
    # a hold of a job that is to be placed again is not told
    within 5 drained node1 "housekeeping.*"
    never 1 state_is "$id" RUN
    let_go node1
    within 10 state_is "$id" INACTIVE
    within 10 counted ""
}
