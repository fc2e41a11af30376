# restart.bash - a Flux instance that stops, is killed and comes back
# SPDX-License-Identifier: LGPL-3.0-or-later
# shellcheck shell=bash disable=SC2154 # bats sets its own variables

load flux

export DISK=/var/lib/flux-hk-disk # of the plugin's store, small
export STATE=/var/lib/flux-test   # of the instance

# restart_up N: nodes whose script does as the files of a test say
restart_up ()
{
    flux_is_there || return 0
    layer
    script 10-first <<'S'
#!/bin/sh
while [ -e /run/hang ]; do sleep 0.1; done
exit "$(cat /run/exit 2>/dev/null || echo 0)"
S
    local unit="$CLUSTER_LAYER/etc/systemd/system/flux-test.service.d"
    mkdir -p "$unit" "$CLUSTER_LAYER$DISK"
    printf '[Unit]\nBefore=%s\n[Mount]\nWhat=tmpfs\nWhere=%s\nType=tmpfs\n%s\n' \
        flux-test.service "$DISK" 'Options=size=8M,mode=700' \
        >"$CLUSTER_LAYER/etc/systemd/system/var-lib-flux\\x2dhk\\x2ddisk.mount"
    printf '[Unit]\nRequires=%s\nAfter=%s\n' \
        'var-lib-flux\x2dhk\x2ddisk.mount' \
        'var-lib-flux\x2dhk\x2ddisk.mount' >"$unit/disk.conf"
    HK_CONF="state-dir = \"$DISK/state\"" flux_up "$1"
}

what_is ()
{
    on head tail -n 400 /var/log/flux-test.log |
        grep -E 'hk:|drain|restart:|hello|alert|crit'
    f jobtap query hk-coordinator.so
    on head hkctl list
    f resource drain
    f resource list -s allocated
    f jobs -a
    [ -z "${id:-}" ] || f job eventlog "$id"
}

# restart_again: as at first, whatever a test has left behind
restart_again ()
{
    local n
    # what was the matter is seen in what the instance says
    [ -n "${BATS_TEST_COMPLETED:-}" ] || what_is
    make_room
    on head systemctl is-active -q flux-test || flux_start
    is_ready || f module load "$FLUX_SCHED" || :
    for ((n = 0; n < FLUX_N; n++)); do
        on "node$n" rm -f /run/hang /run/exit
    done
    f cancel --all --quiet || :
    within 20 counted ""
    within 10 nothing_held
    undrain_all
    within 10 free_is "$FLUX_N"
}
nothing_held () { [ -z "$(held_jobs)" ]; }

hang () { local n; for n in "$@"; do on "$n" touch /run/hang; done; }
let_go () { local n; for n in "$@"; do on "$n" rm /run/hang; done; }
fails () { on "$1" sh -c 'echo 3 >/run/exit'; }
fill_disk () { on head sh -c "cat /dev/zero >$DISK/filler 2>/dev/null" || :; }
make_room () { on head rm -f $DISK/filler; }

# asked JQ: of what the plugin says of itself
asked ()
{
    f jobtap query hk-coordinator.so | jq -re ".\"hk-coordinator\" | $1"
}
is_ready () { [ "$(asked .scheduler)" = ready ]; }
is_full () { [ "$(f overlay status --summary)" = full ]; }

flux_start ()
{
    on head systemctl reset-failed flux-test || :
    on head systemctl start flux-test
    within 30 is_full
    within 30 is_ready
}
flux_stop () { on head systemctl stop flux-test; }
flux_restart () { flux_stop && flux_start; }
is_dead () { not on head systemctl is-active -q flux-test; }
# flux_murder: the first broker, and then all that is left
flux_murder ()
{
    on head kill -9 "$(f getattr broker.pid)"
    on head systemctl kill -s KILL flux-test
    within 10 is_dead
}
# checkpoint: a broker that is killed goes back to here
checkpoint () { f kvs put --sync restart.test="$RANDOM"; }

# events ID: of a job, by spaces
events () { f job eventlog "$1" | awk '{ print $2 }' | paste -sd' '; }
# ended_once ID: it left CLEANUP, and did it once
ended_once ()
{
    local n
    f job wait-event -t 20 "$1" clean >/dev/null
    for n in free clean; do
        [ "$(events "$1" | tr ' ' '\n' | grep -c "^$n$")" = 1 ]
    done
    [ "$(events "$1" | tr ' ' '\n' | grep -c '^epilog-start$')" = \
        "$(events "$1" | tr ' ' '\n' | grep -c '^epilog-finish$')" ]
}
# all_once ID: each of four nodes was done once
all_once ()
{
    outcomes "$(f58plain "$1")" "node0 1 success, node1 1 success,\
 node2 1 success, node3 1 success"
}
# no_place: a job of all nodes is not placed; let_place ends that
no_place ()
{
    full=$(f submit -N4 true)
    never 1 state_is "$full" RUN
    state_is "$full" SCHED
}
place () { within 10 state_is "$full" INACTIVE; }

# in_cleanup: a job of all nodes is held there, since the disk is full
in_cleanup ()
{
    id=$(f submit -N4 sleep 30)
    f job wait-event -t 10 "$id" start
    fill_disk
    f cancel "$id"
    f job wait-event -t 10 "$id" epilog-start
    within 10 asked '.jobs.held == 1'
}
