# node.sh - one node: its supervisor in the holder, and its way to systemd
# shellcheck shell=bash disable=SC2034,SC2317
# SPDX-License-Identifier: LGPL-3.0-or-later

# Boots the node, again after each reboot; ends when its power is cut or it
# halts. Its cgroup is removed last: kill waits for that.
stage_supervise ()
{
    local name=$1 dir=$FS/$1 status=129
    need_cluster
    if [ ! -d "$dir" ]; then first_files "$name"; fi
    # reboot(2) in a pid namespace: PID 1 dies of SIGHUP, and of SIGINT when it
    # halts; unshare can't die of KILL by itself and exits with 1
    while [ "$status" = 129 ]; do
        status=0
        unshare --pid --fork --kill-child --mount --propagation private --uts \
            --ipc bash "$SELF" _boot "$name" </dev/null \
            >>"$dir/console" 2>&1 || status=$?
        echo "$name: PID 1 has ended, status $status"
        within 10 remove_cgroup "$CG/$name" || echo "$name: cgroups are left"
    done
}

remove_cgroup ()
{
    [ ! -d "$1" ] || find "$1" -depth -type d -exec rmdir {} +
}

first_files ()
{
    local name=$1 up=$FS/$1/up wants unit
    mkdir -p "$up" "$FS/$name/work" "$FS/$name/root"
    chmod 755 "$up"
    mkdir -p "$up/etc/systemd/system/cluster.target.d"
    echo "$name" >"$up/etc/hostname"
    tr -d - </proc/sys/kernel/random/uuid >"$up/etc/machine-id"
    wants=${CLUSTER_WANTS:-}
    if [ "$name" = head ]; then wants=${CLUSTER_HEAD_WANTS:-}; fi
    printf '[Unit]\nWants=%s\n' "$wants" \
        >"$up/etc/systemd/system/cluster.target.d/wants.conf"
    [ "$name" != head ] || return 0
    # a hardened service may have a /proc of its own, without the node's boot_id
    for unit in $wants; do
        mkdir -p "$up/etc/systemd/system/$unit.d"
        printf '[Service]\nBindReadOnlyPaths=%s:%s\n' /run/boot_id \
            /proc/sys/kernel/random/boot_id \
            >"$up/etc/systemd/system/$unit.d/boot-id.conf"
    done
}

# PID 1 of the node, still in the holder's network and cgroup namespaces. The
# cgroup is entered first: it becomes the root of the cgroup namespace.
stage_boot ()
{
    need_cluster
    mkdir -p "$CG/$1"
    echo 0 >"$CG/$1/cgroup.procs"
    pass_controllers "$CG/$1" # none while a process is in it: systemd's turn
    exec 9</proc/self/ns/net
    exec unshare --net --cgroup bash "$SELF" _root "$1"
}

stage_root ()
{
    local name=$1 root=$FS/$1/root
    need_cluster
    hostname "$name"
    make_link "$name"
    exec 9>&-
    mount_root "$name"
    mount_kernel "$root"
    mount_dev "$root/dev"
    bind_trees "$root"
    cd "$root" || exit
    mkdir -p run/old
    pivot_root . run/old
    cd /
    umount -l /run/old
    rmdir /run/old
    mount --make-rshared /
    exec env -i PATH="$PATH" LANG=C.UTF-8 container=hk-cluster \
        /usr/lib/systemd/systemd --system --unit=cluster.target
}

# A cable from here to the bridge; fd 9 is the holder's network namespace. The
# last boot's cable goes away by itself, but not at once.
make_link ()
{
    local name=$1 port=v-$1
    unplugged ()
    {
        ! nsenter --net=/proc/self/fd/9 ip link show "$port" >/dev/null 2>&1 ||
            nsenter --net=/proc/self/fd/9 ip link del "$port"
    }
    within 10 unplugged
    ip link add eth0 address "$(mac_of "$name")" type veth \
        peer name "$port" netns /proc/self/fd/9
    nsenter --net=/proc/self/fd/9 ip link set "$port" master br0 up
    ip link set lo up
    ip addr add "$(addr_of "$name")/16" dev eth0
    ip link set eth0 up
}

