#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# build.sh [build|build-asan]
#
# Configures that folder once and compiles. PREFIX sets the prefix; CI makes warnings errors.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=${1:-build}

options=(--buildtype=debugoptimized -Ddocs=enabled -Dsystemd=enabled)
case $folder in
    build) ;;
    build-asan) options+=(-Db_sanitize=address,undefined -Db_lundef=false) ;;
    *) echo "usage: build.sh [build|build-asan]" >&2; exit 2 ;;
esac
[[ -n ${CI:-} ]] && options+=(--werror)
[[ -n ${PREFIX:-} ]] && options+=("--prefix=$PREFIX")

if [[ ! -f $folder/build.ninja ]]; then
    meson setup "$folder" "${options[@]}"
elif [[ -n ${PREFIX:-} ]]; then
    meson configure "$folder" "-Dprefix=$PREFIX"
fi
meson compile -C "$folder"
