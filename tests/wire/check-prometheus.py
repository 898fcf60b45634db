#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""check-prometheus.py [PROGRAM [ARGUMENT…]]: is what PROGRAM prints, or standard input, clean Prometheus text 0.0.4?

Written from the description of the format, not from our writer, and stricter than the format: also what `promtool
check metrics` and house rules ask for. As a module: `problems(data)` yields what is wrong with these bytes."""
import re
import subprocess
import sys

METRIC = re.compile(r'[a-zA-Z_:][a-zA-Z0-9_:]*')
LABEL = re.compile(r'[a-zA-Z_][a-zA-Z0-9_]*')
NUMBER = re.compile(r'[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?$|[+-]?Inf$|NaN$')
TYPES = ('counter', 'gauge')
SUFFIXES_OF_OTHERS = ('_bucket', '_count', '_sum', '_info', '_created')
NO_BASE_UNITS = re.compile(r'_(ms|us|ns|milliseconds|microseconds|nanoseconds|minutes|hours|days|kb|mb|kib|mib|kilobytes|'
                           r'megabytes|percent|celsius_degrees|bits)(_|$)')
SERIES_MAX = 1000


class Bad(Exception):
    pass


def need(condition, message):
    if not condition:
        raise Bad(message)


def unescape(text, allowed):
    """Undoes the backslashes of @text, of which those before @allowed are legal."""
    out = []
    at = 0
    while at < len(text):
        if text[at] == '\\':
            need(at + 1 < len(text) and text[at + 1] in allowed, f'illegal escape in {text!r}')
            out.append('\n' if text[at + 1] == 'n' else text[at + 1])
            at += 1
        else:
            out.append(text[at])
        at += 1
    return ''.join(out)


def parse_labels(line, at):
    """Labels from the character behind `{`; returns them and the position behind `}`."""
    labels = []
    while True:
        name = LABEL.match(line, at)
        need(name, f'no label name at column {at + 1}')
        at = name.end()
        need(line.startswith('="', at), f'no =" behind label {name.group()}')
        end = at + 2
        while end < len(line) and line[end] != '"':
            end += 2 if line[end] == '\\' else 1
        need(end < len(line), f'label {name.group()} has no end')
        labels.append((name.group(), unescape(line[at + 2:end], '\\"n')))
        at = end + 1
        if line.startswith('}', at):
            return labels, at + 1
        need(line.startswith(',', at), f'neither , nor }} at column {at + 1}')
        at += 1


def parse_sample(line):
    name = METRIC.match(line)
    need(name, 'no metric name')
    at = name.end()
    labels = []
    if line.startswith('{', at):
        labels, at = parse_labels(line, at + 1)
    need(line.startswith(' ', at), f'no blank at column {at + 1}')
    value = line[at + 1:]
    need(NUMBER.match(value), f'{value!r} is no number, or something is behind it')
    return name.group(), labels, float(value)


class Checker:
    def __init__(self):
        self.helped = set()
        self.types = {}
        self.current = None     # family whose samples may come
        self.sampled = set()    # families with samples
        self.series = set()
        self.label_names = {}

    def comment(self, line):
        match = re.match(r'# (HELP|TYPE) (\S+) (.*)$', line)
        need(match, 'a comment that is neither HELP nor TYPE with a name and a text')
        what, name, text = match.groups()
        need(METRIC.fullmatch(name), f'{name!r} is no metric name')
        if what == 'HELP':
            need(name not in self.helped, f'a second HELP for {name}')
            plain = unescape(text, '\\n')
            need(plain and plain.strip() == plain, f'HELP of {name} is empty or has blanks around it')
            self.helped.add(name)
            self.current = None
            return
        need(name in self.helped, f'TYPE of {name} without HELP before it')
        need(name not in self.types, f'a second TYPE for {name}')
        need(text in TYPES, f'type {text!r} of {name} is none of {", ".join(TYPES)}')
        self.types[name] = text
        self.current = name
        self.name(name, text)

    def name(self, name, kind):
        need(name == name.lower(), f'{name} has capitals')
        need(':' not in name, f'{name}: colons are for rules')
        need((kind == 'counter') == name.endswith('_total'), f'{name}: a counter ends in _total, and nothing else does')
        need(not name.endswith(SUFFIXES_OF_OTHERS), f'{name} ends as those of other types do')
        need(not NO_BASE_UNITS.search(name), f'{name}: not a base unit')
        need(not re.search(r'(counter|gauge)', name), f'{name} says its type')

    def sample(self, line):
        name, labels, value = parse_sample(line)
        need(name in self.types, f'a sample of {name} before its TYPE')
        need(name == self.current, f'a sample of {name} among those of {self.current}')
        names = [label for label, _ in labels]
        need(len(set(names)) == len(names), f'{name} has a label twice')
        for label in names:
            need(not label.startswith('__'), f'{name}: label {label} is reserved')
            need(label not in ('le', 'quantile', 'job', 'instance'), f'{name}: label {label} means something else')
        need(all(text for _, text in labels), f'{name} has an empty label, which is none')
        need(self.label_names.setdefault(name, names) == names, f'{name}: its samples have different labels')
        key = (name, tuple(sorted(labels)))
        need(key not in self.series, f'{name}: the same series twice')
        self.series.add(key)
        self.sampled.add(name)
        need(value == value and abs(value) != float('inf'), f'{name} is no finite number')
        need(self.types[name] != 'counter' or value >= 0, f'counter {name} is negative')

    def end(self):
        for name in sorted(self.helped - self.sampled):
            yield f'{name} has no samples'
        for name in sorted(self.sampled):
            count = sum(1 for key in self.series if key[0] == name)
            if count >= SERIES_MAX:
                yield f'{name} has {count} series'


def problems(data):
    try:
        text = data.decode('utf-8')
    except UnicodeDecodeError as error:
        yield f'not UTF-8: {error}'
        return
    if not text.endswith('\n'):
        yield 'the last line does not end in LF' if text else 'empty'
        return
    checker = Checker()
    for number, line in enumerate(text[:-1].split('\n'), 1):
        try:
            need(line, 'an empty line')
            need(not re.search(r'[\x00-\x1f\x7f]', line), 'a control character')
            if line.startswith('#'):
                checker.comment(line)
            else:
                checker.sample(line)
        except Bad as bad:
            yield f'line {number}: {bad}'
    yield from checker.end()


# What a validator must not let through; each is a good text with one thing wrong.
HEAD = '# HELP a_total Text.\n# TYPE a_total counter\n'
GOOD = [
    HEAD + 'a_total 0\n',
    HEAD + 'a_total{x="1",y="\\\\ \\" \\n {},="} 12\na_total{x="2",y="z"} 1.5e3\n',
    HEAD + 'a_total 1\n# HELP b Text \\\\ with \\n.\n# TYPE b gauge\nb -4\n',
]
BAD = {
    'nothing': '',
    'no LF at the end': HEAD + 'a_total 0',
    'CR LF': HEAD + 'a_total 0\r\n',
    'an empty line': HEAD + '\na_total 0\n',
    'no HELP': '# TYPE a_total counter\na_total 0\n',
    'an empty HELP': '# HELP a_total \n# TYPE a_total counter\na_total 0\n',
    'no TYPE': '# HELP a_total Text.\na_total 0\n',
    'TYPE before HELP': '# TYPE a_total counter\n# HELP a_total Text.\na_total 0\n',
    'TYPE behind a sample': '# HELP a_total Text.\na_total 0\n# TYPE a_total counter\n',
    'HELP twice': HEAD + '# HELP a_total Text.\na_total 0\n',
    'TYPE twice': HEAD + '# TYPE a_total counter\na_total 0\n',
    'an unknown type': '# HELP a Text.\n# TYPE a number\na 0\n',
    'a bare comment': '# hello\n' + HEAD + 'a_total 0\n',
    'a counter without _total': '# HELP a Text.\n# TYPE a counter\na 0\n',
    'a gauge with _total': '# HELP a_total Text.\n# TYPE a_total gauge\na_total 0\n',
    'a bad name': HEAD + 'a-total 0\n',
    'capitals': '# HELP aB Text.\n# TYPE aB gauge\naB 0\n',
    'no base unit': '# HELP a_ms Text.\n# TYPE a_ms gauge\na_ms 0\n',
    'the same series': HEAD + 'a_total 0\na_total 1\n',
    'the same series, labels turned': HEAD + 'a_total{x="1",y="2"} 0\na_total{y="2",x="1"} 1\n',
    'a label twice': HEAD + 'a_total{x="1",x="2"} 0\n',
    'a label that others lack': HEAD + 'a_total{x="1"} 0\na_total 1\n',
    'a reserved label': HEAD + 'a_total{__x="1"} 0\n',
    'a bad label': HEAD + 'a_total{0x="1"} 0\n',
    'an empty label': HEAD + 'a_total{x=""} 0\n',
    'an illegal escape': HEAD + 'a_total{x="\\t"} 0\n',
    'a label without end': HEAD + 'a_total{x="1} 0\n',
    'a label that ends in a backslash': HEAD + 'a_total{x="1\\"} 0\n',
    'a comma too many': HEAD + 'a_total{x="1",} 0\n',
    'empty braces': HEAD + 'a_total{} 0\n',
    'no value': HEAD + 'a_total\n',
    'two blanks': HEAD + 'a_total  0\n',
    'no number': HEAD + 'a_total zero\n',
    'a hexadecimal number': HEAD + 'a_total 0x10\n',
    'a time': HEAD + 'a_total 0 1700000000000\n',
    'NaN': HEAD + 'a_total NaN\n',
    'a negative counter': HEAD + 'a_total -1\n',
    'families mixed': HEAD + '# HELP b Text.\n# TYPE b gauge\nb 0\na_total 0\n',
    'a family without samples': HEAD + 'a_total 0\n# HELP b Text.\n# TYPE b gauge\n',
    'a family too large': HEAD + ''.join(f'a_total{{x="{i}"}} 0\n' for i in range(SERIES_MAX)),
}


class Tap:
    def __init__(self):
        self.count = self.failed = 0

    def check(self, name, found):
        self.count += 1
        self.failed += 1 if found else 0
        print(f'{"not ok" if found else "ok"} {self.count} - {name}')
        for problem in found[:50]:
            print(f'#   {problem}')

    def finish(self):
        print(f'1..{self.count}')
        return 1 if self.failed else 0


def main(command):
    out = Tap()
    out.check('lets good text through', [problem for text in GOOD for problem in problems(text.encode())])
    for name, text in BAD.items():
        out.check(f'sees {name}', [] if list(problems(text.encode())) else ['it said nothing'])
    out.check('sees what is no UTF-8', [] if list(problems(HEAD.encode() + b'a_total{x="\xff"} 0\n')) else ['it said nothing'])
    if command:
        done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
        found = [] if done.returncode == 0 else [f'exit status {done.returncode}']
        out.check(f'real output is clean: {len(done.stdout.splitlines())} lines', found + list(problems(done.stdout)))
    elif not sys.stdin.isatty():
        out.check('standard input is clean', list(problems(sys.stdin.buffer.read())))
    return out.finish()


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
