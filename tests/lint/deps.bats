#!/usr/bin/env bats
# deps.bats - who may include whom, and what the pure parts may call
# SPDX-License-Identifier: LGPL-3.0-or-later

setup ()
{
    cd "$BATS_TEST_DIRNAME/../.." || return
    BUILD=${HK_BUILD:-build}
}

# only FOLDER PATTERN: every own header that FOLDER includes matches PATTERN
only ()
{
    local bad
    [ -n "$(find "$1" -name '*.[ch]' -print -quit)" ] || return 0
    bad=$(grep -rnE --include='*.[ch]' '^ *# *include +"' "$1" |
        grep -vE "include +\"($2)" || :)
    [ -z "$bad" ] || { echo "$bad"; return 1; }
}

# calls_only OBJECT.. PATTERN: all undefined symbols match PATTERN
calls_only ()
{
    local pattern=${*: -1} bad
    bad=$(nm --undefined-only --print-file-name "${@:1:$#-1}" |
        awk '{ print $1, $NF }' | grep -vE " ($pattern)\$" || :)
    [ -z "$bad" ] || { echo "$bad"; return 1; }
}

@test "every own include names an existing file from the top of the tree" {
    missing=$(grep -rhoE --include='*.[ch]' '^ *# *include +"[^"]+"' \
        proto hkd hkctl coordinator tests | sort -u |
        sed 's/.*"\(.*\)"/\1/' |
        while read -r file; do [ -f "$file" ] || echo "$file"; done)
    [ -z "$missing" ] || { echo "$missing"; false; }
}

@test "arrows point down: proto <- hkd, hkctl, coordinator" {
    only proto 'proto/'
    only hkd 'proto/|hkd/'
    only hkctl 'proto/|hkctl/'
    only coordinator 'proto/|coordinator/'
}

@test "arrows point down: core <- store, engine <- hosts" {
    values='rankset|hostlist|resource|jobid|duration|error|limits|message|conf|run|escape'
    only coordinator/core "coordinator/core/|proto/($values)\\.h\""
    only coordinator/store 'coordinator/(core|store)/|proto/'
    only coordinator/engine 'coordinator/(core|store|engine)/|coordinator/host/host.h|proto/'
}

# No clock, no I/O, no threads, no log, no JSON, no store, no sockets.
pure ()
{
    local libc own compiler values
    libc='mem(cmp|cpy|move|set|chr|pcpy)|str(n?cmp|n?len|n?dup|r?chr|chrnul|n?cpy|spn|cspn|str|toul?l?|tol?l)'
    libc+='|stp?n?cpy|v?snprintf|v?asprintf|malloc|calloc|realloc|reallocarray|free|abort|qsort|bsearch'
    libc+='|explicit_bzero|sigabbrev_np|__errno_location|__assert_fail|__isoc99_sscanf'
    compiler='__[a-z]+_chk|__stack_chk_fail|__(asan|ubsan|tsan|gcov)_.*|_GLOBAL_OFFSET_TABLE_'
    values='hk_(rankset|hostlist|host_name|resource|jobid|duration|error|outcome|phase|run)_.*'
    values+='|hk_conf_(covers|policy)|hk_one_line|zhashx_.*|zlistx_.*|roaring_.*'
    own=$1
    shift
    calls_only "$@" "$libc|$compiler|$values|$own"
}

@test "the core is pure" {
    sources=(coordinator/core/*.c)
    [ -f "${sources[0]}" ]
    objects=("${sources[@]/%.c/.o}")
    pure 'hkc_.*' "${objects[@]/#/$BUILD/}"
}

@test "hkd's state machine is pure" {
    [ -f hkd/run.c ] || skip "there is no hkd/run.c"
    pure 'hkd_(runs?_.*|act|say|report|text_set|scripts_set)' \
        "$BUILD"/hkd/{run,run_end,run_memory}.o
}

@test "what is pure is told from what is not" {
    printf '#include <time.h>\nlong f (void)\n{\n    return time (0);\n}\n' \
        >"$BATS_TEST_TMPDIR/f.c"
    gcc -c -o "$BATS_TEST_TMPDIR/f.o" "$BATS_TEST_TMPDIR/f.c"
    run pure 'hkc_.*' "$BATS_TEST_TMPDIR/f.o"
    [ "$status" = 1 ]
    [[ $output = *" time" ]]
    mkdir "$BATS_TEST_TMPDIR/core"
    echo '#include "hkd/run.h"' >"$BATS_TEST_TMPDIR/core/x.c"
    run only "$BATS_TEST_TMPDIR/core" 'proto/'
    [ "$status" = 1 ]
}
