#!/usr/bin/env bats
# roles.bats - who may say what, and what hostile peers can do: nothing
# SPDX-License-Identifier: LGPL-3.0-or-later
# shellcheck disable=SC2016,SC2030,SC2031,SC2086,SC2154 # as in crash.bats

bats_require_minimum_version 1.5.0
load story

HEAD=flux-hk-coordinator.service
ID=0123456789abcdef0123456789abcdef
GUEST=1234
MANAGER=1235

setup_file ()
{
    layer
    script 20-work <<'S'
#!/bin/sh
while [ -e /run/hang ]; do sleep 0.05; done
S
    printf '[coordinator]\nmanager-uid = %s\n' $MANAGER \
        >>"$CLUSTER_LAYER/etc/flux/hk.conf"
    cluster_up 2
    main_pid head $HEAD >"$BATS_FILE_TMPDIR/pid"
    main_pid node0 flux-hkd.service >"$BATS_FILE_TMPDIR/hkd"
}

teardown_file ()
{
    story_down
}

setup ()
{
    told=$BATS_FILE_TMPDIR/said$BATS_TEST_NUMBER
    scheduler "$told" --hello --partial-ok --take-over
    within 10 said "$told" '"alloc-end"'
    job=$((7000 + 100 * BATS_TEST_NUMBER))
}

# whatever was said, it is the same process and serves
teardown ()
{
    local file
    on node0 rm -f /run/hang
    for file in "$BATS_FILE_TMPDIR"/*.pid; do
        scheduler_end "${file%.pid}"
    done
    books "$told"
    [ "$(main_pid head $HEAD)" = "$(cat "$BATS_FILE_TMPDIR/pid")" ]
    [ "$(main_pid node0 flux-hkd.service)" = "$(cat "$BATS_FILE_TMPDIR/hkd")" ]
    on head hkctl ping
}

finished () { said "$told" "\"jobid\":$1,.*\"final\":true"; }

# peer_of UID FILE OPTION..: a peer by hand of another user
peer_of ()
{
    local uid=$1 file=$2 tools=$HK_TOOLS
    shift 2
    mkdir -p "$BATS_FILE_TMPDIR/bin"
    printf '#!/bin/sh\nexec setpriv --reuid %s --clear-groups %s/say "$@"\n' \
        "$uid" "$tools" >"$BATS_FILE_TMPDIR/bin/say"
    "$CLUSTER" exec head sh -c 'mkdir -p /opt && cat >/opt/say &&
        chmod 755 /opt/say' <"$BATS_FILE_TMPDIR/bin/say"
    HK_TOOLS=/opt peer "$file" "$@"
}

# every message of the table, with as little as it must have
messages ()
{
    local R='{"version":1,"execution":{"R_lite":[{"rank":"0","children":{"core":"0"}}],"nodelist":["node0"],"starttime":0,"expiration":0}}'
    cat <<S
key-get "nonce":"$ID"
key "cred":"x"
hello "version":1,"role":"owner","cred":"x"
welcome "version":1,"instance":"$ID","start":1,"commit":1,"uid":0,"now":1.0,"heartbeat_ms":1000,"reconcile_ms":1000
error "code":"bad","text":"x"
rehello "instance":"$ID","start":1
alive
state "boot_id":"$ID","runs":[],"last":true
run "alloc":1,"instance":"$ID","attempt":1,"jobid":1,"boot_id":"$ID","phase":"running"
start "alloc":1,"attempt":1,"boot_id":"$ID","jobid":1,"userid":1000,"ranks":"0","rank":0
stop "alloc":1,"attempt":1,"signal":15
ack "alloc":1,"attempt":1
ping
list
nodes
history
follow
data "rows":[]
done
log "lines":1
log-data "host":"node0","lines":[]
log-end "host":"node0"
kill "jobid":1
recover
job-end "jobid":$job,"userid":1000,"R":$R
recorded "alloc":1,"state":"new"
sched-hello "life":"roles"
sched-alloc "life":"x","jobid":1,"userid":1,"R":{}
sched-alloc-end "life":"x"
sched-ready "life":"x"
free "n":1,"life":"x","jobid":1,"ranks":"0","R":{}
free-ok "n":1
drain "n":1,"hosts":"node0"
drain-done "n":1,"hosts":{"node0":{"result":"ok"}}
undrain "n":1,"hosts":"node0"
undrain-done "n":1,"hosts":{"node0":{"result":"ok"}}
S
}

# say_all FILE: each message of the table, with the number of its line
say_all ()
{
    messages | awk '{ type = $1; sub (/^[^ ]+ */, ""); printf \
        "{\"type\":\"%s\",\"seq\":%d,\"session\":\"$S\"%s%s}\n",
        type, 1000 + NR, $0 == "" ? "" : ",", $0 }' >"$1.all"
    while read -r line; do
        tell "$1" "$line"
    done <"$1.all"
    # what comes last is answered last
    tell "$1" '{"type":"start","seq":2000,"session":"$S","alloc":1,"attempt":1,"boot_id":"'$ID'","jobid":1,"userid":1,"ranks":"0","rank":0}'
    within 10 said "$1" '"re":2000,'
}
# allowed FILE: the types that were not refused for its role
allowed ()
{
    local n=1000 type rest
    messages | while read -r type rest; do
        n=$((n + 1))
        grep -Eq "\"re\":$n,.*\"code\":\"denied\",.* is not for a " "$1" ||
            echo "$type"
    done | xargs
}

