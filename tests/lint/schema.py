#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""schema.py SOURCE-ROOT: the settings are valid, complete, bounded and described, and the documents list them all."""
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import tap

SCHEMA = 'data/org.headway.Headway1.gschema.xml'
LISTED_IN = ('docs/settings.md', 'docs/man/headwayd.8.rst')

# Every setting with its type and default: a change here is a change users see.
PROMISED = {
    'auto-create-buses': ('b', 'true'), 'max-buses': ('u', '1024'), 'bus-expire-seconds': ('u', '604800'),
    'ring-size': ('u', '8000'), 'ring-max-bytes': ('t', '33554432'), 'max-subscribers': ('u', '64'),
    'max-queued-bytes': ('t', '2097152'), 'channel-capacity': ('u', '1024'), 'replay-budget-bytes': ('t', '0'),
    'route-budget-bytes': ('t', '1048576'), 'route-quantum-bytes': ('u', '4096'),
    'route-principal-messages': ('u', '16384'), 'route-messages': ('u', '65536'), 'route-principals': ('u', '10000'),
    'event-max-bytes': ('t', '1048576'), 'principal-bytes-per-second': ('t', '10485760'),
    'principal-events-per-second': ('t', '20000'), 'uid-bytes-per-second': ('t', '104857600'),
    'uid-events-per-second': ('t', '200000'), 'handler-queue': ('u', '64'), 'handler-principals': ('u', '10000'),
    'handler-idle-grace-ms': ('u', '60000'), 'http-addresses': ('as', '[]'), 'http-allowed-origins': ('as', '[]'),
    'http-max-connections': ('u', '1024'), 'heartbeat-ms': ('u', '15000'), 'writer-idle-timeout-ms': ('u', '60000'),
    'drain-window-ms': ('u', '5000'), 'memory-max-bytes': ('t', '536870912'),
}


def compile_problems(root):
    folder = os.path.join(root, 'data')
    done = subprocess.run(['glib-compile-schemas', '--strict', '--dry-run', folder], capture_output=True, text=True)
    if done.returncode != 0 or done.stderr or 'No schema files found' in done.stdout:
        yield done.stderr or done.stdout


def main(root):
    out = tap.Tap()
    out.check('glib-compile-schemas --strict accepts it', compile_problems(root))
    keys = ElementTree.parse(os.path.join(root, SCHEMA)).getroot().findall('./schema/key')
    present = {key.get('name'): (key.get('type'), key.findtext('default')) for key in keys}
    out.check('all settings are there, with type and default',
              [f'{name}: promised {PROMISED.get(name)}, found {present.get(name)}'
               for name in sorted(set(PROMISED) | set(present)) if PROMISED.get(name) != present.get(name)])
    out.check('each number has a range',
              [key.get('name') for key in keys if key.get('type') in 'utixnqyd' and key.find('range') is None])
    out.check('each has a summary and a description',
              [key.get('name') for key in keys if not key.findtext('summary') or not key.findtext('description')])
    out.check('each says when a change applies',
              [key.get('name') for key in keys
               if not re.search(r'\bApplies (at once|to|when)\b|Reading never makes one', key.findtext('description'))])
    for path in LISTED_IN:
        text = tap.read(root, path)
        out.check(f'{path} lists them all', [name for name in sorted(present) if f'`{name}`' not in text])
    return out.finish()


if __name__ == '__main__':
    sys.exit(main(sys.argv[1]))
