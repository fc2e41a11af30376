#!/usr/bin/env bats
# hkctl.bats - hkctl against a coordinator and a munged of the test's own
# SPDX-License-Identifier: LGPL-3.0-or-later

bats_require_minimum_version 1.5.0

setup_file ()
{
    [ "$(id -u)" -eq 0 ] || return 0
    cd "$BATS_TEST_DIRNAME/../.." || return
    BUILD=$(realpath "${HK_BUILD:-build}")
    # root trusts a configuration only where nobody else may write
    DIR=$(mktemp -d /run/hkctl-test.XXXXXX)
    HK="--config $DIR/hk.conf --timeout 20s"
    export BUILD DIR HK
    chmod 755 "$DIR"
    mkdir -m 700 "$DIR/state"
    head -c 64 /dev/urandom >"$DIR/key"
    chmod 400 "$DIR/key"
    munged -F --force --socket="$DIR/munge" --key-file="$DIR/key" \
        --pid-file="$DIR/pid" --log-file="$DIR/munge.log" \
        --seed-file="$DIR/seed" >/dev/null 2>&1 3>&- &
    MUNGED=$!
    # ports below those that the kernel hands out
    local base=$((20000 + RANDOM % 10000))
    cat >"$DIR/hk.conf" <<END
[link]
head = 127.0.0.1
bind = 127.0.0.1
node-port = $base
client-port = $((base + 1))
key-port = $((base + 2))
munge-socket = $DIR/munge
[coordinator]
state-dir = $DIR/state
END
    wait_for test -S "$DIR/munge"
    "$BUILD/coordinator/hk-coordinator" --config "$DIR/hk.conf" \
        >"$DIR/log" 2>&1 3>&- &
    COORDINATOR=$!
    export MUNGED COORDINATOR
    wait_for hkctl ping
}

teardown_file ()
{
    [ -n "$DIR" ] || return 0
    kill "$COORDINATOR" "$MUNGED"
    wait "$COORDINATOR" "$MUNGED" || :
    rm -rf "$DIR"
}

setup ()
{
    [ "$(id -u)" -eq 0 ] || skip "needs root"
}

wait_for ()
{
    local end=$((SECONDS + 20))
    while [ "$SECONDS" -lt "$end" ]; do
        "$@" >/dev/null 2>&1 && return
        sleep 0.1
    done
    echo "never: $*" >&2
    cat "$DIR/log" >&2
    return 1
}

hkctl ()
{
    local command=$1
    shift
    # shellcheck disable=SC2086
    "$BUILD/hkctl/hkctl" "$command" $HK "$@"
}

# the program where another user can reach it
hkctl_as ()
{
    local user=$1 command=$2
    shift 2
    [ -x "$DIR/hkctl" ] || install -m 755 "$BUILD/hkctl/hkctl" "$DIR/hkctl"
    # shellcheck disable=SC2086
    setpriv --reuid "$user" --clear-groups "$DIR/hkctl" "$command" $HK "$@"
}

@test "ping shows version, user and clocks" {
    run -0 hkctl ping
    [[ $output == *"you: uid 0, owner"* ]]
    [[ $output == *"state: ok"* ]]
    run -0 hkctl ping --json
    [[ $output == *'"uid":0'*'"skew":'* ]]
}

@test "no rows at all are no fault" {
    local command
    for command in list nodes history; do
        run -0 hkctl $command
        run -0 hkctl $command --json
        [ "$output" = '{"rows":[]}' ]
    done
}

@test "a job that ended is listed until it is over" {
    run -0 hkctl job-end -j f2x7 -u root -t 'node[1-4]' --t-submit 1 --t-end 2
    [ "$output" = new ]
    # the same end again
    run -0 hkctl job-end -j 6560 -u 0 -t 'node[1-4]' --t-submit 1 --t-end 2
    [ "$output" = held ]
    run -0 hkctl list -n
    [[ $output == *f2x7*root*waiting*4*'node[1-4]'* ]] ||
        [[ $output == *ƒ2x7*root*waiting*4*'node[1-4]'* ]]
    run -0 hkctl list --json -t node2
    [[ $output == '{"rows":['*'"hosts":"node2"'* ]]
    [[ $output == *'"alloc":'* ]]
    # options before the command are as those after it
    local json=$output
    # shellcheck disable=SC2086
    run -0 "$BUILD/hkctl/hkctl" --json -t node2 $HK list
    [ "$output" = "$json" ]
    run -0 hkctl nodes -j f2x7 -n
    [ "${#lines[@]}" -eq 4 ]
    [[ ${lines[0]} == node1*down* ]]
}

@test "kill says what happened where, and no when nothing matched" {
    run -0 hkctl kill -j f2x7 -t node1 -r because
    [[ $output == node1:* ]]
    run -1 hkctl kill -j f2x8
    run -1 hkctl kill -t node77 --json
}

@test "rows of a job or of hosts that has none are a no" {
    local command
    for command in list nodes history; do
        run -1 hkctl $command -j f9999
        run -1 hkctl $command -t node77 --json
        [ "$output" = '{"rows":[]}' ]
        run -1 hkctl $command -j f2x7 -t node77
    done
    run -0 hkctl list -j f2x7
    run -0 hkctl nodes -t 'node[1,77]'
}