@test "every message is in the list of this test" {
    diff <(messages | awk '{ print $1 }' | sort) \
        <(tr '\n' ' ' <"$BATS_TEST_DIRNAME/../../proto/message_table.c" |
            grep -oE 'ROW \([A-Z_]+, +"[a-z-]+"' | sed 's/.*"\(.*\)"/\1/' | sort)
}

@test "a guest may look, and no more" {
    peer_of $GUEST "$told.g" --raw --role guest
    say_all "$told.g"
    [ "$(allowed "$told.g")" = "hello alive ping list nodes history" ]
    not listed .
}

@test "a guest who asks to be owner or manager is a guest" {
    for role in owner manager; do
        peer_of $GUEST "$told.$role" --raw --role $role
        said "$told.$role" '"role":"guest"'
        say_all "$told.$role"
        [ "$(allowed "$told.$role")" = "hello alive ping list nodes history" ]
    done
    run -3 on head setpriv --reuid $GUEST --clear-groups hkctl kill --all
    run -3 on head setpriv --reuid $GUEST --clear-groups \
        hkctl job-end -j $job -u 1000 -t node0
    not listed .
}

@test "no user but root is a node" {
    run -124 timeout 3 "$CLUSTER" exec head setpriv --reuid $GUEST \
        --clear-groups "$HK_TOOLS/say" --role node --host node0 --boot $ID \
        </dev/null
    [[ $output = *"uid $GUEST may not be node here"* ]]
}

@test "a node tells of itself, and asks for nothing" {
    peer "$told.n" --raw --role node --host intruder --boot $ID
    say_all "$told.n"
    [ "$(allowed "$told.n")" = \
        "hello alive state run ping done log-data log-end" ]
    not listed .
}

@test "the manager's user is the manager, and not an owner" {
    peer_of $MANAGER "$told.m" --raw --role manager
    said "$told.m" '"role":"manager"'
    say_all "$told.m"
    [ "$(allowed "$told.m")" = "hello alive ping list nodes history \
sched-hello sched-ready free-ok drain-done undrain-done" ]
    # the session is another's, and is not lost to it
    said "$told.m" '"code":"conflict"'
    peer_of $MANAGER "$told.o" --raw --role owner
    said "$told.o" '"role":"guest"'
    job_end $job node0
    within 10 finished $job
}

@test "an owner may all but what is the coordinator's and the nodes'" {
    peer "$told.o" --raw --role owner
    say_all "$told.o"
    [ "$(allowed "$told.o")" = "hello alive ping list nodes history follow log \
kill recover job-end sched-hello sched-ready free-ok drain-done undrain-done" ]
    said "$told.o" '"type":"recorded"'
    within 10 finished $job
}

