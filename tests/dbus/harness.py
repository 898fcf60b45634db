# SPDX-License-Identifier: LGPL-2.1-or-later
"""A private message bus, the test server on it, clients, and TAP."""
import atexit
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import traceback

try:
    import gi
    gi.require_version('Gio', '2.0')
    from gi.repository import Gio, GLib
except ImportError:
    print('1..0 # SKIP python3-gi is missing')
    sys.exit(77)

NAME = 'org.headway.Headway1'
ROOT = '/org/headway/Headway1'
MANAGER = NAME + '.Manager'
BUS = NAME + '.Bus'
SUBSCRIPTION = NAME + '.Subscription'
PROPERTIES = 'org.freedesktop.DBus.Properties'
OBJECT_MANAGER = 'org.freedesktop.DBus.ObjectManager'
MAX_ID = 2 ** 53 - 1
DEADLINE = 90  # seconds; the only timeout of a test

CONFIG = '''<busconfig>
<listen>unix:path={socket}</listen>
<auth>EXTERNAL</auth>
<policy context="default">
<allow user="*"/><allow own="*"/><allow send_destination="*"/><allow receive_sender="*"/>
<allow send_type="method_call"/><allow send_requested_reply="true"/>
</policy>
{policy}
<limit name="max_incoming_bytes">1000000000</limit>
<limit name="max_outgoing_bytes">1000000000</limit>
<limit name="max_message_size">1000000000</limit>
<limit name="max_connections_per_user">100000</limit>
<limit name="max_completed_connections">100000</limit>
<limit name="max_replies_per_connection">50000</limit>
<limit name="max_match_rules_per_connection">50000</limit>
</busconfig>
'''


class Refused(Exception):
    """An error of the daemon: its name without the prefix, and its message."""

    def __init__(self, name, message):
        super().__init__(f'{name}: {message}')
        self.name = name
        self.message = message


def refused_from(error):
    name = Gio.DBusError.get_remote_error(error)
    if name is None:
        return Refused('local', error.message)  # our own connection is closed
    return Refused(name.removeprefix(NAME + '.Error.'), error.message.removeprefix(f'GDBus.Error:{name}: '))


class Pending:
    """A call that is under way."""

    def __init__(self):
        self.is_done = False
        self.value = None
        self.error = None

    def on_reply(self, connection, result):
        try:
            reply = connection.call_finish(result)
            self.value = reply.unpack()
        except GLib.Error as error:
            self.error = refused_from(error)
        self.is_done = True

    def wait(self):
        wait_until(lambda: self.is_done)
        if self.error is not None:
            raise self.error
        return self.value


def wait_until(condition):
    """Iterates until @condition, which may itself ask the server: it is looked at again at least every 5 ms."""
    context = GLib.MainContext.default()
    deadline = time.monotonic() + DEADLINE
    tick = GLib.timeout_source_new(5)
    tick.set_callback(lambda *_: True)
    tick.attach(context)
    try:
        while not condition():
            if time.monotonic() > deadline:
                raise AssertionError('the deadline has passed')
            context.iteration(True)
    finally:
        tick.destroy()


def settle(milliseconds=60):
    """Lets time pass where the claim is that nothing happens."""
    done = []
    GLib.timeout_add(milliseconds, lambda: done.append(True) and False)
    wait_until(lambda: done)


class Client:
    """One connection of the message bus."""

    def __init__(self, server):
        flags = Gio.DBusConnectionFlags.AUTHENTICATION_CLIENT | Gio.DBusConnectionFlags.MESSAGE_BUS_CONNECTION
        self.connection = Gio.DBusConnection.new_for_address_sync(server.address, flags, None, None)
        self.connection.set_exit_on_close(False)
        self.name = self.connection.get_unique_name()

    def start(self, path, interface, method, signature='()', *values):
        pending = Pending()
        self.connection.call(NAME, path, interface, method, GLib.Variant(signature, values), None,
                             Gio.DBusCallFlags.NONE, DEADLINE * 1000, None, pending.on_reply)
        return pending

    def call(self, path, interface, method, signature='()', *values):
        return self.start(path, interface, method, signature, *values).wait()

    def manager(self, method, signature='()', *values):
        return self.call(ROOT, MANAGER, method, signature, *values)

    def test(self, method, signature='()', *values):
        return self.call('/test', 'org.headway.Test', method, signature, *values)

    def get(self, path, interface, name):
        return self.call(path, PROPERTIES, 'Get', '(ss)', interface, name)[0]

    def get_all(self, path, interface):
        return self.call(path, PROPERTIES, 'GetAll', '(s)', interface)[0]

    def bus(self, name, **options):
        """Creates a bus."""
        path = self.manager('CreateBus', '(sa{sv})', name, variants(options))[0]
        return Bus(self, path)

    def leave(self):
        self.connection.close_sync(None)


