#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""install.py SOURCE-ROOT BUILD-ROOT PREFIX DOCS: what `meson install` puts where, with DESTDIR and with --prefix.

DOCS is yes or no: lines of installed-files.txt with a second word, `docs`, count only where documents are built.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

import tap

OTHER_PREFIX = '/opt/other-prefix'


def expected(source, docs):
    files = set()
    for line in tap.read(source, 'tests/lint/installed-files.txt').split('\n'):
        path, _, condition = line.strip().partition(' ')
        if path and not path.startswith('#') and (condition == '' or docs):
            files.add(path)
    return files


def differences(wanted, found):
    yield from (f'not installed: {path}' for path in sorted(wanted - found))
    yield from (f'not in installed-files.txt: {path}' for path in sorted(found - wanted))


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        print(f'# {" ".join(command)} exits with {done.returncode}')
        for line in (done.stdout + done.stderr).split('\n')[-20:]:
            print(f'#   {line}')
    return done.returncode == 0


def below(folder, prefix):
    """Files below @folder, relative to @prefix in it; those outside keep their absolute path."""
    found = set()
    for where, _, names in os.walk(folder):
        for name in names:
            path = '/' + os.path.relpath(os.path.join(where, name), folder)
            found.add(path[len(prefix) + 1:] if path.startswith(f'{prefix}/') else path)
    return found


def destdir(out, source, build, prefix, docs):
    with tempfile.TemporaryDirectory() as folder:
        done = run('meson', 'install', '-C', build, '--no-rebuild', '--destdir', folder)
        out.check('meson install with DESTDIR works', [] if done else ['see above'])
        out.check('DESTDIR has the promised files', differences(expected(source, docs), below(folder, prefix)))
        programs = [os.path.join(folder, prefix[1:], name) for name in ('bin/headway', 'libexec/headwayd')]
        out.check('the programs can be run', [path for path in programs if not os.access(path, os.X_OK)])


def other_prefix(out, source, docs):
    with tempfile.TemporaryDirectory() as folder:
        done = run('meson', 'setup', folder, source, f'--prefix={OTHER_PREFIX}',
                   f'-Ddocs={"enabled" if docs else "disabled"}', '-Dtests=false')
        out.check('meson setup with --prefix works', [] if done else ['see above'])
        if not done:
            return
        plan = subprocess.run(['meson', 'introspect', '--installed', folder], capture_output=True, text=True, check=True)
        targets = set(json.loads(plan.stdout).values())
        out.check('everything is under the prefix', [path for path in targets if not path.startswith(f'{OTHER_PREFIX}/')])
        found = {path[len(OTHER_PREFIX) + 1:] for path in targets}
        out.check('the prefix has the promised files', differences(expected(source, docs), found))
        started = []
        for name in sorted(os.listdir(os.path.join(folder, 'data'))):
            if name.endswith('.service'):
                for line in re.findall(r'(?m)^Exec(?:Start)?=(\S+)', tap.read(folder, f'data/{name}')):
                    if line != f'{OTHER_PREFIX}/libexec/headwayd':
                        started.append(f'{name}: {line}')
        out.check('units start what is under the prefix', started)


def main(source, build, prefix, docs):
    out = tap.Tap()
    destdir(out, source, build, prefix, docs == 'yes')
    other_prefix(out, source, docs == 'yes')
    return out.finish()


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:5]))
