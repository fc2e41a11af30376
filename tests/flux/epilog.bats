#!/usr/bin/env bats
# epilog.bats - other epilogs beside ours: no script starts before their end
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
    export FLUX_PLUGINS='{ load = "perilog.so" }' FLUX_CONF='
[job-manager.epilog]
command = [ "sh", "-c", "while [ -e /run/epilog ]; do sleep 0.1; done" ]'
    flux_up 2
}

teardown_file ()
{
    flux_down
}

teardown ()
{
    on head rm -f /run/epilog
    on node1 rm -f /run/hang
    within 20 free_is 2
    undrain_all
}

# in_epilog: the id of a job that is in CLEANUP with ours finished and the
# other's epilog under way
in_epilog ()
{
    local id
    id=$(f submit -N2 true)
    f job wait-event -t 20 -m description=job-manager.epilog "$id" epilog-start \
        >/dev/null
    f job wait-event -t 20 "$id" set-flags >/dev/null
    echo "$id"
}
script_of () { history_has "\"jobid\": ?$(f job id --to=dec "$1"),"; }

waits_for_the_epilog ()
{
    on head touch /run/epilog
    id=$(in_epilog)
    state_is "$id" CLEANUP
    never 1 script_of "$id"
    listed " recorded +2 "
    # a scheduler that comes meanwhile is told, and counts both nodes
    f module reload "$FLUX_SCHED"
    within 5 counted 0-1
    [ "$(f resource list -s allocated -no '{nnodes}')" = 2 ]
    state_is "$id" CLEANUP
    on node1 touch /run/hang
    on head rm /run/epilog
    within 10 state_is "$id" INACTIVE
    within 10 counted 1
    on node1 rm /run/hang
    within 10 counted ""
}

@test "an epilog of a plugin behind ours" {
    waits_for_the_epilog
}

@test "an epilog of a plugin before ours" {
    on head python3 -c '
import re
path = "/etc/flux-test/conf/test.toml"
text = open(path).read()
other = "{ load = \"perilog.so\" }"
text = text.replace(", " + other, "")
text = text.replace("plugins = [\n", "plugins = [\n  " + other + ",\n")
open(path, "w").write(text)'
    on head systemctl restart flux-test
    within 30 connected 2
    within 10 free_is 2
    waits_for_the_epilog
}

@test "a broker that is killed meanwhile: told once, begun after the epilog" {
    on head touch /run/epilog
    id=$(in_epilog)
    f kvs put --sync hk.test=1
    on head systemctl kill -s KILL flux-test
    on head systemctl restart flux-test
    within 30 connected 2
    within 10 counted 0-1
    # the other plugin knows nothing of its epilog any more: an admin ends it
    never 1 script_of "$id"
    state_is "$id" CLEANUP
    on head rm /run/epilog
    f post-job-event "$id" epilog-finish description=job-manager.epilog \
        status=0
    within 20 state_is "$id" INACTIVE
    within 10 free_is 2
    script_of "$id"
}

@test "a node that an admin drains while it is held stays his" {
    f resource drain node1 mine
    f resource undrain node1
    on node1 touch /run/hang
    id=$(f submit -N2 true)
    f job wait-event -t 20 "$id" clean
    within 10 counted 1
    f resource drain --force node1 theirs
    f module reload "$FLUX_SCHED"
    within 10 counted 1
    drained node1 theirs
    on node1 rm /run/hang
    within 10 counted ""
    drained node1 theirs
}
