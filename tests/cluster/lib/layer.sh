# layer.sh - the read-only layers that all nodes share
# shellcheck shell=bash disable=SC2034,SC2317
# SPDX-License-Identifier: LGPL-3.0-or-later
#
# A node's root is an overlay: its own files over $FS/layer (CLUSTER_LAYER) over
# $FS/base over this machine's root. The base hides what this machine's systemd
# starts, and says what a node's starts instead.

BASE=$FS/base

# layer_dir PATH: owner and mode as on this machine, since the upper one counts
layer_dir ()
{
    local path='' part parts
    IFS=/ read -ra parts <<<"${1#/}"
    for part in "${parts[@]}"; do
        path=$path/$part
        [ ! -d "$BASE$path" ] || continue
        rm -f "$BASE$path"
        mkdir "$BASE$path"
        if [ -d "$path" ]; then
            chown --reference="$path" "$BASE$path"
            chmod --reference="$path" "$BASE$path"
        fi
    done
}

# layer_hide PATH..: as if this machine did not have them (overlayfs: a
# character device 0:0 hides)
layer_hide ()
{
    local path
    for path; do
        [ -e "$path" ] || [ -L "$path" ] || continue
        layer_dir "${path%/*}"
        [ -e "$BASE$path" ] || mknod "$BASE$path" c 0 0
    done
}

# layer_file PATH <TEXT
layer_file ()
{
    layer_dir "${1%/*}"
    rm -f "$BASE$1" # it may be hidden
    cat >"$BASE$1"
}

# layer_want UNIT BY: BY wants UNIT
layer_want ()
{
    layer_dir "/etc/systemd/system/$2.wants"
    ln -sfn "/usr/lib/systemd/system/$1" \
        "$BASE/etc/systemd/system/$2.wants/$1"
}

make_layers ()
{
    mkdir "$BASE" "$FS/layer"
    chmod 755 "$BASE" "$FS/layer"
    hide_machine
    base_config
    base_units
    base_names
    if [ -n "${CLUSTER_LAYER:-}" ]; then
        # a copy: a layer must not change below a mounted overlay
        cp -a --no-preserve=ownership "$CLUSTER_LAYER/." "$FS/layer/"
        chmod 755 "$FS/layer"
    fi
}

hide_machine ()
{
    shopt -s nullglob
    layer_hide /etc/fstab /etc/crypttab /etc/machine-id /etc/hostname \
        /etc/systemd/system/* /etc/systemd/*.conf /etc/systemd/*.conf.d \
        /etc/systemd/system-generators /usr/lib/systemd/system-generators \
        /usr/local/lib/systemd /usr/lib/systemd/system/*.target.wants \
        /usr/lib/systemd/system/*.target.requires \
        /var/log/journal /var/lib/systemd/* \
        /etc/flux /var/lib/flux-hk
    shopt -u nullglob
}

base_config ()
{
    layer_file /etc/systemd/system.conf <<-END
	[Manager]
	DefaultTimeoutStartSec=30s
	DefaultTimeoutStopSec=10s
	LogTarget=journal
	ShowStatus=no
	END
    layer_file /etc/systemd/journald.conf <<-END
	[Journal]
	Storage=persistent
	SystemMaxUse=256M
	SystemMaxFileSize=8M
	RateLimitIntervalSec=0
	ForwardToSyslog=no
	ForwardToKMsg=no
	ForwardToWall=no
	ForwardToConsole=no
	ReadKMsg=no
	Audit=no
	END
    layer_dir /var/log/journal
    layer_dir /var/lib/systemd
    layer_file /etc/munge/munge.key < <(head -c 128 /dev/urandom)
    chown munge:munge "$BASE/etc/munge/munge.key"
    chmod 400 "$BASE/etc/munge/munge.key"
}

base_units ()
{
    local unit
    layer_want systemd-journald.service sysinit.target
    layer_want systemd-journal-flush.service sysinit.target
    layer_want systemd-tmpfiles-setup.service sysinit.target
    layer_want systemd-journald.socket sockets.target
    layer_want systemd-journald-dev-log.socket sockets.target
    layer_want dbus.socket sockets.target
    layer_want dbus.service cluster.target
    layer_want munge.service cluster.target
    for unit in systemd-journald-audit.socket systemd-udevd.service \
        systemd-udevd-control.socket systemd-udevd-kernel.socket \
        modprobe@.service getty@.service; do
        ln -sfn /dev/null "$BASE/etc/systemd/system/$unit"
    done
    layer_file /etc/systemd/system/cluster.target <<-END
	[Unit]
	Description=Node of a test cluster
	Requires=basic.target
	After=basic.target
	Wants=cluster-ready.service
	AllowIsolate=yes
	END
    layer_file /etc/systemd/system/cluster-ready.service <<-END
	[Unit]
	Description=Say that the node has booted
	After=dbus.service munge.service

	[Service]
	Type=oneshot
	RemainAfterExit=yes
	ExecStart=/usr/bin/touch /run/cluster-ready-$ID
	END
    ln -sfn cluster.target "$BASE/etc/systemd/system/default.target"
}

base_names ()
{
    local name
    {
        echo "127.0.0.1 localhost"
        while read -r name; do
            if [ "$name" = head ]; then
                echo "$(addr_of head) head flux-hk-head"
            else
                echo "$(addr_of "$name") $name"
            fi
        done <"$STATE/nodes"
    } | layer_file /etc/hosts
    layer_file /etc/resolv.conf </dev/null
}

# layers_of PATH: what lies below a node's own files there, uppermost first
layers_of ()
{
    local path=${1%/} lower=$1 dir
    for dir in "$BASE$path" "$FS/layer$path"; do
        [ ! -d "$dir" ] || lower=$dir:$lower
    done
    echo "$lower"
}