@test "R may come from a file" {
    cat >"$DIR/R" <<END
{"version":1,"execution":{"R_lite":[{"rank":"5","children":{"core":"0-3"}}],
"nodelist":["node9"],"starttime":0,"expiration":0}}
END
    run -0 hkctl job-end -j f5 -u 0 -R "$DIR/R" --json
    [[ $output == *'"state":"new"'* ]]
    run -1 hkctl job-end -j f5 -u 0 -R - <<<'{"version":1}'
    run -2 hkctl job-end -j f5 -u 0 -R "$DIR/none"
    run -2 hkctl job-end -j f5 -u 0 -t node1 --ranks 1-2
}

@test "the log of a node without contact is a no" {
    run -1 hkctl log f2x7
    [[ $output == *"no contact with"* ]]
}

@test "a guest sees, without text, and may not act" {
    run -0 hkctl_as 65534 ping
    [[ $output == *"guest"* ]]
    run -0 hkctl_as 65534 list --json
    [[ $output == *'"phase"'* ]]
    [[ $output != *'"reason"'* ]]
    run -3 hkctl_as 65534 kill --all
    [[ $output == *"not for a guest"* ]]
    run -3 hkctl_as 65534 log f2x7
    run -3 hkctl_as 65534 follow --manager
}

@test "a manager is told what is held and then what is freed" {
    local pid
    hkctl follow --manager --hello --partial-ok >"$DIR/lines" 2>&1 3>&- &
    pid=$!
    wait_for grep -q '"type":"alloc-end"' "$DIR/lines"
    grep -q '"type":"alloc",.*"jobid":6560' "$DIR/lines"
    hkctl kill -j f2x7
    wait_for grep -q '"type":"drain",.*"hosts":"node3"' "$DIR/lines"
    wait_for grep -q '"type":"free",.*"jobid":6560.*"final":true' "$DIR/lines"
    # each free once: it was confirmed
    [ "$(grep -c '"n":1,.*"type"\|"type":"free","n":1,' "$DIR/lines")" -eq 1 ]
    # another one has to wait
    run -3 hkctl follow --manager --life other
    [[ $output == *"another manager"* ]]
    kill "$pid"
    wait "$pid" || :
}

@test "what ends is followed" {
    local pid
    hkctl follow >"$DIR/followed" 3>&- &
    pid=$!
    wait_for is_followed
    kill "$pid"
    wait "$pid" || :
}

# A follower is told what comes after its question only.
is_followed ()
{
    hkctl job-end -j f7 -u 0 -t "other$RANDOM" --ranks 99
    hkctl kill -j f7
    grep -q '"event":"drain"' "$DIR/followed"
}

@test "config shows what is in effect" {
    run -0 hkctl config
    [[ $output == *"munge-socket = $DIR/munge"* ]]
    [[ $output == *"[housekeeping]"* ]]
    run -0 hkctl config --json
    [[ $output == *'"timeout":"1h"'* ]]
    run -0 "$BUILD/hkctl/hkctl" config --example --config "$DIR/hk.conf"
    [[ $output == *"#node-port = 8765"* ]]
}

@test "config says no to a file that cannot be taken, others cannot go on" {
    printf '[link]\nport = 1\n' >"$DIR/wrong.conf"
    run -1 "$BUILD/hkctl/hkctl" config --config "$DIR/wrong.conf"
    [[ $output == *"$DIR/wrong.conf:2: "* ]]
    run -3 "$BUILD/hkctl/hkctl" list --config "$DIR/wrong.conf"
    [[ $output == *"$DIR/wrong.conf:2: "* ]]
}

@test "a coordinator that is not there is said so, in time" {
    sed 's/^\(key\|client\)-port = .*/\1-port = 1/' "$DIR/hk.conf" \
        >"$DIR/other.conf"
    sed -i 's/^client-port = 1/client-port = 2/' "$DIR/other.conf"
    run -3 "$BUILD/hkctl/hkctl" ping --config "$DIR/other.conf" --timeout 1s
    # one line, and where to look
    [ "${#lines[@]}" -eq 1 ]
    [[ $output == *"no answer"*"hk-coordinator running"*munged*firewall*1*2* ]]
}

@test "a munge that hangs or is not there is named" {
    # the coordinator waits for it longer than we do
    kill -STOP "$MUNGED"
    run -3 "$BUILD/hkctl/hkctl" ping --config "$DIR/hk.conf" --timeout 1s
    kill -CONT "$MUNGED"
    [ "${#lines[@]}" -eq 1 ]
    [[ $output == *"no answer"*munged* ]]
    wait_for hkctl ping
    # gone for the coordinator alone
    mv "$DIR/munge" "$DIR/munge.mine"
    sed "s,^munge-socket = .*,munge-socket = $DIR/munge.mine," "$DIR/hk.conf" \
        >"$DIR/mine.conf"
    run -3 "$BUILD/hkctl/hkctl" ping --config "$DIR/mine.conf" --timeout 6s
    mv "$DIR/munge.mine" "$DIR/munge"
    [[ $output == *"the coordinator's munge does not answer"* ]]
    grep -q 'munge does not answer, so nobody new is let in' "$DIR/log"
    wait_for hkctl ping
}

@test "every command has a help" {
    run -0 "$BUILD/hkctl/hkctl" -h
    for command in list nodes history log kill job-end follow ping recover \
        config; do
        [[ $output == *"  $command "* ]]
        "$BUILD/hkctl/hkctl" "$command" -h | grep -q "usage: hkctl $command"
    done
}
