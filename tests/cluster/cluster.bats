#!/usr/bin/env bats
# cluster.bats - the cluster of nodes that other tests stand on
# SPDX-License-Identifier: LGPL-3.0-or-later
# shellcheck disable=SC2016,SC2030,SC2031 # text for other shells; subshells

bats_require_minimum_version 1.5.0

setup_file ()
{
    export CLUSTER="$BATS_TEST_DIRNAME/cluster"
    # all clusters of this file have names that begin so
    export PREFIX="hk-cluster-test.$$"
    export CLUSTER_DIR="/run/$PREFIX"
    export CLUSTER_LAYER="$BATS_FILE_TMPDIR/layer"
    export CLUSTER_WANTS=on-nodes.service CLUSTER_HEAD_WANTS=on-head.service
    local unit
    mkdir -p "$CLUSTER_LAYER/usr/lib/systemd/system"
    for unit in on-nodes on-head; do
        printf '[Service]\nType=oneshot\nRemainAfterExit=yes\n' \
            >"$CLUSTER_LAYER/usr/lib/systemd/system/$unit.service"
        echo 'ExecStart=/usr/bin/true' \
            >>"$CLUSTER_LAYER/usr/lib/systemd/system/$unit.service"
    done
    machine >"$BATS_FILE_TMPDIR/before"
    "$CLUSTER" up 2 --head
}

teardown_file ()
{
    "$CLUSTER" down
}

# the machine's own mounts and links, which are none of a cluster's business
machine ()
{
    sort /proc/self/mounts
    ip -brief link show | awk '{ print $1 }'
}

# what there is of clusters of this file; their processes are in their cgroups,
# but for the watcher of with
traces ()
{
    find "$(awk '$3 == "cgroup2" { print $2; exit }' /proc/self/mounts)" \
        -type d -name "*$PREFIX*"
    find /run -maxdepth 1 -name "$PREFIX*"
    pgrep -af "[b]ash -c tail .*$PREFIX"
}

nothing_left ()
{
    [ -z "$(traces)" ] && machine | diff "$BATS_FILE_TMPDIR/before" - >&2
}

boot_id ()
{
    "$CLUSTER" exec "$1" cat /proc/sys/kernel/random/boot_id
}

# reaches FROM TO: a TCP connection to TO's port 7777
reaches ()
{
    "$CLUSTER" exec "$1" timeout 1 bash -c "</dev/tcp/$2/7777" 2>/dev/null
}

# within SECONDS CMD..
within ()
{
    local end=$((SECONDS + $1))
    shift
    until "$@"; do
        [ "$SECONDS" -lt "$end" ] || return 1
        sleep 0.05
    done
}

not ()
{
    ! "$@"
}

listen ()
{
    "$CLUSTER" exec "$1" systemd-run --quiet --unit=listen \
        perl -MIO::Socket::INET -e '
            my $s = IO::Socket::INET->new (LocalPort => 7777, Listen => 5,
                ReuseAddr => 1) or die $!;
            push @c, $s->accept while 1'
    within 10 reaches "$1" localhost
}

@test "each node has a systemd, a journal and a name of its own" {
    run "$CLUSTER" status
    [ "$status" = 0 ]
    [[ ${lines[0]} =~ ^head\ +up\ +[0-9]+\ +10\.99\.0\.10$ ]]
    [[ ${lines[2]} =~ ^node1\ +up\  ]]
    for node in head node0 node1; do
        [ "$("$CLUSTER" exec $node hostname)" = $node ]
        run "$CLUSTER" exec $node systemctl is-system-running
        [ "$output" = running ]
        run "$CLUSTER" exec $node systemd-run --quiet --wait --pipe \
            sh -c 'echo hello from a unit; cat /proc/self/cgroup'
        [ "$status" = 0 ]
        [[ $output = *"hello from a unit"*0::/system.slice/run-* ]]
        "$CLUSTER" exec $node systemd-run --quiet --wait --unit=mark-$node \
            echo "mark of $node"
        run within 5 "$CLUSTER" exec $node sh -c \
            "journalctl -u mark-$node | grep 'mark of $node'"
        [ "$status" = 0 ]
    done
    [ "$(boot_id node0)" != "$(boot_id node1)" ]
    [ "$(boot_id node0)" != "$(cat /proc/sys/kernel/random/boot_id)" ]
}

