#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""catalogue.py SOURCE-ROOT: each language of po/LINGUAS has every message, and POTFILES.in every file with messages."""
import os
import re
import subprocess
import sys
import tempfile

import tap

# The keywords of Meson's preset "glib".
XGETTEXT = ['xgettext', '--from-code=UTF-8', '--add-comments', '--keyword=_', '--keyword=N_', '--keyword=C_:1c,2',
            '--keyword=NC_:1c,2', '--keyword=g_dcgettext:2', '--keyword=g_dngettext:2,3', '--keyword=g_dpgettext2:2c,3',
            '--keyword=ngettext:1,2']
TRANSLATES = re.compile(r'\b(_|N_|C_|NC_|ngettext|g_dngettext) \("')


def words(root, path):
    return [line.strip() for line in tap.read(root, path).split('\n') if line.strip() and not line.startswith('#')]


def run(command, root):
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, env=dict(os.environ, LC_ALL='C.UTF-8'))
    return done.returncode, done.stdout + done.stderr


def missing_files(root):
    listed = words(root, 'po/POTFILES.in')
    for path in listed:
        if not os.path.exists(os.path.join(root, path)):
            yield f'{path}: in POTFILES.in, but not there'
    for path in tap.files_under(root, 'src'):
        if path.endswith('.c') and path not in listed and TRANSLATES.search(tap.read(root, path)):
            yield f'{path}: has messages, but is not in POTFILES.in'


def cut_messages(root):
    """xgettext takes the first string of `_ ("… %" G_GUINT64_FORMAT)`, gettext looks up the whole: never translated."""
    for path in tap.files_under(root, 'src'):
        if path.endswith('.c'):
            for number, line in enumerate(tap.read(root, path).split('\n'), 1):
                if re.search(r'\b_ \(("(\\.|[^"\\])*"\s*)+[A-Z]', line):
                    yield f'{path}:{number}: a macro cuts the message; print the number into a string, and use %s'


def valid(root, path):
    status, said = run(['msgfmt', '--check', '--output-file=/dev/null', path], root)
    return [] if status == 0 else [said]


def complete(root, path):
    _, said = run(['msgfmt', '--statistics', '--output-file=/dev/null', path], root)
    return [said] if 'untranslated' in said or 'fuzzy' in said or ' 0 translated' in f' {said}' else []


def up_to_date(root, path):
    with tempfile.TemporaryDirectory() as folder:
        template = os.path.join(folder, 'headway.pot')
        present = [name for name in words(root, 'po/POTFILES.in') if os.path.exists(os.path.join(root, name))]
        status, said = run([*XGETTEXT, f'--output={template}', *present], root)
        if status != 0 or not os.path.exists(template):
            return [said or 'xgettext found no message']
        status, said = run(['msgcmp', path, template], root)
        return [] if status == 0 else [said]


def main(root):
    out = tap.Tap()
    out.check('POTFILES.in lists the files with messages', missing_files(root))
    out.check('no message is cut by a macro', cut_messages(root))
    languages = words(root, 'po/LINGUAS')
    languages = [language for line in languages for language in line.split()]
    out.check('German is there', [] if 'de' in languages else ['no de in po/LINGUAS'])
    for language in languages:
        path = f'po/{language}.po'
        out.check(f'{path} is valid', valid(root, path))
        out.check(f'{path} has nothing untranslated or fuzzy', complete(root, path))
        out.check(f'{path} has every message of the sources', up_to_date(root, path))
    return out.finish()


if __name__ == '__main__':
    sys.exit(main(sys.argv[1]))
