# SPDX-License-Identifier: LGPL-2.1-or-later
"""Chromium without a window, driven over the pipe of the DevTools protocol, and an origin server for its pages."""
import functools
import http.server
import json
import os
import shutil
import subprocess
import tempfile
import threading

import harness

PROGRAMS = ('chromium', 'chromium-headless-shell')
# Nothing that Chromium does by itself at its start, neither on the network nor in the profile.
FLAGS = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
         '--disable-component-update', '--disable-sync', '--disable-extensions', '--disable-dev-shm-usage', '--no-proxy-server',
         '--disable-breakpad', '--remote-debugging-pipe']


def find():
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


class Page:
    """One tab."""

    def __init__(self, browser, session):
        self.browser = browser
        self.session = session

    def command(self, method, **parameters):
        return self.browser.command(method, self.session, **parameters)

    def run(self, expression):
        """Runs JavaScript, waits for its promise, returns its value."""
        result = self.command('Runtime.evaluate', expression=expression, awaitPromise=True, returnByValue=True)
        if 'exceptionDetails' in result:
            raise AssertionError(result['exceptionDetails'])
        return result['result'].get('value')

    def requests(self, part):
        """Headers, names in lower case, of the requests that went out to URLs with @part in them."""
        numbers = {event['requestId'] for event in self.browser.events_of(self.session, 'Network.requestWillBeSent')
                   if part in event['request']['url']}
        return [{name.lower(): value for name, value in event['headers'].items()}
                for event in self.browser.events_of(self.session, 'Network.requestWillBeSentExtraInfo') if event['requestId'] in numbers]


class Chromium:
    """The browser with a profile of its own."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix='headway-chromium-')
        # Chromium reads commands from descriptor 3 and writes answers to 4.
        to_browser = [harness.above_standard(end) for end in os.pipe()]
        from_browser = [harness.above_standard(end) for end in os.pipe()]
        command = ['bash', '-c', f'exec "$@" 3<&{to_browser[0]} 4>&{from_browser[1]} {to_browser[0]}<&- {from_browser[1]}>&-', 'bash',
                   find(), *FLAGS, f'--user-data-dir={self.folder}/profile', 'about:blank']
        # DBUS_SESSION_BUS_ADDRESS: it has no business on anybody's message bus.
        environment = {'PATH': os.environ['PATH'], 'HOME': self.folder, 'TMPDIR': self.folder, 'LC_ALL': 'C.UTF-8',
                       'XDG_RUNTIME_DIR': self.folder, 'DBUS_SESSION_BUS_ADDRESS': 'disabled:', 'DBUS_SYSTEM_BUS_ADDRESS': 'disabled:'}
        self.log = open(f'{self.folder}/log', 'w+', encoding='utf-8', errors='replace')
        self.process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
                                        pass_fds=(to_browser[0], from_browser[1]))
        os.close(to_browser[0])
        os.close(from_browser[1])
        self.writer = open(to_browser[1], 'wb', buffering=0)
        self.reader = open(from_browser[0], 'rb', buffering=0)
        self.changed = threading.Condition()
        self.number = 0
        self.answers = {}
        self.events = []
        self.is_gone = False
        self.thread = threading.Thread(target=self.collect, daemon=True)
        self.thread.start()

    def collect(self):
        rest = b''
        while chunk := self.reader.read(65536):
            *messages, rest = (rest + chunk).split(b'\0')
            with self.changed:
                for message in map(json.loads, messages):
                    if 'id' in message:
                        self.answers[message['id']] = message
                    else:
                        self.events.append(message)
                self.changed.notify_all()
        with self.changed:
            self.is_gone = True
            self.changed.notify_all()

    def command(self, method, session=None, **parameters):
        with self.changed:
            self.number += 1
            number = self.number
            message = {'id': number, 'method': method, 'params': parameters, **({'sessionId': session} if session else {})}
            self.writer.write(json.dumps(message).encode() + b'\0')
            if not self.changed.wait_for(lambda: number in self.answers or self.is_gone, harness.PATIENCE):
                raise AssertionError(f'Chromium does not answer {method}: {self.complaint()}')
            if number not in self.answers:
                raise AssertionError(f'Chromium is gone: {self.complaint()}')
            answer = self.answers.pop(number)
        if 'error' in answer:
            raise AssertionError(f'{method}: {answer["error"]}')
        return answer['result']

    def complaint(self):
        self.log.flush()
        self.log.seek(0)
        return self.log.read()[-2000:]

    def events_of(self, session, method):
        with self.changed:
            return [event['params'] for event in self.events if event['method'] == method and event.get('sessionId') == session]

    def open(self, url):
        """Opens @url in a tab and waits until it has loaded."""
        target = self.command('Target.createTarget', url='about:blank')['targetId']
        session = self.command('Target.attachToTarget', targetId=target, flatten=True)['sessionId']
        page = Page(self, session)
        page.command('Page.enable')
        page.command('Network.enable')
        answer = page.command('Page.navigate', url=url)
        if 'errorText' in answer:
            raise AssertionError(f'{url}: {answer["errorText"]}')
        with self.changed:
            if not self.changed.wait_for(lambda: any(event['method'] == 'Page.loadEventFired' and event.get('sessionId') == session
                                                     for event in self.events), harness.PATIENCE):
                raise AssertionError(f'{url} does not load')
        return page

    def tear_down(self):
        try:
            self.command('Browser.close')
            self.process.wait(harness.PATIENCE)
        except (AssertionError, OSError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        self.thread.join()
        self.writer.close()
        self.reader.close()
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)


class Handler(http.server.BaseHTTPRequestHandler):
    def __init__(self, body, *arguments):
        self.body = body
        super().__init__(*arguments)

    def do_GET(self):
        self.send_response(200)
        self.send_header('Content-Type', 'text/html; charset=utf-8')
        self.send_header('Content-Length', str(len(self.body)))
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *arguments):
        pass


class Origin:
    """Serves one page on every path."""

    def __init__(self, body):
        self.server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), functools.partial(Handler, body.encode()))
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def tear_down(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()
