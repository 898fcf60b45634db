#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# bench.sh [--quick] [--rows NAMES] [--help]
#
# Builds and measures; the options are those of tests/bench/bench.py. Everything takes some 20 minutes, --quick three. The
# machine should have nothing else to do: what other processes disturb is measured again, or not told.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/install-packages.sh build
scripts/install-packages.sh bench || echo "bench: peers that are not installed are not measured" >&2
scripts/build.sh build
meson compile -C build bench-tools
exec /usr/bin/python3 tests/bench/bench.py --build "$PWD/build" "$@"
