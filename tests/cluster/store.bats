#!/usr/bin/env bats
# store.bats - the head's disk full, read-only, damaged, from yesterday
# SPDX-License-Identifier: LGPL-3.0-or-later
# shellcheck disable=SC2016,SC2030,SC2031,SC2086,SC2154 # text for other shells; numbers

bats_require_minimum_version 1.5.0
load story

HEAD=flux-hk-coordinator.service
DIR=/var/lib/flux-hk

setup_file ()
{
    layer
    script 20-work <<'S'
#!/bin/sh
echo "$HK_ALLOC $HK_ATTEMPT" >>/run/hk-runs
while [ -e /run/hang ]; do sleep 0.05; done
S
    local unit=$CLUSTER_LAYER/etc/systemd/system/$HEAD.d
    mkdir -p "$unit"
    printf '[Service]\nRestartSec=200ms\n' >"$unit/fast.conf"
    # a disk of its own, and a small one
    printf '[Unit]\nBefore=%s\n[Mount]\nWhat=tmpfs\nWhere=%s\nType=tmpfs\n%s\n' \
        $HEAD $DIR 'Options=size=8M,mode=700' \
        >"$CLUSTER_LAYER/etc/systemd/system/var-lib-flux\\x2dhk.mount"
    printf '[Unit]\nRequires=%s\nAfter=%s\n' 'var-lib-flux\x2dhk.mount' \
        'var-lib-flux\x2dhk.mount' >"$unit/disk.conf"
    cluster_up 2
}

teardown_file ()
{
    story_down
}

setup ()
{
    local node
    for node in node0 node1; do
        on $node rm -f /run/hk-runs /run/hang
    done
    # a life for each test
    told=$BATS_FILE_TMPDIR/said$BATS_TEST_NUMBER
    scheduler "$told" --hello --partial-ok --take-over
    within 10 said "$told" '"alloc-end"'
    job=$((4000 + 100 * BATS_TEST_NUMBER))
    since=$(on head date '+%F %T')
}

teardown ()
{
    [ -n "${BATS_TEST_COMPLETED:-}" ] || repair
    [ ! -e "$told.pid" ] || scheduler_end "$told"
    books "$told"
}

repair ()
{
    on head journalctl -b -u $HEAD -o cat --since "$since" | tail -n 20 >&3
    make_room
    if on head grep -q " $DIR ext4 " /proc/mounts; then
        on head chattr -i $DIR/hk.db-wal || :
        shared_disk
    fi
    on head mount -o remount,rw $DIR
    on head sh -c "[ ! -e /root/good.db ] || mv /root/good.db $DIR/hk.db"
    on head systemctl restart $HEAD
    within 20 connected 2
    on head hkctl recover
}

hang () { on "$1" touch /run/hang; }
go_on () { on "$1" rm -f /run/hang; }
attempts () { on "$1" awk '{ print $2 }' /run/hk-runs | xargs; }
working () { on "$1" pgrep -f 20-work >/dev/null; }
idle () { not working "$1"; }
finished () { said "$told" "\"jobid\":$1,.*\"final\":true"; }
logged () { on head journalctl -b -u $HEAD -o cat --since "$since" | grep -E "$1"; }
fill_disk () { on head sh -c "cat /dev/zero >$DIR/filler 2>/dev/null" || :; }
make_room () { on head rm -f $DIR/filler; }
# unwell REGEX: hkctl ping says that, and its status too
unwell ()
{
    local text
    text=$(on head hkctl ping) && return 1
    grep -E "$1" <<<"$text"
}

@test "disk full: nothing is lost, nothing freed early; it goes on with space" {
    hang node0
    job_end $job 'node[0-1]'
    within 10 working node0
    within 10 freed "$told" $job 1
    fill_disk
    go_on node0 # its end cannot be written down
    within 10 idle node0
    within 10 unwell 'state: store: .*(full|space)'
    logged 'store cannot be written.*nothing is recorded, started or freed'
    run -1 job_end $((job + 1)) node1
    [[ $output = *full* || $output = *space* ]]
    never 2 freed "$told" $job 0
    make_room
    within 10 finished $job
    within 5 on head hkctl ping
    freed "$told" $job 0
    outcomes $job "node0 1 success, node1 1 success"
    # what was refused was not recorded, and is taken now
    not listed "$((job + 1))"
    [ "$(attempts node1)" = 1 ]
    [ "$(job_end $((job + 1)) node1)" = new ]
    within 10 finished $((job + 1))
    logged 'store can be written again'
}

