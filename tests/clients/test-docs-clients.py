#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The programs of docs/clients.md, run as they stand there, against a real headwayd.

Each block of code in that page has a marker in front, `<!-- run NAME INTERPRETER -->`, and each is run here by its name.
"""
import json
import os
import re
import shutil
import sys
import tempfile

sys.dont_write_bytecode = True
import harness  # noqa: E402

PAGE = os.path.join(harness.HERE, '..', '..', 'docs', 'clients.md')
INTERPRETERS = {'sh': (['sh'], ''), 'python3': (['/usr/bin/python3'], '.py'), 'gjs': (['gjs', '-m'], '.js'), 'node': (['node'], '.mjs')}
PROGRAM = re.compile(r'^<!-- run (\S+) (\S+) -->\n```\w+\n(.*?)^```$', re.MULTILINE | re.DOTALL)
EVENTS = f'{harness.NAME}.Bus'
USER = f'uid:{os.getuid()}'
FLOOD = 2000  # events at once; a queue holds 256


def read_page():
    with open(PAGE, encoding='utf-8') as file:
        return file.read()


def programs():
    """Interpreter and text of each program of the page."""
    return {name: (interpreter, text) for name, interpreter, text in PROGRAM.findall(read_page())}


def as_gdbus(event):
    event_id, topic, event_type, principal, timestamp, data, _ = event
    return f"([(uint64 {event_id}, '{topic}', '{event_type}', '{principal}', int64 {timestamp}, '{data}', @a{{sv}} {{}})],)"


def as_text(event):
    return f'{event[0]} {event[1]} {event[5]}'


def as_compact(event):
    return f'{event[0]} {event[1]} {json.dumps(json.loads(event[5]), separators=(",", ":"))}'


def as_python(event):
    return f'{event[0]} {event[1]} {json.loads(event[5])}'


def as_node(event):
    """console.log() of the data used here: a string as it is, an object with a number in the manner of node."""
    data = json.loads(event[5])
    if isinstance(data, dict):
        members = ', '.join(f"{key}: '{value}'" if isinstance(value, str) else f'{key}: {value}' for key, value in data.items())
        data = f'{{ {members} }}'
    return f'{event[0]} {event[1]} {data}'


# How a reader prints an event, and whether it prints the last one of a bus.
READERS = {
    'gdbus-fetch': (as_gdbus, False),
    'busctl-fetch': (as_text, False),
    'python-receive': (as_python, True),
    'python-signals': (as_python, True),
    'python-stream': (as_python, True),
    'gjs-receive': (as_text, True),
    'gjs-signals': (as_text, True),
    'gjs-stream': (as_compact, True),
    'node-receive': (as_node, True),
    'node-signals': (as_node, True),
}
PUBLISHERS = ('gdbus-publish', 'busctl-publish', 'python-publish', 'gjs-publish', 'node-publish', 'python-publisher', 'gjs-publisher')


class ClientCase(harness.Case):
    def run_program(self, daemon, name, *arguments):
        interpreter, text = programs()[name]
        command, suffix = INTERPRETERS[interpreter]
        folder = tempfile.mkdtemp(prefix='headway-docs-')
        self.addCleanup(shutil.rmtree, folder)
        os.symlink(os.path.join(harness.HERE, 'node_modules'), os.path.join(folder, 'node_modules'))
        with open(os.path.join(folder, name + suffix), 'w', encoding='utf-8') as file:
            file.write(text)
        return harness.Program(self, [*command, name + suffix, *arguments], daemon.environment, folder)

    def fetch(self, daemon, after=0):
        """All events after that one, with their ids."""
        events = []
        while True:
            more = daemon.call(daemon.path('news'), EVENTS, 'Fetch', '(tua{sv})', after, 1024, {})[0]
            more = [event for event in more if event[0]]
            if not more:
                return events
            events += more
            after = more[-1][0]


class Page(ClientCase):
    def test_every_block_of_code_is_run(self):
        text = read_page()
        self.assertEqual(sorted(programs()), sorted([*READERS, *PUBLISHERS]))
        self.assertEqual(text.count('\n```') // 2, len(programs()))
        self.assertNotRegex(text, r'\n    \$ ')


class Publishers(ClientCase):
    def publish(self, name, settings=''):
        daemon = self.daemon(settings)
        program = self.run_program(daemon, name)
        status = program.wait_exit()
        self.assertEqual((status, program.errors), (0, []))
        return daemon, program.lines, self.fetch(daemon)

    def judge_shell(self, events):
        self.assertEqual([event[:4] + event[5:6] for event in events],
                         [(1, 'weather.wind', 'message', USER, '{"knots": 17}'), (2, 'weather.report', 'report', USER, '"calm"')])
        self.assertEqual(events[0][6], {})
        self.assertEqual({**json.loads(events[1][6]['meta']), 'serverTimestamp': 0}, {'station': 7, 'serverTimestamp': 0})

    def test_gdbus_publish(self):
        _, lines, events = self.publish('gdbus-publish')
        self.judge_shell(events)
        outcome = "{'subscriptions': <uint32 0>, 'refused': <uint32 0>, 'evicted': <uint32 0>}"
        self.assertEqual(lines, ["(objectpath '/org/headway/Headway1/bus/news',)", f'(uint64 1, {outcome})', f'(uint64 2, {outcome})'])

    def test_busctl_publish(self):
        _, lines, events = self.publish('busctl-publish')
        self.judge_shell(events)
        outcome = '3 "subscriptions" u 0 "refused" u 0 "evicted" u 0'
        self.assertEqual(lines, ['o "/org/headway/Headway1/bus/news"', f'ta{{sv}} 1 {outcome}', f'ta{{sv}} 2 {outcome}'])

    def judge_library(self, name):
        """It publishes three events where two a second may be: it is told to wait, and does."""
        daemon, lines, events = self.publish(name, 'principal-events-per-second=2\n')
        self.assertEqual(lines, ['1', '2', '3'])
        self.assertEqual([event[:4] + (json.loads(event[5]), event[6]) for event in events],
                         [(number, 'weather.wind', 'reading', USER, {'knots': knots}, {}) for number, knots in ((1, 12), (2, 17), (3, 21))])
        metrics = {(metric, labels.get('reason')): value
                   for metric, labels, value in daemon.call(harness.ROOT, f'{harness.NAME}.Manager', 'ListMetrics')[0]}
        self.assertGreaterEqual(metrics['headway_publish_rejected_total', 'rate'], 1)

    def test_python_publish(self):
        self.judge_library('python-publish')

    def judge_lines(self, name):
        """Of a thousand lines one is refused; the others are more than a second's worth, and none is lost."""
        _, lines, events = self.publish(name, 'principal-events-per-second=700\n')
        self.assertEqual(lines, ['line 501 topic "weather..wind" has an empty segment', '999 published'])
        self.assertEqual([(event[0], event[1], event[3], json.loads(event[5]), event[6]) for event in events],
                         [(number, 'weather.wind', USER, {'knots': knots}, {'client': 'importer'})
                          for number, knots in enumerate((knots for knots in range(1000) if knots != 500), 1)])

    def test_python_publisher(self):
        self.judge_lines('python-publisher')

    def test_gjs_publisher(self):
        self.judge_lines('gjs-publisher')

    def test_gjs_publish(self):
        self.judge_library('gjs-publish')

    def test_node_publish(self):
        self.judge_library('node-publish')


