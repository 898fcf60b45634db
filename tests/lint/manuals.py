#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""manuals.py SOURCE-ROOT HEADWAY HEADWAYD: man pages and bash completion say what --help-all says."""
import os
import re
import subprocess
import sys

import tap

COMPLETION = 'data/headway'


def help_of(*command):
    """What `command --help-all` prints; fails loudly, since all else here depends on it."""
    environment = dict(os.environ, LC_ALL='C.UTF-8', LANGUAGE='')
    done = subprocess.run([*command, '--help-all'], capture_output=True, text=True, env=environment,
                          stdin=subprocess.DEVNULL, timeout=60)
    if done.returncode != 0 or not done.stdout.strip():
        raise RuntimeError(f'{" ".join(command)} --help-all exits with {done.returncode} and prints {done.stdout!r}')
    return done.stdout


def options_of(text):
    found = re.findall(r'(?m)^\s+(?:-\w, )?(--[a-z][a-z0-9-]*)', text)
    return sorted({option for option in found if not option.startswith('--help-')})


def commands_of(text):
    """Commands are lines of two blanks and a word under a heading with "ommands" in it."""
    section = re.search(r'(?ms)^\S*[Cc]ommands:?$(.*?)(?:^\S|\Z)', text)
    return re.findall(r'(?m)^  ([a-z]+)\b', section.group(1)) if section else []


def not_named(root, manual, options):
    text = tap.read(root, manual)
    return [f'{option} has no entry in {manual}' for option in options
            if not re.search(rf'(?m)^(-\S+, )?{option}(?![a-z-])', text)]


def complete(root, *words):
    """What bash would offer for these words, the last of which is being typed."""
    script = '''
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}
_headway
printf '%s\\n' "${COMPREPLY[@]}"
'''
    done = subprocess.run(['bash', '-c', script, 'bash', os.path.join(root, COMPLETION), *words],
                          capture_output=True, text=True, stdin=subprocess.DEVNULL, env=dict(os.environ, PATH='/usr/bin:/bin'))
    return [word for word in done.stdout.split('\n') if word], done.stderr


def completion_problems(root, text, helps):
    offered, errors = complete(root, 'headway', '')
    commands = commands_of(text)
    if errors:
        yield errors
    yield from (f'{command} is not offered' for command in commands if command not in offered)
    yield from (f'{command} is offered, but no command' for command in offered if command not in commands)
    if complete(root, 'headway', 'su')[0] != ['sub']:
        yield '"headway su" does not become "headway sub"'
    for command in commands:
        offered = [word.rstrip('=') for word in complete(root, 'headway', command, '--')[0]]
        for option in options_of(helps[command]):
            if option not in offered:
                yield f'"headway {command} --" does not offer {option}'


def shell_problems(root):
    paths = [COMPLETION, *(path for path in tap.files_under(root, 'scripts', '.ci', 'tests')
                           if path.endswith('.sh') or path == '.ci/run')]
    for path in paths:
        done = subprocess.run(['bash', '-n', os.path.join(root, path)], capture_output=True, text=True)
        if done.returncode != 0:
            yield done.stderr


def main(root, headway=None, headwayd=None):
    out = tap.Tap()
    out.check('shell scripts have no syntax error', shell_problems(root))
    if not out.check('the programs are there', [] if headwayd else ['tests/lint/meson.build was not given them']):
        return out.finish()
    text = help_of(headway)
    commands = commands_of(text)
    out.check('headway --help lists its commands', [] if {'pub', 'sub', 'buses'} <= set(commands) else [text])
    helps = {command: help_of(headway, command) for command in commands}
    out.check('headway(1) has every option',
              not_named(root, 'docs/man/headway.1.rst',
                        sorted({*options_of(text), *(o for said in helps.values() for o in options_of(said))})))
    manual = tap.read(root, 'docs/man/headway.1.rst')
    out.check('headway(1) has every command', [c for c in commands if not re.search(rf'(?m)^``?{c}\b', manual)])
    out.check('headwayd(8) has every option',
              not_named(root, 'docs/man/headwayd.8.rst', options_of(help_of(headwayd))))
    out.check('bash completion has every command and option', completion_problems(root, text, helps))
    return out.finish()


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
