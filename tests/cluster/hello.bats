#!/usr/bin/env bats
# hello.bats - schedulers that start while ranks are held
# SPDX-License-Identifier: LGPL-3.0-or-later
# shellcheck disable=SC2016,SC2086,SC2154 # text for other shells; numbers

bats_require_minimum_version 1.5.0
load story

setup_file ()
{
    layer
    script 20-work <<'S'
#!/bin/sh
while [ -e /run/hang ]; do sleep 0.05; done
exit "$(cat /run/exit 2>/dev/null || echo 0)"
S
    cluster_up 4
    # a job manager by hand: it says when a drain is done
    hand=$BATS_FILE_TMPDIR/hand
    peer "$hand" --role manager
}

teardown_file ()
{
    story_down
}

setup ()
{
    local node
    for node in node0 node1 node2 node3; do
        on $node rm -f /run/hang /run/exit
    done
    hand=$BATS_FILE_TMPDIR/hand
    job=$((5000 + 100 * BATS_TEST_NUMBER))
    life=t$BATS_TEST_NUMBER
    mark
}

teardown ()
{
    if [ -z "${BATS_TEST_COMPLETED:-}" ]; then
        sed "1,${from}d" "$hand" >&3
        on head hkctl list >&3
        # the next one finds nothing held
        for node in node0 node1 node2 node3; do
            on $node rm -f /run/hang /run/exit
            on $node systemctl start flux-hkd
        done
        scheduler "$hand.mop" --hello --partial-ok --take-over
        within 10 nothing_held || :
        scheduler_end "$hand.mop"
    fi
    books "$hand"
}

hang () { on "$1" touch /run/hang; }
go_on () { on "$1" rm -f /run/hang; }
working () { on "$1" pgrep -f 20-work >/dev/null; }
nothing_held () { [ -z "$(on head hkctl list -n)" ]; }

# mark: from here on; lately REGEX: said since then, and how often
mark () { from=$(wc -l <"$hand"); }
lately () { sed "1,${from}d" "$hand" | grep -Eq "$1"; }
count_lately () { sed "1,${from}d" "$hand" | grep -Ec "$1" || :; }

# hello LIFE [FIELDS]: a scheduler has started; answered: it was told all
hello ()
{
    mark
    tell "$hand" "{\"type\":\"sched-hello\",\"life\":\"$1\",\"take_over\":true${2:+,$2}}"
}
answered () { within 5 lately '"type":"sched-alloc-end"'; }
# ready LIFE [R]: it serves, and counts so much as allocated
ready ()
{
    tell "$hand" "{\"type\":\"sched-ready\",\"life\":\"$1\"${2:+,\"allocated\":$2}}"
}
# confirm drain|undrain HOST: the last request of that is done
confirm ()
{
    local n
    within 5 lately "\"type\":\"$1\",.*\"hosts\":\"$2\""
    n=$(numbers "$hand" "$1" "\"hosts\":\"$2\"" | tail -n 1)
    tell "$hand" "{\"type\":\"$1-done\",\"n\":$n,\"hosts\":{\"$2\":{\"result\":\"ok\"}}}"
}
# R RANK HOST
R ()
{
    echo "{\"version\":1,\"execution\":{\"R_lite\":[{\"rank\":\"$1\"," \
        "\"children\":{\"core\":\"0\"}}],\"nodelist\":[\"$2\"]," \
        "\"starttime\":0,\"expiration\":0}}" | tr -d ' '
}
alloc () { lately "\"type\":\"sched-alloc\",.*\"jobid\":$1,$2"; }
# free JOBID RANKS [final]
free ()
{
    local end='"expiration":0}}}$'
    [ "${3:-}" != final ] || end='"final":true}$'
    lately "\"type\":\"free\",.*\"jobid\":$1,\"ranks\":\"$2\",.*$end"
}
any_free () { lately '"type":"free"'; }

# half_free: of a job on node0 and node1 the second is freed in a ready life
half_free ()
{
    hello "$life" '"partial_ok":true'
    answered
    ready "$life"
    hang node0
    job_end $job 'node[0-1]'
    within 10 free $job 1
    within 5 working node0
}