class Readers(ClientCase):
    """Each reader is run twice: over a restart of headwayd, and over what it has missed."""

    def prepare(self, name, **options):
        self.daemon_of_test = daemon = self.daemon('principal-events-per-second=0\n')
        daemon.bus('news', **options)
        self.render, self.has_last_word = READERS[name]
        self.expected = []
        return daemon

    def begin(self, name):
        """A daemon, whose bus has three events, one of them for nobody here; the reader, which has read the others."""
        daemon = self.prepare(name)
        daemon.publish('news', 'weather.wind', {'knots': 17})
        daemon.publish('news', 'sports.wind', {'knots': 0})
        daemon.publish('news', 'weather.report', 'calm')
        reader = self.run_program(daemon, name)
        self.catch_up(reader)
        return daemon, reader

    def catch_up(self, reader, after=0):
        """The reader prints exactly what there is for it, and what it has printed before."""
        events = [event for event in self.fetch(self.daemon_of_test, after) if event[1].startswith('weather.')]
        self.expected += [self.render(event) for event in events]
        reader.wait(lambda: len(reader.lines) >= len(self.expected), f'{len(self.expected)} lines')
        self.assertEqual(reader.lines, self.expected)

    def end(self, daemon, reader):
        """The bus is closed: the reader says so, if it can know, and ends."""
        last = daemon.get('news', 'LastEventId') + 1
        daemon.call(daemon.path('news'), EVENTS, 'Close')
        self.assertEqual(reader.wait_exit(), 0, reader.errors)
        if self.has_last_word:
            data = '{"sessionId":"news","reason":"closed"}'
            self.expected.append(self.render((last, 'session_closed', 'session_closed', '', 0, data, {})))
        self.assertEqual(reader.lines, self.expected)

    def judge_restart(self, name):
        daemon, reader = self.begin(name)
        daemon.publish('news', 'weather.wind', {'knots': 18})
        daemon.publish('news', 'sports.wind', {'knots': 1})
        last = daemon.publish('news', 'weather.report', 'storm')
        self.catch_up(reader, 3)
        daemon.restart()
        daemon.publish('news', 'weather.wind', {'knots': 19})
        last_but_one = daemon.publish('news', 'sports.report', 'calm')
        self.assertGreater(last_but_one, last)
        self.catch_up(reader, last)
        daemon.publish('news', 'weather.wind', {'knots': 20})
        self.catch_up(reader, last_but_one)
        self.end(daemon, reader)

    def judge_late_daemon(self, name):
        """It is there before headwayd, which no file of the message bus starts here."""
        daemon = self.prepare(name)
        daemon.stop()
        reader = self.run_program(daemon, name)
        if name not in ('python-signals', 'gjs-signals'):  # these watch the name and say nothing
            reader.wait(lambda: reader.errors, 'a word about it')
        self.assertIsNone(reader.process.poll(), reader.errors)
        daemon.start()
        last = daemon.publish('news', 'weather.wind', {'knots': 18})
        self.catch_up(reader)
        daemon.publish('news', 'weather.wind', {'knots': 19})
        self.catch_up(reader, last)
        self.end(daemon, reader)

    def judge_eviction(self, name):
        daemon, reader = self.begin(name)
        reader.pause()
        for _ in range(10):
            events = [('weather.wind', json.dumps({'knots': number}), {}) for number in range(FLOOD)]
            last = daemon.call(daemon.path('news'), EVENTS, 'PublishMany', '(a(ssa{sv})a{sv})', events, {})[0] + FLOOD - 1
            if daemon.subscribers('news') == 0:
                break
        self.assertEqual(daemon.subscribers('news'), 0)
        reader.resume()
        self.catch_up(reader, 3)
        self.assertIn('client_evicted', ''.join(reader.errors))
        daemon.publish('news', 'weather.report', 'calm')
        self.catch_up(reader, last)
        self.end(daemon, reader)

    def judge_large(self, name):
        """One that waits for room beside what was read before, and many that fill the room before the window."""
        daemon, reader = self.begin(name)
        daemon.publish('news', 'weather.report', 'x' * 300000)
        self.catch_up(reader, 3)
        events = [('weather.report', json.dumps(str(number) + 'x' * 20000), {}) for number in range(64)]
        last = daemon.call(daemon.path('news'), EVENTS, 'PublishMany', '(a(ssa{sv})a{sv})', events, {})[0] + 63
        self.catch_up(reader, last - 64)
        self.end(daemon, reader)

    def judge_loss(self, name):
        """It comes with an id whose successors are gone."""
        daemon = self.prepare(name, ring_size=2)
        for knots in range(5):
            daemon.publish('news', 'weather.wind', {'knots': knots})
        reader = self.run_program(daemon, name, '1')
        self.catch_up(reader)
        daemon.publish('news', 'weather.wind', {'knots': 5})
        self.catch_up(reader, 5)
        self.assertEqual([int(re.search(r'\d+', line.removeprefix('([(uint64 '))[0]) for line in reader.lines], [4, 5, 6])
        self.end(daemon, reader)

    def test_gdbus_monitor_sees_buses_and_no_events(self):
        daemon, reader = self.begin('python-signals')
        monitor = harness.Program(self, ['gdbus', 'monitor', '--session', '--dest', harness.NAME], daemon.environment)
        monitor.wait(lambda: any('is owned by' in line for line in monitor.lines), 'the monitor')
        last = daemon.publish('news', 'weather.wind', {'knots': 18})
        self.catch_up(reader, last - 1)
        daemon.bus('marker')
        monitor.wait(lambda: any('/bus/marker' in line for line in monitor.lines), 'the new bus')
        self.assertEqual([line for line in monitor.lines if 'Subscription' in line or 'weather' in line], [])
        self.end(daemon, reader)


def reader_tests():
    for name in READERS:
        word = name.replace('-', '_')
        setattr(Readers, f'test_{word}_returns_after_a_restart', lambda self, name=name: self.judge_restart(name))
        setattr(Readers, f'test_{word}_waits_for_the_first_headwayd', lambda self, name=name: self.judge_late_daemon(name))
        if name.endswith('-fetch'):
            setattr(Readers, f'test_{word}_goes_on_with_what_is_left', lambda self, name=name: self.judge_loss(name))
        else:
            setattr(Readers, f'test_{word}_returns_after_an_eviction', lambda self, name=name: self.judge_eviction(name))
            setattr(Readers, f'test_{word}_reads_large_events', lambda self, name=name: self.judge_large(name))


reader_tests()

if __name__ == '__main__':
    harness.main(harness.missing(('gdbus', 'libglib2.0-bin'), ('busctl', 'systemd'), ('jq', 'jq'), ('gjs', 'gjs'), ('node', 'nodejs'), has_packages=True))
