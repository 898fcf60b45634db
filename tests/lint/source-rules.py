#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""source-rules.py SOURCE-ROOT: what CONTRIBUTING.md asks of sources and a program can count."""
import os
import re
import sys

import tap

FILE_LINES = 700
FUNCTION_LINES = 80

WITH_SPDX = ('.c', '.h', '.py', '.sh', '.build', '.xml', '.in', '.conf', '.rst', '.po', '.js', '.mjs', '.supp')
WITH_SPDX_NAMES = {'Makefile', 'meson_options.txt', 'packages.txt', 'installed-files.txt', 'LINGUAS', 'run', 'headway'}
FOLDERS = ('.ci', 'data', 'docs', 'po', 'scripts', 'src', 'tests')


def sources(root):
    return [path for path in tap.files_under(root, 'src', 'tests') if path.endswith(('.c', '.h'))]


def all_text(root):
    top = [name for name in os.listdir(root) if os.path.isfile(os.path.join(root, name))]
    return sorted(top) + tap.files_under(root, *[f for f in FOLDERS if os.path.isdir(os.path.join(root, f))])


def matches(root, pattern, paths):
    for path in paths:
        code = tap.without_comments(tap.read(root, path))
        for match in re.finditer(pattern, code):
            yield f'{path}:{tap.line_of(code, match.start())}: {match.group(0)}'


def blocking(root):
    """Start-up in src/daemon and the programs in src/cli may wait."""
    paths = [path for path in sources(root)
             if path.startswith('src/') and not path.startswith(('src/daemon/', 'src/cli/'))]
    return matches(root, r'\b\w+_sync \(', paths)


def marks(root):
    for path in sources(root) + tap.files_under(root, 'data', 'scripts', '.ci'):
        for number, line in enumerate(tap.read(root, path).split('\n'), 1):
            for match in re.finditer(r'\b(TODO|FIXME|XXX)\b(?!.*#[0-9])', line):
                yield f'{path}:{number}: {match.group(1)} without the number of an issue (#n)'


def long_files(root):
    for path in sources(root):
        lines = tap.read(root, path).count('\n')
        if lines > FILE_LINES:
            yield f'{path}: {lines} lines, at most {FILE_LINES}'


def functions(source):
    """Yields (line of the name, name, lines between the braces) of each function in GNU form."""
    lines = tap.without_comments(source).split('\n')
    start = None
    name = ''
    for number, line in enumerate(lines, 1):
        if line.startswith('{') and number > 1 and lines[number - 2].rstrip().endswith(')'):
            start = number
            head = number - 2
            while head > 0 and not re.match(r'\w+ \(', lines[head]):
                head -= 1
            name = lines[head].partition(' ')[0]
        elif line.startswith('}') and start is not None:
            yield start, name, number - start - 1
            start = None


def long_functions(root):
    for path in sources(root):
        for number, name, length in functions(tap.read(root, path)):
            if length > FUNCTION_LINES:
                yield f'{path}:{number}: {name} has {length} lines, at most {FUNCTION_LINES}'


def without_spdx(root):
    for path in all_text(root):
        if not path.endswith(WITH_SPDX) and os.path.basename(path) not in WITH_SPDX_NAMES:
            continue
        head = '\n'.join(tap.read(root, path).split('\n')[:6])
        if 'SPDX-License-Identifier: LGPL-2.1-or-later' not in head:
            yield f'{path}: no SPDX line at the top'


def pragma_once(root):
    for path in sources(root):
        if path.endswith('.h') and '#pragma once' not in tap.read(root, path):
            yield f'{path}: no #pragma once'


def main(root):
    out = tap.Tap()
    out.check('there are sources to judge', [] if sources(root) else ['no C file under src'])
    out.check('nothing blocks outside start-up and the command line', blocking(root))
    out.check('no goto', matches(root, r'\bgoto\b', sources(root)))
    out.check('no process-wide error exit: g_error', matches(root, r'\bg_error \(', [p for p in sources(root) if p.startswith('src/')]))
    out.check('unfinished work names its issue', marks(root))
    out.check(f'no file over {FILE_LINES} lines', long_files(root))
    out.check(f'no function over {FUNCTION_LINES} lines', long_functions(root))
    out.check('every source file has its SPDX line', without_spdx(root))
    out.check('every header is included once', pragma_once(root))
    return out.finish()


if __name__ == '__main__':
    sys.exit(main(sys.argv[1]))
