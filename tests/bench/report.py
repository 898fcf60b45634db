# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tables that a person reads, JSON, and the picture of growth; and the same in docs/performance.md, between its marks."""
import json
import math
import os
import re
import subprocess

HEADS = {
    'deliveries_per_s': 'deliveries/s', 'events_per_s': 'events/s', 'handled_per_s': 'events/s', 'p50_us': 'p50 µs', 'p99_us': 'p99 µs',
    'server_cpu_per_million_s': 'server s/M', 'total_cpu_per_million_s': 'total s/M', 'idle_bytes_per_reader': 'bytes/reader',
    'grown_bytes': 'grown bytes', 'writes_per_delivery': 'writes/delivery', 'calls_per_delivery': 'calls/delivery',
}
GROUPS = ('sse', 'publish', 'dbus', 'fairness', 'memory', 'engine')
COLOURS = ('#1b6ca8', '#c0392b', '#2e8b57', '#8e44ad')


def machine():
    """What a reader must know of where it ran."""
    versions = {'kernel': os.uname().release, 'cores': os.cpu_count()}
    with open('/proc/cpuinfo', encoding='utf-8') as file:
        versions['processor'] = next((line.partition(': ')[2].strip() for line in file if line.startswith('model name')), os.uname().machine)
    for name in ('nginx', 'libnginx-mod-nchan', 'redis-server', 'nats-server', 'dbus-daemon', 'libglib2.0-0', 'libsoup-3.0-0'):
        try:
            done = subprocess.run(['dpkg-query', '--show', '--showformat=${Version}', name], capture_output=True, text=True, check=False)
        except FileNotFoundError:
            break
        if done.returncode == 0 and done.stdout:
            versions[name] = done.stdout
    return versions


def number_text(value):
    size = abs(value)
    if size >= 10000:
        return f'{value:,.0f}'.replace(',', ' ')
    return f'{value:.0f}' if size >= 100 else f'{value:.1f}' if size >= 10 else f'{value:.3g}'


def table_of(result):
    """Heads and rows of cells."""
    columns = result['columns']
    heads = ['', *(HEADS.get(column, column.replace('_', ' ')) for column in columns)]
    body = []
    for name, contender in result['contenders'].items():
        if 'median' in contender:
            body.append([name, *(number_text(contender['median'][column]) for column in columns)])
        else:
            body.append([name, 'not measured: ' + contender['problem'].replace('\n', ' ')[:160]])
    return heads, body


def row_text(name, result):
    heads, body = table_of(result)
    width = max(len(row[0]) for row in body)
    widths = [max([len(heads[i])] + [len(row[i]) for row in body if len(row) > 2]) if len(heads) > 2 else len(heads[i]) for i in range(len(heads))]
    lines = [f'{name}: {result["title"]}' + (f' ({result["thrown_away"]} dirty runs)' if result['thrown_away'] else '')]
    for row in [heads, *body]:
        cells = [row[0].ljust(width)] + [cell.rjust(widths[i]) for i, cell in enumerate(row[1:], 1)]
        lines.append('    ' + '  '.join(cells).rstrip())
    for goal in result['goals']:
        lines.append(f'    {goal_text(goal)}')
    return '\n'.join(lines)


def value_text(goal):
    return '' if goal['value'] is None else f'{number_text(goal["value"])} {goal["unit"]}'.strip()


def spread_text(goal, before=''):
    """The least and the most of its rounds."""
    if goal.get('lowest') == goal.get('highest'):
        return ''
    return f'{before}{number_text(goal["lowest"])} to {number_text(goal["highest"])}'


def goal_text(goal):
    return f'{goal["work"]}: {value_text(goal) or "-"} (goal {goal["limit"]} {goal["unit"]}'.rstrip() + f'{spread_text(goal, ", ")}) {goal["verdict"]}'


def all_goals(results):
    return [goal for result in results['rows'].values() for goal in result['goals']]


def goals_text(results):
    goals = all_goals(results)
    count = {word: sum(goal['verdict'].startswith(word) for goal in goals) for word in ('met', 'missed', 'not measured')}
    trial = ' A TRIAL on a busy machine: the figures are worth nothing.' if results['is_trial'] else ''
    lines = [f'Goals: {count["met"]} met, {count["missed"]} missed, {count["not measured"]} not measured.{trial}']
    return '\n'.join(lines + ['    ' + goal_text(goal) for goal in goals if goal['verdict'] != 'met'])


# --- The picture ----------------------------------------------------------------------------------

def curves_of(results, growth):
    """title → (what it is over, [(size, cost relative to the smallest size)])."""
    curves = {}
    for title, (over, points) in growth.items():
        found = []
        for size, row, contender, number in points:
            medians = results['rows'].get(row, {}).get('contenders', {}).get(contender, {}).get('median')
            if medians:
                found.append((size, medians[number]))
        if len(found) > 1 and found[0][1] > 0:
            curves[title] = (over, [(size, cost / found[0][1]) for size, cost in found])
    return curves


