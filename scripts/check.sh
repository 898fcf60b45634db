#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# check.sh [--long]
#
# Builds and tests Headway, plainly and under the address and undefined-behaviour sanitizers. The last line is
# "N passed, N failed"; it counts test cases, not programs. With --long the long suite runs, and nothing else.
set -euo pipefail
cd "$(dirname "$0")/.."

sections=(build check)
plain=(--no-suite bench --no-suite long)
sanitized=(--suite unit --suite integration --suite fuzz)
if [[ ${1:-} == --long ]]; then
    sections+=(long)
    plain=(--suite long)
    sanitized=()
elif [[ $# -gt 0 ]]; then
    echo "usage: check.sh [--long]" >&2
    exit 2
fi

# Many tests wait for a time-out half of their life.
processes=$(($(nproc) + 1))

# test_folder FOLDER MESON-TEST-OPTION...
test_folder()
{
    local folder=$1
    shift
    rm -f "$folder"/meson-logs/testlog.junit.xml "$folder"/meson-logs/testlog.json
    scripts/build.sh "$folder" || return 1
    meson test -C "$folder" --no-rebuild --print-errorlogs --num-processes "$processes" "$@" < /dev/null || return 1
}

scripts/install-packages.sh "${sections[@]}"
if [[ ${1:-} != --long ]]; then
    # A machine that lacks these skips their tests; CI does not let it.
    scripts/install-packages.sh clients || echo "check: the tests with published clients may be skipped" >&2
    scripts/install-npm.sh || echo "check: no published clients, their tests are skipped" >&2
fi

status=0
folders=(build)
test_folder build "${plain[@]}" || status=1
if [[ ${#sanitized[@]} -gt 0 ]]; then
    # Whole stacks below GLib take ten times as long.
    export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_stack_use_after_return=1}
    export UBSAN_OPTIONS=${UBSAN_OPTIONS:-halt_on_error=1:print_stacktrace=1}
    export LSAN_OPTIONS=${LSAN_OPTIONS:-suppressions=$PWD/scripts/lsan.supp:print_suppressions=0}
    folders+=(build-asan)
    test_folder build-asan --timeout-multiplier 3 "${sanitized[@]}" || {
        echo "check: the whole stack of a leak takes ASAN_OPTIONS=fast_unwind_on_malloc=0" >&2
        status=1
    }
fi
/usr/bin/python3 scripts/count-tests.py "${folders[@]}" || status=1
exit "$status"
