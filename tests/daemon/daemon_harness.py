# SPDX-License-Identifier: LGPL-2.1-or-later
"""A private message bus, real headwayd processes, and their clients.

HEADWAYD in the environment is the program. Everything started is stopped by its process id; every
test has a folder of its own.
"""

from __future__ import annotations

import http.client
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import gi

gi.require_version("Gio", "2.0")
from gi.repository import Gio, GLib  # noqa: E402

sys.path.insert(1, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from unittest_tap import diagnose, main  # noqa: E402, F401

# PyGObject fills an enumeration in when it is first asked for, and a second thread sees it half filled: so ask here.
NO_AUTO_START = Gio.DBusCallFlags.NO_AUTO_START
remote_error_of = Gio.DBusError.get_remote_error
strip_remote_error = Gio.DBusError.strip_remote_error

HEADWAYD = os.environ["HEADWAYD"]
NAME = "org.headway.Headway1"
ROOT = "/org/headway/Headway1"
MANAGER = NAME + ".Manager"
BUS = NAME + ".Bus"
SUBSCRIPTION = NAME + ".Subscription"
HANDLER = NAME + ".Handler"
HANDLER_XML = f"""<node><interface name="{HANDLER}"><method name="HandleEvent">
<arg name="event" type="(tsssxsa{{sv}})" direction="in"/><arg name="context" type="a{{sv}}" direction="in"/>
<arg name="verdict" type="s" direction="out"/><arg name="data" type="s" direction="out"/>
<arg name="details" type="a{{sv}}" direction="out"/></method></interface></node>"""
ID_MAX = 2**53 - 1
PATIENCE = 30.0  # seconds until something that must happen counts as missing
# Of the message bus, where nobody owns the name or its owner has gone with the call.
NOBODY_THERE = {
    "org.freedesktop.DBus.Error.ServiceUnknown",
    "org.freedesktop.DBus.Error.NameHasNoOwner",
    "org.freedesktop.DBus.Error.NoReply",
}

CONFIG = """<busconfig>
<type>session</type>
<listen>unix:path={socket}</listen>
<auth>EXTERNAL</auth>
<policy context="default"><allow user="*"/><allow own="*"/><allow send_destination="*"/><allow receive_sender="*"/>
<allow send_type="method_call"/><allow send_requested_reply="true"/></policy>
</busconfig>
"""


def wait_until(condition: Callable[[], Any], what: str, patience: float = PATIENCE) -> Any:
    """For what has no event to wait on: asks until it is so."""
    deadline = time.monotonic() + patience
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: not within {patience} s")
        time.sleep(0.005)
    return value


def read_text(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def path_of_bus(name: str) -> str:
    """As sd_bus_path_encode() does it."""
    def escaped(i: int, c: str) -> str:
        return c if c.isascii() and (c.isalpha() or c.isdigit() and i > 0) else f"_{ord(c):02x}"

    return f"{ROOT}/bus/" + "".join(escaped(i, c) for i, c in enumerate(name))


class MessageBus:
    """A private dbus-daemon, without services to activate."""

    def __init__(self, folder: str):
        config = os.path.join(folder, "message-bus.conf")
        with open(config, "w", encoding="utf-8") as file:
            file.write(CONFIG.format(socket=os.path.join(folder, "message-bus")))
        self.process = subprocess.Popen(
            ["dbus-daemon", "--nofork", "--nosyslog", "--print-address", f"--config-file={config}"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().strip()

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()


class Refused(Exception):
    """An error that a D-Bus call was answered with: its full name, its message."""

    def __init__(self, name: str, message: str):
        super().__init__(f"{name}: {message}")
        self.name = name
        self.message = message

    @property
    def word(self) -> str:
        """`Unavailable` for org.headway.Headway1.Error.Unavailable; other names whole."""
        return self.name.removeprefix(NAME + ".Error.")


class Client:
    """A connection of the message bus. May be used by one thread at a time."""

    def __init__(self, address: str):
        flags = Gio.DBusConnectionFlags.AUTHENTICATION_CLIENT | Gio.DBusConnectionFlags.MESSAGE_BUS_CONNECTION
        self.connection = Gio.DBusConnection.new_for_address_sync(address, flags, None, None)
        self.connection.set_exit_on_close(False)

    def call(self, path: str, interface: str, method: str, signature: str = "()", *values: Any, destination: str = NAME) -> Any:
        try:
            reply = self.connection.call_sync(
                destination, path, interface, method, GLib.Variant(signature, values), None, NO_AUTO_START, int(PATIENCE * 1000), None)
        except GLib.Error as error:
            name = remote_error_of(error)
            if name is None:
                raise
            strip_remote_error(error)
            raise Refused(name, error.message) from None
        return reply.unpack()

    def manager(self, method: str, signature: str = "()", *values: Any) -> Any:
        return self.call(ROOT, MANAGER, method, signature, *values)

    def bus(self, name: str, method: str, signature: str = "()", *values: Any) -> Any:
        return self.call(path_of_bus(name), BUS, method, signature, *values)

    def create(self, name: str, **options: GLib.Variant) -> str:
        return self.manager("CreateBus", "(sa{sv})", name, {key.replace("_", "-"): value for key, value in options.items()})[0]

    def publish(self, name: str, data: str = "1", topic: str = "a.b") -> int:
        return self.bus(name, "Publish", "(ssa{sv})", topic, data, {})[0]

    def publish_many(self, name: str, count: int, data: str = "1", topic: str = "a.b") -> int:
        """Returns the id of the first."""
        return self.bus(name, "PublishMany", "(a(ssa{sv})a{sv})", [(topic, data, {})] * count, {})[0]

    def subscribe(self, name: str) -> str:
        return self.bus(name, "Subscribe", "(asa{sv})", [], {})[0]

    def hold_events(self, name: str, phase: str) -> str:
        """Registers a handler that answers nothing: nobody runs the main loop that its calls come in with."""
        info = Gio.DBusNodeInfo.new_for_xml(HANDLER_XML).interfaces[0]
        self.connection.register_object("/handler", info, lambda *_: None, None, None)
        options = {"phase": GLib.Variant("s", phase), "timeout-ms": GLib.Variant("u", 60_000)}
        return self.bus(name, "RegisterHandler", "(asoa{sv})", [], "/handler", options)[0]

    def metrics(self) -> dict[tuple[str, ...], float]:
        """Name of the metric and its labels → its value."""
        return {(name, *sorted(labels.items())): value for name, labels, value in self.manager("ListMetrics")[0]}

    def receive(self, subscription: str, timeout_ms: int) -> list[Any]:
        return self.call(subscription, SUBSCRIPTION, "Receive", "(ui)", 1024, timeout_ms)[0]

    def get(self, path: str, interface: str, name: str) -> Any:
        return self.call(path, "org.freedesktop.DBus.Properties", "Get", "(ss)", interface, name)[0]

    def list_buses(self) -> dict[str, dict[str, Any]]:
        """Name of the bus → its properties."""
        objects = self.call(ROOT, "org.freedesktop.DBus.ObjectManager", "GetManagedObjects")[0]
        return {interfaces[BUS]["Name"]: interfaces[BUS] for interfaces in objects.values() if BUS in interfaces}

    def owner(self) -> str:
        return self.call("/org/freedesktop/DBus", "org.freedesktop.DBus", "GetNameOwner", "(s)", NAME, destination="org.freedesktop.DBus")[0]

    def leave(self) -> None:
        self.connection.close_sync(None)


class Daemon:
    """One headwayd."""

    def __init__(self, folder: str, address: str, *options: str, state: str = "state", runtime: str = "run",
                 env: Mapping[str, str] | None = None, wrapper: Iterable[str] = (), pass_fds: Iterable[int] = (), log: str = "log"):
        self.socket = os.path.join(folder, runtime, "http.sock")
        self.log = os.path.join(folder, log)
        folders = [f"--state-dir={os.path.join(folder, state)}", f"--runtime-dir={os.path.join(folder, runtime)}"]
        with open(self.log, "ab") as errors:
            self.process = subprocess.Popen(
                [*wrapper, HEADWAYD, f"--bus-address={address}", *folders, *options],
                env={**os.environ, "LC_ALL": "C.UTF-8", **(env or {})}, pass_fds=tuple(pass_fds),
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors)
        self.ready: dict[str, Any] = {}
        self.output = b""

    @property
    def pid(self) -> int:
        return self.process.pid

    def read_line(self) -> bytes:
        """The next line of its output, empty if it ended without one."""
        assert self.process.stdout is not None
        deadline = time.monotonic() + PATIENCE
        while b"\n" not in self.output:
            readable, _, _ = select.select([self.process.stdout], [], [], max(0.0, deadline - time.monotonic()))
            if not readable:
                raise AssertionError(f"headwayd said nothing within {PATIENCE} s: {self.errors()[-2000:]}")
            data = os.read(self.process.stdout.fileno(), 65536)
            if not data:
                return b""
            self.output += data
        line, _, self.output = self.output.partition(b"\n")
        return line

    def wait_ready(self) -> Daemon:
        line = self.read_line()
        if not line:
            raise AssertionError(f"headwayd ended with {self.wait()}: {self.errors()[-2000:]}")
        self.ready = json.loads(line)
        return self

    def errors(self) -> str:
        return read_text(self.log)

    def wait(self, patience: float = PATIENCE) -> int:
        """Its exit status."""
        return self.process.wait(patience)

    def is_running(self) -> bool:
        return self.process.poll() is None

    def kill(self, number: int = signal.SIGKILL) -> None:
        self.process.send_signal(number)

    def stop(self, number: int = signal.SIGTERM, patience: float = PATIENCE) -> int:
        self.kill(number)
        status = self.wait(patience)
        self.close()
        return status

    def close(self) -> None:
        """Whatever state it is in: it is gone afterwards."""
        if self.is_running():
            self.kill()
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()

    def http(self) -> UnixConnection:
        return UnixConnection(self.socket)

    def tcp_address(self) -> tuple[str, int]:
        host, _, port = next(uri for uri in self.ready["http"] if uri.startswith("http://")).removeprefix("http://").rpartition(":")
        return host.strip("[]"), int(port)


class UnixConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: str):
        super().__init__("localhost", timeout=PATIENCE)
        self.path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(PATIENCE)
        self.sock.connect(self.path)


def ask(connection: http.client.HTTPConnection, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
    """The status and the JSON of an answer; @body becomes JSON unless it is bytes or chunks of them."""
    if body is not None and not isinstance(body, bytes) and not hasattr(body, "__next__"):
        body = json.dumps(body).encode()
        headers.setdefault("Content_Type", "application/json")
    connection.request(method, path, body, {key.replace("_", "-"): value for key, value in headers.items()}, encode_chunked=hasattr(body, "__next__"))
    answer = connection.getresponse()
    text = answer.read()
    return answer.status, json.loads(text) if text else None


class Stream:
    """A reader of the session stream, on a raw socket."""

    def __init__(self, connected: socket.socket, bus: str, *headers: str):
        self.socket = connected
        self.socket.settimeout(PATIENCE)
        self.rest = b""
        self.body = b""
        self.is_complete = False  # the final chunk has come
        self.is_at_end = False    # and so has the end of the connection
        self.socket.sendall("\r\n".join([f"GET /session/{bus}/events HTTP/1.1", "Host: localhost", *headers, "", ""]).encode())
        while b"\r\n\r\n" not in self.rest:
            self.receive()
            if self.is_at_end:
                raise ConnectionError("the stream ended inside its header")
        header, _, self.rest = self.rest.partition(b"\r\n\r\n")
        self.header = header.decode()
        self.status = int(self.header.split(" ")[1])

    @classmethod
    def over_unix(cls, path: str, bus: str, *headers: str) -> Stream:
        connected = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connected.connect(path)
            return cls(connected, bus, *headers)
        except BaseException:
            connected.close()
            raise

    def receive(self) -> None:
        data = self.socket.recv(65536)
        self.is_at_end = not data
        self.rest += data

    def decode(self) -> None:
        """Moves whole chunks from `rest` to `body`."""
        while not self.is_complete:
            size, found, after = self.rest.partition(b"\r\n")
            if not found:
                return
            length = int(size, 16)
            if len(after) < length + 2:
                return
            if after[length:length + 2] != b"\r\n":
                raise AssertionError(f"no CRLF behind a chunk of {length}")
            self.body += after[:length]
            self.rest = after[length + 2:]
            self.is_complete = length == 0

    def read(self) -> bool:
        """Waits for more; False at the end."""
        if not self.is_at_end:
            self.receive()
            self.decode()
        return not self.is_at_end

    def read_to_end(self) -> None:
        self.decode()
        while self.read():
            pass

    def frames(self) -> list[dict[str, Any]]:
        """The envelopes of the whole frames so far."""
        self.decode()
        whole = self.body.rpartition(b"\n\n")[0].decode()
        return [json.loads(line[6:]) for line in whole.split("\n") if line.startswith("data: ")]

    def read_frames(self, count: int) -> list[dict[str, Any]]:
        while len(self.frames()) < count:
            if not self.read():
                raise AssertionError(f"the stream ended after {len(self.frames())} of {count} frames")
        return self.frames()

    def close(self) -> None:
        self.socket.close()


def summary(frames: Iterable[Mapping[str, Any]]) -> str:
    """In the notation of sse-contract.md 6: `resync(ring_evicted,50,10001) #10001 rc(1)`."""
    words = []
    for frame in frames:
        data = frame["data"]
        if frame["type"] == "state_resync_required":
            detail = f",{data['detail']}" if "detail" in data else ""
            words.append(f"resync({data['reason']},{data['lastDeliveredId']},{data['earliestAvailableId']}{detail})")
        elif frame["type"] == "replay_complete":
            words.append(f"rc({data['replayedCount']})")
        elif "id" in frame:
            words.append(f"#{frame['id']}")
        else:
            words.append(frame["type"])
    return " ".join(words)


class Case(unittest.TestCase):
    """A test with a folder, a message bus, and daemons of its own."""

    def setUp(self) -> None:
        self.folder = tempfile.mkdtemp(prefix="headway-daemon-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.message_bus = MessageBus(self.folder)
        self.addCleanup(self.message_bus.stop)

    def start(self, *options: str, **arguments: Any) -> Daemon:
        """Started, maybe not ready."""
        daemon = Daemon(self.folder, arguments.pop("address", self.message_bus.address), *options, **arguments)
        self.addCleanup(daemon.close)
        return daemon

    def run_daemon(self, *options: str, **arguments: Any) -> Daemon:
        """Started and ready."""
        return self.start(*options, **arguments).wait_ready()

    def client(self) -> Client:
        client = Client(self.message_bus.address)
        self.addCleanup(client.connection.close, None, None)
        return client

    def stream(self, daemon: Daemon, bus: str, *headers: str) -> Stream:
        stream = Stream.over_unix(daemon.socket, bus, *headers)
        self.addCleanup(stream.close)
        self.assertEqual(stream.status, 200, stream.header)
        return stream

    def config(self, text: str) -> str:
        """Puts @text into the key file, whole or not at all; returns its path."""
        path = os.path.join(self.folder, "headway.conf")
        with open(path + ".new", "w", encoding="utf-8") as file:
            file.write("[headway]\n" + text)
        os.rename(path + ".new", path)
        return path

    def assert_clean(self, daemon: Daemon, number: int = signal.SIGTERM, patience: float = PATIENCE) -> None:
        self.assertEqual(daemon.stop(number, patience), 0, daemon.errors()[-2000:])

    def assert_refused(self, word: str, func: Callable[..., Any], *arguments: Any) -> Refused:
        with self.assertRaises(Refused) as raised:
            func(*arguments)
        self.assertEqual(raised.exception.word, word, raised.exception)
        return raised.exception

    def assert_fails(self, daemon: Daemon, status: int, *words: str) -> str:
        """It ends with @status, says nothing on its output and why on one line that has all @words."""
        self.assertEqual(daemon.read_line(), b"")
        self.assertEqual(daemon.wait(), status, daemon.errors())
        said = daemon.errors().splitlines()
        # Besides where its settings come from, and what it made of them.
        lines = [line for line in said if line and "built-in defaults hold" not in line and ": limits: " not in line]
        self.assertEqual(len(lines), 1, said)
        self.assertTrue(lines[0].startswith("headwayd: "), said)
        for word in words:
            self.assertIn(word, lines[0])
        return lines[0]


def start_thread(func: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=func, daemon=True)
    thread.start()
    return thread
