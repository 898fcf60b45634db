#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""headwayd is killed again and again while it is used: no id ever comes twice or goes backwards.

Environment: HEADWAYD: the program. HEADWAY_CRASHES: how often (200). HEADWAY_SEED: of the moments.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import sys
import threading
import time
from collections.abc import Iterator

sys.dont_write_bytecode = True
from daemon_harness import (  # noqa: E402
    ID_MAX, NOBODY_THERE, PATIENCE, Case, Client, Daemon, GLib, Refused, Stream, UnixConnection, ask, diagnose, main, start_thread, summary)

CRASHES = int(os.environ.get("HEADWAY_CRASHES", "200"))
SEED = int(os.environ.get("HEADWAY_SEED", str(time.time_ns())))
LIFE_MAX = 0.030  # seconds from the ready line to the end
LINES = 50        # of one NDJSON body
MANY = 600        # of one PublishMany

# What a bus is created with, in the words of HTTP; so that it can be asked for again.
OPTIONS: dict[str, dict[str, int]] = {
    "shared": {"ringSize": 5000, "ringMaxBytes": 1234567, "maxSubscribers": 7},
    "lines": {"ringSize": 17, "channelCapacity": 99},
    "many": {"ringSize": 1, "maxQueuedBytes": 54321, "replayBudgetBytes": 888},
    "0-quiet.~": {"ringSize": 123456},
}
EPOCHS: dict[str, set[str]] = {name: set() for name in OPTIONS}


