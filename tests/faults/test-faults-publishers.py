#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Publishers on sockets that read nothing, send nothing or send halves, and what a stop of headwayd leaves them.

Environment: HEADWAYD: the program.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "daemon"))
from daemon_harness import (  # noqa: E402
    BUS, NAME, PATIENCE, SUBSCRIPTION, Case, Client, Gio, GLib, diagnose, main, path_of_bus, start_thread, wait_until)

MIB = 1024 * 1024
PUBLISHERS = 64  # of one connection
LINE_MAX = MIB + 64 * 1024


def open_socket(client: Client, path: str, interface: str, method: str) -> socket.socket:
    reply, fds = client.connection.call_with_unix_fd_list_sync(
        NAME, path, interface, method, GLib.Variant("(sa{sv})", ("ndjson", {})), None,
        Gio.DBusCallFlags.NO_AUTO_START, int(PATIENCE * 1000), None, None)
    end = socket.socket(fileno=fds.get(reply.unpack()[0]))
    end.settimeout(PATIENCE)
    return end


def resident(pid: int) -> int:
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def is_sanitized(pid: int) -> bool:
    with open(f"/proc/{pid}/maps", encoding="utf-8") as file:
        return "asan" in file.read()


class PublishersCase(Case):
    def setUp(self) -> None:
        super().setUp()
        self.daemon = self.run_daemon()
        self.own = self.client()
        self.own.create("b", max_queued_bytes=GLib.Variant("t", 64 * MIB))

    def publisher(self, client: Client) -> socket.socket:
        end = open_socket(client, path_of_bus("b"), BUS, "OpenPublisher")
        self.addCleanup(end.close)
        return end

    def push(self, ends: list[socket.socket], data: bytes, rounds: int) -> int:
        """Writes @data again and again until no end takes any; returns the bytes taken."""
        for end in ends:
            end.setblocking(False)
        sent = [0] * len(ends)
        for _ in range(rounds):
            is_stuck = True
            for number, end in enumerate(ends):
                try:
                    while True:
                        sent[number] += end.send(data[sent[number] % len(data):])
                        is_stuck = False
                except BlockingIOError:
                    pass
            # One that is answered behind them: headwayd has looked at all of them meanwhile.
            self.own.publish("b")
            if is_stuck:
                break
        return sum(sent)

    def assert_bounded(self, before: int, bound: int, what: str) -> None:
        grown = resident(self.daemon.pid) - before
        diagnose(f"{what}: headwayd +{grown / MIB:.1f} MiB")
        if not is_sanitized(self.daemon.pid):
            self.assertLess(grown, bound, what)

    def assert_returned(self, client: Client, before: int) -> None:
        """Once they are gone, so is what they cost, and there is room for as many again."""
        client.leave()
        if not is_sanitized(self.daemon.pid):
            wait_until(lambda: resident(self.daemon.pid) < before + 8 * MIB, "what the publishers held is returned")
        again = self.client()
        for _ in range(PUBLISHERS):
            self.publisher(again)
        self.assert_clean(self.daemon)

    def test_many_that_never_send(self) -> None:
        silent = self.client()
        before = resident(self.daemon.pid)
        for _ in range(PUBLISHERS):
            self.publisher(silent)
        self.assertEqual(self.own.publish("b"), 1)
        self.assert_bounded(before, 4 * MIB, "silent")
        self.assert_returned(silent, before)

    def test_many_that_read_no_answers(self) -> None:
        deaf = self.client()
        before = resident(self.daemon.pid)
        ends = [self.publisher(deaf) for _ in range(PUBLISHERS)]
        taken = self.push(ends, b'{"topic":"..","data":1}\n' * 1000, 1000)
        self.assertGreater(taken, PUBLISHERS * 65536)
        # Of each: 64 KiB of answers, as much unread input, and a little.
        self.assert_bounded(before, PUBLISHERS * 192 * 1024, "deaf")
        self.assert_returned(deaf, before)

    def test_many_that_end_no_line(self) -> None:
        halves = self.client()
        before = resident(self.daemon.pid)
        ends = [self.publisher(halves) for _ in range(PUBLISHERS)]
        half = b'{"topic":"a","data":"' + b"x" * (LINE_MAX - 1000)
        for end in ends:
            end.sendall(half)
        self.own.publish("b")
        self.assert_bounded(before, PUBLISHERS * LINE_MAX + 8 * MIB, "halves")
        self.assert_returned(halves, before)

    def test_stop_in_the_middle(self) -> None:
        """What was answered was published, and whoever reads it gets it; then all ends close."""
        writer, reader = self.client(), self.client()
        publisher = self.publisher(writer)
        subscription = reader.bus("b", "Subscribe", "(asa{sv})", [], {"max-queued": GLib.Variant("u", 65536)})[0]
        lines, idle = open_socket(reader, subscription, SUBSCRIPTION, "OpenStream"), self.publisher(reader)
        answers: list[dict] = []
        events: list[dict] = []

        def write() -> None:
            try:
                while True:
                    publisher.sendall(b'{"topic":"a","data":1}\n' * 100)
            except OSError:
                pass

        def read(end: socket.socket, found: list[dict]) -> None:
            with end, end.makefile("rb") as file:
                found.extend(json.loads(line) for line in file)

        threads = [start_thread(write), start_thread(lambda: read(publisher.dup(), answers)), start_thread(lambda: read(lines, events))]
        wait_until(lambda: self.own.get(path_of_bus("b"), BUS, "LastEventId") > 1000, "a thousand events")
        self.daemon.kill(signal.SIGTERM)
        self.assertEqual(self.daemon.wait(), 0, self.daemon.errors())
        for thread in threads:
            thread.join(PATIENCE)
        self.assertEqual(idle.recv(100), b"")
        good = [answer["id"] for answer in answers if "id" in answer]
        bad = [answer["code"] for answer in answers if "id" not in answer]
        self.assertEqual(good, list(range(1, len(good) + 1)))
        self.assertGreater(len(good), 1000)
        self.assertIn(bad, [[], ["unavailable"], ["closed"]])
        self.assertEqual(len([answer for answer in answers[:-1] if "id" not in answer]), 0)
        self.assertEqual([event["id"] for event in events if "id" in event], good)


if __name__ == "__main__":
    main()
