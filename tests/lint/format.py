#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""format.py SOURCE-ROOT: every C file has the form that clang-format 14 gives it (`make format`)."""
import re
import shutil
import subprocess
import sys

import tap


def formatter():
    for name in ('clang-format-14', 'clang-format'):
        program = shutil.which(name)
        if program:
            version = subprocess.run([program, '--version'], capture_output=True, text=True).stdout
            if 'version 14.' in version:
                return program
    return None


def problems(root, program):
    paths = [path for path in tap.files_under(root, 'src', 'tests') if path.endswith(('.c', '.h'))]
    if not paths:
        return ['no C file under src']
    done = subprocess.run([program, '--dry-run', '--Werror', '--style=file', *paths],
                          cwd=root, capture_output=True, text=True)
    if done.returncode == 0:
        return []
    return re.findall(r'^\S+:\d+:\d+: error: .*$', done.stderr, re.M) or [done.stderr]


def main(root):
    program = formatter()
    if program is None:
        print('1..0 # SKIP no clang-format 14 (package clang-format-14)')
        return 0
    out = tap.Tap()
    out.check('C files have the form of .clang-format', problems(root, program))
    return out.finish()


if __name__ == '__main__':
    sys.exit(main(sys.argv[1]))
