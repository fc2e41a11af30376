#!/usr/bin/env bats
# network.bats - cut cables, two machines of one name, clocks that are wrong
# SPDX-License-Identifier: LGPL-3.0-or-later
# shellcheck disable=SC2016,SC2086,SC2154 # text for other shells; numbers

bats_require_minimum_version 1.5.0
load story

HEAD=flux-hk-coordinator.service
HKD=flux-hkd.service

setup_file ()
{
    layer
    script 20-work <<'S'
#!/bin/sh
echo "$HK_ALLOC $HK_ATTEMPT" >>/run/hk-runs
while [ -e /run/hang ]; do sleep 0.05; done
S
    cluster_up 3
}

teardown_file ()
{
    story_down
}

setup ()
{
    local node
    for node in node0 node1 node2; do
        on $node rm -f /run/hk-runs /run/hang
    done
    # a life for each test
    told=$BATS_FILE_TMPDIR/said$BATS_TEST_NUMBER
    scheduler "$told" --hello --partial-ok --take-over
    within 10 said "$told" '"alloc-end"'
    job=$((3000 + 100 * BATS_TEST_NUMBER))
}

teardown ()
{
    [ -n "${BATS_TEST_COMPLETED:-}" ] || repair
    [ ! -e "$told.pid" ] || scheduler_end "$told"
    books "$told"
}

repair ()
{
    local node
    for node in head node0 node1 node2; do
        "$CLUSTER" heal $node
    done
    own_name
    true_clock node0
}

hang () { on "$1" touch /run/hang; }
go_on () { on "$1" rm -f /run/hang; }
attempts () { on "$1" awk '{ print $2 }' /run/hk-runs | xargs; }
working () { on "$1" pgrep -f 20-work >/dev/null; }
idle () { not working "$1"; }
finished () { said "$told" "\"jobid\":$1,.*\"final\":true"; }
# drained HOST REASON, undrained HOST: what the scheduler was told of it
drained () { said "$told" "\"type\":\"drain\",.*\"hosts\":\"$1\",.*$2"; }
undrained () { said "$told" "\"type\":\"undrain\",.*\"hosts\":\"$1\""; }
alarmed () { on head journalctl -b -u $HEAD -o cat --since "$since" | grep -E "$1"; }
now () { on head date '+%F %T'; }

@test "a cut shorter than lost-after changes nothing" {
    hang node0
    job_end $job 'node[0-1]'
    within 10 working node0
    "$CLUSTER" cut -s node0
    go_on node0
    within 10 idle node0
    never 1 freed "$told" $job 0
    "$CLUSTER" heal node0
    within 10 finished $job
    freed "$told" $job 0
    not drained node0 .
    [ "$(attempts node0)" = 1 ]
    outcomes $job "node0 1 success, node1 1 success"
}

@test "a longer one drains the node; it is undrained when it returns" {
    hang node0
    job_end $job 'node[0-1]'
    within 10 working node0
    "$CLUSTER" cut -s node0
    within 10 drained node0 'no contact for'
    within 5 listed '20-work +node0 .*lost'
    not drained node1 .
    not freed "$told" $job 0
    "$CLUSTER" heal node0
    within 15 undrained node0
    before "$told" '"type":"drain".*no contact' '"type":"undrain"'
    not freed "$told" $job 0
    go_on node0
    within 10 finished $job
    freed "$told" $job 0
    [ "$(attempts node0)" = 1 ]
}

@test "what ended meanwhile is freed once when the node returns" {
    hang node0
    job_end $job node0
    within 10 working node0
    "$CLUSTER" cut node0 # the carrier too
    go_on node0
    within 10 drained node0 'no contact for'
    not freed "$told" $job 0
    "$CLUSTER" heal node0
    within 20 finished $job
    within 5 undrained node0
    freed "$told" $job 0
    [ "$(attempts node0)" = 1 ]
}

@test "a job that ends while its node is cut off runs there once" {
    "$CLUSTER" cut -s node0
    job_end $job 'node[0-1]'
    within 10 freed "$told" $job 1
    within 5 listed 'waiting .*node0'
    "$CLUSTER" heal node0
    within 15 finished $job
    freed "$told" $job 0
    [ "$(attempts node0)" = 1 ]
}

