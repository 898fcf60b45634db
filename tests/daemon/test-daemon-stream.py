#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""OpenStream() of headwayd itself: beside HTTP, and when it stops.

Environment: HEADWAYD: the program.
"""

from __future__ import annotations

import json
import select
import signal
import socket
import sys
import time

sys.dont_write_bytecode = True
from daemon_harness import NAME, PATIENCE, SUBSCRIPTION, Case, Client, Gio, GLib, main, start_thread, wait_until  # noqa: E402

RETRY = b"retry: 3000\n\n"


def open_stream(client: Client, subscription: str, stream_format: str) -> socket.socket:
    reply, fds = client.connection.call_with_unix_fd_list_sync(
        NAME, subscription, SUBSCRIPTION, "OpenStream", GLib.Variant("(sa{sv})", (stream_format, {})), None,
        Gio.DBusCallFlags.NO_AUTO_START, int(PATIENCE * 1000), None, None)
    end = socket.socket(fileno=fds.get(reply.unpack()[0]))
    end.settimeout(PATIENCE)
    return end


class Reading:
    """Reads an end to its end in a thread."""

    def __init__(self, end: socket.socket):
        self.end = end
        self.body = b""
        self.count = 0  # of line feeds
        self.thread = start_thread(self.run)

    def run(self) -> None:
        pieces = []
        while piece := self.end.recv(65536):
            pieces.append(piece)
            self.count += piece.count(b"\n")
        self.body = b"".join(pieces)

    def finish(self) -> bytes:
        self.thread.join(PATIENCE)
        self.end.close()
        return self.body


class StreamCase(Case):
    def test_sse_is_the_body_of_the_http_stream(self) -> None:
        """10 000 events, the end of the bus behind them; byte for byte."""
        path = self.config("heartbeat-ms=0\nwriter-idle-timeout-ms=0\n")
        daemon = self.run_daemon(f"--config={path}")
        client = self.client()
        client.create("b")
        sse = Reading(open_stream(client, client.subscribe("b"), "sse"))
        lines = Reading(open_stream(client, client.subscribe("b"), "ndjson"))
        stream = self.stream(daemon, "b")
        reading = start_thread(stream.read_to_end)
        # In batches that fit the smallest queue, so that nobody is warned however slow this machine is.
        for start in range(0, 10000, 100):
            texts = [json.dumps({"n": start + i, "text": "ü" * (i % 97)}, ensure_ascii=False) for i in range(100)]
            client.bus("b", "PublishMany", "(a(ssa{sv})a{sv})", [("a.b", text, {}) for text in texts], {})
            wait_until(lambda goal=start + 100: lines.count >= goal and sse.count >= 4 * goal + 2 and
                       stream.body.count(b"\n\n") == goal + 1, "readers that keep up")
        client.bus("b", "Close")
        reading.join(PATIENCE)
        body = sse.finish()
        self.assertTrue(stream.is_complete)
        self.assertEqual(body.count(b"\n\n"), 10002)
        self.assertTrue(body == stream.body, "OpenStream and HTTP differ")
        self.assertTrue(body.startswith(RETRY + b"id: 1\nevent: message\ndata: {"))
        data = [frame.partition(b"\ndata: ")[2] + b"\n" for frame in body[len(RETRY):].split(b"\n\n")[:-1]]
        self.assertTrue(b"".join(data) == lines.finish(), "ndjson and sse differ")
        self.assert_clean(daemon)

    def test_readers_are_drained_without_http(self) -> None:
        daemon = self.run_daemon("--no-http")
        client = self.client()
        client.create("b")
        ends = [open_stream(client, client.subscribe("b"), word) for word in ("ndjson", "ndjson", "sse")]
        client.publish_many("b", 150, json.dumps("x" * 2000))
        daemon.kill(signal.SIGTERM)
        bodies = [Reading(end).finish() for end in ends]
        self.assertEqual(daemon.wait(), 0)
        self.assertEqual([json.loads(line)["id"] for line in bodies[0].splitlines() if b'"id"' in line], list(range(1, 151)))
        self.assertEqual(bodies[1], bodies[0])
        self.assertTrue(bodies[2].endswith(b"\n\n"))

    def test_stopped_reader_gets_the_drain_window(self) -> None:
        path = self.config("drain-window-ms=1000\n")
        daemon = self.run_daemon(f"--config={path}")
        client = self.client()
        client.create("b")
        end = open_stream(client, client.subscribe("b"), "ndjson")
        client.publish_many("b", 150, json.dumps("x" * 5000))
        started = time.monotonic()
        daemon.kill(signal.SIGTERM)
        self.assertEqual(daemon.wait(), 0)
        self.assertGreater(time.monotonic() - started, 0.9)
        self.assertLess(time.monotonic() - started, 2.5)
        body = Reading(end).finish()
        self.assertTrue(body.endswith(b"}\n"))
        self.assertLess(len(body), 200_000)

    def test_begun_event_at_a_stop(self) -> None:
        """Its window is over long before; the stop waits for its reader as long as for any, and then ends."""
        path = self.config("drain-window-ms=500\n")
        for bus, reads in (("b", False), ("c", True)):
            daemon = self.run_daemon(f"--config={path}")
            client = self.client()
            client.create(bus)
            subscription = client.subscribe(bus)
            end = open_stream(client, subscription, "ndjson")
            client.publish(bus, json.dumps("x" * 300 * 1024))
            client.publish(bus, json.dumps("behind"))
            start = end.recv(1024)
            other = client.subscribe(bus)
            other_end = open_stream(client, other, "ndjson")
            client.publish_many(bus, 100, json.dumps("x" * 5000))
            client.call(subscription, SUBSCRIPTION, "Close")
            client.call(other, SUBSCRIPTION, "Close")
            # This one is between two events when its window is over, and is closed.
            hang_up = select.poll()
            hang_up.register(other_end, 0)
            self.assertTrue(hang_up.poll(PATIENCE * 1000))
            started = time.monotonic()
            daemon.kill(signal.SIGTERM)
            if reads:
                body = Reading(end).finish()
            self.assertEqual(daemon.wait(), 0)
            self.assertLess(time.monotonic() - started, 2.0)
            if not reads:
                self.assertGreater(time.monotonic() - started, 0.4)
                body = Reading(end).finish()
            # As much fits the kernel's usual bounds.
            self.assertEqual([json.loads(line)["data"] for line in (start + body).splitlines()], ["x" * 300 * 1024])


if __name__ == "__main__":
    main()