@test "exec passes input, output and exit status" {
    run "$CLUSTER" exec node0 sh -c 'exit 7'
    [ "$status" = 7 ]
    [ "$(echo "a word" | "$CLUSTER" exec node0 cat)" = "a word" ]
    run "$CLUSTER" exec node7 true
    [ "$status" = 1 ]
    [ "$output" = "cluster: no node node7" ]
}

@test "the layer is on every node and its units start where they are wanted" {
    "$CLUSTER" exec node0 systemctl is-active on-nodes.service
    "$CLUSTER" exec head systemctl is-active on-head.service
    run "$CLUSTER" exec head systemctl is-active on-nodes.service
    [ "$output" = inactive ]
    # files a node writes are its own
    "$CLUSTER" exec node0 touch /etc/only-here
    run -1 "$CLUSTER" exec node1 test -e /etc/only-here
    [ ! -e /etc/only-here ]
    # the source tree is seen, and is safe
    run "$CLUSTER" exec node0 touch "$BATS_TEST_DIRNAME/written"
    [[ $output = *"Read-only file system"* ]]
}

@test "a MUNGE credential of one node is good on another, once" {
    cred=$("$CLUSTER" exec node0 munge -s "of node0")
    run "$CLUSTER" exec node1 unmunge <<<"$cred"
    [ "$status" = 0 ]
    [[ $output = *"Success (0)"*"of node0"* ]]
    run "$CLUSTER" exec node1 unmunge <<<"$cred"
    [[ $output = *"Replayed"* ]]
    run "$CLUSTER" exec head unmunge <<<"$cred"
    [ "$status" = 0 ]
}

@test "one node's munged may have another time" {
    "$CLUSTER" exec node1 bash -c '
        mkdir /etc/systemd/system/munge.service.d
        lib=$(dpkg -L libfaketime | grep -m 1 /libfaketime.so)
        printf "[Service]\nEnvironment=LD_PRELOAD=%s FAKETIME=-1h\n" "$lib" \
            >/etc/systemd/system/munge.service.d/skew.conf
        systemctl daemon-reload
        systemctl restart munge'
    cred=$("$CLUSTER" exec node1 munge -n)
    run "$CLUSTER" exec node0 unmunge <<<"$cred"
    [[ $output = *"Expired credential"* ]]
    "$CLUSTER" exec node1 bash -c '
        rm -r /etc/systemd/system/munge.service.d
        systemctl daemon-reload
        systemctl restart munge'
}

@test "a cut cable, a silent one, and a cut between two, are healed" {
    listen head
    within 5 reaches node0 flux-hk-head
    "$CLUSTER" cut node0
    run "$CLUSTER" status
    [[ $output = *node0*up,cut* ]]
    run ! reaches node0 head
    reaches node1 head
    "$CLUSTER" heal node0
    within 10 reaches node0 head

    "$CLUSTER" cut -s node0
    run ! reaches node0 head
    [ "$("$CLUSTER" exec node0 cat /sys/class/net/eth0/carrier)" = 1 ]
    "$CLUSTER" heal node0
    within 10 reaches node0 head

    listen node1
    "$CLUSTER" cut node0 node1
    run ! reaches node0 node1
    reaches node0 head
    "$CLUSTER" heal node0 node1
    within 10 reaches node0 node1
}