class Bus:
    """A bus as one client sees it."""

    def __init__(self, client, path):
        self.client = client
        self.path = path

    def of(self, client):
        return Bus(client, self.path)

    def start(self, method, signature='()', *values):
        return self.client.start(self.path, BUS, method, signature, *values)

    def call(self, method, signature='()', *values):
        return self.start(method, signature, *values).wait()

    def publish(self, topic='a.b', data='1', **options):
        return self.call('Publish', '(ssa{sv})', topic, data, variants(options))

    def publish_many(self, events, **options):
        """@events: (topic, data) or (topic, data, options)."""
        events = [(event[0], event[1], variants(event[2] if len(event) > 2 else {})) for event in events]
        return self.call('PublishMany', '(a(ssa{sv})a{sv})', events, variants(options))

    def publish_count(self, count):
        """The events of the cases: type foo, data 1, serverTimestamp 1, topic left out of the envelope."""
        return self.publish_many([('foo', '1', {'type': 'foo', 'meta': '{"serverTimestamp":1}', 'principal': ''})] * count)

    def subscribe(self, patterns=(), **options):
        path, info = self.call('Subscribe', '(asa{sv})', list(patterns), variants(options))
        return Subscription(self.client, path, info)

    def fetch(self, after_id=0, max_events=1024, **options):
        return self.start_fetch(after_id, max_events, **options).wait()[0]

    def start_fetch(self, after_id=0, max_events=1024, **options):
        return self.start('Fetch', '(tua{sv})', after_id, max_events, variants(options))

    def get(self, name):
        return self.client.get(self.path, BUS, name)


class Subscription:
    """A subscription as one client sees it."""

    def __init__(self, client, path, info=None):
        self.client = client
        self.path = path
        self.info = info

    def of(self, client):
        return Subscription(client, self.path)

    def start(self, method, signature='()', *values):
        return self.client.start(self.path, SUBSCRIPTION, method, signature, *values)

    def call(self, method, signature='()', *values):
        return self.start(method, signature, *values).wait()

    def start_receive(self, max_events=1024, timeout_ms=20000):
        return self.start('Receive', '(ui)', max_events, timeout_ms)

    def receive(self, max_events=1024, timeout_ms=0):
        return self.start_receive(max_events, timeout_ms).wait()[0]

    def drain(self, budget):
        return self.call('Drain', '(t)', budget)[0]

    def open_stream(self, stream_format='ndjson', options=None):
        """Returns the reader's end, whose reads have the one timeout."""
        try:
            reply, fds = self.client.connection.call_with_unix_fd_list_sync(
                NAME, self.path, SUBSCRIPTION, 'OpenStream', GLib.Variant('(sa{sv})', (stream_format, options or {})), None,
                Gio.DBusCallFlags.NONE, DEADLINE * 1000, None, None)
        except GLib.Error as error:
            raise refused_from(error) from None
        end = socket.socket(fileno=fds.get(reply.unpack()[0]))
        end.settimeout(DEADLINE)
        return end

    def get(self, name):
        return self.client.get(self.path, SUBSCRIPTION, name)

    def number(self):
        return int(self.path.rsplit('/', 1)[1])


OPTION_TYPES = {
    'type': 's', 'principal': 's', 'client': 's', 'meta': 's', 'final': 'b', 'seed': 'b', 'mode': 's',
    'last-event-id': 't', 'epoch': 's', 'types': 'as', 'patterns': 'as', 'max-queued': 'u', 'timeout-ms': 'u',
    'budget-bytes': 't', 'eviction': 's', 'scope': 's', 'scope-system': 'b', 'gate': 's',
    'ring-size': 'u', 'ring-max-bytes': 't', 'max-subscribers': 'u', 'max-queued-bytes': 't',
    'channel-capacity': 'u', 'replay-budget-bytes': 't',
}


def variants(options):
    """Options by name, `_` for `-`; a GLib.Variant stays what it is."""
    result = {}
    for key, value in options.items():
        key = key.replace('_', '-')
        if not isinstance(value, GLib.Variant):
            value = GLib.Variant(OPTION_TYPES[key], value)
        result[key] = value
    return result


