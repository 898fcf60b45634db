#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""test-bench.py BUILD-FOLDER: that the harness works; what it measures here is worth nothing."""
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), 'lint')]
sys.dont_write_bytecode = True

import bench  # noqa: E402
import report  # noqa: E402
import rows  # noqa: E402
import tap  # noqa: E402
from contenders import Missing  # noqa: E402

SCALE = rows.Scale(0.05, 0.02, 1, 1)


def row_of(runs, *goals):
    return rows.Row('r', 'sse', 'a row', runs, ('n',), list(goals))


def same(found, wanted):
    return [] if found == wanted else [f'{found!r}, not {wanted!r}']


def verdict(limit, value):
    goal = rows.Goal('work', lambda of: of('a', 'n'), limit)
    return bench.judge(goal, {'a': {'median': {'n': value}, 'all': [{'n': value}]}})['verdict']


def goals(_build):
    wanted = {('>= 0.9', 0.9): 'met', ('>= 0.9', 0.89): 'missed', ('> 1', 1): 'missed', ('> 1', 1.01): 'met', ('<= 3', 3): 'met', ('<= 3', 3.01): 'missed'}
    return same({key: verdict(*key) for key in wanted}, wanted)


def peers_that_are_missing(_build):
    def missing(_scale):
        raise Missing('nginx is not installed')

    result = bench.measure_row(row_of({'a': lambda scale: {'n': 2, 'foreign_share': 0}, 'b': missing}, rows.Goal('work', rows.ratio('n', 'a', 'b'), '>= 1')), SCALE, False)
    return (same(result['contenders']['b'], {'problem': 'nginx is not installed'}) + same(result['contenders']['a']['median']['n'], 2) +
            same(result['goals'][0]['verdict'], 'not measured: b: nginx is not installed'))


def dirty_runs(_build):
    shares = [0.9, 0.16, 0.15]
    numbers, thrown_away = bench.measure(lambda scale: {'n': 1, 'foreign_share': shares.pop(0)}, SCALE, False)
    stays = bench.measure_row(row_of({'a': lambda scale: {'n': 1, 'foreign_share': 0.16}}), SCALE, False)
    return (same((numbers['is_dirty'], thrown_away), (False, 2)) + same(stays['contenders']['a']['problem'], 'other processes kept the machine busy') +
            same(stays['thrown_away'], 3))


def medians(_build):
    values = [5, 1, 3]
    result = bench.measure_row(row_of({'a': lambda scale: {'n': values.pop(), 'foreign_share': 0}}), rows.Scale(0, 0, 3), False)
    return same(result['contenders']['a']['median']['n'], 3)


def goals_compare_what_ran_in_the_same_round(_build):
    """A machine that is four times as fast in one round, and in one of the three one contender alone is slow."""
    speeds = {'a': [8, 2, 3], 'b': [10, 2.5, 10]}
    order = []

    def run_of(name):
        def run(_scale):
            order.append(name)
            return {'n': speeds[name].pop(0), 'foreign_share': 0}
        return run

    result = bench.measure_row(row_of({name: run_of(name) for name in speeds}, rows.Goal('work', rows.ratio('n', 'a', 'b'), '>= 0.8')),
                               rows.Scale(0, 0, 1, 3), False)
    goal = result['goals'][0]
    return (same((goal['value'], goal['lowest'], goal['highest'], goal['verdict']), (0.8, 0.3, 0.8, 'met')) + same(''.join(order), 'abbaab') +
            same(report.goal_text(goal), 'work: 0.8 (goal >= 0.8, 0.3 to 0.8) met'))


def rows_and_documents(build):
    """Runs real servers and generators, then writes the document from what they said."""
    wanted = ('publish-http', 'stalled', 'dbus-publisher-100', 'dbus-handler-1')
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([sys.executable, os.path.join(HERE, 'bench.py'), f'--build={build}', '--keep-dirty', f'--output={folder}', '--seconds=0.05',
                               '--repetitions=1', '--rows=' + ','.join(wanted)], capture_output=True, text=True, timeout=100, check=False)
        if done.returncode not in (0, 1):
            return [done.stdout, done.stderr]
        with open(os.path.join(folder, 'results.json'), encoding='utf-8') as file:
            results = json.load(file)
        problems = [f'{name}, {contender}: {said["problem"]}' for name in wanted for contender, said in results['rows'][name]['contenders'].items()
                    if 'median' not in said and 'not installed' not in said['problem'] and 'NotSupported' not in said['problem']
                    and said['problem'] != 'dbus-load is not built']
        problems += [] if results['is_trial'] else ['no word that it is a trial']

        # The page is of one whole measurement.
        refused = subprocess.run([sys.executable, os.path.join(HERE, 'bench.py'), f'--build={build}', f'--docs={folder}/results.json'],
                                 capture_output=True, text=True, timeout=100, check=False)
        problems += same((refused.returncode, 'lacks' in refused.stderr), (1, True))

        results['is_trial'] = False
        with open(os.path.join(folder, 'performance.md'), 'w', encoding='utf-8') as file:
            file.write(tap.read(os.path.dirname(os.path.dirname(HERE)), 'docs/performance.md'))
        report.write_docs(folder, results, rows.GROWTH)
        with open(os.path.join(folder, 'performance.md'), encoding='utf-8') as file:
            text = file.read()
        return problems + [f'performance.md lacks {title}' for title in (results['rows'][name]['title'] for name in wanted) if title not in text]


def arguments_that_mean_nothing(build):
    wanted = {'--seconds=0': 2, '--seconds=-1': 2, '--repetitions=0': 2, '--rows=': 1, '--rows=nothing': 1, '--docs=/nonexistent': 1, '--docs=/etc/passwd': 1}
    found = {}
    for argument in wanted:
        done = subprocess.run([sys.executable, os.path.join(HERE, 'bench.py'), f'--build={build}', '--list', argument], capture_output=True, text=True,
                              timeout=100, check=False)
        found[argument] = done.returncode if 'Traceback' not in done.stderr else done.stderr
    return same(found, wanted)


def main(build):
    out = tap.Tap()
    for check in (goals, peers_that_are_missing, dirty_runs, medians, goals_compare_what_ran_in_the_same_round, arguments_that_mean_nothing, rows_and_documents):
        out.check(check.__name__.replace('_', '-'), check(build))
    return out.finish()


if __name__ == '__main__':
    sys.exit(main(sys.argv[1]))
