# SPDX-License-Identifier: LGPL-2.1-or-later
"""The little of TAP that the lint programs need, and what they all know about the tree."""
import os
import re
import sys

SKIPPED_FOLDERS = re.compile(r'^(build.*|_.*|\.git|node_modules|__pycache__)$')


class Tap:
    """Prints one line per check; `finish` prints the plan and returns the exit status."""

    def __init__(self):
        self.count = 0
        self.failed = 0

    def check(self, name, problems):
        """Passes if @problems, an iterable of lines, is empty."""
        self.count += 1
        problems = list(problems)
        if problems:
            self.failed += 1
        print(f'{"not ok" if problems else "ok"} {self.count} - {name}')
        for problem in problems[:100]:
            for line in str(problem).rstrip('\n').split('\n'):
                print(f'#   {line}')
        sys.stdout.flush()
        return not problems

    def finish(self):
        print(f'1..{self.count}')
        return 1 if self.failed else 0


def files_under(root, *folders):
    """All files below these folders of @root, as paths relative to it, sorted."""
    found = []
    for folder in folders:
        for where, below, names in os.walk(os.path.join(root, folder)):
            below[:] = [name for name in below if not SKIPPED_FOLDERS.match(name)]
            found += [os.path.relpath(os.path.join(where, name), root) for name in names]
    return sorted(found)


def read(root, path):
    with open(os.path.join(root, path), encoding='utf-8') as file:
        return file.read()


def without_comments(source):
    """C source with comments, strings and characters blanked, line numbers kept."""

    def blank(match):
        text = match.group(0)
        if text[0] in '"\'':
            return text[0] + ' ' * (len(text) - 2) + text[0]
        return re.sub(r'[^\n]', ' ', text)

    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', blank, source, flags=re.S)


def line_of(text, position):
    return text.count('\n', 0, position) + 1
