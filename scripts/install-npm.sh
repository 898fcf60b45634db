#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# install-npm.sh [--update]
#
# Installs the published clients that tests/clients runs (package.json there) into the ignored tests/clients/node_modules.
# Does nothing where they are there already and the lock file is the same. With --update it makes the lock file anew from
# package.json, without the addresses of hosts that npm writes into it; hashes are what counts.
set -euo pipefail
cd "$(dirname "$0")/../tests/clients"
mark=node_modules/.headway-lock

update_lock()
{
    rm -f package-lock.json
    npm install --package-lock-only --ignore-scripts --no-audit --no-fund
    node -e '
        const fs = require("fs");
        const lock = JSON.parse(fs.readFileSync("package-lock.json"));
        for (const entry of Object.values(lock.packages))
            for (const key of ["resolved", "funding", "deprecated", "bugs", "homepage"])
                delete entry[key];
        fs.writeFileSync("package-lock.json", JSON.stringify(lock, null, 2) + "\n");'
    if grep -n '://' package-lock.json; then
        echo "install-npm: there are still addresses in package-lock.json" >&2
        return 1
    fi
}

case $# in
    0) ;;
    1) [[ $1 == --update ]] || { echo "usage: install-npm.sh [--update]" >&2; exit 2; }
       update_lock ;;
    *) echo "usage: install-npm.sh [--update]" >&2; exit 2 ;;
esac

cmp -s package-lock.json "$mark" && exit 0

if ! command -v npm > /dev/null; then
    echo "install-npm: no npm, so no published clients to test with (packages nodejs and npm)" >&2
    exit 1
fi

# Two checks at the same time are one too many for npm.
exec 9< package.json
flock 9
cmp -s package-lock.json "$mark" && exit 0

echo "install-npm: installing the published clients"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! npm ci --ignore-scripts --no-audit --no-fund < /dev/null > "$log" 2>&1; then
    cat "$log" >&2
    echo "install-npm: npm ci failed in tests/clients" >&2
    exit 1
fi
cp package-lock.json "$mark"
