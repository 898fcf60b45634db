#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Brings all C files into the form of .clang-format, by clang-format 14: other versions give another form.
set -euo pipefail
cd "$(dirname "$0")/.."
for formatter in clang-format-14 clang-format; do
    if "$formatter" --version 2> /dev/null | grep -q 'version 14\.'; then
        find src tests -name '*.[ch]' -print0 | xargs -0 --no-run-if-empty "$formatter" -i
        exit 0
    fi
done
echo "format: no clang-format 14 (package clang-format-14)" >&2
exit 1
