#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# demo.sh BUILD-FOLDER
#
# Shows events flow through the programs of that folder; everything it starts ends with it.
set -euo pipefail
exec /usr/bin/python3 "$(dirname "$0")/demo.py" "$1"
