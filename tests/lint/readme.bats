#!/usr/bin/env bats
# readme.bats - README is true: its commands, files and manual pages exist
# SPDX-License-Identifier: LGPL-3.0-or-later

# the lines of README's code blocks that begin with a word
commands ()
{
    awk '/^```/ { code = !code; next } code' README.md |
        sed 's/^# //' | grep -E "^$1( |\$)"
}

@test "every target that README names is one of the Makefile" {
    local line word count=0
    while read -r line; do
        for word in $line; do
            case $word in
                make | *=*) continue ;;
            esac
            make -n "$word" >/dev/null
            count=$((count + 1))
        done
    done < <(commands make)
    [ "$count" -ge 3 ]
    for word in bench lint format; do
        make -n "$word" >/dev/null
    done
}

@test "every hkctl command that README shows is one of hkctl's" {
    local line count=0 build=${HK_BUILD:-build}
    while read -r line; do
        read -r -a words <<<"$line"
        "$build/hkctl/hkctl" "${words[1]}" -h >/dev/null
        count=$((count + 1))
    done < <(commands hkctl)
    [ "$count" -ge 6 ]
}

@test "every unit that README enables is there" {
    local unit count=0
    while read -r unit; do
        [ -e "systemd/$unit.service" ]
        count=$((count + 1))
    done < <(commands systemctl | awk '{ print $NF }')
    [ "$count" -eq 2 ]
}

@test "every file and manual page that README names is there" {
    local name
    # shellcheck disable=SC2016 # backticks of Markdown
    for name in $(grep -oE '`(proto|hkd|hkctl|coordinator|systemd|tests)/[a-z0-9_/.-]*`' \
        README.md | tr -d '`' | sort -u); do
        [ -e "$name" ] || { echo "$name is not there"; return 1; }
    done
    for name in hkd.8 hk-coordinator.8 hk-coordinator-flux.7 hkctl.1 hk.conf.5 hk-protocol.7; do
        ls ./*/"$name.scd"
    done
}

@test "hk-coordinator(8) names each option of the program, phase and mark" {
    local build=${HK_BUILD:-build} page=coordinator/hk-coordinator.8.scd word
    for word in $("$build/coordinator/hk-coordinator" -h |
        grep -oE -- '--[a-z]+'); do
        grep -q -- "$word" "$page"
    done
    for word in recorded waiting running stopping ended due lost no-hkd \
        queued hold conflict; do
        grep -q "\*$word\*" "$page" || { echo "$word"; return 1; }
    done
}
