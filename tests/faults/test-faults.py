#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Subscribers that are stopped while much is published, on message buses with the limits they are delivered with.

For each way to read, subscribers of all three modes are stopped (SIGSTOP), and then a handler. The publisher keeps its rate, four readers that
are well get everything in order, headwayd keeps what the subscriptions may hold and no more, nobody is disconnected, pings do
not wait. Once they go on, the stopped ones have every event, or are told how many they lost.

Environment: HEADWAYD: the program. HEADWAY_FAULTS: `short` or `long`, which judges rates and times as on a quiet machine;
HEADWAY_FAULTS_SECONDS replaces its 60 s.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import socket
import statistics
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from typing import Any

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "daemon"))
from daemon_harness import BUS, NAME, PATIENCE, Case, Client, Daemon, Gio, GLib, diagnose, main, path_of_bus, start_thread, wait_until  # noqa: E402

from message_broker import Broker, StockDaemon  # noqa: E402

IS_LONG = os.environ.get("HEADWAY_FAULTS", "short") == "long"
SECONDS = float(os.environ.get("HEADWAY_FAULTS_SECONDS", "60")) if IS_LONG else 2.5
MIB = 1024 * 1024
VOLUME = int(200e6 / 60 * SECONDS) if IS_LONG else 20_000_000
WAYS = ("receive", "signals", "stream", "sse")
MODES = ("stream", "routed", "broadcast")
TOLD = {"routed": {"gap budget"}, "broadcast": {"gap lagged"}, "none": {"gap full"}}
PAYLOAD = "x" * 9998
SIZE = len(PAYLOAD) + 2  # as JSON
COUNT = VOLUME // SIZE
# Events that may wait for the stopped one of mode stream: 2 MB, as many bytes as by default, which the others must not have.
STOPPED_QUEUED = 200
# What the stopped ones may hold: stream, routed by default, and broadcast nothing.
BUDGETS = STOPPED_QUEUED * SIZE + MIB
BOUND = BUDGETS + 8 * MIB
# Events that one may have had waiting and under way: the budget, a reply of 1 MiB, a socket; a queue of 64 and calls that were late.
MOST = {"routed": 9 * MIB // 4 // SIZE, "none": 100}
# Replies and signals on their way to three connections: at most what headwayd lets one have unread.
BUS_BOUND = 3 * 8 * MIB
# The allocator keeps some of it; more where readers that are well fell behind on a busy machine.
KEPT = BOUND if IS_LONG else 16 * MIB
RATE_KEPT = 0.8 if IS_LONG else 0.5
SLOWER = 3 if IS_LONG else 10
FLOOR_MS = 3.0 if IS_LONG else 250.0  # shorter than this nobody notices
# Streams have so long to read their last word. As delivered it is 5 s, and the idle time-out ends what is stopped for 60 s.
CONFIG = "writer-idle-timeout-ms=600000\n" + ("" if IS_LONG else "drain-window-ms=60000\n")
BUS_OPTIONS = {"ring-size": GLib.Variant("u", 8000), "ring-max-bytes": GLib.Variant("t", 16 * MIB),
               "max-queued-bytes": GLib.Variant("t", 64 * MIB)}


class Program:
    """A Python program beside this one that says lines of JSON."""

    def __init__(self, *arguments: str):
        self.process = subprocess.Popen([sys.executable, "-B", os.path.join(HERE, arguments[0]), *arguments[1:]],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.said: queue.Queue[dict[str, Any] | None] = queue.Queue()
        start_thread(self.listen)

    def listen(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as output:
            for line in output:
                self.said.put(json.loads(line))
        self.said.put(None)

    def next(self, patience: float = PATIENCE) -> dict[str, Any]:
        try:
            value = self.said.get(timeout=patience)
        except queue.Empty:
            raise AssertionError(f"{self.process.args} says nothing within {patience} s") from None
        if value is None:
            raise AssertionError(f"{self.process.args} ended with {self.process.wait()}")
        return value

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        assert self.process.stdin is not None
        self.process.stdin.close()


class Reader(Program):
    def __init__(self, case: FaultCase, way: str, mode: str, max_queued: int):
        super().__init__("reader.py", case.address, case.daemon.socket, "faults", way, mode, str(max_queued), str(SIZE))
        case.addCleanup(self.stop)
        self.title = f"{way}/{mode}"
        self.mode = mode
        case.names.append(self.next()["ready"])

    def mark(self, name: str, *passed: str) -> dict[str, Any]:
        """The books at the mark of that name, before which none may come but those to pass; with all the words until then."""
        said = self.next()
        while said["mark"] != name and said["mark"] in passed:
            words = said["words"]
            said = self.next()
            said["words"] = words + said["words"]
        if said["mark"] != name:
            raise AssertionError(f"{self.title}: {said}, not the mark {name}")
        return said


class Publisher:
    """A publisher on a socket, at a pace, whose answers are read."""

    def __init__(self, client: Client):
        reply, fds = client.connection.call_with_unix_fd_list_sync(
            NAME, path_of_bus("faults"), BUS, "OpenPublisher", GLib.Variant("(sa{sv})", ("ndjson", {})), None,
            Gio.DBusCallFlags.NO_AUTO_START, int(PATIENCE * 1000), None, None)
        self.socket = socket.socket(fileno=fds.get(reply.unpack()[0]))
        self.sent = 0
        self.answered = 0
        self.refused: list[bytes] = []
        self.thread = start_thread(self.read_answers)

    def read_answers(self) -> None:
        with self.socket.makefile("rb") as answers:
            for line in answers:
                if not line.startswith(b'{"id":'):
                    self.refused.append(line)
                self.answered += 1

    def send(self, topic: str, data: str) -> None:
        self.socket.sendall(b'{"topic":"%b","data":%b}\n' % (topic.encode(), data.encode()))
        self.sent += 1

    def flood(self) -> float:
        """COUNT events in SECONDS, or as soon as it is let; returns bytes a second until all were answered."""
        start = time.monotonic()
        data = json.dumps(PAYLOAD)
        for number in range(COUNT):
            early = start + number * SECONDS / COUNT - time.monotonic()
            if early > 0.002:
                time.sleep(early)
            self.send("load", data)
        wait_until(lambda: self.answered == self.sent, "answers to all that was published", 20 * PATIENCE)
        return COUNT * SIZE / (time.monotonic() - start)

    def close(self) -> None:
        self.socket.shutdown(socket.SHUT_RDWR)
        self.thread.join(PATIENCE)
        self.socket.close()


def resident(pid: int) -> int:
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def is_sanitized(pid: int) -> bool:
    with open(f"/proc/{pid}/maps", encoding="utf-8") as file:
        return "asan" in file.read()


class Memory:
    """The most that processes had since the last reset()."""

    def __init__(self, *pids: int):
        self.pids = pids
        self.peaks = [0] * len(pids)
        self.is_done = threading.Event()
        self.thread = start_thread(self.run)

    def run(self) -> None:
        while not self.is_done.wait(0.01):
            self.peaks = [max(peak, resident(pid)) for peak, pid in zip(self.peaks, self.pids)]

    def reset(self) -> list[int]:
        """Returns what they have now."""
        self.peaks = [resident(pid) for pid in self.pids]
        return list(self.peaks)

    def stop(self) -> None:
        self.is_done.set()
        self.thread.join()


@dataclass
class Figures:
    """Of one flood: bytes a second, milliseconds, bytes more than before."""
    rate: float
    p99: dict[str, float]
    grown: int
    bus_grown: int

    def __str__(self) -> str:
        return (f"{self.rate / 1e6:.2f} MB/s, p99 of a ping {self.p99['peer']:.2f} ms, of headwayd {self.p99['headwayd']:.2f} ms, "
                f"headwayd +{self.grown / MIB:.1f} MiB, message bus +{self.bus_grown / MIB:.1f} MiB")


class FaultCase(Case):
    def begin(self, message_bus: Any) -> None:
        self.addCleanup(message_bus.stop)
        self.address = message_bus.address
        self.daemon: Daemon = self.run_daemon(f"--config={self.config(CONFIG)}", address=self.address)
        self.own = Client(self.address)
        self.addCleanup(self.own.connection.close, None, None)
        self.own.create("faults", **BUS_OPTIONS)
        self.names = [self.own.owner(), self.own.connection.get_unique_name()]
        self.healthy = [Reader(self, way, "stream", 2048 if way == "sse" else 65536) for way in WAYS]
        self.pinger = Program("pinger.py", self.address)
        self.addCleanup(self.pinger.stop)
        self.names += self.pinger.next()["ready"]
        self.publisher = Publisher(self.own)
        self.addCleanup(self.publisher.close)
        self.memory = Memory(self.daemon.pid, message_bus.process.pid)
        self.addCleanup(self.memory.stop)
        self.judges_memory = not is_sanitized(self.daemon.pid)

    def publish_mark(self, name: str) -> None:
        self.publisher.send("mark", json.dumps(name))

    def flood(self) -> Figures:
        while not self.pinger.said.empty():
            self.pinger.next()
        before = self.memory.reset()
        rate = self.publisher.flood()
        grown = [peak - had for peak, had in zip(self.memory.peaks, before)]
        pings = [self.pinger.next()]
        while not self.pinger.said.empty():
            pings.append(self.pinger.next())
        p99 = {key: statistics.quantiles([ms for ping in pings for ms in ping[key]], n=100)[98] for key in ("peer", "headwayd")}
        return Figures(rate, p99, *grown)

    def assert_healthy(self, begin: str, end: str) -> None:
        """Readers that are well got all, one behind the other, and not a word beside it."""
        for reader in self.healthy:
            first, last = reader.mark(begin), reader.mark(end)
            self.assertEqual(last["broken"], [], reader.title)
            self.assertEqual(last["words"], [], reader.title)
            self.assertEqual((last["id"] - first["id"], last["count"] - first["count"], last["lost"]), (COUNT + 1, COUNT + 1, 0), reader.title)

    def assert_nobody_left(self) -> None:
        for name in self.names:
            is_there = self.own.call("/org/freedesktop/DBus", "org.freedesktop.DBus", "NameHasOwner", "(s)", name,
                                     destination="org.freedesktop.DBus")[0]
            self.assertTrue(is_there, f"{name} of {self.names} was disconnected")
        self.assertEqual(self.own.owner(), self.names[0])
        self.assertEqual(self.publisher.refused, [])

    def assert_stopped_one(self, reader: Reader, first: dict[str, Any], last: dict[str, Any]) -> None:
        """It has or knows of each event, and lost some."""
        diagnose(f"{reader.title}: {last['count'] - first['count']} events, {last['lost']} lost, {', '.join(last['words'])}")
        self.assertEqual(last["broken"], [], reader.title)
        self.assertEqual(last["count"] - first["count"] + last["lost"], last["id"] - first["id"], reader.title)
        self.assertGreater(last["lost"], 0, reader.title)
        if reader.mode in TOLD:
            self.assertEqual(set(last["words"]), TOLD[reader.mode], reader.title)
            self.assertLess(last["count"] - first["count"], MOST.get(reader.mode, COUNT), reader.title)
            return
        self.assertIn("resumed", last["words"], reader.title)
        self.assertIn("state_resync_required", last["words"], reader.title)
        # What has ended is kept for a time only: whoever is stopped longer is told when it comes back.
        if not IS_LONG:
            self.assertIn("client_evicted", last["words"], reader.title)

    def assert_hardly_slower(self, way: str, unhindered: Figures, hindered: Figures) -> None:
        self.assertGreaterEqual(hindered.rate, RATE_KEPT * unhindered.rate, way)
        for key, p99 in hindered.p99.items():
            self.assertLess(p99, max(SLOWER * unhindered.p99[key], FLOOR_MS), f"{way}: {key}")

    def mark_late(self, handler: Reader, end: str) -> dict[str, Any]:
        """The queue of a handler takes nothing more while it is full, and tells of it with what it takes next. The mark at the
        end is lost with the rest, unless a deadline has just made room for it."""
        def is_marked() -> bool:
            self.publish_mark("late")
            return any(said is None or said["mark"] == "late" for said in list(handler.said.queue))

        wait_until(is_marked, "the handler goes on")
        return handler.mark("late", end)

    def check_way(self, way: str, unhindered: Figures) -> None:
        modes = MODES if way in WAYS else ("none",)
        stopped = [Reader(self, way, mode, STOPPED_QUEUED) for mode in modes]
        self.publish_mark(f"begin {way}")
        first = [reader.mark(f"begin {way}") for reader in stopped]
        wait_until(lambda: self.publisher.answered == self.publisher.sent, "an answer to the mark")
        for reader in stopped:
            reader.signal(signal.SIGSTOP)
        hindered = self.flood()
        self.publish_mark(f"end {way}")
        self.assert_healthy(f"begin {way}", f"end {way}")
        diagnose(f"{way}: {hindered}, {resident(self.daemon.pid) / MIB:.1f} MiB")
        for reader in stopped:
            reader.signal(signal.SIGCONT)
        last = [reader.mark(f"end {way}") for reader in stopped] if way in WAYS else [self.mark_late(*stopped, f"end {way}")]
        for reader, begin, end in zip(stopped, first, last):
            self.assert_stopped_one(reader, begin, end)
        self.assert_nobody_left()
        for reader in stopped:
            self.names.pop()
            reader.stop()
        if self.judges_memory:
            self.assertLess(hindered.grown, BOUND, way)
            self.assert_hardly_slower(way, unhindered, hindered)
        self.assertLess(hindered.bus_grown, BUS_BOUND, way)

    def check(self, message_bus: Any) -> None:
        self.begin(message_bus)
        self.publish_mark("begin")
        unhindered = self.flood()
        self.publish_mark("end")
        self.assert_healthy("begin", "end")
        diagnose(f"unhindered: {unhindered}")
        before = self.memory.reset()[0]
        for way in (*WAYS, "handler"):
            with self.subTest(way=way):
                self.check_way(way, unhindered)
        if self.judges_memory:
            wait_until(lambda: resident(self.daemon.pid) < before + KEPT, "headwayd returns what the stopped ones held")
            diagnose(f"headwayd: {before / MIB:.1f} MiB before, {resident(self.daemon.pid) / MIB:.1f} MiB behind it all")
        self.memory.stop()
        for program in (self.pinger, *self.healthy):
            program.stop()
        self.assert_clean(self.daemon)

    def test_dbus_daemon(self) -> None:
        self.check(StockDaemon(self.folder))

    def test_dbus_broker(self) -> None:
        if not Broker.is_installed():
            self.skipTest("dbus-broker is missing")
        self.check(Broker(self.folder))


if __name__ == "__main__":
    main()