def picture(results, growth):
    """An SVG: cost relative to that of the smallest size, over the size. Flat is good."""
    curves = curves_of(results, growth)
    width, height, left, bottom, right, top = 800, 420, 60, 60, 280, 30
    sizes = [size for _, points in curves.values() for size, _ in points] or [1, 10]
    most = max([2.0] + [cost for _, points in curves.values() for _, cost in points]) * 1.1
    decades = range(int(math.floor(math.log10(min(sizes)))), int(math.ceil(math.log10(max(sizes)))) + 1)

    def x(size):
        return left + (math.log10(size) - decades[0]) / max(decades[-1] - decades[0], 1) * (width - left - right)

    def y(cost):
        return height - bottom - cost / most * (height - top - bottom)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
           f'<rect width="{width}" height="{height}" fill="white"/>',
           f'<text x="{left}" y="18">Cost relative to that of the smallest size</text>']
    for decade in decades:
        out.append(f'<line x1="{x(10**decade):.1f}" y1="{top}" x2="{x(10**decade):.1f}" y2="{height - bottom}" stroke="#ddd"/>')
        out.append(f'<text x="{x(10**decade):.1f}" y="{height - bottom + 18}" text-anchor="middle">{10**decade}</text>')
    step = 0.5 if most < 5 else math.ceil(most / 8)
    for i in range(int(most / step) + 1):
        out.append(f'<line x1="{left}" y1="{y(i * step):.1f}" x2="{width - right}" y2="{y(i * step):.1f}" stroke="#ddd"/>')
        out.append(f'<text x="{left - 8}" y="{y(i * step) + 4:.1f}" text-anchor="end">{i * step:g}</text>')
    for (title, (over, points)), colour, place in zip(curves.items(), COLOURS, range(len(COLOURS))):
        line = ' '.join(f'{x(size):.1f},{y(cost):.1f}' for size, cost in points)
        out.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"><title>{title}</title></polyline>')
        out += [f'<circle cx="{x(size):.1f}" cy="{y(cost):.1f}" r="3" fill="{colour}"/>' for size, cost in points]
        out.append(f'<text x="{width - right + 12}" y="{top + 20 + 20 * place}" fill="{colour}">{over}</text>')
    return '\n'.join([*out, '</svg>', ''])


# --- Files ----------------------------------------------------------------------------------------

def write(folder, results, growth):
    text = '\n\n'.join([row_text(name, result) for name, result in results['rows'].items()] + [goals_text(results)]) + '\n'
    for name, content in (('results.json', json.dumps(results, indent=1, ensure_ascii=False) + '\n'), ('report.txt', text), ('growth.svg', picture(results, growth))):
        with open(os.path.join(folder, name), 'w', encoding='utf-8') as file:
            file.write(content)


def markdown_table(heads, body):
    lines = ['| ' + ' | '.join(heads) + ' |', '| --- ' + '| ---: ' * (len(heads) - 1) + '|']
    return '\n'.join(lines + ['| ' + ' | '.join(row + [''] * (len(heads) - len(row))) + ' |' for row in body])


def markdown(results, growth):
    """Name of a mark in the document → what stands there."""
    texts = {'machine': ', '.join(f'{name} {version}' for name, version in results['machine'].items()) +
                        f'. Each run {results["seconds"]:g} s, medians of {results["repetitions"]}, of {results["goal_repetitions"]} where there is a goal.'}
    texts['goals'] = markdown_table(['work', 'goal', 'measured', 'least to most', 'verdict'],
                                    [[goal['work'], f'{goal["limit"]} {goal["unit"]}'.strip(), value_text(goal), spread_text(goal), goal['verdict']] for goal in all_goals(results)])
    if curves_of(results, growth):
        texts['growth'] = '![Cost relative to that of the smallest size](growth.svg)'
    for group in GROUPS:
        parts = [f'{result["title"]}:\n\n{markdown_table(*table_of(result))}' for result in results['rows'].values() if result['group'] == group]
        if parts:
            texts[group] = '\n\n'.join(parts)
    return texts


def write_docs(folder, results, growth):
    """Rewrites what stands between `<!-- bench: NAME -->` and `<!-- end -->`; what was not measured stays."""
    if results['is_trial']:
        raise SystemExit('bench: these results are of a trial on a busy machine')
    path = os.path.join(folder, 'performance.md')
    with open(path, encoding='utf-8') as file:
        text = file.read()
    for name, content in markdown(results, growth).items():
        text, count = re.subn(rf'(<!-- bench: {name} -->\n).*?(<!-- end -->)', lambda found: f'{found[1]}\n{content}\n\n{found[2]}', text, flags=re.S)
        if count != 1:
            raise SystemExit(f'bench: {path} has {count} marks for {name}')
    with open(path, 'w', encoding='utf-8') as file:
        file.write(text)
    if curves_of(results, growth):
        with open(os.path.join(folder, 'growth.svg'), 'w', encoding='utf-8') as file:
            file.write(picture(results, growth))
