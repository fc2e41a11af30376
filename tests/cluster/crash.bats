#!/usr/bin/env bats
# crash.bats - daemons and machines that die: nothing is lost, nothing is twice
# SPDX-License-Identifier: LGPL-3.0-or-later
# shellcheck disable=SC2016,SC2086,SC2154 # text for other shells; numbers

bats_require_minimum_version 1.5.0
load story

HEAD=flux-hk-coordinator.service
HKD=flux-hkd.service

setup_file ()
{
    layer
    script 10-count <<'S'
#!/bin/sh
# outlives a power cut: what was started here
echo "$HK_ALLOC $HK_ATTEMPT" >>/var/log/hk-runs
sync
S
    script 20-work <<'S'
#!/bin/sh
while [ -e /run/hang ]; do sleep 0.05; done
exit "$(cat /run/exit 2>/dev/null || echo 0)"
S
    local unit
    for unit in flux-hk-coordinator flux-hkd; do
        mkdir -p "$CLUSTER_LAYER/etc/systemd/system/$unit.service.d"
        printf '[Service]\nRestartSec=100ms\n' \
            >"$CLUSTER_LAYER/etc/systemd/system/$unit.service.d/fast.conf"
    done
    cluster_up 3
}

teardown_file ()
{
    story_down
}

setup ()
{
    # a life for each test
    told=$BATS_FILE_TMPDIR/said$BATS_TEST_NUMBER
    scheduler "$told" --hello --partial-ok --take-over
    within 10 said "$told" '"alloc-end"'
    job=$((2000 + 100 * BATS_TEST_NUMBER))
    local node
    for node in node0 node1 node2; do
        on $node rm -f /var/log/hk-runs /run/hang /run/exit
    done
}

teardown ()
{
    [ -n "${BATS_TEST_COMPLETED:-}" ] || repair
    [ ! -e "$told.pid" ] || scheduler_end "$told"
    books "$told"
}

# what a failed test left stopped or hanging, the next one finds well
repair ()
{
    local node
    for node in node0 node1 node2; do
        "$CLUSTER" start $node 2>/dev/null || :
        fault $node $HKD CONT || :
        on $node rm -f /run/hang /run/exit || :
        munge_back $node || :
        on $node systemctl start $HKD || :
    done
    fault head $HEAD CONT || :
    munge_back head || :
    on head systemctl start $HEAD || :
}

hang () { on "$1" touch /run/hang; }
go_on () { on "$1" rm -f /run/hang; }
# attempts NODE: "1" if scripts were started once in this test, "1 2" if again
attempts () { on "$1" awk '{ print $2 }' /var/log/hk-runs | xargs; }
# no_twice NODE: no attempt was started twice
no_twice () { [ -z "$(on "$1" sort /var/log/hk-runs | uniq -d)" ]; }
working () { on "$1" pgrep -f 20-work >/dev/null; }
idle () { not working "$1"; }
finished () { said "$told" "\"jobid\":$1,.*\"final\":true"; }

@test "coordinator killed before a node confirmed its start" {
    fault node0 $HKD STOP
    job_end $job 'node[0-1]'
    within 10 freed "$told" $job 1
    within 5 listed 'waiting .* node0'
    murder head $HEAD
    fault node0 $HKD CONT
    within 20 freed "$told" $job 0
    freed "$told" $job 1
    finished $job
    [ "$(attempts node0)" = 1 ]
    [ "$(attempts node1)" = 1 ]
}

@test "coordinator killed while runs go on" {
    hang node0
    hang node1
    job_end $job 'node[0-2]'
    within 10 freed "$told" $job 2
    within 10 listed '20-work +node\[0-1\]'
    murder head $HEAD
    within 15 listed '20-work +node\[0-1\]'
    not said "$told" "\"jobid\":$job,.*\"ranks\":\"[^\"]*[01]"
    go_on node0
    within 10 freed "$told" $job 0
    not finished $job
    go_on node1
    within 10 freed "$told" $job 1
    finished $job
    outcomes $job "node0 1 success, node1 1 success, node2 1 success"
}

@test "coordinator killed when a run has ended and it was not told" {
    hang node0
    job_end $job node0
    within 10 working node0
    fault head $HEAD STOP
    go_on node0
    within 10 idle node0
    murder head $HEAD
    within 15 finished $job
    freed "$told" $job 0
    [ "$(attempts node0)" = 1 ]
    outcomes $job "node0 1 success"
}

@test "coordinator killed while a drain is not confirmed" {
    scheduler_end "$told"
    hand=$BATS_FILE_TMPDIR/hand
    peer "$hand" --role manager
    tell "$hand" '{"type":"sched-hello","life":"hand","partial_ok":true,"take_over":true}'
    within 5 said "$hand" '"sched-alloc-end"'
    tell "$hand" '{"type":"sched-ready","life":"hand"}'
    on node0 sh -c 'echo 3 >/run/exit'
    job_end $job node0
    within 10 said "$hand" '"drain".*"hosts":"node0".*exited 3'
    murder head $HEAD
    within 15 heard "$hand" 2 '"welcome"'
    tell "$hand" '{"type":"sched-hello","life":"hand","partial_ok":true,"last_free":0}'
    within 5 heard "$hand" 2 '"drain".*"hosts":"node0"'
    never 1 said "$hand" '"type":"free"'
    n=$(numbers "$hand" drain node0 | tail -n 1)
    tell "$hand" "{\"type\":\"drain-done\",\"n\":$n,\"hosts\":{\"node0\":{\"result\":\"ok\"}}}"
    within 5 freed "$hand" $job 0
    [ "$(times "$hand" '"type":"free"')" = 1 ]
    books "$hand"
    scheduler_end "$hand"
    [ "$(attempts node0)" = 1 ]
}

