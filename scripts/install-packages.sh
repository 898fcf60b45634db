#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# install-packages.sh SECTION...
#
# Installs what is missing of those sections of packages.txt, as root or through sudo. Says nothing and changes
# nothing where nothing is missing.
set -euo pipefail
export LC_ALL=C.UTF-8
list=$(dirname "$0")/packages.txt

if [[ $# -eq 0 ]]; then
    echo "usage: install-packages.sh SECTION..." >&2
    exit 2
fi

wanted=()
for section in "$@"; do
    if ! grep -qxF "[$section]" "$list"; then
        echo "install-packages: no section [$section] in $list" >&2
        exit 2
    fi
    while read -r name substitute; do
        [[ -n $substitute ]] && command -v "$substitute" > /dev/null || wanted+=("$name")
    done < <(sed -n "/^\[$section\]\$/,/^\[/p" "$list" | grep -v '^\[\|^#\|^[[:space:]]*$')
done

[[ ${#wanted[@]} -eq 0 ]] && exit 0

if ! command -v dpkg-query > /dev/null; then
    echo "install-packages: no Debian system; these packages, by whatever name, must be there: ${wanted[*]}" >&2
    exit 0
fi

installed=$(dpkg-query --show --showformat='${Package} ${db:Status-Status}\n' "${wanted[@]}" 2> /dev/null |
    sed -n 's/ installed$//p') || true
mapfile -t missing < <(printf '%s\n' "${wanted[@]}" | sort -u | grep -vxF -f <(printf '%s\n' "$installed"))
[[ ${#missing[@]} -eq 0 ]] && exit 0

as_root=()
if [[ $(id -u) -ne 0 ]]; then
    as_root=(sudo)
    [[ -t 0 ]] || as_root+=(--non-interactive)
    if ! command -v sudo > /dev/null || ! "${as_root[@]}" true; then
        echo "install-packages: neither root nor able to use sudo. Have an administrator run:" >&2
        echo "    apt-get install --no-install-recommends ${missing[*]}" >&2
        exit 1
    fi
fi

echo "install-packages: installing ${missing[*]}"
apt=(env DEBIAN_FRONTEND=noninteractive apt-get -q -o Acquire::Retries=3 -o DPkg::Lock::Timeout=300)
"${as_root[@]}" "${apt[@]}" update < /dev/null
"${as_root[@]}" "${apt[@]}" install --yes --no-install-recommends "${missing[@]}" < /dev/null
