#!/usr/bin/env bats
# jobs.bats - jobs that end, and what the scheduler is told
# SPDX-License-Identifier: LGPL-3.0-or-later

load story

setup_file ()
{
    layer
    script 10-first <<'S'
#!/bin/sh
echo "first on $HK_HOST"
S
    script 20-second <<'S'
#!/bin/sh
# a test says by files what is to happen on this node
if [ -e /run/hang ]; then sleep 600; fi
exit "$(cat /run/exit 2>/dev/null || echo 0)"
S
    cluster_up 3
    scheduler "$BATS_FILE_TMPDIR/said" --hello --partial-ok
    within 10 said "$BATS_FILE_TMPDIR/said" '"alloc-end"'
}

teardown_file ()
{
    story_down
}

setup ()
{
    told=$BATS_FILE_TMPDIR/said
}

@test "each node is freed once, the last one with final" {
    job_end 101 'node[0-2]'
    within 10 said "$told" '"jobid":101,.*"final":true'
    freed "$told" 101 0
    freed "$told" 101 1
    freed "$told" 101 2
    [ "$(times "$told" '"jobid":101,.*"final":true')" = 1 ]
    within 5 history_has '"jobid": ?101,'
}

@test "the same end said again has the same answer and no second run" {
    job_end 102 node0 --t-submit 1 --t-end 5
    within 10 said "$told" '"jobid":102,.*"final":true'
    run job_end 102 node0 --t-submit 1 --t-end 5
    [ "$status" -eq 0 ]
    [ "$output" = "done" ]
    [ "$(on head hkctl history -j 102 --json | grep -o '"attempt"' | wc -l)" = 1 ]
    # another R is another allocation
    run job_end 102 node1 --t-submit 1 --t-end 5
    [ "$output" = new ]
    within 10 history_has '"jobid": ?102,.*node1'
}

@test "a host that does not exist is held and shown, the others are freed" {
    job_end 103 node0,nosuch
    within 10 freed "$told" 103 0
    within 5 listed 'waiting .*nosuch'
    never 1 freed "$told" 103 1
    on head hkctl nodes | grep -E 'nosuch'
    # the act that ends it
    on head hkctl kill -j 103
    within 10 freed "$told" 103 1
}

@test "R that is none is refused, and it says what is wrong" {
    run on head sh -c 'echo "{\"version\":2}" |
        hkctl job-end -j 104 -u 1000 -R -'
    [ "$status" -ne 0 ]
    echo "$output"
    [[ $output == *execution* ]]
    run listed 104
    [ "$status" -ne 0 ]
}

@test "two jobs on one node, one after the other and at once" {
    on node1 touch /run/hang
    job_end 105 node1
    within 10 listed '20-second +node1'
    job_end 106 node1
    within 5 listed 'waiting .* node1'
    never 1 said "$told" '"jobid":10[56]'
    on node1 rm /run/hang
    on head hkctl kill -j 105
    within 15 freed "$told" 106 0
    freed "$told" 105 0
    said "$told" '"drain".*housekeeping@.* killed'
}

@test "a script that exits 3: the node is drained first, then freed" {
    on node2 sh -c 'echo 3 >/run/exit'
    job_end 107 node2
    within 10 freed "$told" 107 0
    on node2 rm /run/exit
    said "$told" '"drain".*"hosts":"node2".*exit-code: exited 3 \(20-second'
    drain=$(grep -n '"drain".*"hosts":"node2".*exited 3' "$told" | cut -d: -f1)
    free=$(grep -n '"jobid":107,' "$told" | cut -d: -f1)
    [ "$drain" -lt "$free" ]
}

held () { on head hkctl ping | grep -q "held: $1\$"; }

# many N: ends of N jobs on a host that does not exist, then a hello
many ()
{
    local cores # so many that no buffer on the way holds all entries
    cores=$(seq -s, 0 2 2000)
    seq 1000 $((999 + $1)) | sed 's/.*/{"type":"job-end","jobid":&,'`
        `'"userid":1000,"t_submit":1,"t_end":2,"R":{"version":1,'`
        `'"execution":{"R_lite":[{"rank":"0","children":{"core":"'"$cores"'"}}],'`
        `'"nodelist":["nosuch"],"starttime":0,"expiration":0}}}/'
    within 20 held "$1" >&2
    # nobody reads for a while, so that every queue on the way is full
    kill -STOP "$(cat "$BATS_TEST_TMPDIR/reader")"
    echo '{"type":"sched-hello","life":"slow","take_over":true}'
    sleep 1.5
    kill -CONT "$(cat "$BATS_TEST_TMPDIR/reader")"
    # input stays open until all is told
    local i
    for ((i = 0; i < 600; i++)); do
        grep -q sched-alloc-end "$BATS_TEST_TMPDIR/out" && break
        sleep 0.1
    done
}

@test "a manager that is slow to read misses nothing" {
    mkfifo "$BATS_TEST_TMPDIR/pipe"
    : >"$BATS_TEST_TMPDIR/out"
    cat <"$BATS_TEST_TMPDIR/pipe" >"$BATS_TEST_TMPDIR/out" &
    echo $! >"$BATS_TEST_TMPDIR/reader"
    many 4000 | "$CLUSTER" exec head "$HK_TOOLS/say" --role owner \
        >"$BATS_TEST_TMPDIR/pipe"
    wait
    told=$(grep '"type":"sched-alloc",' "$BATS_TEST_TMPDIR/out" |
        jq .jobid | sort -u | awk '$1 >= 1000' | wc -l)
    echo "told of $told; $(tail -n 2 "$BATS_TEST_TMPDIR/out" | cut -c1-300)"
    [ "$told" = 4000 ]
}
