#!/usr/bin/env bats
# conf.bats - the plugin's configuration, and what it does when it cannot work
# SPDX-License-Identifier: LGPL-3.0-or-later

load flux

setup_file ()
{
    flux_is_there || return 0
    layer
    script 10-first <<'S'
#!/bin/sh
while [ -e /run/hang ]; do sleep 0.1; done
S
    export FLUX_CONF='
[job-manager.housekeeping]
command = ["true"]'
    export HK_CONF='release-after = "0s", coordinator = { state-dir = "/var/lib/flux-hk" }'
    flux_up 2
}

teardown_file ()
{
    flux_down
}

toml=/etc/flux-test/conf/test.toml
trouble () { f jobtap query hk-coordinator.so | jq -r '."hk-coordinator".trouble'; }
troubled () { [[ $(trouble) =~ $1 ]]; }
log_has () { on head grep -Eq "$1" /var/log/flux-test.log; }
restart () { on head systemctl restart flux-test; within 30 connected 2; }
conf_set () { on head sed -i "s|$1|$2|" "$toml"; }
in_cleanup () { state_is "$1" CLEANUP; }

@test "with the built-in configured too, the log says which of them acts" {
    log_has 'hk: .job-manager.housekeeping. is configured too: this plugin acts'
    id=$(run_job 2)
    within 10 free_is 2
    within 5 history_has 'node1.*success'
    # the built-in did nothing
    not log_has 'housekeeping: .* started'
}

@test "options in the plugin's conf are over those of the files, and reload" {
    conf_set 'release-after = "0s"' 'release-after = "all"'
    f config reload
    on node1 touch /run/hang
    id=$(run_job 2)
    within 5 history_has "\"node0\".*success"
    never 1 allocated_is 1
    counted 0-1
    on node1 rm /run/hang
    within 10 free_is 2
    conf_set 'release-after = "all"' 'release-after = "0s"'
    f config reload
}

@test "a bad option is refused by name, and the old ones stay" {
    for bad in 'release-after = "soon"' 'release-afer = "0s"' \
        'release-after = { x = 1 }'; do
        conf_set 'release-after = "0s"' "$bad"
        run f config reload
        [ "$status" -ne 0 ]
        [[ $output == *"conf"*"release-af"* ]]
        conf_set "$bad" 'release-after = "0s"'
    done
    f config reload
    id=$(run_job 2)
    within 10 free_is 2
}

@test "hosts outside of the option go the host's own way at once" {
    conf_set 'release-after = "0s"' 'release-after = "0s", hosts = "node0"'
    f config reload
    on node1 touch /run/hang
    id=$(run_job 2)
    within 10 free_is 2
    within 5 history_has 'node1.*skipped'
    on node1 rm /run/hang
    conf_set ', hosts = "node0"' ''
    f config reload
}

@test "a store that cannot be opened: the instance starts, nothing is placed" {
    on node1 touch /run/hang
    run_job 2
    within 10 free_is 1
    on head systemctl stop flux-test
    on head mv /var/lib/flux-hk /var/lib/flux-hk.away
    on head touch /var/lib/flux-hk
    on head systemctl start flux-test
    within 30 f uptime
    within 10 troubled '/var/lib/flux-hk.*every ended job is held in CLEANUP'
    log_has 'hk: .*/var/lib/flux-hk'
    # what is held is not known, so all is drained
    within 10 drained node0 'housekeeping: may be held.*'
    drained node1 'housekeeping: may be held.*'
    id=$(f submit -N1 true)
    never 1 state_is "$id" RUN
    # the cause is gone: it goes on, and the one that is held stays so
    on head rm /var/lib/flux-hk
    on head mv /var/lib/flux-hk.away /var/lib/flux-hk
    within 20 state_is "$id" INACTIVE
    within 5 drained node1 'housekeeping: may be held.*'
    [ -z "$(trouble)" ]
    id=$(f submit -N2 true)
    never 1 state_is "$id" RUN
    on node1 rm /run/hang
    within 20 state_is "$id" INACTIVE
    within 10 free_is 2
    not_drained node1
}

@test "a port in use: ranks are held, and freed when it can be bound" {
    on head systemctl stop flux-test
    "$CLUSTER" exec head python3 -c '
import socket, time
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("0.0.0.0", 8765)); s.listen(); time.sleep(60)' >/dev/null 2>&1 \
        </dev/null 3>&- &
    taker=$!
    within 5 on head sh -c 'ss -ltn | grep -q :8765'
    on head systemctl start flux-test
    within 30 f uptime
    within 10 troubled '8765'
    id=$(run_job 2)
    within 5 counted 0-1
    kill "$taker"
    within 20 free_is 2
    within 5 not troubled .
}

