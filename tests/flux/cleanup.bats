#!/usr/bin/env bats
# cleanup.bats - killed while jobs are in CLEANUP: each gets out of it once
# SPDX-License-Identifier: LGPL-3.0-or-later
# shellcheck disable=SC2154 # id: of in_cleanup

load restart

setup_file () { restart_up 4; }
teardown_file () { flux_down; }
teardown () { restart_again; }

@test "killed while a job waits in CLEANUP for a disk: it goes on when it can" {
    hang node1
    in_cleanup
    never 1 f job wait-event -t 0.1 "$id" free
    checkpoint
    flux_murder
    make_room
    flux_start
    ended_once "$id"
    within 10 counted 1
    let_go node1
    within 10 counted ""
    all_once "$id"
}

@test "killed, and the job is in CLEANUP again, begun: one hold, freed once" {
    in_cleanup
    hang node1
    checkpoint
    make_room
    f job wait-event -t 20 "$id" clean
    within 10 counted 1
    flux_murder
    flux_start
    ended_once "$id"
    within 10 counted 1
    within 10 not_drained node1
    no_place
    let_go node1
    place
    all_once "$id"
}

@test "killed, and the job is in CLEANUP again, done: it is let go" {
    in_cleanup
    checkpoint
    make_room
    f job wait-event -t 20 "$id" clean
    within 10 free_is 4
    flux_murder
    flux_start
    ended_once "$id"
    within 10 free_is 4
    counted ""
    all_once "$id"
}

# flagged: that job has been recorded and flagged, and another plugin's epilog
# keeps it in CLEANUP
flagged ()
{
    in_cleanup
    f post-job-event "$id" epilog-start description=other
    make_room
    within 10 asked '.jobs.flagged == 1'
}
other_ends ()
{
    f post-job-event "$id" epilog-finish description=other status=0
}

@test "killed with the flag posted and no free: told once, then begun" {
    hang node1
    flagged
    checkpoint
    flux_murder
    flux_start
    within 5 counted 0-3
    within 10 asked '.jobs.flagged == 1'
    other_ends
    ended_once "$id"
    within 10 counted 1
    let_go node1
    within 10 free_is 4
    all_once "$id"
}

@test "killed when the job was freed and the hold is not on disk: begun" {
    hang node1
    flagged
    fill_disk
    other_ends
    f job wait-event -t 10 "$id" clean
    checkpoint
    flux_murder
    make_room
    flux_start
    within 10 counted 1
    [ "$(held_jobs)" = "$id" ]
    let_go node1
    within 10 free_is 4
    all_once "$id"
}

@test "killed, and the job is flagged in CLEANUP again, done: it is let go" {
    flagged
    checkpoint
    other_ends
    f job wait-event -t 10 "$id" clean
    within 10 free_is 4
    flux_murder
    flux_start
    counted ""
    other_ends
    ended_once "$id"
    within 10 free_is 4
    all_once "$id"
}
