# flux.bash - a Flux instance on the head of a cluster, with the plugin
# SPDX-License-Identifier: LGPL-3.0-or-later
# shellcheck shell=bash disable=SC2154 # bats sets its own variables

# The brokers run on the head, one for each node, under the nodes' names; the
# nodes are real ones, whose hkds connect to the plugin in the first broker.

load ../cluster/story

# flux_is_there: else the file is skipped in one line
flux_is_there ()
{
    if ! command -v flux >/dev/null ||
        ! [ -e "${HK_BUILD:-build}/coordinator/hk-coordinator.so" ]; then
        echo "# skipped: flux-core is not installed" >&3
        skip "flux-core is not installed"
    fi
}

# flux_up N [SCHEDULER]: a cluster of N nodes and an instance of N brokers.
# FLUX_CONF is more of the instance's configuration, HK_CONF the plugin's conf.
flux_up ()
{
    local n=$1 plugin
    plugin=$(realpath "${HK_BUILD:-build}")/coordinator/hk-coordinator.so
    export FLUX_N=$n FLUX_SCHED=${2:-sched-simple}
    mkdir -p "$CLUSTER_LAYER/etc/flux-test/conf" \
        "$CLUSTER_LAYER/etc/systemd/system"
    flux R encode -r "0-$((n - 1))" -c 0-1 -H "node[0-$((n - 1))]" \
        >"$CLUSTER_LAYER/etc/flux-test/R"
    flux_conf "$plugin" >"$CLUSTER_LAYER/etc/flux-test/conf/test.toml"
    cat >"$CLUSTER_LAYER/etc/systemd/system/flux-test.service" <<S
[Service]
ExecStart=$(command -v flux) start --test-size=$n \
    --test-hosts=node[0-$((n - 1))] --test-rundir=/run/flux-test \
    --config-path=/etc/flux-test/conf -Sstatedir=/var/lib/flux-test \
    -Slog-filename=/var/log/flux-test.log -Slog-forward-level=7 \
    sleep infinity
ExecStartPre=mkdir -p /var/lib/flux-test /run/flux-test
KillMode=mixed
TimeoutStopSec=20
LimitNOFILE=8192
S
    # the instance is root's, and so are its jobs
    cat >"$CLUSTER_LAYER/etc/flux/hk.conf.d/flux.conf" <<S
[housekeeping]
allow-userid-0 = yes
S
    export CLUSTER_HEAD_WANTS=flux-test.service
    cluster_up "$n"
}

flux_conf ()
{
    local conf=${HK_CONF:-'state-dir = "/var/lib/flux-hk"'}
    cat <<S
[resource]
path = "/etc/flux-test/R"
noverify = true
[modules]
alternatives.sched = "$FLUX_SCHED"
[job-manager]
plugins = [
  { load = "$1", conf = { $conf } }
]
${FLUX_CONF:-}
S
}

# f COMMAND..: in the instance
f ()
{
    on head env FLUX_URI=local:///run/flux-test/local-0 flux "$@"
}

# run_job N [OPTION..]: a job on N nodes has ended; its id is printed
run_job ()
{
    local n=$1 id
    shift
    id=$(f submit -N "$n" "$@" true)
    f job wait-event -t 20 "$id" clean >/dev/null
    echo "$id"
}

free_is () { [ "$(f resource list -s free -no '{nnodes}')" = "$1" ]; }
allocated_is () { [ "$(f resource list -s allocated -no '{nnodes}')" = "$1" ]; }

# sched_allocated: ranks that the scheduler itself counts
sched_allocated ()
{
    f python -c '
import flux, json
from flux.resource import ResourceSet
r = flux.Flux().rpc("sched.resource-status").get()
print(ResourceSet(r["allocated"]).ranks)'
}
counted () { [ "$(sched_allocated)" = "$1" ]; }

flux_down ()
{
    story_down
}

# state_is ID STATE
state_is () { [ "$(f jobs -no '{state}' "$1")" = "$2" ]; }
f58plain () { f job id --to=f58plain "$1"; }
# drained NODE REASON: with exactly that reason (a regular expression)
drained ()
{
    local reason
    reason=$(f resource drain -no '{nodelist}|{reason}' |
        sed -n "s/^$1|//p")
    [[ $reason =~ ^$2$ ]] || { echo "$1 is drained: '$reason'"; return 1; }
}
not_drained () { ! f resource drain -no '{nodelist}' | grep -qw "$1"; }
# held_jobs: ids of those whose ranks are held
held_jobs () { f housekeeping list -no '{id}' | paste -sd' '; }
cores_allocated ()
{
    [ "$(f resource list -s allocated -no '{ncores}')" = "$1" ]
}
frees () { f jobtap query hk-coordinator.so | jq '."hk-coordinator".frees'; }
undrain_all ()
{
    local ranks
    ranks=$(f resource drain -no '{ranks}' | paste -sd,)
    [ -z "$ranks" ] || f resource undrain "$ranks"
}
