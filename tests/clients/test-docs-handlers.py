#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The programs of docs/handlers.md, run as they stand there, against a real headwayd. Their markers are those of test-docs-clients.py."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import harness  # noqa: E402

PAGE = os.path.join(harness.HERE, '..', '..', 'docs', 'handlers.md')
PROGRAM = re.compile(r'^<!-- run (\S+) (\S+) -->\n```\w+\n(.*?)^```$', re.MULTILINE | re.DOTALL)
SUFFIXES = {'sh': '.sh', 'python3': '.py', 'cc': '.c'}


def read_page():
    with open(PAGE, encoding='utf-8') as file:
        return file.read()


class Handlers(harness.Case):
    def command(self, name):
        """Writes the program into a folder of its own, and returns how to run it there."""
        interpreter, text = {word: program for word, *program in PROGRAM.findall(read_page())}[name]
        self.folder = tempfile.mkdtemp(prefix='headway-docs-')
        self.addCleanup(shutil.rmtree, self.folder)
        source = name + SUFFIXES[interpreter]
        with open(os.path.join(self.folder, source), 'w', encoding='utf-8') as file:
            file.write(text)
        if interpreter != 'cc':
            return [{'sh': 'sh', 'python3': '/usr/bin/python3'}[interpreter], source]
        flags = subprocess.run(['pkg-config', '--cflags', '--libs', 'gio-2.0'], capture_output=True, text=True, check=True).stdout.split()
        subprocess.run(['cc', '-Wall', '-Werror', source, *flags], cwd=self.folder, check=True)
        return ['./a.out']

    def start_handler(self, daemon, name):
        command = self.command(name)
        environment = dict(daemon.environment, PATH=os.path.dirname(os.environ['HEADWAY']) + ':' + os.environ['PATH'])
        return harness.Program(self, command, environment, self.folder)

    def run_handler(self, name, settings=''):
        daemon = self.daemon(settings)
        daemon.bus('news')
        program = self.start_handler(daemon, name)
        program.wait(lambda: 'registered' in ''.join(program.lines + program.errors), 'the registration')
        return daemon, program

    def judge_interceptor(self, name):
        daemon, program = self.run_handler(name)
        self.assertEqual(daemon.publish('news', 'weather.wind', {'knots': 17.5}), 1)
        for data, reason in (({'knots': 100}, '100 knots is no weather'), ({}, 'where are the knots?')):
            with self.assertRaises(harness.Refused) as refused:
                daemon.publish('news', 'weather.wind', data)
            self.assertEqual(refused.exception.name, 'Denied')
            self.assertIn(reason, str(refused.exception))
        # Whatever is no number below 100 fails closed, and what comes next is decided as before.
        for text in ('{"knots":1e30}', '{"knots":1e400}', '{"knots":"abc"}', '{"knots":"7"}', '{"knots":{}}', '{"knots":[1]}', '{"knots":true}',
                     '{"knots":null}', '"abc"', '[]', '7', 'null'):
            with self.assertRaises(harness.Refused, msg=text) as refused:
                self.publish_text(daemon, text)
            self.assertEqual(refused.exception.name, 'Denied')
        try:
            self.publish_text(daemon, '{"knots":-1e400}')
            passed = 1
        except harness.Refused as refused:
            self.assertEqual(refused.name, 'Denied')
            passed = 0
        self.assertEqual(daemon.publish('news', 'other', {'knots': 100}), 2 + passed)
        events = daemon.call(daemon.path('news'), f'{harness.NAME}.Bus', 'Fetch', '(tua{sv})', 0, 10, {})[0]
        self.assertEqual([json.loads(event[5]) for event in events], [{'knots': 17}, *([{'knots': -1.7976931348623157e308}] * passed), {'knots': 100}])
        return program

    @staticmethod
    def publish_text(daemon, text):
        return daemon.call(daemon.path('news'), f'{harness.NAME}.Bus', 'Publish', '(ssa{sv})', 'weather.wind', text, {})

    def judge_replacement(self, name, times):
        """@times: how often the program says that it is registered, at each of them."""
        daemon, program = self.run_handler(name, 'drain-window-ms=1000\n')
        for count in range(2, times + 1):
            # As long as somebody has to read what the old one has, whoever calls by name is to try again.
            daemon.call(daemon.path('news'), f'{harness.NAME}.Bus', 'Subscribe', '(asa{sv})', [], {})
            daemon.publish('news', 'other', {})
            daemon.replace()
            program.wait(lambda wanted=count: ''.join(program.lines + program.errors).count('registered') == wanted, f'registration {count}')
        self.assertNotIn('Traceback', ''.join(program.errors))
        return daemon, program

    def test_shell_at_a_replacement(self):
        daemon, _ = self.judge_replacement('shell-handler', 3)
        with self.assertRaises(harness.Refused):
            daemon.publish('news', 'weather.wind', {})

    def test_python_at_a_replacement(self):
        daemon, _ = self.judge_replacement('python-handler', 3)
        with self.assertRaises(harness.Refused):
            daemon.publish('news', 'weather.wind', {})

    def test_c_at_a_replacement(self):
        daemon, program = self.judge_replacement('c-handler', 3)
        ids = [daemon.publish('news', 'weather.wind', {}) for _ in range(2)]
        program.wait(lambda: f'{ids[1]} weather.wind {{}}' in program.lines, 'the last event')
        self.assertEqual([line for line in program.lines if 'weather' in line], [f'{id} weather.wind {{}}' for id in ids])

    def test_without_a_bus(self):
        """What another owner of the name would not mend ends them."""
        daemon = self.daemon('auto-create-buses=false\n')
        for name in ('shell-handler', 'python-handler', 'c-handler'):
            program = self.start_handler(daemon, name)
            self.assertEqual(program.wait_exit(), 1, name)
            self.assertIn('no bus', ''.join(program.errors))
            self.assertNotIn('Traceback', ''.join(program.errors))

    def test_shell(self):
        program = self.judge_interceptor('shell-handler')
        wanted = ['100 knots is no weather\n', 'where are the knots?\n']
        program.wait(lambda: [line for line in program.errors if 'knots' in line][:2] == wanted, 'a line for each reason')

    def test_python(self):
        self.judge_interceptor('python-handler')

    def test_c(self):
        daemon, program = self.run_handler('c-handler')
        for knots in range(3):
            daemon.publish('news', 'weather.wind', {'knots': knots})
        daemon.publish('news', 'other', {})
        program.wait(lambda: len(program.lines) >= 4, 'three events')
        daemon.restart()
        program.wait(lambda: program.lines.count('registered') == 2, 'the second registration')
        last = daemon.publish('news', 'weather.end', {})
        program.wait(lambda: f'{last} weather.end {{}}' in program.lines, 'the last event')
        self.assertEqual(program.lines[:4], ['registered'] + [f'{knots + 1} weather.wind {{"knots": {knots}}}' for knots in range(3)])

    def test_every_program_is_run(self):
        self.assertEqual(sorted(word for word, *_ in PROGRAM.findall(read_page())), ['c-handler', 'python-handler', 'shell-handler'])
        self.assertEqual(read_page().count('\n```') // 2, 3)


if __name__ == '__main__':
    harness.main(harness.missing(('jq', 'jq')))
