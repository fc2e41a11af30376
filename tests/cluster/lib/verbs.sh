# verbs.sh - what is done to a node of a running cluster
# shellcheck shell=bash disable=SC2034,SC2317
# SPDX-License-Identifier: LGPL-3.0-or-later

running_node ()
{
    need_node "$1"
    node_pid "$1" || die "$1 is off"
}

# Two steps, so that only what is inside the pid namespace is in the node's
# cgroup: its systemd would see anything else there as pid 0, an error to it.
verb_exec ()
{
    local name=$1 leaf
    [ $# -gt 1 ] || usage
    running_node "$name"
    leaf=$CG/$name/exec
    mkdir -p "$leaf"
    shift
    # shellcheck disable=SC2016 # expanded there
    exec nsenter -t "$REPLY" --pid -- setpriv --pdeathsig TERM bash -c '
        echo 0 >"$1/cgroup.procs" || exit
        pid=$2
        shift 2
        exec nsenter -t "$pid" --mount --uts --ipc --net --cgroup --root --wd \
            -- "$@"' - "$leaf" "$REPLY" \
        env -i PATH="$PATH" HOME=/root LANG=C.UTF-8 "$@"
}

verb_kill ()
{
    need_node "$1"
    node_pid "$1" || return 0
    holder_ip link set "v-$1" down
    echo 1 >"$CG/$1/cgroup.kill"
    # its supervisor removes the cgroup last
    within 10 not test -d "$CG/$1" || die "$1 does not die"
}

verb_start ()
{
    need_node "$1"
    holder_pid || die "the cluster's holder is gone"
    ! node_pid "$1" || die "$1 is on"
    tell_holder "start $1"
    within "$BOOT_SECONDS" node_ready "$1" || die "$1 does not boot"
}

verb_reboot ()
{
    local name=$1 old
    if [ "$name" = -f ]; then
        name=${2:?NODE}
        verb_kill "$name"
        verb_start "$name"
        return
    fi
    running_node "$name"
    old=$REPLY
    (verb_exec "$name" systemctl --no-block \
        --job-mode=replace-irreversibly start reboot.target) </dev/null
    within "$BOOT_SECONDS" not test -d "/proc/$old" || die "$name does not end"
    within "$BOOT_SECONDS" node_ready "$name" || die "$name does not boot"
}

# neighbour NODE PEER lost|found: where NODE sends frames that are for PEER
neighbour ()
{
    local peer
    node_pid "$1" || return 0
    peer=$(addr_of "$2")
    if [ "$3" = lost ]; then
        nsenter -t "$REPLY" -n -- ip neigh replace "$peer" \
            lladdr 02:de:ad:00:00:01 nud permanent dev eth0
    elif nsenter -t "$REPLY" -n -- ip neigh show "$peer" nud permanent |
        grep -q .; then
        nsenter -t "$REPLY" -n -- ip neigh del "$peer" dev eth0
    fi
}

verb_cut ()
{
    local silent=
    if [ "$1" = -s ]; then
        silent=yes
        shift
        [ $# -gt 0 ] || usage
    fi
    need_node "$1"
    if [ -n "${2:-}" ]; then
        need_node "$2"
        neighbour "$1" "$2" lost
        neighbour "$2" "$1" lost
    elif [ -n "$silent" ]; then
        holder_ip link set "v-$1" nomaster
    else
        holder_ip link set "v-$1" down
    fi
}

verb_heal ()
{
    need_node "$1"
    if [ -n "${2:-}" ]; then
        need_node "$2"
        neighbour "$1" "$2" found
        neighbour "$2" "$1" found
    else
        holder_ip link set "v-$1" master br0 up
    fi
}

verb_status ()
{
    local name power pid links
    need_cluster
    links=$(holder_ip -brief link show master br0)
    while read -r name; do
        pid=- power=off
        if node_pid "$name"; then
            pid=$REPLY power=booting
            if node_ready "$name"; then power=up; fi
            grep -q "^v-$name@[^ ]* *UP" <<<"$links" || power=$power,cut
        fi
        printf '%-8s %-10s %-8s %s\n' "$name" "$power" "$pid" \
            "$(addr_of "$name")"
    done <"$STATE/nodes"
}

verb_pid ()
{
    running_node "$1"
    echo "$REPLY"
}

verb_root ()
{
    running_node "$1"
    echo "/proc/$REPLY/root"
}

verb_addr ()
{
    need_node "$1"
    addr_of "$1"
}

verb_journal ()
{
    local name=$1 dir
    need_node "$name"
    shift
    holder_pid || die "the cluster's holder is gone"
    # under the node's own files, or those of a separate /var
    for dir in "$FS/$name/up/var/log/journal" "$FS/$name/own-var/up/log/journal"; do
        [ ! -d "/proc/$REPLY/root$dir" ] ||
            exec journalctl --directory="/proc/$REPLY/root$dir" "$@"
    done
    die "$name has no journal"
}
