# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the tests with published clients share: a message bus and a headwayd of their own, publishing, node programs.

Environment: HEADWAYD is the daemon; HEADWAY_TEST_VERBOSE lets its messages through.
"""
import fcntl
import filecmp
import http.client
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import gi

gi.require_version('Gio', '2.0')
from gi.repository import Gio, GLib  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(1, os.path.dirname(HERE))
from unittest_tap import main  # noqa: E402, F401

NAME = 'org.headway.Headway1'
ROOT = '/org/headway/Headway1'
NODE_MAJOR = 20
PATIENCE = 30  # seconds until something that must happen counts as missing

OPTION_TYPES = {'type': 's', 'principal': 's', 'meta': 's', 'seed': 'b', 'ring-size': 'u', 'ring-max-bytes': 't',
                'max-subscribers': 'u', 'max-queued-bytes': 't', 'replay-budget-bytes': 't'}


def wait_for(condition, what):
    """Waits for what only asking can tell; returns what @condition found."""
    deadline = time.monotonic() + PATIENCE
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > deadline:
            raise AssertionError(f'{what} did not happen')
        time.sleep(0.01)


def free_port():
    """A port that a daemon can have again after a restart: none of those the kernel gives to port 0 and to clients."""
    with open('/proc/sys/net/ipv4/ip_local_port_range', encoding='ascii') as file:
        first = int(file.read().split()[0])
    while True:
        port = random.randrange(min(20000, first // 2), first)
        with socket.socket() as probe:
            try:
                probe.bind(('127.0.0.1', port))
                return port
            except OSError:
                continue


def above_standard(descriptor):
    """Moves @descriptor out of the way of those that a program expects at a certain number."""
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 20)
    os.close(descriptor)
    return moved


class Refused(Exception):
    """An error of the daemon on D-Bus."""

    def __init__(self, error):
        self.name = (Gio.DBusError.get_remote_error(error) or '').removeprefix(NAME + '.Error.')
        super().__init__(error.message)


def variants(options):
    options = {key.replace('_', '-'): value for key, value in options.items()}
    return {key: GLib.Variant(OPTION_TYPES[key], value) for key, value in options.items()}


class Answer:
    """An HTTP answer, read to its end."""

    def __init__(self, response):
        self.status = response.status
        self.headers = response.headers
        self.body = response.read()

    def json(self):
        return json.loads(self.body)


class Daemon:
    """A headwayd with its state on a message bus of its own. It can be stopped, killed and started again."""

    def __init__(self, settings='', arguments=(), is_activated=False):
        """@is_activated: the listening socket is ours and stays when the daemon goes, as systemd does it."""
        self.folder = tempfile.mkdtemp(prefix='headway-clients-')
        self.arguments = list(arguments)
        self.process = None
        self.connection = None
        self.listener = None
        self.message_bus = subprocess.Popen(
            ['dbus-daemon', '--session', '--nofork', '--nopidfile', '--nosyslog', '--print-address',
             f'--address=unix:path={self.folder}/bus'], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.address = self.message_bus.stdout.readline().strip()
        self.environment = dict(os.environ, DBUS_SESSION_BUS_ADDRESS=self.address, LC_ALL='C.UTF-8', HOME=self.folder,
                                XDG_RUNTIME_DIR=self.folder, XDG_STATE_HOME=self.folder, XDG_CONFIG_HOME=self.folder)
        if settings:
            with open(f'{self.folder}/headway.conf', 'w', encoding='utf-8') as file:
                file.write('[headway]\n' + settings)
            self.arguments += ['--config', f'{self.folder}/headway.conf']
        if is_activated:
            self.listener = socket.create_server(('127.0.0.1', 0), backlog=128)
            self.port = self.listener.getsockname()[1]
        else:
            self.port = free_port()
        self.url = f'http://127.0.0.1:{self.port}'
        try:
            self.start()
        except Exception:
            self.tear_down()
            raise

    def start(self, *more):
        command = [os.environ['HEADWAYD'], '--state-dir', f'{self.folder}/state', '--runtime-dir', f'{self.folder}/run', *self.arguments, *more]
        descriptors = ()
        environment = self.environment
        if self.listener is None:
            command += ['--http-address', f'127.0.0.1:{self.port}']
        else:
            inherited = above_standard(os.dup(self.listener.fileno()))
            descriptors = (inherited,)
            environment = dict(environment, LISTEN_FDS='1', LISTEN_FDNAMES='http')
            command = ['bash', '-c', f'export LISTEN_PID=$$; exec "$@" 3<&{inherited} {inherited}<&-', 'bash', *command]
        errors = None if os.environ.get('HEADWAY_TEST_VERBOSE') else subprocess.DEVNULL
        self.process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True, pass_fds=descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        line = self.process.stdout.readline()
        if not line:
            status = self.process.wait(PATIENCE)
            self.process.stdout.close()
            self.process = None
            raise AssertionError(f'headwayd did not start: exit status {status}')
        self.ready = json.loads(line)
        self.token = 'unused'
        if self.ready.get('tokenFile'):
            with open(self.ready['tokenFile'], encoding='ascii') as file:
                self.token = file.read().strip()
        if self.connection is None:
            flags = Gio.DBusConnectionFlags.AUTHENTICATION_CLIENT | Gio.DBusConnectionFlags.MESSAGE_BUS_CONNECTION
            self.connection = Gio.DBusConnection.new_for_address_sync(self.address, flags, None, None)
            self.connection.set_exit_on_close(False)

    def stop(self, number=signal.SIGTERM):
        if self.process is None:
            return
        process, self.process = self.process, None
        process.send_signal(number)
        try:
            status = process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise AssertionError('headwayd did not end') from None
        finally:
            process.stdout.close()
        if number == signal.SIGTERM and status != 0:
            raise AssertionError(f'headwayd ended with {status}')

    def restart(self, number=signal.SIGTERM):
        self.stop(number)
        self.start()

    def replace(self):
        """Another one takes over, and the old one leaves."""
        old = self.process
        try:
            self.start('--replace')
            old.wait(PATIENCE)
        finally:
            old.kill()
            old.wait()
            old.stdout.close()

    def tear_down(self):
        """Ends everything; the daemon must leave without a complaint, sanitizers say theirs by its status."""
        try:
            if self.process is not None:
                self.process.send_signal(signal.SIGCONT)
            self.stop()
        finally:
            if self.connection is not None and not self.connection.is_closed():
                self.connection.close_sync(None)
            self.message_bus.kill()
            self.message_bus.wait()
            self.message_bus.stdout.close()
            if self.listener is not None:
                self.listener.close()
            shutil.rmtree(self.folder)

    # D-Bus

    def call(self, path, interface, method, signature='()', *values):
        try:
            return self.connection.call_sync(NAME, path, interface, method, GLib.Variant(signature, values), None,
                                             Gio.DBusCallFlags.NO_AUTO_START, PATIENCE * 1000, None).unpack()
        except GLib.Error as error:
            raise Refused(error) from None

    def bus(self, name, **options):
        """Creates a bus; returns its object path."""
        return self.call(ROOT, f'{NAME}.Manager', 'CreateBus', '(sa{sv})', name, variants(options))[0]

    def path(self, name):
        return f'{ROOT}/bus/' + ''.join(c if c.isalnum() else f'_{ord(c):02x}' for c in name)

    def publish(self, bus, topic='foo', data=1, **options):
        """Publishes one event over D-Bus in the name of the system; returns its id."""
        options = {'type': 'foo', 'principal': '', **options}
        return self.call(self.path(bus), f'{NAME}.Bus', 'Publish', '(ssa{sv})', topic, json.dumps(data), variants(options))[0]

    def publish_many(self, bus, values, **options):
        """Publishes these values in one call; returns their ids."""
        events = [('foo', json.dumps(value), variants({'type': 'foo', 'principal': ''})) for value in values]
        first, count, _ = self.call(self.path(bus), f'{NAME}.Bus', 'PublishMany', '(a(ssa{sv})a{sv})', events, variants(options))
        return list(range(first, first + count))

    def get(self, bus, name):
        return self.call(self.path(bus), 'org.freedesktop.DBus.Properties', 'Get', '(ss)', f'{NAME}.Bus', name)[0]

    def subscribers(self, bus):
        return self.get(bus, 'SubscriberCount')

    def wait_subscribers(self, bus, count):
        wait_for(lambda: self.subscribers(bus) == count, f'{count} subscribers')

    # HTTP

    def http(self, method, path, body=None, **headers):
        connection = http.client.HTTPConnection('127.0.0.1', self.port, timeout=PATIENCE)
        headers = {'Authorization': f'Bearer {self.token}', **headers}
        if body is not None:
            headers['Content-Type'] = 'application/json'
            body = json.dumps(body)
        try:
            connection.request(method, path, body, headers)
            return Answer(connection.getresponse())
        finally:
            connection.close()

    def post(self, bus, data, topic='foo', **members):
        """Publishes one event over HTTP in the name of the system; returns its id."""
        answer = self.http('POST', f'/session/{bus}/events', {'data': data, 'type': 'foo', 'topic': topic, 'principal': None, **members})
        if answer.status != 200:
            raise AssertionError(f'{answer.status} {answer.body}')
        return answer.json()['id']

    def open_stream(self, bus):
        """Opens a stream and reads its header; returns the socket."""
        stream = socket.create_connection(('127.0.0.1', self.port), timeout=PATIENCE)
        stream.sendall(f'GET /session/{bus}/events HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nAuthorization: Bearer {self.token}\r\n\r\n'.encode())
        head = b''
        while b'\r\n\r\n' not in head:
            head += stream.recv(4096)
        if not head.startswith(b'HTTP/1.1 200 '):
            raise AssertionError(head)
        return stream

    def connections(self):
        """States of the TCP connections at the daemon's side, as /proc/net/tcp writes them: 01 is established."""
        with open('/proc/net/tcp', encoding='ascii') as file:
            rows = [line.split() for line in file][1:]
        return [row[3] for row in rows if row[1].endswith(f':{self.port:04X}') and row[3] != '0A']


