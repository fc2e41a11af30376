#!/usr/bin/env bats
# mutants.bats - deliberate breakages, each caught by the simulation
# SPDX-License-Identifier: LGPL-3.0-or-later

# HK_BUILD: where make has built; seeds: at most so many are tried
build=${HK_BUILD:-build}
seeds=${HK_MUTANT_SEEDS:-3000}

# link SOURCE OBJECT PROGRAM: the simulation with one file of ours replaced.
# The archive's own member is not taken, since its symbols are there already.
link () {
    local libs
    libs=$(pkg-config --libs libzmq libczmq jansson libsystemd sqlite3 inih)
    # shellcheck disable=SC2086
    gcc -o "$3" "$build"/tests/sim/*.o "$2" "$build/libhk-coordinator.a" \
        "$build/libhkd.a" "$build/libhk-proto.a" $libs -lroaring -lmunge -lm \
        -lpthread
}

@test "each mutant is caught, and the original is not" {
    local name file change caught=0 count=0 missed=""
    if [ -n "${HK_SAN:-}" ]; then
        skip "one build of the simulation is enough"
    fi
    while IFS='|' read -r name file change; do
        case $name in '#'* | '') continue ;; esac
        name=${name% } file=${file# } file=${file% } change=${change# }
        count=$((count + 1))
        sed "$change" "$file" >"$BATS_TEST_TMPDIR/mutant.c"
        if cmp -s "$file" "$BATS_TEST_TMPDIR/mutant.c"; then
            echo "$name: sed changes nothing in $file"
            return 1
        fi
        gcc -O1 -std=c17 -D_GNU_SOURCE -DHK_VERSION='"mutant"' -I. -w \
            -c "$BATS_TEST_TMPDIR/mutant.c" -o "$BATS_TEST_TMPDIR/mutant.o"
        link "$file" "$BATS_TEST_TMPDIR/mutant.o" "$BATS_TEST_TMPDIR/sim"
        if timeout 120 "$BATS_TEST_TMPDIR/sim" --seeds "$seeds" \
            >"$BATS_TEST_TMPDIR/out"; then
            missed="$missed
$name"
        else
            caught=$((caught + 1))
            echo "# $name: $(grep -m 1 -o 'seed [0-9]*.*' \
                "$BATS_TEST_TMPDIR/out" || echo "the process ended")" >&3
        fi
    done <tests/sim/mutants
    echo "caught $caught of $count; missed: $missed"
    [ "$caught" -eq "$count" ]
}
