#!/usr/bin/env bats
# install.bats - what make install lays works without a line of configuration
# SPDX-License-Identifier: LGPL-3.0-or-later

load story

setup_file ()
{
    export CLUSTER="$BATS_TEST_DIRNAME/cluster"
    export CLUSTER_DIR="/run/hk-install.$$"
    export CLUSTER_LAYER="$BATS_FILE_TMPDIR/layer"
    make -s O="${HK_BUILD:-build}" install DESTDIR="$CLUSTER_LAYER" >/dev/null
    "$CLUSTER" up 1 --head
}

teardown_file ()
{
    "$CLUSTER" down
}

@test "the units start, and the node finds the head by its name" {
    on head test ! -e /etc/flux/hk.conf
    on head systemctl enable --now flux-hk-coordinator
    on node0 systemctl enable --now flux-hkd
    within 20 connected 1
    [ "$(on head systemctl is-active flux-hk-coordinator)" = active ]
    [ "$(on node0 systemctl is-active flux-hkd)" = active ]
}

@test "nothing listens on a node" {
    [ -z "$(on node0 ss -Hltnu)" ]
}

@test "a job without any scripts is freed: no-scripts is success" {
    scheduler "$BATS_FILE_TMPDIR/said" --hello
    within 10 said "$BATS_FILE_TMPDIR/said" '"alloc-end"'
    job_end 1 node0
    within 10 freed "$BATS_FILE_TMPDIR/said" 1 0
    scheduler_end "$BATS_FILE_TMPDIR/said"
    history_has '"outcome": ?"success"'
}

# nodes of the cluster boot a target of their own that wants no other unit
@test "both are enabled, and are there again after a boot" {
    "$CLUSTER" reboot node0
    "$CLUSTER" reboot head
    [ "$(on node0 systemctl is-enabled flux-hkd)" = enabled ]
    [ "$(on head systemctl is-enabled flux-hk-coordinator)" = enabled ]
    on node0 systemctl start flux-hkd
    on head systemctl start flux-hk-coordinator
    within 40 connected 1
}

@test "reload: a bad line keeps the old configuration and is named" {
    on head sh -c 'mkdir -p /etc/flux && echo "[housekeeping]
timeout = soon" >/etc/flux/hk.conf'
    on head systemctl reload flux-hk-coordinator
    within 10 bash -c "'$CLUSTER' exec head journalctl -q -o cat \
        -u flux-hk-coordinator | grep -q 'hk.conf:2: .*timeout'"
    # hkctl on the head would read the same bad line
    on node0 hkctl ping | grep -q 'nodes: 1 connected'
    on head rm /etc/flux/hk.conf
    on head systemctl reload flux-hk-coordinator
    connected 1
}

@test "the limit of connections holds under the unit, and is said" {
    on head sh -c 'mkdir -p /etc/flux && echo "[link]
client-connections = 16" >/etc/flux/hk.conf'
    on head systemctl restart flux-hk-coordinator
    within 20 connected 1
    # shellcheck disable=SC2016 # for the shell on head
    on head bash -c 'for i in $(seq 60); do
            exec {fd}<>/dev/tcp/127.0.0.1/8766 || break
        done
        sleep 8' 2>/dev/null &
    within 10 bash -c "'$CLUSTER' exec head journalctl -q -o cat \
        -u flux-hk-coordinator | grep -q 'port for clients closed at'"
    # those that said nothing are gone after a while, and it is open again
    within 40 connected 1
    wait
}