@test "the same life three times: it goes on, and nothing is told twice" {
    half_free
    n=$(numbers "$hand" free | tail -n 1)
    for i in 1 2 3; do
        hello "$life" "\"partial_ok\":true,\"last_free\":$n"
        within 5 lately '"type":"sched-alloc-end",.*"resumed":true'
        not alloc $job .
        not any_free
    done
    not lately '"type":"drain"'
    go_on node0
    within 10 free $job 0 final
    freed "$hand" $job 0
}

@test "a free that the manager has not got comes again, with its number" {
    hello "$life" '"partial_ok":true'
    answered
    ready "$life"
    n=$(numbers "$hand" free | tail -n 1)
    job_end $job node0
    within 10 free $job 0 final
    hello "$life" "\"partial_ok\":true,\"last_free\":${n:-0}"
    within 5 free $job 0 final
    [ "$(numbers "$hand" free | tail -n 2 | uniq | wc -l)" = 1 ]
    n=$(numbers "$hand" free | tail -n 1)
    hello "$life" "\"partial_ok\":true,\"last_free\":$n"
    answered
    never 1 any_free
}

@test "new lives with partial-ok: drained first, then told what is left" {
    half_free
    for i in 1 2 3; do
        hello "$life.$i" '"partial_ok":true'
        within 5 lately '"type":"drain",.*"hosts":"node0",.*scheduler restarts'
        never 1 lately '"type":"sched-alloc' # not before that is confirmed
        confirm drain node0
        answered
        alloc $job '.*"free":"1"'
        [ "$(count_lately '"type":"sched-alloc",')" = 1 ]
    done
    # what an older life still says counts for nothing
    ready "$life.2"
    within 5 lately '"type":"error",.*not the life of the last hello'
    go_on node0
    within 10 outcomes $job "node0 1 success, node1 1 success"
    never 1 any_free # told, and not ready yet
    ready "$life.3"
    within 5 free $job 0 final
    confirm undrain node0
    [ "$(count_lately "\"type\":\"free\"")" = 1 ]
}

@test "without partial-ok a job of which a part is free is not told" {
    half_free
    hello "$life.1"
    confirm drain node0
    answered
    not alloc $job .
    ready "$life.1"
    never 1 lately '"type":"undrain"' # all that keeps jobs from node0
    go_on node0
    confirm undrain node0
    within 5 nothing_held
    not any_free
}

@test "without partial-ok a whole one is told whole, freed after ready" {
    hello "$life" '"partial_ok":true'
    answered
    ready "$life"
    hang node0
    hang node1
    job_end $job 'node[0-1]'
    within 10 listed '20-work +node\[0-1\]'
    hello "$life.1"
    answered
    alloc $job .
    not lately '"free":"'
    not lately '"type":"drain"'
    go_on node0
    within 10 outcomes $job "node0 1 success"
    never 1 any_free
    ready "$life.1"
    within 5 free $job 0
    go_on node1
    within 10 free $job 1 final
}

@test "a failed rank whose drain is not confirmed is not told as free" {
    hello "$life" '"partial_ok":true'
    answered
    ready "$life"
    hang node2
    on node3 sh -c 'echo 3 >/run/exit'
    job_end $job 'node[2-3]'
    within 10 lately '"type":"drain",.*"hosts":"node3",.*exited 3'
    hello "$life.1" '"partial_ok":true'
    answered
    alloc $job .
    not lately '"free":"'
    ready "$life.1"
    never 1 any_free
    within 5 lately '"type":"drain",.*"hosts":"node3",.*exited 3'
    # the answer to what the older life was asked is none to this one
    old=$(numbers "$hand" drain node3 | tail -n 2 | head -n 1)
    tell "$hand" "{\"type\":\"drain-done\",\"n\":$old,\"hosts\":{\"node3\":{\"result\":\"ok\"}}}"
    never 1 any_free
    confirm drain node3
    within 5 free $job 1
    go_on node2
    within 10 free $job 0 final
}

