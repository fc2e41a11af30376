# life.sh - the cluster comes and goes: up, with, down, and its holder
# shellcheck shell=bash disable=SC2034,SC2317
# SPDX-License-Identifier: LGPL-3.0-or-later

BOOT_SECONDS=60

write_names ()
{
    local i count=$1 head=${2:-}
    [[ $count =~ ^[0-9]+$ ]] || die "not a number of nodes: $count"
    [ -z "$head" ] || [ "$head" = --head ] || die "unknown option $head"
    [ -z "$head" ] || echo head
    for ((i = 0; i < count; i++)); do echo "node$i"; done
}

verb_up ()
{
    local names began ctl
    began=$(date +%s%N)
    if [ -d "$STATE" ]; then
        find_cgroup && populated "$CG" && die "already up in $STATE"
        verb_down
    fi
    names=$(write_names "$@")
    mkdir -p "$FS"
    echo "$names" >"$STATE/nodes"
    cat /proc/sys/kernel/random/uuid >"$STATE/id"
    mkfifo "$STATE/ctl"
    exec {ctl}<>"$STATE/ctl" # keeps what is written until the holder reads
    raise_inotify "$(wc -l <"$STATE/nodes")"
    start_holder
    if ! boot_all; then
        report_failure >&2
        verb_down
        die "not all nodes booted"
    fi
    exec {ctl}>&-
    echo "up: $(wc -l <"$STATE/nodes") nodes in" \
        "$((($(date +%s%N) - began) / 1000000)) ms" >&2
}

# The lock is held from here until the holder is in its cgroup, by whoever of
# the two lives: down waits for it and so always finds the holder.
start_holder ()
{
    local lock holder
    exec {lock}>"$STATE/lock"
    flock "$lock"
    (
        exec </dev/null >"$STATE/log" 2>&1
        close_fds "$lock"
        # where PID 1 is systemd the tree of cgroups is not ours to write to
        if [ -d /run/systemd/system ]; then
            exec setsid systemd-run --quiet --scope --collect \
                --unit="$SCOPE" -p Delegate=yes -- bash "$SELF" _enter "$lock"
        fi
        exec setsid bash "$SELF" _enter "$lock"
    ) &
    holder=$!
    disown "$holder" # or the shell remarks on its end
    exec {lock}>&-
    entered ()
    {
        [ -f "$STATE/cgroup" ] || ! kill -0 "$holder" 2>/dev/null
    }
    within 20 entered
    [ ! -f "$STATE/cgroup" ] || need_cluster
    if [ -z "${CG:-}" ] || ! within 20 holder_pid; then
        cat "$STATE/log" >&2
        die "no holder"
    fi
}

