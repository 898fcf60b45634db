#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""interfaces.py SOURCE-ROOT: data/*.xml is the D-Bus contract, no more and no less, and is documented.

org.headway.Headway1.golden.xml holds the signatures that are promised. Members may be added to it; none may change.
"""
import glob
import os
import re
import sys
import xml.etree.ElementTree as ElementTree

import tap

GOLDEN = 'tests/lint/org.headway.Headway1.golden.xml'


def members(interface):
    """The members of an interface, one line each, in a form that does not depend on layout."""
    for member in interface:
        line = [member.tag, member.get('name')]
        for key in ('type', 'access'):
            if member.get(key):
                line.append(member.get(key))
        for argument in member.findall('arg'):
            direction = argument.get('direction') or ('out' if member.tag == 'signal' else 'in')
            line.append(f'{direction} {argument.get("name")}:{argument.get("type")}')
        for annotation in member.findall('annotation'):
            line.append(f'{annotation.get("name")}={annotation.get("value")}')
        yield ' '.join(line)


def compare(golden, interface):
    promised = list(members(golden))
    present = list(members(interface)) if interface is not None else []
    yield from (f'missing or changed: {line}' for line in promised if line not in present)
    yield from (f'not in {GOLDEN}: {line}' for line in present if line not in promised)


def undocumented(path, interface):
    """gdbus-codegen takes a comment that starts with the name and a colon, and lines of @argument."""
    with open(path, encoding='utf-8') as file:
        text = file.read()
    comments = {}
    for comment in re.findall(r'<!--\s*\n(.*?)-->', text, re.S):
        lines = [line.strip() for line in comment.strip('\n').split('\n')]
        comments.setdefault(lines[0], lines[1:])
    for member in [interface, *interface]:
        lines = comments.get(f'{member.get("name")}:')
        if lines is None:
            yield f'{member.get("name")}: no documentation'
            continue
        if not [line for line in lines if line and not line.startswith('@')]:
            yield f'{member.get("name")}: nothing said about it'
        for argument in member.findall('arg'):
            if not [line for line in lines if line.startswith(f'@{argument.get("name")}: ')]:
                yield f'{member.get("name")}: argument {argument.get("name")} is not documented'


def main(root):
    out = tap.Tap()
    found = {}
    broken = []
    for path in sorted(glob.glob(os.path.join(root, 'data', '*.xml'))):
        try:
            tree = ElementTree.parse(path).getroot()
        except ElementTree.ParseError as error:
            broken.append(f'{path}: {error}')
            continue
        for interface in tree.iter('interface'):
            found[interface.get('name')] = (path, interface)
    for path in glob.glob(os.path.join(root, 'data', '*.conf')):
        try:
            ElementTree.parse(path)
        except ElementTree.ParseError as error:
            broken.append(f'{path}: {error}')
    out.check('XML is well-formed', broken)

    golden = {i.get('name'): i for i in ElementTree.parse(os.path.join(root, GOLDEN)).getroot().iter('interface')}
    out.check('the interfaces are those of the contract', sorted(set(golden) ^ set(found)))
    for name in sorted(golden):
        path, interface = found.get(name, (None, None))
        out.check(f'{name} has the promised members', compare(golden[name], interface))
        out.check(f'{name} is documented', undocumented(path, interface) if path else ['no such interface'])
        expected = f'{name}.xml'
        out.check(f'{name} has a file of its own',
                  [] if path and os.path.basename(path) == expected else [f'expected in data/{expected}'])
    return out.finish()


if __name__ == '__main__':
    sys.exit(main(sys.argv[1]))