@test "a power cut says nothing to the peer; the next boot is another" {
    before=$(boot_id node0)
    machine=$("$CLUSTER" exec node0 cat /etc/machine-id)
    "$CLUSTER" exec node0 sh -c 'touch /etc/stays /run/goes'
    # an open connection: it must not see an end of file
    "$CLUSTER" exec node0 systemd-run --quiet --unit=hold \
        bash -c 'exec 5<>/dev/tcp/head/7777; sleep 1000'
    established ()
    {
        "$CLUSTER" exec head ss -Htn state established sport = :7777 |
            grep -q "$("$CLUSTER" addr node0)"
    }
    within 10 established
    "$CLUSTER" kill node0
    established
    run "$CLUSTER" status
    [[ $output =~ node0\ +off ]]
    run "$CLUSTER" exec node0 true
    [ "$output" = "cluster: node0 is off" ]
    "$CLUSTER" journal node0 -q | grep -q cluster-ready

    "$CLUSTER" start node0
    [ "$(boot_id node0)" != "$before" ]
    [ "$("$CLUSTER" exec node0 cat /etc/machine-id)" = "$machine" ]
    "$CLUSTER" exec node0 test -e /etc/stays
    run -1 "$CLUSTER" exec node0 test -e /run/goes
    reaches node0 head
}

@test "a reboot is orderly and gives another boot" {
    before=$(boot_id node1)
    "$CLUSTER" exec node1 systemd-run --quiet --unit=orderly \
        -p 'ExecStop=/bin/touch /etc/stopped' sleep 1000
    "$CLUSTER" reboot node1
    [ "$(boot_id node1)" != "$before" ]
    "$CLUSTER" exec node1 test -e /etc/stopped
    boots=$("$CLUSTER" exec node1 journalctl --list-boots | grep -c '^ *-\?[0-9]')
    [ "$boots" = 2 ]
}

@test "head may have a small disk" {
    "$CLUSTER" exec head sh -c 'mkdir -p /var/lib/flux-hk &&
        mount -t tmpfs -o size=64K tmpfs /var/lib/flux-hk'
    run "$CLUSTER" exec head systemd-run --quiet --wait --pipe \
        dd if=/dev/zero of=/var/lib/flux-hk/file bs=1K count=100
    [ "$status" != 0 ]
    [[ $output = *"No space left on device"* ]]
}

@test "down leaves nothing, whatever is going on" {
    "$CLUSTER" exec node0 sleep 60 3>&- &
    "$CLUSTER" cut head
    run "$CLUSTER" up 1
    [ "$output" = "cluster: already up in $CLUSTER_DIR" ]
    [ -n "$(traces)" ]
    "$CLUSTER" down
    [ -z "$(traces)" ]
    within 5 nothing_left
    run ! "$CLUSTER" status
}

@test "with gives the status of its command and leaves nothing" {
    unset CLUSTER_DIR
    run "$CLUSTER" with 1 -- \
        sh -c 'echo "$CLUSTER_DIR"; "$CLUSTER" exec node0 hostname; exit 5'
    [ "$status" = 5 ]
    [[ $output = *node0* ]]
    dir=$(grep -o '/run/hk-cluster\.[0-9]*' <<<"$output")
    [ ! -e "$dir" ]
    machine | diff "$BATS_FILE_TMPDIR/before" -
}

@test "with leaves nothing when it is killed, at any moment" {
    export CLUSTER_DIR=/run/$PREFIX-killed
    for signal in KILL TERM; do
        for delay in 0.02 0.1 0.25 0.5 1.5; do
            "$CLUSTER" with 2 -- sleep 2 3>&- &
            sleep "$delay"
            kill "-$signal" $!
            wait $! || :
            within 10 nothing_left
        done
    done
}

@test "a cluster comes up inside a node, where PID 1 is systemd" {
    export CLUSTER_DIR=/run/$PREFIX-outer
    run "$CLUSTER" with 1 -- "$CLUSTER" exec node0 env \
        CLUSTER_DIR=/run/hk-cluster "$CLUSTER" with 2 --head -- \
        env CLUSTER_DIR=/run/hk-cluster "$CLUSTER" exec node1 \
        sh -c 'hostname; systemctl is-system-running'
    echo "$output"
    [ "$status" = 0 ]
    [[ $output = *node1*running* ]]
    within 5 nothing_left
}