mount_root ()
{
    local name=$1 dir=$FS/$1 mount own
    mount -t overlay overlay "$dir/root" -o \
        "lowerdir=$(layers_of /),upperdir=$dir/up,workdir=$dir/work,index=off"
    # a separate /usr, /var, /home of this machine: an overlay on each
    machine_mounts | while read -r mount; do
        [ -d "$dir/root$mount" ] || continue
        own=$dir/own${mount//\//-}
        mkdir -p "$own/up" "$own/work"
        chown --reference="$mount" "$own/up"
        chmod --reference="$mount" "$own/up"
        mount -t overlay overlay "$dir/root$mount" -o "$(
            echo "lowerdir=$(layers_of "$mount"),upperdir=$own/up," \
                "workdir=$own/work,index=off" | tr -d ' '
        )" || echo "$mount is not seen in $name"
    done
}

machine_mounts ()
{
    awk -v state="$STATE/" '$3 ~ /^(ext[234]|xfs|btrfs|zfs|f2fs)$/ &&
        $2 != "/" && $2 !~ /^\/(proc|sys|dev|run|tmp)(\/|$)/ &&
        index ($2, state) != 1 { print $2 }' /proc/self/mounts | sort -u
}

# /proc, /sys, /run, /tmp; what belongs to the whole machine is read-only
mount_kernel ()
{
    local root=$1 file
    mount -t proc -o nosuid,nodev,noexec proc "$root/proc"
    mount -t sysfs -o nosuid,nodev,noexec sysfs "$root/sys"
    mount -t cgroup2 -o nosuid,nodev,noexec cgroup2 "$root/sys/fs/cgroup"
    mount -o remount,bind,ro,nosuid,nodev,noexec "$root/sys"
    mount -t tmpfs -o mode=755,nosuid,nodev tmpfs "$root/run"
    mount -t tmpfs -o mode=1777,nosuid,nodev tmpfs "$root/tmp"
    mkdir "$root/run/lock"
    # a boot of its own
    cat /proc/sys/kernel/random/uuid >"$root/run/boot_id"
    chmod 444 "$root/run/boot_id"
    mount --bind "$root/run/boot_id" "$root/proc/sys/kernel/random/boot_id"
    for file in sys sysrq-trigger; do
        [ -e "$root/proc/$file" ] || continue
        mount --rbind "$root/proc/$file" "$root/proc/$file"
        mount -o remount,bind,ro "$root/proc/$file"
    done
    for file in kcore kmsg; do
        [ ! -e "$root/proc/$file" ] ||
            mount --bind /dev/null "$root/proc/$file"
    done
    # the network namespace is the node's own
    mount --bind "$root/proc/sys/net" "$root/proc/sys/net"
    mount -o remount,bind,rw "$root/proc/sys/net"
}

mount_dev ()
{
    local dev=$1 name major minor
    mount -t tmpfs -o mode=755,nosuid tmpfs "$dev"
    mkdir "$dev/pts" "$dev/shm" "$dev/mqueue"
    while read -r name major minor; do
        mknod -m 666 "$dev/$name" c "$major" "$minor"
    done <<-END
	null 1 3
	zero 1 5
	full 1 7
	random 1 8
	urandom 1 9
	tty 5 0
	END
    mknod -m 600 "$dev/console" c 1 3 # null: this machine's is not ours
    mount -t devpts -o newinstance,ptmxmode=666,mode=620,gid=5 devpts "$dev/pts"
    mount -t tmpfs -o mode=1777,nosuid,nodev tmpfs "$dev/shm"
    mount -t mqueue -o nosuid,nodev,noexec mqueue "$dev/mqueue"
    ln -s pts/ptmx "$dev/ptmx"
    ln -s /proc/self/fd "$dev/fd"
    ln -s fd/0 "$dev/stdin"
    ln -s fd/1 "$dev/stdout"
    ln -s fd/2 "$dev/stderr"
}

bind_trees ()
{
    local root=$1 tree
    for tree in "${SELF%/tests/cluster/cluster}" ${CLUSTER_BIND:-}; do
        mkdir -p "$root$tree"
        mount --bind "$tree" "$root$tree"
        mount -o remount,bind,ro "$root$tree"
    done
}