# all nodes, a few at a time: many first boots at once would trample each other
boot_all ()
{
    local name booting=() left=() names=() width
    local end=$((SECONDS + BOOT_SECONDS))
    width=$((2 * $(nproc)))
    mapfile -t names <"$STATE/nodes"
    while [ ${#names[@]} -gt 0 ] || [ ${#booting[@]} -gt 0 ]; do
        while [ ${#names[@]} -gt 0 ] && [ ${#booting[@]} -lt "$width" ]; do
            tell_holder "start ${names[0]}"
            booting+=("${names[0]}")
            names=("${names[@]:1}")
        done
        left=()
        for name in "${booting[@]}"; do
            node_ready "$name" || left+=("$name")
        done
        [ ${#left[@]} -lt ${#booting[@]} ] && end=$((SECONDS + BOOT_SECONDS))
        booting=("${left[@]}")
        [ ${#booting[@]} = 0 ] || sleep 0.02
        [ "$SECONDS" -lt "$end" ] && within 1 holder_pid || return 1
    done
}

tell_holder ()
{
    echo "$1" 1<>"$STATE/ctl" # opened both ways: never waits for a reader
}

report_failure ()
{
    local name console
    cat "$STATE/log"
    while read -r name; do
        if node_ready "$name"; then continue; fi
        echo "$name did not boot"
        holder_pid || continue
        console=/proc/$REPLY/root$FS/$name/console
        [ ! -f "$console" ] || tail -n 20 "$console"
    done <"$STATE/nodes"
}

# Each systemd, journald and dbus-daemon has inotify instances, all of one user;
# the usual limit of 128 ends at about 30 nodes.
raise_inotify ()
{
    local file=/proc/sys/fs/inotify/max_user_instances now need
    need=$((128 + $1 * 8))
    now=$(<$file)
    if [ "$1" -gt 16 ] && [ "$now" -lt $need ] && [ -w $file ]; then
        echo "$now" >"$STATE/inotify"
        echo $need >$file
    fi
}

restore_inotify ()
{
    [ ! -f "$STATE/inotify" ] ||
        cat "$STATE/inotify" >/proc/sys/fs/inotify/max_user_instances
}

verb_with ()
{
    local names=() watcher status=0
    while [ $# -gt 0 ] && [ "$1" != -- ]; do
        names+=("$1")
        shift
    done
    [ $# -gt 1 ] || usage
    shift
    if [ -z "${CLUSTER_DIR:-}" ]; then
        # a new name: read again what follows from it
        CLUSTER_DIR=/run/hk-cluster.$$
        # shellcheck source=tests/cluster/lib/common.sh
        . "$LIB/common.sh"
    fi
    export CLUSTER_DIR=$STATE
    [ ! -e "$STATE" ] || die "$STATE is there already"
    (
        exec </dev/null >/dev/null 2>&1
        close_fds
        # outlives this shell, however that ends
        # shellcheck disable=SC2016
        exec setsid bash -c 'tail -s 0.2 --pid="$1" -f /dev/null
            CLUSTER_DIR=$2 exec bash "$3" down' - "$$" "$STATE" "$SELF"
    ) &
    watcher=$!
    disown "$watcher"
    # shellcheck disable=SC2064
    trap "verb_down; kill $watcher 2>/dev/null || :" EXIT
    trap 'exit 143' TERM
    trap 'exit 130' INT
    trap 'exit 129' HUP
    verb_up "${names[@]}"
    "$@" || status=$?
    exit "$status"
}

# CG: the cluster's cgroup, found by its name if need be
find_cgroup ()
{
    local mount
    CG=
    if [ -f "$STATE/cgroup" ]; then
        CG=$(<"$STATE/cgroup")
    elif mount=$(cgroup_mount); then
        CG=$(find "$mount" -maxdepth 4 -type d -name "$SCOPE" -print -quit)
    fi
    [ -n "$CG" ]
}

cgroup_mount ()
{
    awk '$3 == "cgroup2" { print $2; found = 1; exit }
        END { exit !found }' /proc/self/mounts
}

verb_down ()
{
    local lock
    [ -d "$STATE" ] || return 0
    exec {lock}>"$STATE/lock"
    flock -w 30 "$lock" || die "$STATE is being set up by a process that hangs"
    if find_cgroup; then
        within 30 gone || die "processes are left in $CG"
    fi
    exec {lock}>&-
    restore_inotify
    rm -rf --one-file-system "$STATE"
}

# one try at killing and removing all there is
gone ()
{
    local dir
    for dir in "$CG"/*/; do
        [ ! -e "$dir/cgroup.kill" ] || echo 1 >"$dir/cgroup.kill"
    done 2>/dev/null
    # systemd removes a scope by itself: what is no more is no error
    find "$CG" -depth -type d -exec rmdir {} + 2>/dev/null
    [ ! -d "$CG" ]
}

# ---- stages of the holder

# Into the cluster's cgroup, then into its namespaces. LOCK is a descriptor.
stage_enter ()
{
    local lock=$1 mount own
    mount=$(cgroup_mount) || die "no cgroup2 is mounted"
    CG=$mount/$SCOPE
    if [ -d /run/systemd/system ]; then
        own=$(sed -n 's/^0:://p' /proc/self/cgroup)
        [ "${own##*/}" = "$SCOPE" ] || die "not in $SCOPE but in $own"
        CG=$mount$own
    fi
    mkdir -p "$CG/holder"
    echo $$ >"$CG/holder/cgroup.procs"
    pass_controllers "$CG"
    echo "$CG" >"$STATE/cgroup.new"
    mv "$STATE/cgroup.new" "$STATE/cgroup"
    eval "exec $lock>&-"
    exec unshare --pid --fork --kill-child --mount --propagation private \
        --mount-proc --net --ipc --uts bash "$SELF" _holder
}

# What is offered here is offered to the nodes; none need be.
pass_controllers ()
{
    local name
    # shellcheck disable=SC2013 # one line of words
    for name in $(<"$1/cgroup.controllers"); do
        echo "+$name" >"$1/cgroup.subtree_control" ||
            echo "nodes have no controller $name"
    done
}

# PID 1 of the cluster: the bridge, the layers, and a supervisor per node.
stage_holder ()
{
    local ctl verb name
    need_cluster
    hostname hk-cluster
    mount -t tmpfs -o "mode=755,size=${CLUSTER_SIZE:-50%}" hk-cluster "$FS"
    echo 1 >/proc/sys/net/ipv6/conf/all/disable_ipv6
    echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6
    ip link set lo up
    ip link add br0 type bridge stp_state 0 forward_delay 0 mcast_snooping 0
    ip link set br0 up
    make_layers
    exec {ctl}<>"$STATE/ctl" # both ways: read never sees an end of file
    while read -r verb name <&"$ctl"; do
        case $verb in
            start) bash "$SELF" _supervise "$name" & ;;
            *) echo "holder: what is '$verb'?" ;;
        esac
    done
}
