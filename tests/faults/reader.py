#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""reader.py ADDRESS HTTP-SOCKET BUS WAY MODE MAX-QUEUED SIZE: a subscriber in a process of its own, which can be stopped.

WAY: receive, signals, stream, sse, or handler, which has no mode and is called with each event. Each event of the topic `mark`
is told on standard output as a line of JSON, with the books up to it: {"mark", "id", "count", "lost", "words", "broken"}. Between
two marks every id must be delivered, or told as lost by a gap or a resync before the next event that is delivered; handlers
are told at the next call, which may be earlier. A subscription that ends is taken up again behind the last id. Standard
input holds it: its end ends the reader.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import gi

gi.require_version("Gio", "2.0")
from gi.repository import Gio, GLib  # noqa: E402

NAME = "org.headway.Headway1"
ROOT = "/org/headway/Headway1"
SUBSCRIPTION = NAME + ".Subscription"
WINDOW = 64
FOREVER = 2**31 - 1  # milliseconds, G_MAXINT: a call that was under way while this process was stopped is not late
BROKEN_MAX = 10
GONE = ("Closed", "UnknownMethod", "UnknownObject", "UnknownInterface")

HANDLER = f"""<node><interface name="{NAME}.Handler"><method name="HandleEvent">
<arg name="event" type="(tsssxsa{{sv}})" direction="in"/><arg name="context" type="a{{sv}}" direction="in"/>
<arg name="verdict" type="s" direction="out"/><arg name="data" type="s" direction="out"/>
<arg name="details" type="a{{sv}}" direction="out"/></method></interface></node>"""


@dataclass
class Loss:
    """Told, and not yet skipped: how many of these ids."""
    count: int
    first: int
    last: int


class Books:
    """What came, in order, and what is known to be lost."""

    def __init__(self, size: int):
        self.size = size
        self.last: int | None = None
        self.count = 0
        self.lost = 0
        self.told: list[Loss] = []
        self.words: list[str] = []
        self.broken: list[str] = []

    def complain(self, text: str) -> None:
        if len(self.broken) < BROKEN_MAX:
            self.broken.append(text)

    def take(self, number: int, kind: str, topic: str, data: str) -> None:
        if number == 0:
            self.take_synthetic(kind, json.loads(data))
            return
        if self.last is not None:
            self.skip(self.last + 1, number)
        self.last = number
        self.count += 1
        if topic == "mark":
            self.say(mark=json.loads(data), id=number)
        elif len(data) != self.size:
            self.complain(f"{number} has {len(data)} bytes of data, not {self.size}")

    def skip(self, first: int, end: int) -> None:
        """The ids from first to before end did not come: each must have been told as lost, and none that came."""
        missing = end - first
        for loss in self.told:
            if loss.first < end and loss.last >= first:
                known = min(missing, loss.count)
                loss.count -= known
                missing -= known
                self.lost += known
        if missing > 0:
            self.complain(f"{missing} of the ids from {first} to {end - 1} were not told as lost")
        for loss in self.told:
            if loss.last < end and loss.count > 0:
                self.complain(f"{loss.count} told as lost of the ids from {loss.first} to {loss.last} came")
        self.told = [loss for loss in self.told if loss.last >= end and loss.count > 0]

    def take_synthetic(self, kind: str, data: dict[str, Any]) -> None:
        if kind == "gap":
            self.told.append(Loss(data["count"], data["firstId"], data["lastId"]))
            kind = f"gap {data['reason']}"
        elif kind == "state_resync_required" and self.last is not None:
            next_id = data["earliestAvailableId"]
            self.told.append(Loss(next_id - self.last - 1, self.last + 1, next_id - 1))
        if kind not in self.words:
            self.words.append(kind)

    def say(self, **more: Any) -> None:
        print(json.dumps({**more, "count": self.count, "lost": self.lost, "words": self.words, "broken": self.broken}), flush=True)
        self.words = []

    def take_event(self, event: Any) -> None:
        """As D-Bus has them."""
        self.take(event[0], event[2], event[1], event[5])

    def take_line(self, line: bytes) -> None:
        """An envelope; `seq` is the id on routed streams."""
        envelope = json.loads(line)
        data = json.dumps(envelope["data"], separators=(",", ":"))
        number = envelope.get("seq", envelope.get("id", 0))
        self.take(number, envelope["type"], envelope.get("topic", envelope["type"]), data)


