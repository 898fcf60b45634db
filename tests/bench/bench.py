#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Measures Headway beside its peers and the physical limits, and holds it to its goals.

Servers run on the first core, generators on the second. The contenders of a row take turns with fresh servers, medians are told.
A goal is judged round by round, and the median of its values counts: a shared machine is now fast and now slow, and what ran in
turn within seconds had the same of it.
A run in which other processes used more than 0.15 of a core is dirty: it is thrown away and repeated, up to three times; a row
whose runs stay dirty gets no verdict, unless --keep-dirty says that this is a trial. Peers that are not installed are named.
Writes results.json, report.txt and growth.svg. Ends with 1 if a goal is missed, with 130 if it was interrupted.
"""
import argparse
import fnmatch
import json
import os
import resource
import signal
import statistics
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
DIRTY_SHARE = 0.15
DIRTY_TRIES = 3


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--build', default=os.path.join(ROOT, 'build'), help='the build folder')
    parser.add_argument('--output', help='folder for the results (BUILD/bench)')
    parser.add_argument('--rows', help='names with commas between; * and ? work')
    parser.add_argument('--list', action='store_true', help='name the rows and leave')
    parser.add_argument('--quick', action='store_true', help='the rows that have goals, short')
    parser.add_argument('--keep-dirty', action='store_true', help='other processes may work meanwhile; figures are worth nothing')
    parser.add_argument('--seconds', type=float, help='how long to measure, each time')
    parser.add_argument('--repetitions', type=int, help='how often')
    parser.add_argument('--docs', metavar='RESULTS', help='measure nothing: write the tables and the picture of docs/performance.md from that results.json')
    arguments = parser.parse_args()
    if arguments.seconds is not None and arguments.seconds <= 0:
        parser.error('--seconds: more than 0')
    if arguments.repetitions is not None and arguments.repetitions < 1:
        parser.error('--repetitions: from 1')
    return arguments


def cpu_seconds():
    """What the machine has worked, and what this process and its children that have ended."""
    with open('/proc/stat', encoding='ascii') as file:
        user, nice, system, _, _, irq, softirq = (int(word) for word in file.readline().split()[1:8])
    ours = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return (user + nice + system + irq + softirq) / os.sysconf('SC_CLK_TCK'), sum(usage.ru_utime + usage.ru_stime for usage in ours)


def measure(run, scale, keep_dirty):
    """The numbers of one clean run, and how many dirty ones there were before it. Generators say themselves what others used."""
    for dirty in range(DIRTY_TRIES + 1):
        busy, ours, begin = *cpu_seconds(), time.monotonic()
        numbers = run(scale)
        busy, ours, seconds = *(now - then for now, then in zip(cpu_seconds(), (busy, ours))), time.monotonic() - begin
        numbers.setdefault('foreign_share', (busy - ours) / max(seconds, 1e-9))
        numbers['is_dirty'] = numbers['foreign_share'] > DIRTY_SHARE
        if not numbers['is_dirty'] or keep_dirty:
            break
    return numbers, dirty


def median_of(all_numbers):
    return {key: statistics.median(numbers[key] for numbers in all_numbers) for key in all_numbers[0] if key != 'is_dirty'}


def measure_row(row, scale, keep_dirty):
    """What goes into results.json."""
    from contenders import Failed, Missing  # pylint: disable=import-outside-toplevel
    found = {name: [] for name in row.runs}
    problems, dirty = {}, 0
    for number in range(row.repetitions or (scale.goal_repetitions if row.goals else scale.repetitions)):
        # There and back: what comes last in one round comes first in the next.
        for name, run in list(row.runs.items())[::-1 if number % 2 else 1]:
            if name in problems:
                continue
            try:
                numbers, thrown_away = measure(run, scale, keep_dirty)
                found[name].append(numbers)
                dirty += thrown_away
            except (Missing, Failed) as problem:
                problems[name] = str(problem)
            except Exception as problem:  # pylint: disable=broad-except
                problems[name] = f'{type(problem).__name__}: {problem}'
    contenders = {}
    for name, numbers in found.items():
        if name in problems:
            contenders[name] = {'problem': problems[name]}
        elif any(n['is_dirty'] for n in numbers) and not keep_dirty:
            contenders[name] = {'problem': 'other processes kept the machine busy', 'all': numbers}
        else:
            contenders[name] = {'median': median_of(numbers), 'all': numbers}
    return {'group': row.group, 'title': row.title, 'columns': list(row.columns), 'contenders': contenders, 'thrown_away': dirty,
            'goals': [judge(goal, contenders) for goal in row.goals]}


def judge(goal, contenders):
    verdict = {'work': goal.work, 'limit': goal.limit, 'unit': goal.unit, 'value': None}
    unmeasured = []

    def number_of(name, number, turn):
        if 'median' not in contenders[name]:
            unmeasured.append(f'{name}: {contenders[name]["problem"]}')
            return 1
        return contenders[name]['all'][turn][number]

    turns = min((len(contender['all']) for contender in contenders.values() if 'median' in contender), default=1)
    values = [goal.value(lambda name, number, turn=turn: number_of(name, number, turn)) for turn in range(turns)]
    if unmeasured:
        return {**verdict, 'verdict': 'not measured: ' + '; '.join(dict.fromkeys(unmeasured))}
    value = statistics.median(values)
    return {**verdict, 'value': value, 'lowest': min(values), 'highest': max(values), 'verdict': 'met' if goal.is_met(value) else 'missed'}


def choose(rows, arguments):
    if arguments.rows is not None:
        patterns = arguments.rows.split(',')
        unknown = [p for p in patterns if not any(fnmatch.fnmatch(row.name, p) for row in rows)]
        if unknown:
            sys.exit(f'bench: no row {", ".join(unknown)}; --list names them')
        return [row for row in rows if any(fnmatch.fnmatch(row.name, p) for p in patterns)]
    return [row for row in rows if row.is_quick or not arguments.quick]


def read_results(path):
    try:
        with open(path, encoding='utf-8') as file:
            results = json.load(file)
        if not isinstance(results['rows'], dict):
            raise ValueError('no rows')
        return results
    except (OSError, ValueError, KeyError, TypeError) as problem:
        sys.exit(f'bench: {path} holds no results: {problem}')


def on_terminate(_number, _frame):
    raise KeyboardInterrupt


def main():
    arguments = parse_arguments()
    os.environ['HEADWAY_BENCH_TOOLS'] = os.path.join(arguments.build, 'tests', 'bench')
    os.environ['HEADWAYD'] = os.environ.get('HEADWAYD', os.path.join(arguments.build, 'src', 'daemon', 'headwayd'))
    os.environ['GSETTINGS_BACKEND'] = 'memory'
    os.environ['GSETTINGS_SCHEMA_DIR'] = os.environ.get('GSETTINGS_SCHEMA_DIR', os.path.join(arguments.build, 'data'))
    # Meson's tests look for mistakes; here they would be measured.
    for name in ('G_DEBUG', 'G_SLICE', 'MALLOC_PERTURB_', 'MALLOC_CHECK_'):
        os.environ.pop(name, None)
    import report  # pylint: disable=import-outside-toplevel
    import rows as all_of  # pylint: disable=import-outside-toplevel
    if arguments.docs:
        results = read_results(arguments.docs)
        missing = [row.name for row in all_of.all_rows() if row.name not in results['rows']]
        if missing:
            sys.exit(f'bench: the page takes all rows, {arguments.docs} lacks {", ".join(missing)}')
        report.write_docs(os.path.join(ROOT, 'docs'), results, all_of.GROWTH)
        return 0
    rows = choose(all_of.all_rows(), arguments)
    if arguments.list:
        print('\n'.join(f'{row.name:24} {row.title}' for row in rows))
        return 0

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, on_terminate)
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    scale = all_of.Scale(0.4, 0.2, 1, 1) if arguments.quick else all_of.Scale()
    scale.seconds = arguments.seconds or scale.seconds
    scale.repetitions = arguments.repetitions or scale.repetitions
    scale.goal_repetitions = arguments.repetitions or scale.goal_repetitions
    results = {'machine': report.machine(), 'seconds': scale.seconds, 'repetitions': scale.repetitions, 'goal_repetitions': scale.goal_repetitions, 'is_trial': arguments.keep_dirty, 'rows': {}}
    output = arguments.output or os.path.join(arguments.build, 'bench')
    try:
        os.makedirs(output, exist_ok=True)
    except OSError as problem:
        sys.exit(f'bench: {problem}')
    is_interrupted = False
    begin = time.monotonic()
    try:
        for number, row in enumerate(rows, 1):
            results['rows'][row.name] = result = measure_row(row, scale, arguments.keep_dirty)
            print(f'[{number}/{len(rows)}, {time.monotonic() - begin:.0f} s] ' + report.row_text(row.name, result), flush=True)
    except KeyboardInterrupt:
        is_interrupted = True
        print('bench: interrupted; what was measured so far is kept', file=sys.stderr)
    report.write(output, results, all_of.GROWTH)
    print(report.goals_text(results))
    print(f'bench: {time.monotonic() - begin:.0f} s; tables, JSON and the picture are in {output}')
    if is_interrupted:
        return 130
    return 1 if any(goal['verdict'] == 'missed' for row in results['rows'].values() for goal in row['goals']) else 0


if __name__ == '__main__':
    sys.path.insert(0, HERE)
    sys.dont_write_bytecode = True
    sys.exit(main())