@test "the head cut off: nodes work on, and each is freed once" {
    hang node0
    hang node1
    hang node2
    job_end $job 'node[0-2]'
    within 10 listed '20-work +node\[0-2\]'
    "$CLUSTER" cut head
    go_on node0
    go_on node1
    within 10 drained node2 'no contact for'
    never 1 said "$told" '"type":"free"'
    "$CLUSTER" heal head
    within 20 freed "$told" $job 0
    within 20 freed "$told" $job 1
    within 15 undrained node2
    not finished $job
    go_on node2
    within 10 finished $job
    for node in node0 node1 node2; do
        [ "$(attempts $node)" = 1 ]
        undrained $node
    done
}

# node1 says that it is node0, and again who it is
other_name ()
{
    on node1 sh -c 'mkdir -p /etc/flux/hk.conf.d
        printf "[hkd]\nhost = node0\n" >/etc/flux/hk.conf.d/name.conf
        systemctl restart flux-hkd'
}
own_name ()
{
    on node1 sh -c 'rm -f /etc/flux/hk.conf.d/name.conf
        systemctl restart flux-hkd'
}
# is_node0 NODE: it has got that name, since $since
is_node0 ()
{
    on "$1" journalctl -b -u $HKD -o cat --since "$since" |
        grep 'connected to the coordinator as node0'
}

@test "two machines of one name: alarm, and the run of the first is unharmed" {
    since=$(now)
    hang node0
    job_end $job node0
    within 10 working node0
    other_name
    within 5 on node1 sh -c \
        'journalctl -b -u flux-hkd | grep "conflict: host node0 is .* ask again"'
    within 10 alarmed 'two machines say they are this host: 10.99.1.1.* 10.99.1.2'
    within 5 drained node0 'two machines say they are node0'
    never 5 undrained node0 # as long as both live
    listed '20-work +node0'
    on head hkctl nodes -t node0 | grep conflict
    # nothing new is begun on either of them
    job_end $((job + 1)) node0
    own_name
    within 10 undrained node0
    alarmed 'one machine alone has this name again'
    [ "$(attempts node0)" = 1 ]
    go_on node0
    within 10 finished $job
    within 10 finished $((job + 1))
    [ "$(attempts node0)" = "1 1" ]
    outcomes $job "node0 1 success"
    on node1 test ! -e /run/hk-runs
}

@test "another machine gets the name when the first has been silent" {
    since=$(now)
    "$CLUSTER" cut -s node0
    other_name
    within 10 is_node0 node1
    job_end $job node0
    within 15 finished $job
    [ "$(attempts node1)" = 1 ]
    on node0 test ! -e /run/hk-runs
    # the first comes back and asks, until the other has gone
    "$CLUSTER" heal node0
    within 25 on node0 sh -c \
        'journalctl -b -u flux-hkd | grep "conflict: host node0 is .* ask again"'
    since=$(now)
    own_name
    within 10 is_node0 node0
    job_end $((job + 1)) node0
    within 15 finished $((job + 1))
    [ "$(attempts node0)" = 1 ]
    [ "$(attempts node1)" = 1 ]
}

skew ()
{
    on "$1" bash -c '
        mkdir -p /etc/systemd/system/munge.service.d
        lib=$(dpkg -L libfaketime | grep -m 1 /libfaketime.so)
        printf "[Service]\nEnvironment=LD_PRELOAD=%s FAKETIME=-1h\n" "$lib" \
            >/etc/systemd/system/munge.service.d/skew.conf
        systemctl daemon-reload
        systemctl restart munge'
}
true_clock ()
{
    on "$1" bash -c '
        rm -rf /etc/systemd/system/munge.service.d
        systemctl daemon-reload
        systemctl restart munge'
}

@test "a clock that is wrong keeps that node out, and it says so" {
    hang node0
    job_end $job 'node[0-1]'
    within 10 working node0
    within 10 freed "$told" $job 1
    skew node0
    on node0 systemctl restart $HKD
    within 10 on node0 sh -c 'journalctl -b -u flux-hkd | grep "clock said"'
    go_on node0
    within 5 idle node0
    job_end $((job + 1)) node1
    within 10 finished $((job + 1))
    not freed "$told" $job 0
    true_clock node0
    within 20 finished $job
    freed "$told" $job 0
    [ "$(attempts node0)" = 1 ]
}
