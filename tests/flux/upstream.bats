#!/usr/bin/env bats
# upstream.bats - what flux-core promises of its housekeeping, case by case
# SPDX-License-Identifier: LGPL-3.0-or-later
#
# flux-core's own test of housekeeping (its t2226), in our words. A site that
# changes over keeps what is `same`.
#
#  behaviour                        here      why
#  -------------------------------- --------- --------------------------------
#  flux housekeeping list, kill     same      the command is flux-core's, and
#  and their options                          its requests come to the plugin
#  nothing runs: no stats, no rows  same
#  scripts run on the nodes of the  same
#  job, and on no other
#  release-after unset: all ranks   different each is free as it is done; all
#  are free when all are done                 at once is release-after = all
#  release-after = 0: a free a      better    nodes that end together are one
#  rank, the last is final                    free; the last is final
#  release-after = 5s: those that   same
#  are done then, then each
#  an unknown option is refused     same      and the old ones stay
#  a bad duration is refused        same
#  no command and no exec.imp is    different there is no command: what runs
#  refused                                    is a folder on each node
#  use-systemd-unit is ignored      different it is an unknown option; a unit
#                                             is all there is
#  [job-manager.housekeeping]       different it is said that the built-in is
#                                             passed over, and it is
#  a command that cannot be run:    better    start-failed: drained before it
#  an error is logged, nodes free             is free
#  a script fails: an error is      better    drained before it is free
#  logged, the node is free
#  output goes to flux dmesg        different it goes to the node's journal,
#                                             under the job; hkctl log shows it
#  FLUX_JOB_ID in decimal           different f58plain, as the packaged unit
#                                             and wrapper of flux-core have it
#  FLUX_JOB_USERID, FLUX_JOB_RANKS, same      FLUX_URI is hkd's flux-uri
#  FLUX_URI
#  kill --all, --jobid, --targets   better    and what was killed is drained,
#  end it                                     with who and why
#  flux resource list counts them   same
#  allocated
#  list -i RANKS or HOSTS           same      a bad host list is refused
#  hello with partial-ok: the       same
#  straggler stays allocated
#  hello without: the straggler is  better    it goes on; its node is drained
#  terminated and its node free               until it is done
#  release-after taken out and      same
#  reloaded is unset again (#6596)

load flux

setup_file ()
{
    flux_is_there || return 0
    layer
    script 10-first <<'S'
#!/bin/sh
echo "the script says so"
printenv >/run/env
touch /run/flag
while [ -e /run/hang ]; do sleep 0.1; done
exit "$(cat /run/exit 2>/dev/null || echo 0)"
S
    export HK_OPTIONS='state-dir = "/var/lib/flux-hk"'
    HK_CONF=$HK_OPTIONS flux_up 4
    f module reload sched-simple log-level=debug
}

teardown_file ()
{
    flux_down
}

setup ()
{
    local n
    [ -z "${HK_SKIP:-}" ] || skip "$HK_SKIP"
    f dmesg -C
    for n in 0 1 2 3; do
        on node$n rm -f /run/hang /run/exit /run/flag
    done
}

teardown ()
{
    local n
    for n in 0 1 2 3; do
        on node$n rm -f /run/hang /run/exit
    done
    within 10 running_is 0
    undrain_all
}

hang ()
{
    local n
    for n; do on "node$n" touch /run/hang; done
}
# running_is N: jobs whose housekeeping runs
running_is () { [ "$(f housekeeping list -no '{id}' | wc -l)" = "$1" ]; }
ran_on () { on "node$1" test -e /run/flag; }
# sched_frees: ranks of each free, as the scheduler logs it; ! is final
sched_frees ()
{
    f dmesg | sed -nE 's/.*sched-simple.* free: [^ ]+: (rank[^/ ]*)[^(]*(\(final\))?/\1\2/p' |
        sed 's/(final)/!/' | paste -sd' '
}
frees_are () { [ "$(sched_frees)" = "$1" ] || { sched_frees; return 1; }; }
# options [TOML]: of the plugin, beyond those it has
options ()
{
    HK_CONF="$HK_OPTIONS${1:+, $1}" flux_reconf
}

@test "the command, its stats, and what it refuses" {
    f housekeeping list --help
    f housekeeping kill --help
    not f housekeeping kill
    not f housekeeping kill --all --jobid=f1
    f module stats job-manager |
        jq -e '.housekeeping.running | length == 0'
}

@test "scripts run where the job ran, and nowhere else" {
    run_job 2 --requires=ranks:1-2
    within 10 running_is 0
    ran_on 1
    ran_on 2
    not ran_on 0
    not ran_on 3
}