class Program:
    """A running program; its standard output and standard error, line by line. It goes with all that it started."""

    def __init__(self, test, command, environment, folder=None):
        self.process = subprocess.Popen(command, env=environment, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, start_new_session=True)
        self.lines = []
        self.errors = []
        self.changed = threading.Condition()
        self.threads = [threading.Thread(target=self.collect, args=pair, daemon=True)
                        for pair in ((self.process.stdout, self.take_line), (self.process.stderr, self.errors.append))]
        for thread in self.threads:
            thread.start()
        test.addCleanup(self.stop)

    def take_line(self, line):
        self.lines.append(line.removesuffix('\n'))

    def collect(self, stream, take):
        for line in stream:
            with self.changed:
                take(line)
                self.changed.notify_all()

    def wait(self, condition, what):
        with self.changed:
            if not self.changed.wait_for(condition, PATIENCE):
                raise AssertionError(f'{what} did not come; last lines {self.lines[-5:]}, stderr {"".join(self.errors)}')

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)
        wait_for(lambda: self.state() == 'T', 'stopping the reader')

    def resume(self):
        self.process.send_signal(signal.SIGCONT)

    def state(self):
        with open(f'/proc/{self.process.pid}/stat', encoding='ascii') as file:
            return file.read().rpartition(')')[2].split()[0]

    def wait_exit(self):
        try:
            status = self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            raise AssertionError(f'the client did not end; last lines {self.lines[-5:]}') from None
        for thread in self.threads:
            thread.join(PATIENCE)
        return status

    def stop(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        for thread in self.threads:
            thread.join()
        self.process.stdout.close()
        self.process.stderr.close()


class Node(Program):
    """A running program of node that prints one JSON object a line."""

    def __init__(self, test, script, *arguments):
        environment = {key: value for key, value in os.environ.items() if not key.lower().endswith('_proxy')}
        super().__init__(test, [shutil.which('node'), os.path.join(HERE, script), *map(str, arguments)], environment)

    def take_line(self, line):
        try:
            self.lines.append(json.loads(line))
        except ValueError:
            self.errors.append(f'no JSON: {line[:200]}')

    def of(self, kind, **members):
        """The lines of that kind, and with those members."""
        with self.changed:
            lines = list(self.lines)
        return [line for line in lines if line['kind'] == kind and all(line.get(key) == value for key, value in members.items())]

    def wait_lines(self, kind, count=1, **members):
        self.wait(lambda: len(self.of(kind, **members)) >= count, f'{count} lines of {kind} {members}')
        return self.of(kind, **members)


class Case(unittest.TestCase):
    """A test with daemons that go when it is over."""

    maxDiff = 4000

    def daemon(self, *arguments, **options):
        daemon = Daemon(*arguments, **options)
        self.addCleanup(daemon.tear_down)
        return daemon


class SharedCase(Case):
    """Tests that share one daemon; each has buses of its own."""

    settings = ''

    @classmethod
    def setUpClass(cls):
        cls.shared = Daemon(cls.settings)
        cls.addClassCleanup(cls.shared.tear_down)


def missing(*programs, has_packages=False):
    """Says what a machine lacks of what these tests need, else an empty string."""
    for program, package in programs:
        if shutil.which(program) is None:
            return f'no {program}: scripts/install-packages.sh clients (package {package})'
    if has_packages:
        version = subprocess.run(['node', '--version'], capture_output=True, text=True, check=True).stdout.strip()
        if int(version.removeprefix('v').partition('.')[0]) < NODE_MAJOR:
            return f'node {version} is too old, the published clients want {NODE_MAJOR}'
        mark = os.path.join(HERE, 'node_modules', '.headway-lock')
        lock = os.path.join(HERE, 'package-lock.json')
        if not os.path.exists(mark) or not filecmp.cmp(mark, lock, shallow=False):
            return 'the published clients are not installed: scripts/install-npm.sh'
    return ''