class Server:
    """The test server on a message bus of its own."""

    def __init__(self, *arguments, policy='', is_stock=False):
        """@policy: more of the message bus's rules; @is_stock: those of a session as they are delivered."""
        self.folder = tempfile.mkdtemp(prefix='headway-dbus-')
        os.chmod(self.folder, 0o755)
        path = os.path.join(self.folder, 'bus')
        config = os.path.join(self.folder, 'bus.conf')
        with open(config, 'w', encoding='utf-8') as file:
            file.write(CONFIG.format(socket=path, policy=policy))
        # As root it complains about a limit that it cannot raise, on a standard error that it would keep open.
        rules = ['--session', '--address=unix:path=' + path] if is_stock else ['--config-file=' + config]
        self.daemon = subprocess.Popen(['dbus-daemon', '--nofork', '--print-address=1', *rules],
                                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.is_stopped = False
        atexit.register(self.stop)
        self.socket = path
        self.address = self.daemon.stdout.readline().strip()
        self.environment = dict(os.environ, DBUS_SESSION_BUS_ADDRESS=self.address)
        self.process = subprocess.Popen([os.environ['HEADWAY_DBUS_TEST_SERVER'], *arguments], env=self.environment,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if self.process.stdout.readline() != 'ready\n':
            raise AssertionError('the test server did not start')

    def client(self):
        return Client(self)

    def run(self, *command):
        """Runs a program on this message bus; returns its output."""
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise AssertionError(done.stderr)
        return done.stdout

    def stop(self):
        """Returns the exit status of the server, which must be 0: sanitizers say what they found by it."""
        if self.is_stopped:
            return 0
        self.is_stopped = True
        status = 1
        if hasattr(self, 'process'):
            self.process.stdin.close()
            status = self.process.wait(DEADLINE)
        self.daemon.terminate()
        self.daemon.wait(DEADLINE)
        shutil.rmtree(self.folder)
        return status


class Suite:
    """Tests of one program, and their TAP. Each gets the shared server and a name for a bus of its own."""

    def __init__(self, *arguments):
        self.arguments = arguments
        self.tests = []

    def test(self, function):
        self.tests.append(function)
        return function

    def main(self):
        server = Server(*self.arguments)
        print(f'1..{len(self.tests) + 1}')
        failed = 0
        for number, test in enumerate(self.tests, 1):
            name = test.__name__.replace('_', '-')
            try:
                problem = test(server, f'bus{number}')
                verdict = 'ok'
            except Exception:  # pylint: disable=broad-except
                problem = traceback.format_exc()
                verdict = 'not ok'
                failed += 1
            skip = f' # SKIP {problem}' if verdict == 'ok' and problem else ''
            print(f'{verdict} {number} - {name}{skip}')
            if verdict != 'ok':
                for line in problem.rstrip().split('\n'):
                    print('# ' + line)
            sys.stdout.flush()
        status = server.stop()
        failed += status != 0
        print(f'{"not ok" if status else "ok"} {len(self.tests) + 1} - the server leaves without a complaint')
        sys.exit(1 if failed else 0)


def expect(name, function, *arguments, says=(), **options):
    """Asserts that a call is refused with the error @name, whose message has all of @says."""
    try:
        value = function(*arguments, **options)
    except Refused as error:
        assert error.name == name, f'{error}, not {name}'
        for text in [says] if isinstance(says, str) else says:
            assert text in error.message, f'"{text}" is not in "{error.message}"'
        return error
    raise AssertionError(f'{value}, not {name}')


def same(found, wanted):
    assert found == wanted, f'{repr(found)[:1000]}, not {repr(wanted)[:1000]}'


def ids(events):
    return [event[0] for event in events]


def short(events):
    """Events as the cases write them: ids of real ones, (type, data) of synthetic ones."""
    return [event[0] if event[0] else (event[2], json.loads(event[5])) for event in events]


# Synthetic events in the notation of the cases.

def resync(reason, last, earliest, **more):
    return 'state_resync_required', {'reason': reason, 'lastDeliveredId': last, 'earliestAvailableId': earliest, **more}


def complete(count, last=None, **more):
    if last is not None:
        more.update(lastReplayedEventId=last, lastEventId=last)
    return 'replay_complete', {'replayedCount': count, **more}


BYTE_CAP = 2097152


def warn(queued, cap, last, size, byte_cap=BYTE_CAP, threshold='frames'):
    return 'slow_client_warning', {'queueSize': queued, 'maxQueued': cap, 'lastEventId': last, 'queuedBytes': size,
                                   'maxQueuedBytes': byte_cap, 'threshold': threshold}


def evict(reason, dropped, queued, cap, size, last_delivered, byte_cap=BYTE_CAP, **more):
    return 'client_evicted', {'reason': reason, 'droppedAfter': dropped, 'queueSize': queued, 'maxQueued': cap,
                              'queuedBytes': size, 'maxQueuedBytes': byte_cap, 'lastDeliveredId': last_delivered, **more}
