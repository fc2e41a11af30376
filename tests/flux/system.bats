#!/usr/bin/env bats
# system.bats - a system instance as a site has it, a broker on each node
# SPDX-License-Identifier: LGPL-3.0-or-later
#
# Brokers are units of user flux, the tree between them is TCP with CURVE, the
# head is rank 0 and takes no jobs; the plugin is flux's, and hkds are root's.

load flux

setup_file ()
{
    flux_is_there || return 0
    layer
    script 10-first <<'S'
#!/bin/sh
while [ -e /run/hang ]; do sleep 0.1; done
exit "$(cat /run/exit 2>/dev/null || echo 0)"
S
    instance_files
    export CLUSTER_WANTS="flux-hkd.service flux.service"
    export CLUSTER_HEAD_WANTS=flux.service
    cluster_up 3
    within 40 free_is 3
}

teardown_file ()
{
    flux_down
}

# f COMMAND..: as user flux, whose instance it is
f ()
{
    on head runuser -u flux -- \
        env FLUX_URI=local:///run/flux/local flux "$@"
}

instance_files ()
{
    local etc=$CLUSTER_LAYER/etc plugin
    plugin=$(realpath "${HK_BUILD:-build}")/coordinator/hk-coordinator.so
    mkdir -p "$etc/flux/system/conf.d" "$etc/systemd/system"
    # a user that this machine need not have
    cat /etc/passwd - >"$etc/passwd" \
        <<<'flux:x:4242:4242::/var/lib/flux:/bin/sh'
    cat /etc/group - >"$etc/group" <<<'flux:x:4242:'
    flux keygen "$BATS_FILE_TMPDIR/curve.cert"
    flux R encode -r 0-3 -c 0-1 -H 'head,node[0-2]' >"$etc/flux/system/R"
    cat >"$etc/flux/system/conf.d/flux.toml" <<S
[access]
allow-root-owner = true
[bootstrap]
curve_cert = "/var/lib/flux-cert/curve.cert"
default_port = 8050
default_bind = "tcp://*:%p"
default_connect = "tcp://%h:%p"
hosts = [ { host = "head,node[0-2]" } ]
[resource]
path = "/etc/flux/system/R"
noverify = true
exclude = "head"
[job-manager]
plugins = [
  { load = "$plugin", conf = { state-dir = "/var/lib/flux-hk" } }
]
S
    cat >"$etc/flux/hk.conf.d/flux.conf" <<'S'
[link]
server-uid = flux
S
    # what is flux's alone is made at boot: a layer is root's
    install -D -m 600 "$BATS_FILE_TMPDIR/curve.cert" "$etc/flux-curve.cert"
    cat >"$etc/systemd/system/flux.service" <<S
[Unit]
Wants=munge.service
After=munge.service network.target
[Service]
Type=notify
NotifyAccess=main
User=flux
ExecStartPre=+install -D -m 400 -o flux /etc/flux-curve.cert \
    /var/lib/flux-cert/curve.cert
ExecStart=$(command -v flux) broker --config-path=/etc/flux/system/conf.d \
    -Srundir=/run/flux -Sstatedir=/var/lib/flux \
    -Slocal-uri=local:///run/flux/local -Slog-stderr-mode=local \
    -Slog-stderr-level=6 -Sbroker.rc2_none -Sbroker.quorum=1 \
    -Sbroker.sd-notify=1 -Sbroker.cleanup-timeout=5 \
    -Scontent.dump=auto -Scontent.restore=auto
Restart=always
RestartSec=1s
TimeoutStopSec=20
KillMode=mixed
RuntimeDirectory=flux
RuntimeDirectoryMode=0755
StateDirectory=flux flux-hk
StateDirectoryMode=0700
LimitNOFILE=16384
S
}

teardown ()
{
    local n
    for n in node0 node1 node2; do
        on "$n" rm -f /run/hang /run/exit
    done
    within 20 free_is 3
    undrain_all
}

@test "a job's nodes come back one by one, and the head has none" {
    on node1 touch /run/hang
    id=$(run_job 3)
    state_is "$id" INACTIVE
    within 10 counted 2
    [ "$(f resource status -s housekeeping -no '{nodelist}')" = node1 ]
    on node1 rm /run/hang
    within 10 counted ""
}

@test "what the plugin keeps is flux's alone" {
    [ "$(on head stat -c '%U %a' /var/lib/flux-hk)" = "flux 700" ]
    [ "$(on head find /var/lib/flux-hk -not -user flux -o -type f -perm /077)" \
        = "" ]
}

@test "a script that fails: drained by the plugin" {
    on node2 sh -c 'echo 3 >/run/exit'
    id=$(run_job 3)
    within 10 drained node2 "housekeeping@$(f58plain "$id") exit-code.*"
}

@test "a coordinator of root's is none to these nodes" {
    on head systemctl stop flux
    on head sh -c 'printf "[coordinator]\nstate-dir = /run/other\n" \
        >/etc/flux/other.conf'
    on head systemd-run -q --unit=other /usr/sbin/hk-coordinator \
        -c /etc/flux/other.conf
    within 10 eval "on head hkctl --config=/etc/flux/other.conf ping |
        grep -q 'nodes: 0 connected'"
    never 3 eval "on head hkctl --config=/etc/flux/other.conf ping |
        grep -q 'nodes: [1-9]'"
    on head systemctl stop other
    on head systemctl start flux
    within 30 connected 3
}

@test "the head's broker is restarted while a node is held" {
    on node0 touch /run/hang
    run_job 3
    within 10 counted 1
    on head systemctl restart flux
    within 40 allocated_is 1
    within 10 counted 1
    probe=$(f submit -N3 true)
    never 1 not state_is "$probe" SCHED
    on node0 rm /run/hang
    within 20 state_is "$probe" INACTIVE
}