@test "coordinator killed at one moment after the other" {
    local i
    for i in 0 1 2 3 4 5; do
        on head hkctl job-end -j $((job + i)) -u 1000 -t 'node[0-2]' \
            --t-submit 1 --t-end 2 >"$BATS_TEST_TMPDIR/answer" 2>&1 &
        sleep "0.0$((i * i))"
        murder head $HEAD
        wait $! || : # it may have been said to a dead one
        # said again it is the same end
        within 10 on head hkctl job-end -j $((job + i)) -u 1000 \
            -t 'node[0-2]' --t-submit 1 --t-end 2
    done
    for i in 0 1 2 3 4 5; do
        within 15 said "$told" "\"jobid\":$((job + i)),.*\"final\":true"
        for rank in 0 1 2; do
            within 5 freed "$told" $((job + i)) $rank
        done
    done
    for node in node0 node1 node2; do
        no_twice $node
        [ "$(attempts $node)" = "1 1 1 1 1 1" ]
    done
}

@test "hkd killed while its run goes on" {
    hang node0
    job_end $job node0
    within 10 working node0
    murder node0 $HKD
    within 10 listed '20-work +node0'
    not finished $job
    go_on node0
    within 10 finished $job
    [ "$(attempts node0)" = 1 ]
    outcomes $job "node0 1 success"
}

@test "hkd killed when its run has ended and it did not see it" {
    hang node0
    job_end $job node0
    within 10 working node0
    fault node0 $HKD STOP
    go_on node0
    within 10 idle node0
    murder node0 $HKD
    within 10 finished $job
    freed "$told" $job 0
    [ "$(attempts node0)" = 1 ]
    outcomes $job "node0 1 success"
}

@test "hkd and coordinator killed together, again and again" {
    hang node0
    job_end $job 'node[0-1]'
    within 10 working node0
    local i
    for i in 1 2 3; do
        fault head $HEAD KILL
        murder node0 $HKD
    done
    within 15 listed '20-work +node0'
    go_on node0
    within 15 finished $job
    freed "$told" $job 0
    freed "$told" $job 1
    [ "$(attempts node0)" = 1 ]
}

# no_munge NODE: munged is killed there and stays away
no_munge ()
{
    on "$1" systemctl mask --quiet --runtime munge.service
    fault "$1" munge.service KILL
    within 5 on "$1" sh -c '! systemctl -q is-active munge.service'
}
munge_back ()
{
    on "$1" systemctl unmask --quiet --runtime munge.service
    on "$1" systemctl start munge.service
}

@test "munged of a node killed: it works on, and comes back after a restart" {
    no_munge node0
    job_end $job node0
    within 10 finished $job # who is connected needs no munged
    hang node0
    job_end $((job + 1)) 'node[0-1]'
    within 10 working node0
    within 10 freed "$told" $((job + 1)) 1
    murder node0 $HKD
    go_on node0
    within 10 idle node0
    within 10 on node0 sh -c 'journalctl -b -u flux-hkd | grep -i munge'
    never 1 freed "$told" $((job + 1)) 0
    munge_back node0
    within 20 finished $((job + 1))
    freed "$told" $((job + 1)) 0
    [ "$(attempts node0)" = "1 1" ]
}

@test "munged of the head killed: nodes go on, who is new waits for it" {
    hang node0
    job_end $job 'node[0-1]'
    within 10 working node0
    no_munge head
    go_on node0
    within 10 finished $job
    run -3 on head hkctl ping --timeout 2s
    [[ $output = *munged* ]]
    within 10 on head sh -c 'journalctl -b -u flux-hk-coordinator |
        grep "munge does not answer, so nobody new is let in"'
    murder head $HEAD
    munge_back head
    within 20 connected 3
    job_end $((job + 1)) 'node[0-2]'
    within 10 finished $((job + 1))
}

@test "power cut during a run: it is begun anew after the boot, freed once" {
    hang node0
    job_end $job 'node[0-1]'
    within 10 working node0
    within 10 freed "$told" $job 1
    "$CLUSTER" kill node0
    "$CLUSTER" start node0
    within 20 finished $job
    freed "$told" $job 0
    [ "$(attempts node0)" = "1 2" ]
    outcomes $job "node0 1 rebooted, node0 2 success, node1 1 success"
}

@test "hkd may start before the coordinator, and long after" {
    on head systemctl stop $HEAD
    on node0 systemctl restart $HKD
    on node0 systemctl is-active $HKD
    on node1 systemctl stop $HKD
    on head systemctl start $HEAD
    within 20 connected 2
    within 10 job_end $job 'node[0-1]'
    within 10 freed "$told" $job 0
    listed 'waiting .*node1'
    never 1 freed "$told" $job 1
    on node1 systemctl start $HKD
    within 10 finished $job
    [ "$(attempts node1)" = 1 ]
}