@test "what a node says of another's run changes nothing" {
    on node0 touch /run/hang
    job_end $job node0
    within 10 listed '20-work +node0'
    row=$(on head hkctl list -j $job --json | jq -c '.rows[0]')
    alloc=$(jq -r .alloc <<<"$row")
    [ "$alloc" != null ]
    instance=$(on head hkctl ping --json | jq -r .instance)
    peer "$told.n" --raw --role node --host intruder --boot $ID
    tell "$told.n" '{"type":"state","seq":1,"session":"$S","boot_id":"'$ID'","runs":[],"last":true}'
    for boot in $ID "$(on node0 cat /proc/sys/kernel/random/boot_id | tr -d -)"; do
        tell "$told.n" '{"type":"run","seq":2,"session":"$S","alloc":'$alloc',"instance":"'$instance'","attempt":1,"jobid":'$job',"boot_id":"'$boot'","phase":"ended","outcome":"success","t_start":1.0,"t_end":2.0}'
    done
    never 2 freed "$told" $job 0
    listed '20-work +node0'
    not said "$told" '"type":"drain",.*"hosts":"node0"'
    on node0 rm /run/hang
    within 10 finished $job
    freed "$told" $job 0
}

@test "guests see no text, and nothing at all when access is closed" {
    on head hkctl history --json | grep -q '"reason"'
    run -0 on head setpriv --reuid $GUEST --clear-groups hkctl history --json
    not grep -q '"reason": *"[^"]' <<<"$output"
    on head sh -c 'mkdir -p /etc/flux/hk.conf.d
        printf "[coordinator]\nguest-access = no\n" >/etc/flux/hk.conf.d/g.conf
        systemctl reload flux-hk-coordinator'
    closed () {
        run on head setpriv --reuid $GUEST --clear-groups hkctl list
        [ "$status" = 3 ]
    }
    within 5 closed
    on head sh -c 'rm /etc/flux/hk.conf.d/g.conf
        systemctl reload flux-hk-coordinator'
    within 10 on head setpriv --reuid $GUEST --clear-groups hkctl list
}

R_of ()
{
    printf '{"version":1,"execution":{"R_lite":[{"rank":"%s",
        "children":{"core":"%s"}}],"nodelist":[%s],"starttime":0,
        "expiration":0}}' "$1" "$2" "$3" | tr -d '\n '
}
# end_of N FIELDS: a job-end with that number, and a ping behind it
end_of ()
{
    tell "$told.h" '{"type":"job-end","seq":'$1',"session":"$S",'"$2}"
    tell "$told.h" '{"type":"ping","seq":'$1'0,"session":"$S"}'
    within 5 said "$told.h" "\"type\":\"done\",.*\"re\":${1}0,"
    not said "$told.h" "\"type\":\"recorded\",.*\"re\":$1,"
}
# refused FIELDS: that has an answer which says what is wrong; garbage FIELDS:
# no message at all, and such are answered now and then only
number=100
refused ()
{
    number=$((number + 1))
    end_of $number "$1"
    said "$told.h" "\"re\":$number,.*\"code\":\"bad\",.*\"text\":\"R: "
}
garbage ()
{
    number=$((number + 1))
    end_of $number "$1"
}

@test "a hostile R is refused, and it says where" {
    local J='"jobid":7,"userid":1000' host
    peer "$told.h" --raw --role owner
    for host in '"../../x"' '"a\nb"' '""' '"-x"' '"a\u001b[2J"' '"a/b"' \
        '"node[0-99999999]"' '"node[0-"' 7 '[]' '"x","y"'; do
        refused "$J,\"R\":$(R_of 0 0 "$host")"
    done
    refused "$J,\"R\":$(R_of 0-1 0 '"node0"')"
    refused "$J,\"R\":$(R_of 4294967296 0 '"node0"')"
    refused "$J,\"R\":$(R_of 0-1048577 0 '"node0"')"
    refused "$J,\"R\":$(R_of 0 x '"node0"')"
    refused "$J,\"R\":{}"
    not listed .
}