@test "disk full: the first end that cannot be written is answered at once" {
    local n=1 begin
    # a run that goes first: the node has nothing to report meanwhile
    hang node1
    job_end $job node1
    within 10 listed '20-work +node1'
    fill_disk
    # what the log of the store has room for is still recorded
    while begin=$SECONDS && job_end $((job + n)) node1 --t-end=1700000000 \
        --timeout=20s >"$BATS_TEST_TMPDIR/out" 2>&1; do
        n=$((n + 1))
        [ "$n" -lt 50 ]
    done
    cat "$BATS_TEST_TMPDIR/out"
    grep -E 'not recorded yet: .*(full|space).*tried again' \
        "$BATS_TEST_TMPDIR/out"
    grep -e --t-end=1700000000 "$BATS_TEST_TMPDIR/out"
    [ $((SECONDS - begin)) -lt 5 ]
    never 1 finished $((job + n))
    make_room
    go_on node1
    within 20 finished $((job + n))
    # and it was recorded once
    [ "$(job_end $((job + n)) node1 --t-end=1700000000)" = "done" ]
    [ "$(on head hkctl history -j $((job + n)) --json | jq '.rows | length')" = 1 ]
}

@test "killed while the disk is full: it comes back with space, and the same" {
    hang node0
    job_end $job node0
    within 10 working node0
    fill_disk
    go_on node0
    within 10 unwell 'state: store'
    fault head $HEAD KILL
    within 10 logged '^/var/lib/flux-hk.*(is full|No space)'
    never 1 freed "$told" $job 0
    make_room
    within 20 finished $job
    freed "$told" $job 0
    [ "$(attempts node0)" = 1 ]
    outcomes $job "node0 1 success"
}

@test "a disk that has become read-only: it refuses to start, and says why" {
    hang node0
    job_end $job node0
    within 10 working node0
    on head systemctl stop $HEAD
    on head mount -o remount,ro $DIR
    on head systemctl start --no-block $HEAD
    within 10 logged 'Read-only file system'
    go_on node0
    on head mount -o remount,rw $DIR
    within 20 finished $job
    freed "$told" $job 0
    [ "$(attempts node0)" = 1 ]
}

# own_disk: the head's store is on an ext4 of its own from here on
own_disk ()
{
    on head systemctl stop $HEAD
    on head sh -c '
        [ -e /dev/loop-control ] || mknod /dev/loop-control c 10 237
        for i in 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do
            [ -e /dev/loop$i ] || mknod /dev/loop$i b 7 $i
        done
        rm -rf /run/disk /run/state
        truncate -s 8M /run/disk
        mkfs.ext4 -q /run/disk
        cp -a "$1" /run/state
        mount -o loop,errors=remount-ro /run/disk "$1" || exit
        chmod 700 "$1"
        cp -a /run/state/. "$1"
        sync -f "$1"' - $DIR ||
        skip "no file system on a loop device here"
    on head systemctl start $HEAD
    within 20 connected 2
}
# back on the disk that it had
shared_disk ()
{
    on head systemctl stop $HEAD
    on head sh -c 'rm -rf /run/state "$1/lost+found"
        cp -a "$1" /run/state; umount "$1" &&
        rm -f "$1"/hk.db* && cp -a /run/state/. "$1"' - $DIR
    on head systemctl start $HEAD
    within 20 connected 2
}

# unwritable JOBID REGEX: node0's run of that job has ended, which cannot be
# written down: it is said, and nothing is freed or taken
unwritable ()
{
    within 10 unwell "state: store: .*$2"
    logged "store cannot be written: .*$2"
    run -1 job_end $(($1 + 1)) node1
    [[ $output =~ $2 ]]
    never 2 freed "$told" "$1" 0
}
# node0's run of that job was told and freed, once
written ()
{
    within 10 finished "$1"
    within 5 on head hkctl ping
    freed "$told" "$1" 0
    outcomes "$1" "node0 1 success, node1 1 success"
    [ "$(attempts node0)" = 1 ]
    not listed "$(($1 + 1))"
}

@test "the disk becomes read-only meanwhile, as ext4 does at an error" {
    own_disk
    hang node0
    job_end $job 'node[0-1]'
    within 10 freed "$told" $job 1
    pid=$(main_pid head $HEAD)
    # from here on as at an error of the journal: until it is mounted anew
    on head mount -o remount,abort $DIR
    go_on node0
    unwritable $job 'Read-only'
    [ "$(main_pid head $HEAD)" = "$pid" ]
    # what an admin does
    on head systemctl stop $HEAD
    on head umount $DIR
    on head sh -c 'e2fsck -p /run/disk; [ $? -le 1 ]'
    on head mount -o loop /run/disk $DIR
    on head systemctl start $HEAD
    written $job
    shared_disk
}

@test "the file may not be written meanwhile: it goes on by itself" {
    own_disk
    hang node0
    job_end $job 'node[0-1]'
    within 10 freed "$told" $job 1
    pid=$(main_pid head $HEAD)
    on head chattr +i $DIR/hk.db-wal
    go_on node0
    unwritable $job 'not permitted'
    on head chattr -i $DIR/hk.db-wal
    written $job
    logged 'store can be written again'
    [ "$(main_pid head $HEAD)" = "$pid" ]
    shared_disk
}