class Journal:
    """Every id that was ever acknowledged."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.ids: dict[str, dict[int, str]] = {}
        self.highest: dict[str, int] = {}
        self.complaints: list[str] = []

    def complain(self, text: str) -> None:
        with self.lock:
            self.complaints.append(text)

    def record(self, bus: str, who: str, after: int, first: int, payloads: list[str]) -> int:
        """@who has published @payloads with ids from @first, having got @after before; returns the last id."""
        last = first + len(payloads) - 1
        with self.lock:
            known = self.ids.setdefault(bus, {})
            if first <= after:
                self.complaints.append(f"{bus}: {who} got id {first} after {after}")
            if last > ID_MAX:
                self.complaints.append(f"{bus}: id {last} is over 2^53-1")
            for number, payload in enumerate(payloads, first):
                if number in known:
                    self.complaints.append(f"{bus}: id {number} of {who} was {known[number]} before")
                known[number] = payload
            self.highest[bus] = max(self.highest.get(bus, 0), last)
        return last

    def snapshot(self) -> dict[str, int]:
        with self.lock:
            return dict(self.highest)


class Worker:
    """A thread that uses headwayd, whether it is there or not."""

    def __init__(self, test: KillTest, who: str, bus: str):
        self.test = test
        self.who = who
        self.bus = bus
        self.last_id = 0
        self.count = 0
        self.thread = start_thread(self.run)

    def join(self) -> None:
        self.thread.join(PATIENCE)
        if self.thread.is_alive():
            self.test.journal.complain(f"{self.who} hangs")

    def record(self, first: int, payloads: list[str]) -> None:
        self.last_id = self.test.journal.record(self.bus, self.who, self.last_id, first, payloads)

    def payload(self) -> str:
        self.count += 1
        return f"{self.who}:{self.count}"

    def run(self) -> None:
        while not self.test.is_over.is_set():
            try:
                self.work()
            except Refused as refused:
                if refused.name not in NOBODY_THERE:
                    self.test.journal.complain(f"{self.who}: {refused}")
                self.test.is_there.wait(1)
            except (ConnectionError, FileNotFoundError, http.client.HTTPException):
                self.test.is_there.wait(1)
            except Exception as error:
                self.test.journal.complain(f"{self.who}: {error!r}")
                return

    def work(self) -> None:
        raise NotImplementedError


class DBusWorker(Worker):
    def __init__(self, test: KillTest, who: str, bus: str):
        self.client = Client(test.message_bus.address)
        super().__init__(test, who, bus)


class OneByOne(DBusWorker):
    def work(self) -> None:
        payload = self.payload()
        self.record(self.client.publish(self.bus, json.dumps(payload)), [payload])


class ManyAtOnce(DBusWorker):
    """Goes through a block of ids every few calls."""

    def work(self) -> None:
        payload = self.payload()
        self.record(self.client.publish_many(self.bus, MANY, json.dumps(payload)), [payload] * MANY)


class CreateAndClose(DBusWorker):
    """One name, ever new buses: each goes on behind the last."""

    def work(self) -> None:
        payload = self.payload()
        try:
            self.client.manager("GetBus", "(s)", self.bus)
            self.record(self.client.publish(self.bus, json.dumps(payload)), [payload])
            self.client.bus(self.bus, "Close")
        except Refused as refused:
            # The last one still drains.
            if refused.word != "Closed":
                raise


class NdjsonPublisher(Worker):
    connection: UnixConnection | None = None

    def body(self, payloads: list[str]) -> Iterator[bytes]:
        for payload in payloads:
            yield json.dumps({"topic": "a.b", "data": payload}).encode() + b"\n"

    def work(self) -> None:
        payloads = [self.payload() for _ in range(LINES)]
        if self.connection is None:
            self.connection = UnixConnection(self.test.socket)
        try:
            status, answer = ask(self.connection, "POST", f"/session/{self.bus}/events", self.body(payloads), Content_Type="application/x-ndjson")
        except BaseException:
            self.connection.close()
            self.connection = None
            raise
        if status != 200 or answer["count"] != LINES or answer["lastId"] - answer["firstId"] != LINES - 1:
            raise AssertionError(f"POST was answered {status} {answer}")
        self.record(answer["firstId"], payloads)


class StreamReader(Worker):
    """Follows a bus with its cursor; what it gets must be what was acknowledged."""

    def __init__(self, test: KillTest, who: str, bus: str):
        self.got: dict[int, str] = {}
        super().__init__(test, who, bus)

    def work(self) -> None:
        stream = Stream.over_unix(self.test.socket, self.bus, f"Last-Event-ID: {self.last_id}")
        try:
            if stream.status != 200:
                raise AssertionError(stream.header)
            while stream.read() and not self.test.is_over.is_set():
                self.take(stream)
        finally:
            stream.close()

    def take(self, stream: Stream) -> None:
        for frame in stream.frames():
            if "id" not in frame:
                continue
            if frame["id"] <= self.last_id:
                raise AssertionError(f"id {frame['id']} came after {self.last_id}")
            self.last_id = frame["id"]
            self.got[self.last_id] = frame["data"]
        stream.body = stream.body.rpartition(b"\n\n")[2]


class KillTest(Case):
    def setUp(self) -> None:
        super().setUp()
        # One thread that never waits would starve the others of the interpreter.
        interval = sys.getswitchinterval()
        sys.setswitchinterval(0.0002)
        self.addCleanup(sys.setswitchinterval, interval)
        self.random = random.Random(SEED)
        self.journal = Journal()
        self.is_there = threading.Event()
        self.is_over = threading.Event()
        self.socket = os.path.join(self.folder, "run", "http.sock")
        self.start_seconds = 0.05

    def first_life(self) -> None:
        daemon = self.run_daemon()
        for name, options in OPTIONS.items():
            status, _ = ask(daemon.http(), "PUT", f"/session/{name}", options)
            self.assertEqual(status, 201)
        daemon.stop()

    def check_buses(self, daemon: Daemon, client: Client) -> None:
        """All buses are there at once, as they were, and behind everything that was acknowledged."""
        highest = self.journal.snapshot()
        connection = daemon.http()
        buses = client.list_buses()
        for name, options in OPTIONS.items():
            bus = buses[name]
            self.assertGreaterEqual(bus["LastEventId"], highest.get(name, 0), name)
            self.assertLess(bus["LastEventId"], ID_MAX)
            self.assertEqual(bus["RingSize"], options["ringSize"])
            self.assertNotIn(bus["Epoch"], EPOCHS[name])
            EPOCHS[name].add(bus["Epoch"])
            status, answer = ask(connection, "PUT", f"/session/{name}", options)
            self.assertEqual(status, 200, answer)
        connection.close()

    def live(self, client: Client) -> bool:
        """One life and its end, at any moment. Whether it got to be ready."""
        started = time.monotonic()
        daemon = self.start()
        self.is_there.set()
        if self.random.random() < 0.3:
            time.sleep(self.random.uniform(0, self.start_seconds * 1.1))
            is_ready = False
        else:
            daemon.wait_ready()
            self.start_seconds = time.monotonic() - started
            self.check_buses(daemon, client)
            time.sleep(self.random.uniform(0, LIFE_MAX))
            is_ready = True
        self.is_there.clear()
        daemon.close()
        return is_ready

    def test_ids_never_come_twice(self) -> None:
        self.first_life()
        client = self.client()
        reader: StreamReader
        workers: list[Worker] = [
            OneByOne(self, "one", "shared"), OneByOne(self, "two", "shared"), ManyAtOnce(self, "many", "many"),
            NdjsonPublisher(self, "lines", "lines"), CreateAndClose(self, "churn", "churn"), reader := StreamReader(self, "reader", "shared"),
        ]
        n_ready = sum(self.live(client) for _ in range(CRASHES))
        daemon = self.run_daemon()
        self.is_there.set()
        self.check_buses(daemon, client)
        wanted = {worker: worker.count + 1 for worker in workers if worker is not reader}
        for worker, count in wanted.items():
            while worker.count <= count and worker.thread.is_alive():
                worker.thread.join(0.01)
        self.is_over.set()
        for worker in wanted:
            worker.join()
        self.assert_clean(daemon)
        reader.join()

        ids = self.journal.ids
        counts = {name: len(known) for name, known in ids.items()}
        diagnose(f"seed {SEED}: {CRASHES} crashes, {n_ready} of them when ready")
        diagnose(f"acknowledged {counts}, read {len(reader.got)}; highest {self.journal.highest}")
        self.assertEqual(self.journal.complaints, [])
        for number, payload in reader.got.items():
            self.assertEqual(ids["shared"].get(number, payload), payload)
        self.assertGreater(len(reader.got), 0)
        for name in ("shared", "many", "lines", "churn"):
            self.assertGreater(len(ids[name]), 0, name)
        self.assertNotIn("Ids of what is missing", daemon.errors())


class RestartTest(Case):
    """Case 51 of sse-contract.md, and what a clean stop adds."""

    def read(self, daemon: Daemon, count: int, *headers: str) -> str:
        return summary(self.stream(daemon, "b", *headers).read_frames(count)[:count])

    def restarted(self, is_clean: bool) -> tuple[Daemon, Client, str]:
        """50 events, then another life; the epoch of the first."""
        client = self.client()
        daemon = self.run_daemon()
        client.create("b")
        self.assertEqual(client.publish_many("b", 50), 1)
        epoch = client.list_buses()["b"]["Epoch"]
        if is_clean:
            self.assert_clean(daemon)
        else:
            daemon.close()
        return self.run_daemon(), client, epoch

    def test_case_51_old_cursor_after_a_crash(self) -> None:
        daemon, client, epoch = self.restarted(is_clean=False)
        self.assertEqual(self.read(daemon, 2, "Last-Event-ID: 50"), "resync(seeded_replay_not_in_ring,50,10001) rc(0)")
        self.assertEqual(client.publish_many("b", 3), 10001)
        self.assertEqual(self.read(daemon, 5, "Last-Event-ID: 50"), "resync(ring_evicted,50,10001) #10001 #10002 #10003 rc(3)")
        self.assertEqual(
            self.read(daemon, 5, "Last-Event-ID: 50", f"X-Qwen-Event-Epoch: {epoch}"),
            "resync(epoch_reset,50,10001,epoch_mismatch) #10001 #10002 #10003 rc(3)")

    def test_old_cursor_after_a_clean_stop(self) -> None:
        daemon, client, epoch = self.restarted(is_clean=True)
        self.assertNotEqual(client.list_buses()["b"]["Epoch"], epoch)
        self.assertEqual(self.read(daemon, 1, "Last-Event-ID: 50"), "rc(0)")
        self.assertEqual(self.read(daemon, 2, "Last-Event-ID: 50", f"X-Qwen-Event-Epoch: {epoch}"), "resync(epoch_reset,50,51,epoch_mismatch) rc(0)")
        self.assertEqual(client.publish_many("b", 2), 51)
        self.assertEqual(self.read(daemon, 3, "Last-Event-ID: 50"), "#51 #52 rc(2)")
        self.assertEqual(self.read(daemon, 4, "Last-Event-ID: 49"), "resync(ring_evicted,49,51) #51 #52 rc(2)")

    def test_reader_that_was_there_resumes(self) -> None:
        client = self.client()
        daemon = self.run_daemon()
        client.create("b", ring_size=GLib.Variant("u", 5))
        stream = self.stream(daemon, "b")
        client.publish_many("b", 2)
        self.assertEqual(summary(stream.read_frames(2)), "#1 #2")
        daemon.close()
        stream.read_to_end()
        self.assertFalse(stream.is_complete)
        daemon = self.run_daemon()
        self.assertEqual(client.get("/org/headway/Headway1/bus/b", "org.headway.Headway1.Bus", "RingSize"), 5)
        resumed = self.stream(daemon, "b", "Last-Event-ID: 2")
        client.publish("b")
        self.assertEqual(summary(resumed.read_frames(3)), "resync(seeded_replay_not_in_ring,2,10001) rc(0) #10001")

    def test_closed_bus_stays_closed_and_leaves_its_mark(self) -> None:
        client = self.client()
        daemon = self.run_daemon()
        client.create("b")
        client.publish_many("b", 3)
        client.bus("b", "Close")
        self.assert_clean(daemon)
        self.run_daemon()
        self.assertEqual(client.list_buses(), {})
        client.create("b")
        # The fourth was session_closed.
        self.assertEqual(client.publish("b"), 5)


if __name__ == "__main__":
    main()
