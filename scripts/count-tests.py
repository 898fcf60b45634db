#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""count-tests.py BUILD-FOLDER...

Counts the test cases of the last `meson test` in each folder, prints those that did not pass and what they said, and as its last line
"N passed, N failed", with ", N skipped" if there are any. A program that fails although all of its cases passed (it
crashed at its end, leaked, or timed out) counts as one failed case. With CI=true a skipped case is a failed one.
Exits with 1 if any failed, or if a folder has no results at all.
"""
import collections
import json
import os
import sys
import xml.etree.ElementTree as ElementTree

GOOD = {'OK', 'EXPECTEDFAIL'}
LINES_MAX = 40  # of what one failed program said


def short(name):
    """Meson writes "project:suite / program" in some places and "program" in others."""
    return name.rpartition(' / ')[2]


def cases_of(folder):
    """Yields (program, case, outcome) for each test case; outcome is passed, failed or skipped."""
    root = ElementTree.parse(os.path.join(folder, 'meson-logs', 'testlog.junit.xml')).getroot()
    for suite in root.iter('testsuite'):
        for case in suite.iter('testcase'):
            outcome = 'passed'
            for child in case:
                if child.tag == 'skipped':
                    outcome = 'skipped'
                elif child.tag in ('failure', 'error'):
                    outcome = 'failed'
            # A program with cases of its own is a suite; one without is a case in the suite of the project.
            program = suite.get('name').partition('.')[2] or case.get('name')
            yield short(program), short(case.get('name')), outcome


def programs_of(folder):
    """Yields (program, result, output) for each test program, result in Meson's words."""
    with open(os.path.join(folder, 'meson-logs', 'testlog.json'), encoding='utf-8') as log:
        for line in log:
            entry = json.loads(line)
            yield short(entry['name']), entry['result'], entry.get('stdout', '') + entry.get('stderr', '')


def complaints(output):
    """The last lines of @output that do not tell of something that passed."""
    return [line for line in output.splitlines() if not line.startswith('ok ')][-LINES_MAX:]


def count(folder, totals):
    failed_programs = set()
    for program, case, outcome in cases_of(folder):
        if outcome == 'skipped' and os.environ.get('CI') == 'true':
            print(f'{folder}: {program}: {case}: skipped, which is a failure here')
            outcome = 'failed'
        elif outcome != 'passed':
            print(f'{folder}: {program}: {case}: {outcome}')
        if outcome == 'failed':
            failed_programs.add(program)
        totals[outcome] += 1
    for program, result, output in programs_of(folder):
        if result not in GOOD and result != 'SKIP' and program not in failed_programs:
            print(f'{folder}: {program}: the program as a whole: {result}')
            totals['failed'] += 1
            failed_programs.add(program)
        if program in failed_programs:
            # A log of CI may be kept from its end only, and this is what one reads it for.
            for line in complaints(output):
                print(f'    {line}')


def main(folders):
    if not folders:
        print(__doc__, file=sys.stderr)
        return 2
    totals = collections.Counter()
    for folder in folders:
        before = totals.total()
        try:
            count(folder, totals)
        except (OSError, ValueError, ElementTree.ParseError) as error:
            print(f'{folder}: no results: {error}')
            totals['failed'] += 1
            continue
        if totals.total() == before:
            print(f'{folder}: no test ran')
            totals['failed'] += 1
    line = f'{totals["passed"]} passed, {totals["failed"]} failed'
    if totals['skipped']:
        line += f', {totals["skipped"]} skipped'
    print(line, flush=True)
    return 1 if totals['failed'] else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