@test "a limit of the size of files meanwhile: it goes on by itself" {
    hang node0
    job_end $job 'node[0-1]'
    within 10 freed "$told" $job 1
    pid=$(main_pid head $HEAD)
    on head prlimit --pid "$pid" --fsize=0:unlimited
    go_on node0
    unwritable $job 'too large'
    on head prlimit --pid "$pid" --fsize=unlimited:unlimited
    written $job
    logged 'store can be written again'
    [ "$(main_pid head $HEAD)" = "$pid" ]
}

store_sum () { on head sha256sum $DIR/hk.db; }

@test "a damaged file is refused with a clear text, and stays as it is" {
    hang node0
    job_end $job node0
    within 10 working node0
    on head systemctl stop $HEAD
    on head cp $DIR/hk.db /root/good.db
    # all pages after the first: whatever it needs is among them
    on head perl -e 'open F, "+<", $ARGV[0] or die; my $n = (-s F) / 4096;
        for (1 .. $n - 1) { seek F, $_ * 4096, 0; print F "\xa5" x 64 }' \
        $DIR/hk.db
    before=$(store_sum)
    on head systemctl start --no-block $HEAD
    within 10 logged 'hk.db.*(damaged|malformed)'
    within 10 eval '[ "$(on head systemctl show -P NRestarts $HEAD)" -ge 2 ]'
    on head systemctl stop $HEAD
    [ "$(store_sum)" = "$before" ]
    go_on node0
    not finished $job
    on head mv /root/good.db $DIR/hk.db
    on head systemctl start $HEAD
    within 20 finished $job
    freed "$told" $job 0
    [ "$(attempts node0)" = 1 ]
}

@test "an older copy put back: alarm, and nothing goes on before recover" {
    hang node0
    hang node1
    job_end $job 'node[0-1]'
    within 10 listed '20-work +node\[0-1\]'
    on head systemctl stop $HEAD
    on head cp $DIR/hk.db /root/old.db
    on head systemctl start $HEAD
    within 15 connected 2
    go_on node0
    within 10 freed "$told" $job 0
    job_end $((job + 1)) node0
    within 10 finished $((job + 1))
    on head systemctl stop $HEAD
    on head sh -c "rm -f $DIR/hk.db-*; cp /root/old.db $DIR/hk.db"
    on head systemctl start $HEAD
    within 15 unwell 'state: recover: '
    logged 'store went back in time'
    # a scheduler that starts now is told that all of it is held
    scheduler_end "$told"
    scheduler "$told.2" --hello --partial-ok --take-over
    within 10 said "$told.2" '"alloc-end"'
    said "$told.2" "\"type\":\"alloc\",.*\"jobid\":$job,"
    not said "$told.2" '"free":"'
    # a job that ends is recorded, and not begun
    [ "$(job_end $((job + 2)) node0)" = new ]
    go_on node1
    within 10 idle node1
    never 2 said "$told.2" '"type":"free"'
    [ "$(attempts node0)" = "1 1" ]
    on head hkctl recover -r 'the copy of this morning'
    within 15 said "$told.2" "\"jobid\":$((job + 2)),.*\"final\":true"
    within 15 said "$told.2" "\"jobid\":$job,.*\"final\":true"
    on head hkctl ping
    freed "$told.2" $job 0
    freed "$told.2" $job 1
    freed "$told.2" $((job + 2)) 0
    books "$told.2"
    scheduler_end "$told.2"
    [ "$(attempts node0)" = "1 1 1" ]
    [ "$(attempts node1)" = 1 ]
}

@test "a second coordinator on the same store refuses" {
    pid=$(main_pid head $HEAD)
    run on head /usr/sbin/hk-coordinator
    [ "$status" -ne 0 ]
    [[ $output = *"another coordinator has it"* ]]
    job_end $job node0
    within 10 finished $job
    [ "$(main_pid head $HEAD)" = "$pid" ]
}

# coordinator: one by hand, with its store in /root/state
by_hand ()
{
    on head sh -c 'printf "[coordinator]\nstate-dir = /root/state\n[link]\n%s" \
        "node-port = 9765
client-port = 9766
key-port = 9767
" >/root/hk.conf'
    run -1 on head "$@" /usr/sbin/hk-coordinator -c /root/hk.conf
    echo "$output"
}

@test "a state folder that others may enter, or of another user, is refused" {
    on head sh -c 'mkdir -p /root/state; chmod 750 /root/state'
    by_hand env
    [[ $output = *"/root/state has mode 0750, expected 0700"* ]]
    on head chmod 700 /root/state
    on head chown 1000 /root/state
    by_hand env
    [[ $output = *"/root/state belongs to uid 1000"* ]]
    [ -z "$(on head ls /root/state)" ]
    # nor does another user open ours
    on head sh -c 'rm -r /root/state; chmod 755 /root'
    on head sh -c 'cp -a /var/lib/flux-hk /root/state'
    by_hand setpriv --reuid 1000 --clear-groups
    [[ $output = *"/root/state belongs to uid 0, this program runs as 1000"* ]]
    on head rm -r /root/state
}