@test "a job-end that is no message is dropped" {
    local J='"jobid":7,"userid":1000' good deep
    peer "$told.h" --raw --role owner
    good=$(R_of 0 0 '"node0"')
    deep=$(printf '{"a":%.0s' $(seq 60))1$(printf '}%.0s' $(seq 60))
    garbage "$J"
    garbage "$J,\"R\":[]"
    garbage "$J,\"R\":{\"version\":1,\"execution\":$deep}"
    garbage "$J,\"R\":$(R_of 0 0 '"a\u0000b"')"
    garbage "\"jobid\":-1,\"userid\":1000,\"R\":$good"
    garbage "\"jobid\":9223372036854775808,\"userid\":1000,\"R\":$good"
    garbage "\"jobid\":7,\"userid\":4294967296,\"R\":$good"
    garbage "\"jobid\":7,\"jobid\":8,\"userid\":1000,\"R\":$good"
    garbage "$J,\"t_end\":1e999,\"R\":$good"
    garbage "$J,\"priority\":1e10,\"R\":$good"
    garbage "$J,\"queue\":\"a\\u0000b\",\"R\":$good"
    garbage "$J,\"queue\":\"$(printf 'q%.0s' $(seq 3000))\",\"R\":$good"
    garbage "$J,\"R\":$good" && return 1 # this one is good
    said "$told.h" '"code":"bad"'
    within 10 finished 7
}

@test "control characters in a job's queue harm neither node nor terminal" {
    peer "$told.h" --raw --role owner
    tell "$told.h" '{"type":"job-end","seq":9,"session":"$S","jobid":'$job',"userid":1000,"queue":"a\u001b[2J\nB=1\u202e","R":'"$(R_of 0 0 '"node0"')"'}'
    within 5 said "$told.h" '"re":9,'
    if said "$told.h" '"re":9,.*"state":"new"'; then
        within 10 finished $job
        on node0 journalctl -b -u flux-hkd -o cat | not grep -q $'\e'
        on head hkctl history -j $job | not grep -q $'\e'
    fi
    on head journalctl -b -u $HEAD -o cat | not grep -q $'\e'
}

# padded N: a ping of so many bytes
padded ()
{
    printf '{"type":"ping","seq":77,"session":"$S","x":"'
    head -c "$1" /dev/zero | tr '\0' x
    echo '"}'
}

@test "frames over the limit are dropped, whoever sends them" {
    peer_of $GUEST "$told.g" --raw --role guest
    padded 1000 >"$told.g.in"
    within 5 said "$told.g" '"type":"done",.*"re":77'
    : >"$told.g"
    padded 300000 >"$told.g.in"
    within 5 said "$told.g" '"code":"bad"'
    peer "$told.n" --raw --role node --host intruder --boot $ID
    padded 300000 >"$told.n.in"
    within 5 said "$told.n" '"event":"down"' # its connection was ended
    scheduler_end "$told.n"
    peer "$told.o" --raw --role owner
    padded 300000 >"$told.o.in"
    within 5 said "$told.o" '"type":"done",.*"re":77'
    : >"$told.o"
    padded 17000000 >"$told.o.in"
    within 10 said "$told.o" '"event":"down"'
    within 10 connected 2
    job_end $job 'node[0-1]'
    within 10 finished $job
}

@test "who speaks no ZeroMQ at all is not heard" {
    for port in 8765 8766 8767; do
        on head bash -c "exec 3<>/dev/tcp/127.0.0.1/$port
            head -c 300000 /dev/urandom >&3" 2>/dev/null || :
        on head bash -c "exec 3<>/dev/tcp/127.0.0.1/$port
            printf 'GET / HTTP/1.0\r\n\r\n' >&3" 2>/dev/null || :
    done
    within 10 connected 2
    job_end $job 'node[0-1]'
    within 10 finished $job
}
