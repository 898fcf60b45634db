# SPDX-License-Identifier: LGPL-2.1-or-later
"""Handlers for tests: objects of a connection that answer when and as the test says, and programs that can be frozen."""
import atexit
import subprocess
import sys

from gi.repository import Gio, GLib

from harness import DEADLINE, NAME, wait_until

INTERFACE = NAME + '.Handler'
REGISTRATION = NAME + '.HandlerRegistration'
XML = f'''<node><interface name="{INTERFACE}"><method name="HandleEvent">
<arg name="event" type="(tsssxsa{{sv}})" direction="in"/><arg name="context" type="a{{sv}}" direction="in"/>
<arg name="verdict" type="s" direction="out"/><arg name="data" type="s" direction="out"/>
<arg name="details" type="a{{sv}}" direction="out"/></method></interface></node>'''
INFO = Gio.DBusNodeInfo.new_for_xml(XML).interfaces[0]
OPTIONS = {'priority': 'u', 'phase': 's', 'on-error': 's', 'timeout-ms': 'u', 'name': 's', 'parallel': 'u'}


class Call:
    """One HandleEvent() that came in."""

    def __init__(self, invocation, event, context):
        self.invocation = invocation
        self.event = event
        self.context = context
        self.id, self.topic, _, self.principal, _, self.data, _ = event

    def answer(self, verdict='continue', data=''):
        self.invocation.return_value(GLib.Variant('(ssa{sv})', (verdict, data, {})))

    def fail(self, name='org.example.Failed'):
        self.invocation.return_dbus_error(name, 'the test says so')


class Handler:
    """One registered object. @answer: called with each Call; without it calls wait in `calls` for the test."""
    objects = 0

    def __init__(self, bus, patterns=(), answer=None, **options):
        Handler.objects += 1
        self.path = options.pop('path', f'/handler{Handler.objects}')
        self.calls = []
        self.bus = bus
        self.client = bus.client
        self.reply = answer
        self.client.connection.register_object(self.path, INFO, self.on_call, None, None)
        options = {key.replace('_', '-'): value for key, value in options.items()}
        options = {key: value if isinstance(value, GLib.Variant) else GLib.Variant(OPTIONS[key], value)
                   for key, value in options.items()}
        self.registration = bus.call('RegisterHandler', '(asoa{sv})', list(patterns), self.path, options)[0]

    def on_call(self, _connection, _sender, _path, _interface, _method, parameters, invocation):
        call = Call(invocation, *parameters.unpack())
        self.calls.append(call)
        if self.reply is not None:
            self.reply(call)

    def wait(self, count):
        """The first @count calls."""
        wait_until(lambda: len(self.calls) >= count)
        return self.calls[:count]

    def get(self, name):
        return self.client.get(self.registration, REGISTRATION, name)

    def start_unregister(self):
        return self.client.start(self.registration, REGISTRATION, 'Unregister')

    def ids(self):
        return [call.id for call in self.calls]

    def data(self):
        return [call.data for call in self.calls]


def verdict(word='continue', data=''):
    return lambda call: call.answer(word, data)


PROGRAM = """
import sys
from gi.repository import Gio, GLib
address, name, bus, pattern, phase, timeout_ms, xml = sys.argv[1:]
connection = Gio.DBusConnection.new_for_address_sync(
    address, Gio.DBusConnectionFlags.AUTHENTICATION_CLIENT | Gio.DBusConnectionFlags.MESSAGE_BUS_CONNECTION, None, None)

def on_call(connection, sender, path, interface, method, parameters, invocation):
    invocation.return_value(GLib.Variant('(ssa{sv})', ('continue', '"seen"', {})))

connection.register_object('/h', Gio.DBusNodeInfo.new_for_xml(xml).interfaces[0], on_call, None, None)
options = {'phase': GLib.Variant('s', phase), 'timeout-ms': GLib.Variant('u', int(timeout_ms))}
connection.call_sync(name, bus, name + '.Bus', 'RegisterHandler', GLib.Variant('(asoa{sv})', ([pattern], '/h', options)),
                     None, 0, -1, None)
print('ready', flush=True)
GLib.MainLoop().run()
"""


class Program:
    """A handler in a process of its own, which can be frozen and killed. It makes "seen" of all data."""

    def __init__(self, server, bus, pattern, phase='pre', timeout_ms=300):
        self.process = subprocess.Popen(
            [sys.executable, '-c', PROGRAM, server.address, NAME, bus.path, pattern, phase, str(timeout_ms), XML],
            stdout=subprocess.PIPE, text=True)
        atexit.register(self.stop)
        assert self.process.stdout.readline() == 'ready\n'

    def signal(self, number):
        self.process.send_signal(number)

    def stop(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(DEADLINE)
        self.process.stdout.close()
