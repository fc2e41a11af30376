# common.sh - names, addresses, and who is who among the processes
# shellcheck shell=bash disable=SC2034,SC2317
# SPDX-License-Identifier: LGPL-3.0-or-later

STATE=${CLUSTER_DIR:-/run/hk-cluster}
STATE=${STATE%/}
FS=$STATE/fs # a tmpfs that only the holder and its children see
NET=10.99    # seen in the cluster's own network namespaces only
SCOPE=hk-${STATE//[^A-Za-z0-9_.]/-}.scope

die ()
{
    echo "cluster: $*" >&2
    exit 1
}

# Names are in $STATE/nodes; addresses follow from the name.
addr_of ()
{
    local i=${1#node}
    if [ "$1" = head ]; then
        echo "$NET.0.10"
    else
        echo "$NET.$((1 + i / 200)).$((1 + i % 200))"
    fi
}

mac_of ()
{
    local a b
    IFS=. read -r _ _ a b <<<"$(addr_of "$1")"
    printf '02:48:4b:00:%02x:%02x' "$a" "$b"
}

need_node ()
{
    [ -f "$STATE/nodes" ] || die "no cluster in $STATE"
    grep -qx -e "$1" "$STATE/nodes" || die "no node $1"
    need_cluster
}

need_cluster ()
{
    [ -f "$STATE/cgroup" ] || die "no cluster in $STATE"
    CG=$(<"$STATE/cgroup")
    ID=$(<"$STATE/id")
}

populated ()
{
    grep -qs '^populated 1' "$1/cgroup.events"
}

# init_of DEPTH CGROUP..: REPLY is the process there that is PID 1 of a pid
# namespace DEPTH levels below ours. Looked up by cgroup each time: no recorded
# pid can belong to somebody else by now. Forks nothing, since it is polled, and
# takes each file at once: read would seek in text that changes meanwhile.
init_of ()
{
    local depth=$1 dir pid pids line lines ids
    shift
    for dir; do
        [ -r "$dir/cgroup.procs" ] || continue
        mapfile -t pids <"$dir/cgroup.procs"
        for pid in "${pids[@]}"; do
            lines=()
            mapfile -t lines <"/proc/$pid/status"
            for line in "${lines[@]}"; do
                [[ $line = NSpid:* ]] || continue
                read -ra ids <<<"${line#NSpid:}"
                if [ ${#ids[@]} = $((depth + 1)) ] && [ "${ids[-1]}" = 1 ]; then
                    REPLY=$pid
                    return 0
                fi
                break
            done
        done
    done 2>/dev/null # a process may end while it is looked at
    return 1
}

holder_pid ()
{
    init_of 1 "$CG/holder"
}

node_pid ()
{
    init_of 2 "$CG/$1/init.scope" "$CG/$1"
}

# The mark has a name of this cluster only: a node that has not left this
# machine's root yet may see another there (if this is a node itself).
node_ready ()
{
    node_pid "$1" && [ -e "/proc/$REPLY/root/run/cluster-ready-$ID" ]
}

holder_ip ()
{
    holder_pid || die "the cluster's holder is gone"
    nsenter -t "$REPLY" -n -- ip "$@"
}

# within SECONDS CMD..: 0 as soon as CMD succeeds
within ()
{
    local end=$((SECONDS + $1))
    shift
    until "$@"; do
        [ "$SECONDS" -lt "$end" ] || return 1
        sleep 0.02
    done
}

not ()
{
    ! "$@"
}

# Long-lived children must not hold what the caller waits for (bats: fd 3).
close_fds ()
{
    local fd
    for fd in "/proc/$BASHPID/fd"/*; do
        fd=${fd##*/}
        if [ "$fd" -gt 2 ] && [ "$fd" -lt 255 ] && [ "$fd" != "${1:-}" ]; then
            eval "exec $fd>&-"
        fi
    done
}
