#!/usr/bin/env bats
# kvs.bats - the instance is not the one that the plugin's store remembers
# SPDX-License-Identifier: LGPL-3.0-or-later

load restart

setup_file () { restart_up 4; }
teardown_file () { flux_down; }
teardown () { restart_again; }

@test "another statedir: what is held is drained by name, and not told" {
    hang node1
    run_job 4
    within 10 counted 1
    flux_stop
    on head mv "$STATE" "$STATE".old
    flux_start
    counted ""
    drained node1 "housekeeping.*"
    id=$(run_job 3)
    within 10 counted ""
    [ "$(held_jobs)" != "" ]
    no_place
    let_go node1
    within 10 not_drained node1
    place
}

@test "a job id that is used again is not taken for the one that is held" {
    hang node1
    run_job 4
    within 10 counted 1
    other=$(run_job 3)
    flux_stop
    # as if the other job had got the id of the first
    on head python3 -c "
import sqlite3
db = sqlite3.connect ('$DISK/state/hk.db')
db.execute ('update alloc set jobid = $(f58_dec "$other")')
db.commit ()"
    flux_start
    counted ""
    drained node1 "housekeeping.*"
    no_place
    let_go node1
    within 10 not_drained node1
    place
}

@test "an older statedir: drains that are gone come again before a free" {
    checkpoint
    flux_stop
    on head cp -a "$STATE" "$STATE".then
    flux_start
    hang node1
    id=$(f submit -N4 sleep 30)
    f job wait-event -t 10 "$id" start
    fails node2
    f module remove "$FLUX_SCHED"
    f cancel "$id"
    f job wait-event -t 10 "$id" clean
    within 10 listed "ended .*node2"
    flux_stop
    on head rm -r "$STATE"
    on head mv "$STATE".then "$STATE"
    flux_start
    counted ""
    drained node1 "housekeeping.*"
    drained node2 "housekeeping@.*"
    let_go node1
    within 10 not_drained node1
    drained node2 "housekeeping@.*"
}

@test "ranks that are other hosts now: held hosts are drained by name" {
    hang node1
    run_job 4
    within 10 counted 1
    flux_stop
    swap
    flux_start
    counted ""
    drained node1 "housekeeping.*"
    [ "$(f resource drain -no '{ranks}')" = 2 ]
    no_place
    let_go node1
    within 10 not_drained node1
    place
    flux_stop
    unswap
    flux_start
}

# swap: ranks 1 and 2 change their hosts; unswap: and back
swap ()
{
    on head sed -i.then 's/node\[0-3\]/node[0,2,1,3]/' \
        /etc/flux-test/R /etc/systemd/system/flux-test.service
    on head systemctl daemon-reload
}
unswap ()
{
    local file
    for file in /etc/flux-test/R /etc/systemd/system/flux-test.service; do
        on head mv $file.then $file
    done
    on head systemctl daemon-reload
}

@test "nodes that are not back: held until they say so" {
    hang node1
    id=$(run_job 4)
    within 10 counted 1
    "$CLUSTER" kill node1
    flux_restart
    counted 1
    within 10 drained node1 "housekeeping.*"
    no_place
    "$CLUSTER" start node1
    place
    within 10 not_drained node1
    outcomes "$(f58plain "$id")" "node0 1 success, node1 1 rebooted,\
 node1 2 success, node2 1 success, node3 1 success"
}