@test "ranks that wait for release-after are not told as free" {
    on head sh -c 'mkdir -p /etc/flux/hk.conf.d
        printf "[housekeeping]\nrelease-after = all\n" >/etc/flux/hk.conf.d/all.conf
        systemctl reload flux-hk-coordinator'
    hello "$life" '"partial_ok":true'
    answered
    ready "$life"
    hang node0
    job_end $job 'node[0-1]'
    within 10 outcomes $job "node1 1 success"
    hello "$life.1" '"partial_ok":true'
    answered
    alloc $job .
    not lately '"free":"'
    ready "$life.1"
    never 1 any_free
    go_on node0
    within 10 free $job 0-1 final
    on head sh -c 'rm /etc/flux/hk.conf.d/all.conf
        systemctl reload flux-hk-coordinator'
}

@test "a job that ends during a hello is recorded, and begins after ready" {
    half_free
    hello "$life.1" '"partial_ok":true'
    within 5 lately '"type":"drain",.*"hosts":"node0"'
    [ "$(job_end $((job + 1)) node2 --t-submit 1 --t-end 2)" = new ]
    [ "$(job_end $((job + 1)) node2 --t-submit 1 --t-end 2)" = held ]
    within 5 listed 'recorded .*node2'
    never 1 outcomes $((job + 1)) "node2 1 success"
    confirm drain node0
    answered
    alloc $job '.*"free":"1"'
    not alloc $((job + 1)) .
    ready "$life.1"
    within 10 free $((job + 1)) 0 final
    within 10 nothing_but node0
    go_on node0
    within 10 free $job 0 final
    confirm undrain node0
    freed "$hand" $job 0
}
nothing_but () { [ "$(on head hkctl list -n | grep -vc " $1 *$")" = 0 ]; }

@test "ranks of active jobs are not told, not started on and not freed" {
    hello "$life" '"partial_ok":true'
    answered
    ready "$life"
    hang node0
    on node1 systemctl stop flux-hkd
    job_end $job node0 --ranks 0
    job_end $((job + 1)) node1 --ranks 1
    job_end $((job + 2)) node2 --ranks 2
    within 10 free $((job + 2)) 2 final
    within 10 working node0
    hello "$life.1" "\"partial_ok\":true,\"active\":\"0-1\",\"jobs\":[$((job + 9))]"
    confirm drain node0
    confirm drain node1
    answered
    not alloc '[0-9]*' .
    ready "$life.1"
    within 5 listed 'conflict'
    on node1 systemctl start flux-hkd
    go_on node0
    within 10 outcomes $job "node0 1 success"
    never 1 working node1
    not any_free
    # their job ends: it is what holds the ranks in this life
    job_end $((job + 9)) 'node[0-1]'
    confirm undrain node0
    confirm undrain node1
    within 10 lately "\"type\":\"free\",.*\"jobid\":$((job + 9)),.*\"final\":true"
    within 10 nothing_held
    freed "$hand" $((job + 9)) 0
    freed "$hand" $((job + 9)) 1
    not lately "\"type\":\"free\",.*\"jobid\":$((job + 1)),"
    outcomes $((job + 1)) "node1 1 success"
}

@test "an account that lacks a told rank keeps its node drained to the end" {
    half_free
    hello "$life.1"
    confirm drain node0
    answered
    ready "$life.1" "$(R 7 node7)"
    never 1 lately '"type":"undrain"'
    go_on node0
    confirm undrain node0
    within 5 nothing_held
    not any_free

    # the same of a whole one, which needed no drain to be told
    hang node0
    job_end $((job + 1)) node0
    within 10 working node0
    hello "$life.2" '"partial_ok":true'
    answered
    alloc $((job + 1)) .
    not lately '"type":"drain"'
    ready "$life.2" "$(R 7 node7)"
    confirm drain node0
    go_on node0
    confirm undrain node0
    within 5 nothing_held
    not any_free
}

@test "an account that has the told rank ends its drain at once" {
    half_free
    hello "$life.1" '"partial_ok":true'
    confirm drain node0
    answered
    alloc $job '.*"free":"1"'
    ready "$life.1" "$(R 0 node0)"
    confirm undrain node0
    working node0
    not any_free
    go_on node0
    within 10 free $job 0 final
}
