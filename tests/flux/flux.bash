# flux.bash - a Flux instance on the head of a cluster, with the plugin
# SPDX-License-Identifier: LGPL-3.0-or-later
# shellcheck shell=bash disable=SC2154 # bats sets its own variables

# The brokers run on the head, one for each node, under the nodes' names; the
# nodes are real ones, whose hkds connect to the plugin in the first broker.

load ../cluster/story

# flux_is_there: else every test of the file is skipped, which is said in one
# line.  setup_file itself cannot skip in this bats: it returns.
flux_is_there ()
{
    if ! command -v flux >/dev/null ||
        ! [ -e "${HK_BUILD:-build}/coordinator/hk-coordinator.so" ]; then
        none_because "flux-core is not installed"
    fi
}
none_because ()
{
    export HK_SKIP=$1
    echo "# skipped: $HK_SKIP" >&3
    return 1
}
setup () { [ -z "${HK_SKIP:-}" ] || skip "$HK_SKIP"; }

# fluxion_is_there: its modules, and what says in which order to load them
fluxion_conf ()
{
    local dir prefix
    prefix=$(dirname "$(dirname "$(command -v flux)")")
    for dir in "$(flux config builtin confdir)" "$prefix/etc/flux"; do
        [ -e "$dir/modprobe/modprobe.d/fluxion.toml" ] || continue
        echo "$dir/modprobe"
        return
    done
    return 1
}
fluxion_is_there ()
{
    if ! fluxion_conf >/dev/null; then
        none_because "flux-sched is not installed"
    fi
}

# flux_up N [SCHEDULER]: a cluster of N nodes and an instance of N brokers.
# FLUX_CONF is more of the instance's configuration, HK_CONF the plugin's conf,
# FLUX_R its resources, else two cores a node; FLUX_PLUGINS those after ours.
flux_up ()
{
    local n=$1 plugin
    plugin=$(realpath "${HK_BUILD:-build}")/coordinator/hk-coordinator.so
    export FLUX_N=$n FLUX_SCHED=${2:-sched-simple}
    mkdir -p "$CLUSTER_LAYER/etc/flux-test/conf" \
        "$CLUSTER_LAYER/etc/systemd/system"
    echo "${FLUX_R:-$(flux R encode -r "0-$((n - 1))" -c 0-1 \
        -H "node[0-$((n - 1))]")}" >"$CLUSTER_LAYER/etc/flux-test/R"
    flux_conf "$plugin" >"$CLUSTER_LAYER/etc/flux-test/conf/test.toml"
    # nodes do not have this machine's /etc/flux
    case $FLUX_SCHED in
        sched-fluxion-*)
            cp -r "$(fluxion_conf)" "$CLUSTER_LAYER/etc/flux-test/modprobe"
            ;;
    esac
    cat >"$CLUSTER_LAYER/etc/systemd/system/flux-test.service" <<S
[Service]
Environment=FLUX_MODPROBE_PATH_APPEND=/etc/flux-test/modprobe
ExecStart=$(command -v flux) start --test-size=$n \
    --test-hosts=node[0-$((n - 1))] --test-rundir=/run/flux-test \
    --config-path=/etc/flux-test/conf -Sstatedir=/var/lib/flux-test \
    -Slog-filename=/var/log/flux-test.log -Slog-forward-level=7 \
    sleep infinity
ExecStartPre=mkdir -p /var/lib/flux-test /run/flux-test
ExecStop=env FLUX_URI=local:///run/flux-test/local-0 $(command -v flux) \
    shutdown --quiet --skip-gc
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
  { load = "$1", conf = { $conf } }${FLUX_PLUGINS:+, $FLUX_PLUGINS}
]
${FLUX_CONF:-}
S
}

# flux_reconf: the instance reads what FLUX_CONF and HK_CONF say now
flux_reconf ()
{
    local plugin
    plugin=$(realpath "${HK_BUILD:-build}")/coordinator/hk-coordinator.so
    flux_conf "$plugin" >"$BATS_TEST_TMPDIR/test.toml"
    "$CLUSTER" exec head sh -c 'cat >/etc/flux-test/conf/test.toml' \
        <"$BATS_TEST_TMPDIR/test.toml"
    f config reload
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
# account: all that the scheduler itself counts, as "RANK:CHILDREN .."
account ()
{
    f python -c '
import flux
from flux.idset import IDset
a = flux.Flux().rpc("sched.resource-status").get()["allocated"]
have = {}
for entry in a["execution"]["R_lite"] if a else []:
    for rank in IDset(entry["rank"]):
        have[rank] = ",".join(sorted(
            k + v for k, v in entry["children"].items()))
print(" ".join(f"{r}:{have[r]}" for r in sorted(have)))'
}
account_is ()
{
    local is
    is=$(account) || return
    [ "$is" = "$1" ] || { echo "not $1, but $is"; return 1; }
}

flux_down ()
{
    [ -z "${HK_SKIP:-}" ] || return 0
    story_down
}

# state_is ID STATE
state_is () { [ "$(f jobs -no '{state}' "$1")" = "$2" ]; }
f58plain () { f job id --to=f58plain "$1"; }
f58_dec () { f job id --to=dec "$1"; }
# drained NODE REASON: with exactly that reason (a regular expression)
drained ()
{
    local reason
    # -i: else hosts of one reason share a line
    reason=$(f resource drain -i "$1" -no '{reason}')
    [[ $reason =~ ^$2$ ]] || { echo "$1 is drained: '$reason'"; return 1; }
}
not_drained () { [ -z "$(f resource drain -i "$1" -no '{reason}|')" ]; }
# held_jobs: ids of those whose ranks are held
held_jobs () { f housekeeping list -no '{id}' | paste -sd' '; }
cores_allocated ()
{
    [ "$(f resource list -s allocated -no '{ncores}')" = "$1" ]
}
frees () { f jobtap query hk-coordinator.so | jq '."hk-coordinator".frees'; }
# said_log REGEX: since flux dmesg -C
said_log () { f dmesg | grep -q "$1"; }
undrain_all ()
{
    local ranks
    ranks=$(f resource drain -no '{ranks}' | paste -sd,)
    [ -z "$ranks" ] || f resource undrain "$ranks"
}

# where all is skipped there is nothing to tidy up after a test
if [ -n "${HK_SKIP:-}" ]; then
    on () { :; }
    within () { :; }
fi