@test "release-after = all: no rank is free before all are done" {
    options 'release-after = "all"'
    hang 3
    run_job 4
    within 10 ran_on 0
    never 1 not counted 0-3
    on node3 rm /run/hang
    within 10 frees_are "rank[0-3]!"
}

@test "release-after = 0: the last free alone is final" {
    options 'release-after = "0"'
    hang 0 1 2 3
    run_job 4
    for n in 2 0 3 1; do
        on node$n rm /run/hang
        within 10 eval "sched_frees | grep -q rank$n"
    done
    frees_are "rank2 rank0 rank3 rank1!"
}

@test "release-after = 2s: who is done then, and then the straggler" {
    options 'release-after = "2s"'
    hang 3
    run_job 4
    never 1 not counted 0-3
    within 5 frees_are "rank[0-2]"
    on node3 rm /run/hang
    within 10 frees_are "rank[0-2] rank3!"
}

@test "release-after is its default again when it is taken out" {
    options 'release-after = "all"'
    hang 3
    run_job 4
    options
    within 5 counted 3
}

@test "unknown options and bad values are refused, the old ones stay" {
    options 'release-after = "all"'
    not options 'xyz = 42'
    not options 'release-after = "foo"'
    not options 'use-systemd-unit = true'
    hang 3
    run_job 4
    within 10 ran_on 0
    never 1 not counted 0-3
    options
}

@test "the built-in's table is passed over, which is said" {
    # shellcheck disable=SC2030,SC2031
    export FLUX_CONF='[job-manager.housekeeping]
command = [ "false" ]'
    options
    said_log 'job-manager.housekeeping. is configured too'
    run_job 4
    within 10 running_is 0
    not said_log 'nonzero exit code'
    ran_on 3
    unset FLUX_CONF
    options
}

@test "a script that cannot be run: its node is drained" {
    on node2 chmod 777 /etc/flux/system/housekeeping.d/10-first
    id=$(run_job 4)
    within 10 drained node2 "housekeeping@$(f58plain "$id") start-failed.*"
    on node2 chmod 755 /etc/flux/system/housekeeping.d/10-first
    within 5 counted ""
    not_drained node1
}

@test "a script that fails: its node is drained, and only that" {
    on node3 sh -c 'echo 1 >/run/exit'
    id=$(run_job 4)
    within 10 running_is 0
    drained node3 "housekeeping@$(f58plain "$id") exit-code.*exited 1.*"
    not_drained node0
}

@test "what a script writes is in its node's journal" {
    id=$(run_job 1 --requires=rank:3)
    within 10 running_is 0
    within 10 eval "on head hkctl log $(f58plain "$id") |
        grep -q '^node3: .*the script says so'"
}

@test "what a script finds in its environment" {
    id=$(run_job 2 --requires=ranks:1,3)
    within 10 running_is 0
    on node3 grep -qx "FLUX_JOB_ID=$(f58plain "$id")" /run/env
    on node3 grep -qx "FLUX_JOB_USERID=0" /run/env
    on node3 grep -qx "FLUX_JOB_RANKS=1,3" /run/env
    on node3 grep -q "^FLUX_URI=local://" /run/env
}

@test "kill --all, --jobid and --targets end what they name" {
    hang 0 1 2 3
    f submit --cc=0-1 -n2 -N2 -c1 true
    within 10 running_is 2
    f housekeeping kill --all --signal=15
    within 10 running_is 0
    drained node0 "housekeeping@.* killed.*flux housekeeping kill.*"
    undrain_all
    id=$(run_job 4)
    within 10 running_is 1
    f housekeeping kill --jobid="$id" --signal=15
    within 10 running_is 0
    undrain_all
    id=$(run_job 4)
    within 10 running_is 1
    f housekeeping kill --targets=0-2 --signal=15
    within 10 counted 3
}

@test "four jobs are four rows, and which of them are on a node" {
    hang 0 1 2 3
    f submit --cc=0-3 -N1 --exclusive true
    within 10 running_is 4
    [ "$(f resource list -s allocated -no '{nnodes}')" = 4 ]
    [ "$(f housekeeping list -i 0 -no '{ranks}')" = 0 ]
    [ "$(f housekeeping list -i 0,3 -no '{ranks}')" = 0,3 ]
    [ "$(f housekeeping list -i node2 -no '{ranks}')" = 2 ]
    not f housekeeping list -i 'foo['
}

@test "a scheduler that is reloaded ends no script, whatever it can be told" {
    hang 3
    run_job 4
    within 10 counted 3
    f module reload sched-simple test-hello-nopartial
    within 5 drained node3 "housekeeping: held .*"
    running_is 1
    f module reload sched-simple log-level=debug
    within 5 counted 3
    within 5 not_drained node3
    running_is 1
}