class Reader:
    def __init__(self, address: str, http_socket: str, bus: str, mode: str, max_queued: int, books: Books):
        flags = Gio.DBusConnectionFlags.AUTHENTICATION_CLIENT | Gio.DBusConnectionFlags.MESSAGE_BUS_CONNECTION
        self.connection = Gio.DBusConnection.new_for_address_sync(address, flags, None, None)
        self.connection.set_exit_on_close(False)
        self.http_socket = http_socket
        self.bus = bus
        self.bus_path = f"{ROOT}/bus/{bus}"
        self.mode = mode
        self.max_queued = max_queued
        self.books = books
        self.path = ""

    def call(self, path: str, interface: str, method: str, signature: str, *values: Any) -> Any:
        return self.connection.call_sync(NAME, path, interface, method, GLib.Variant(signature, values), None,
                                         Gio.DBusCallFlags.NO_AUTO_START, FOREVER, None).unpack()

    def subscribe(self, **options: GLib.Variant) -> None:
        if self.mode == "stream":
            options["max-queued"] = GLib.Variant("u", self.max_queued)
        options["mode"] = GLib.Variant("s", self.mode)
        self.path = self.call(self.bus_path, NAME + ".Bus", "Subscribe", "(asa{sv})", [],
                              {key.replace("_", "-"): value for key, value in options.items()})[0]

    def ready(self) -> None:
        print(json.dumps({"ready": self.connection.get_unique_name()}), flush=True)

    def is_gone(self, error: GLib.Error) -> bool:
        return any((Gio.DBusError.get_remote_error(error) or "").endswith("." + word) for word in GONE)

    def receive(self) -> None:
        """Until the subscription has ended and is read."""
        while True:
            try:
                events = self.call(self.path, SUBSCRIPTION, "Receive", "(ui)", 1024, 20000)[0]
            except GLib.Error as error:
                if not self.is_gone(error):
                    raise
                return
            for event in events:
                self.books.take_event(event)

    def read_receive(self) -> None:
        self.subscribe()
        self.ready()
        self.receive()

    def read_signals(self) -> None:
        self.subscribe()
        loop = GLib.MainLoop()

        def on_acknowledged(_connection: Gio.DBusConnection, result: Gio.AsyncResult) -> None:
            try:
                self.connection.call_finish(result)
            except GLib.Error as error:
                if not self.is_gone(error):
                    self.books.complain(error.message)
                loop.quit()

        def on_event(*arguments: Any) -> None:
            sequence, event = arguments[5].unpack()
            self.books.take_event(event)
            if event[2] == "client_evicted":
                loop.quit()
            if sequence % (WINDOW // 4) == 0:
                self.connection.call(NAME, self.path, SUBSCRIPTION, "Acknowledge", GLib.Variant("(t)", (sequence,)), None,
                                     Gio.DBusCallFlags.NO_AUTO_START, FOREVER, None, on_acknowledged)

        self.connection.signal_subscribe(None, SUBSCRIPTION, "Event", self.path, None, Gio.DBusSignalFlags.NO_MATCH_RULE, on_event)
        self.call(self.path, SUBSCRIPTION, "StartSignals", "(u)", WINDOW)
        self.ready()
        loop.run()

    def read_stream(self) -> None:
        self.subscribe()
        reply, fds = self.connection.call_with_unix_fd_list_sync(
            NAME, self.path, SUBSCRIPTION, "OpenStream", GLib.Variant("(sa{sv})", ("ndjson", {})), None,
            Gio.DBusCallFlags.NO_AUTO_START, FOREVER, None, None)
        self.ready()
        with socket.socket(fileno=fds.get(reply.unpack()[0])) as end, end.makefile("rb") as lines:
            for line in lines:
                self.books.take_line(line)

    def read_sse(self) -> None:
        connection = http.client.HTTPConnection("localhost")
        connection.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.sock.connect(self.http_socket)
        cap = f"&maxQueued={self.max_queued}" if self.mode == "stream" else ""
        connection.request("GET", f"/session/{self.bus}/events?mode={self.mode}{cap}")
        answer = connection.getresponse()
        if answer.status != 200:
            raise RuntimeError(f"{answer.status} {answer.read()!r}")
        self.ready()
        for line in self.sse_lines(answer):
            if line.startswith(b"data: "):
                self.books.take_line(line[6:])

    @staticmethod
    def sse_lines(answer: http.client.HTTPResponse) -> Iterator[bytes]:
        """Of whole frames."""
        rest = b""
        while True:
            try:
                piece = answer.read1(65536)
            except (http.client.HTTPException, ConnectionError):
                return
            if not piece:
                return
            whole, separator, rest = (rest + piece).rpartition(b"\n\n")
            if separator:
                yield from whole.split(b"\n")

    def read_handler(self) -> None:
        """Never ends."""
        def on_call(*arguments: Any) -> None:
            event, context = arguments[5].unpack()
            if "lost" in context:
                self.books.take_synthetic("gap", json.loads(context["lost"]))
            self.books.take_event(event)
            arguments[6].return_value(GLib.Variant("(ssa{sv})", ("continue", "", {})))

        self.connection.register_object("/handler", Gio.DBusNodeInfo.new_for_xml(HANDLER).interfaces[0], on_call, None, None)
        self.call(self.bus_path, NAME + ".Bus", "RegisterHandler", "(asoa{sv})", [], "/handler", {})
        self.ready()
        GLib.MainLoop().run()

    def resume(self) -> None:
        if self.books.last is None:
            return
        self.mode = "stream"
        self.max_queued = 65536
        self.books.words.append("resumed")
        self.subscribe(last_event_id=GLib.Variant("t", self.books.last))
        self.receive()


def main() -> None:
    address, http_socket, bus, way, mode, max_queued, size = sys.argv[1:]
    reader = Reader(address, http_socket, bus, mode, int(max_queued), Books(int(size)))

    def leave_with_parent() -> None:
        sys.stdin.read()
        os._exit(0)

    threading.Thread(target=leave_with_parent, daemon=True).start()
    getattr(reader, f"read_{way}")()
    reader.resume()


if __name__ == "__main__":
    main()
