#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""hot-paths.py PROGRAM BUDGETS COMPILER [--renew]

Counts the instructions of the hot paths under callgrind and holds them to the budgets in that file, with 5 % slack, so that
no change makes them slower unseen. Instructions do not depend on how busy the machine is. A path that has become cheaper
than its budget by more than the slack fails too: its budget would hide the next change.

A change that must cost more, or that saves some, renews the budgets and says why in its commit message:

    meson compile -C build renew-budgets

Budgets hold for one compiler and one processor architecture, which the file names; elsewhere there is nothing to compare.
"""
import concurrent.futures
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile

ROUNDS = 2048
SLACK = 0.05
PATHS = ('publish-to-0', 'publish-to-1', 'publish-to-100', 'routed-push-and-pop', 'envelope')
# The C library picks its string functions by the processor, which callgrind passes on: take the plain ones everywhere.
FEATURES = ('AVX', 'AVX2', 'AVX512F', 'AVX512VL', 'AVX512BW', 'AVX_Fast_Unaligned_Load', 'BMI1', 'BMI2', 'ERMS', 'FSRM', 'LZCNT', 'MOVBE',
            'POPCNT', 'SSSE3', 'SSE4_1', 'SSE4_2', 'RTM', 'Fast_Unaligned_Copy', 'Fast_Copy_Backward', 'Prefer_No_VZEROUPPER')
TUNABLES = 'glibc.cpu.hwcaps=' + ','.join('-' + feature for feature in FEATURES)


def count(program, path):
    """Instructions of one round of @path."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, 'callgrind')
        done = subprocess.run(
            ['valgrind', '--tool=callgrind', f'--callgrind-out-file={out}', '--toggle-collect=hot_path_measured', program, path, str(ROUNDS)],
            env={'GLIBC_TUNABLES': TUNABLES, 'G_SLICE': 'always-malloc', 'LC_ALL': 'C', 'PATH': os.environ['PATH']},
            capture_output=True, text=True, timeout=60, check=False)
        if done.returncode != 0:
            raise RuntimeError(f'{path}: {done.stderr[-2000:]}')
        with open(out, encoding='utf-8') as file:
            for line in file:
                if line.startswith(('summary:', 'totals:')):
                    return int(line.split()[1]) / ROUNDS
    raise RuntimeError(f'{path}: no summary in what callgrind wrote')


def judge(path, counted, budget):
    """None, or what is wrong."""
    change = counted / budget - 1
    if abs(change) <= SLACK:
        return None
    how = 'more' if change > 0 else 'less'
    return f'{counted:.0f} instructions, {abs(change):.1%} {how} than the budget of {budget}: mend it, or renew the budgets and say why'


def main(program, budgets_file, compiler, *options):
    machine = platform.machine()
    with open(budgets_file, encoding='utf-8') as file:
        budgets = json.load(file)
    reason = None
    if shutil.which('valgrind') is None:
        reason = 'valgrind is not installed'
    elif '--renew' not in options and (budgets['compiler'], budgets['machine']) != (compiler, machine):
        reason = f'budgets are of {budgets["compiler"]} on {budgets["machine"]}, this is {compiler} on {machine}'
    if reason:
        print(f'1..0 # SKIP {reason}')
        return 0

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        counts = dict(zip(PATHS, pool.map(lambda path: count(program, path), PATHS)))
    if '--renew' in options:
        renewed = {'compiler': compiler, 'machine': machine, 'instructions': {path: round(counts[path]) for path in PATHS}}
        with open(budgets_file, 'w', encoding='utf-8') as file:
            file.write(json.dumps(renewed, indent=2) + '\n')
        print(json.dumps(renewed['instructions'], indent=2))
        return 0

    failed = 0
    print(f'1..{len(PATHS)}')
    for number, path in enumerate(PATHS, 1):
        problem = judge(path, counts[path], budgets['instructions'][path])
        failed += problem is not None
        print(f'{"not ok" if problem else "ok"} {number} - {path}')
        print(f'# {problem or f"{counts[path]:.0f} instructions"}')
    return 1 if failed else 0


if __name__ == '__main__':
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
