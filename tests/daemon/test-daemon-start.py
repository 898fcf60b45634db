#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""headwayd as a process: its command line, start, stop, replacement, and settings while it runs.

Environment: HEADWAYD: the program.
"""

from __future__ import annotations

import http.client
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
import unittest
from collections.abc import Callable
from typing import Any

sys.dont_write_bytecode = True
from daemon_harness import (  # noqa: E402
    BUS, HEADWAYD, MANAGER, NAME, NOBODY_THERE, ROOT, Case, Client, Daemon, GLib, MessageBus, Refused, Stream, UnixConnection, ask, main, path_of_bus, read_text,
    start_thread, wait_until)

DRAIN_SECONDS = 5.0  # the default drain window
OPTIONS = ("--session", "--system", "--bus-address", "--config", "--http-address", "--http-socket", "--no-http", "--http-auth", "--state-dir",
           "--runtime-dir", "--idle-exit", "--replace", "--verbose", "--version", "--help")
# Makes of a listening socket, descriptor 3, one that systemd has passed, and becomes headwayd.
ACTIVATE = "import os, sys; os.environ['LISTEN_PID'] = str(os.getpid()); os.execv(sys.argv[1], sys.argv[1:])"


def mode_of(path: str) -> int:
    return stat.S_IMODE(os.stat(path).st_mode)


class CommandLineTest(Case):
    def run_plain(self, *arguments: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run([HEADWAYD, *arguments], env={**os.environ, "LC_ALL": "C.UTF-8", **(env or {})}, capture_output=True, text=True, timeout=30, check=False)

    def test_help_names_every_option(self) -> None:
        done = self.run_plain("--help")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for option in OPTIONS:
            self.assertIn(option, done.stdout)

    def test_version(self) -> None:
        done = self.run_plain("--version")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"^headwayd \d+\.\d+\.\d+\n$")

    def test_bad_usage(self) -> None:
        for arguments in (["--nonsense"], ["word"], ["--session", "--system"], ["--http-auth=maybe"], ["--idle-exit=-1"], ["--idle-exit=soon"], ["--config"],
                          ["--no-http", "--http-address=127.0.0.1:0"], ["--no-http", f"--http-socket={self.folder}/s"]):
            with self.subTest(arguments):
                done = self.run_plain(f"--bus-address={self.message_bus.address}", f"--state-dir={self.folder}/s", f"--runtime-dir={self.folder}/r", *arguments)
                self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
                self.assertRegex(done.stderr, r"^headwayd: [^\n]+\n$")
        self.assertFalse(os.path.exists(f"{self.folder}/s"))

    def test_ready_line_tells_what_is_so(self) -> None:
        daemon = self.run_daemon("--http-address=127.0.0.1:0", "--http-address=[::1]:0")
        client = self.client()
        self.assertEqual(sorted(daemon.ready), ["dbus", "http", "tokenFile"])
        self.assertEqual(daemon.ready["dbus"], NAME)
        self.assertEqual(daemon.ready["tokenFile"], f"{self.folder}/run/token")
        unix, inet, inet6 = daemon.ready["http"]
        self.assertEqual(unix, f"unix:{self.folder}/run/http.sock")
        self.assertRegex(inet, r"^http://127\.0\.0\.1:[1-9]\d*$")
        self.assertRegex(inet6, r"^http://\[::1\]:[1-9]\d*$")
        self.assertEqual(client.get(ROOT, MANAGER, "HttpUris"), daemon.ready["http"])
        self.assertEqual(client.get(ROOT, MANAGER, "HttpTokenFile"), daemon.ready["tokenFile"])
        self.assertTrue(client.owner())
        self.assert_clean(daemon)

    def test_no_http(self) -> None:
        daemon = self.run_daemon("--no-http")
        self.assertEqual(daemon.ready, {"dbus": NAME, "http": []})
        self.assertFalse(os.path.exists(f"{self.folder}/run"))
        self.assertEqual(self.client().get(ROOT, MANAGER, "HttpTokenFile"), "")
        self.client().create("b")
        self.assert_clean(daemon)

    def test_http_socket(self) -> None:
        path = f"{self.folder}/else.sock"
        daemon = self.run_daemon(f"--http-socket={path}")
        self.assertEqual(daemon.ready["http"], [f"unix:{path}"])
        self.assertEqual(ask(UnixConnection(path), "GET", "/health"), (200, {"status": "ok"}))
        self.assertFalse(os.path.exists(daemon.socket))

    def test_buses_and_folders_of_the_environment(self) -> None:
        """Without options: the session bus, the XDG folders; systemd's folders win."""
        xdg = {"DBUS_SESSION_BUS_ADDRESS": self.message_bus.address, "XDG_STATE_HOME": f"{self.folder}/xs", "XDG_RUNTIME_DIR": f"{self.folder}/xr"}
        unit = {"STATE_DIRECTORY": f"{self.folder}/us:/nowhere", "RUNTIME_DIRECTORY": f"{self.folder}/ur:/nowhere"}
        system = {**unit, "DBUS_SYSTEM_BUS_ADDRESS": self.message_bus.address, "DBUS_SESSION_BUS_ADDRESS": "unix:path=/nonexistent"}
        for arguments, env, state, runtime in (
                [[], xdg, f"{self.folder}/xs/headway", f"{self.folder}/xr/headway"],
                [["--session", "--verbose"], {**xdg, **unit}, f"{self.folder}/us", f"{self.folder}/ur"],
                [["--system"], system, f"{self.folder}/us", f"{self.folder}/ur"]):
            with self.subTest(arguments):
                process = subprocess.Popen([HEADWAYD, *arguments], env={**os.environ, **env}, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
                try:
                    assert process.stdout is not None
                    self.assertIn(f"unix:{runtime}/http.sock", process.stdout.readline())
                    self.assertTrue(os.path.exists(f"{state}/buses"))
                    self.assertEqual(mode_of(runtime), 0o700)
                    process.terminate()
                    self.assertEqual(process.wait(30), 0)
                finally:
                    process.kill()
                    process.communicate()


class RefusedStartTest(Case):
    def test_name_is_taken(self) -> None:
        first = self.run_daemon()
        self.assert_fails(self.start(state="state2", runtime="run2", log="log2"), 1, NAME, "--replace")
        self.client().create("b")
        self.assertTrue(first.is_running())

    def test_state_folder_is_taken(self) -> None:
        first = self.run_daemon()
        self.assert_fails(self.start(runtime="run2", log="log2"), 1, f"{self.folder}/state")
        self.client().create("b")
        self.assertTrue(first.is_running())

    def test_no_message_bus(self) -> None:
        self.assert_fails(self.start(address=f"unix:path={self.folder}/nothing"), 1)

    def test_port_is_taken(self) -> None:
        taken = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(taken.close)
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        self.assert_fails(self.start(f"--http-address={address}"), 1, address)

    def test_bad_addresses(self) -> None:
        for number, address in enumerate(("127.0.0.1", "127.0.0.1:65536", "127.0.0.1:x", "example.com:80", ":80", "")):
            with self.subTest(address):
                self.assert_fails(self.start(f"--http-address={address}", log=f"log{number}"), 1, address)

    def test_no_token_only_on_loopback(self) -> None:
        for number, address in enumerate(("0.0.0.0:0", "[::]:0")):
            with self.subTest(address):
                self.assert_fails(self.start("--http-auth=none", f"--http-address={address}", log=f"log{number}"), 1, "token")
        daemon = self.run_daemon("--http-auth=none", "--http-address=127.0.0.1:0", "--http-address=localhost:0")
        self.assertNotIn("tokenFile", daemon.ready)
        self.assertFalse(os.path.exists(f"{self.folder}/run/token"))
        self.assertEqual(self.client().get(ROOT, MANAGER, "HttpTokenFile"), "")

    def test_bad_settings(self) -> None:
        for number, (text, words) in enumerate((
                ("ring-size=0\n", ("ring-size", "1", "1000000")),
                ("event-max-bytes=uint64 5242881\n", ("event-max-bytes", "5242880")),
                ("max-buses='many'\n", ("max-buses",)),
                ("max-busses=3\n", ("max-busses",)),
                ("http-addresses=12\n", ("http-addresses",)),
                ("garbage\n", ("headway.conf",)))):
            with self.subTest(text):
                path = self.config(text)
                line = self.assert_fails(self.start(f"--config={path}", log=f"log{number}"), 1, *words)
                self.assertIn("headway.conf", line)
        self.assertFalse(os.path.exists(f"{self.folder}/state"))

    def test_missing_settings(self) -> None:
        self.assert_fails(self.start(f"--config={self.folder}/nothing.conf"), 1, f"{self.folder}/nothing.conf")

    def test_folders_that_cannot_be_used(self) -> None:
        with open(f"{self.folder}/file", "w", encoding="utf-8"):
            pass
        self.assert_fails(self.start(state="file", log="log1"), 1, f"{self.folder}/file")
        self.assert_fails(self.start(runtime="file", log="log2"), 1, f"{self.folder}/file")


class ListenerTest(Case):
    def test_socket_mode_and_place(self) -> None:
        daemon = self.run_daemon()
        self.assertEqual(mode_of(daemon.socket), 0o600)
        self.assert_clean(daemon)
        self.assertFalse(os.path.exists(daemon.socket))

    def test_dead_socket_is_replaced(self) -> None:
        daemon = self.run_daemon()
        daemon.close()
        self.assertTrue(stat.S_ISSOCK(os.stat(daemon.socket).st_mode))
        daemon = self.run_daemon()
        self.assertEqual(ask(daemon.http(), "GET", "/health"), (200, {"status": "ok"}))
        self.assertEqual(mode_of(daemon.socket), 0o600)

    def test_living_socket_is_not(self) -> None:
        self.run_daemon()
        other = MessageBus(os.path.join(self.folder, "run"))
        self.addCleanup(other.stop)
        self.assert_fails(self.start(address=other.address, state="state2", log="log2"), 1, f"{self.folder}/run/http.sock")

    def test_file_that_is_no_socket_stays(self) -> None:
        os.mkdir(f"{self.folder}/run")
        with open(f"{self.folder}/run/http.sock", "w", encoding="utf-8") as file:
            file.write("mine")
        self.assert_fails(self.start(), 1, f"{self.folder}/run/http.sock")
        self.assertEqual(read_text(f"{self.folder}/run/http.sock"), "mine")

    def test_token_is_private_and_stays(self) -> None:
        daemon = self.run_daemon("--http-address=127.0.0.1:0")
        path = daemon.ready["tokenFile"]
        self.assertEqual(mode_of(path), 0o600)
        token = read_text(path).strip()
        self.assertGreaterEqual(len(token), 32)
        for end in (lambda: self.assert_clean(daemon), lambda: daemon.close()):
            end()
            daemon = self.run_daemon("--http-address=127.0.0.1:0")
            self.assertEqual(read_text(path).strip(), token)
        host, port = daemon.tcp_address()
        for headers, status in (({}, 401), ({"Authorization": "Bearer wrong"}, 401), ({"Authorization": f"Bearer {token}"}, 200)):
            connection = self.http(host, port)
            self.assertEqual(ask(connection, "GET", "/session", **headers)[0], status, headers)
        self.assertEqual(ask(self.http(host, port), "GET", "/health")[0], 200)

    def http(self, host: str, port: int) -> http.client.HTTPConnection:
        connection = http.client.HTTPConnection(host, port, timeout=30)
        self.addCleanup(connection.close)
        return connection

    def test_addresses_of_the_settings(self) -> None:
        path = self.config("http-addresses=['127.0.0.1:0', '[::1]:0']\n")
        daemon = self.run_daemon(f"--config={path}")
        self.assertEqual(len(daemon.ready["http"]), 3)
        self.assert_clean(daemon)
        daemon = self.run_daemon(f"--config={path}", "--http-address=127.0.0.1:0")
        self.assertEqual(len(daemon.ready["http"]), 2)


class SocketActivationTest(Case):
    def listening(self, path: str) -> socket.socket:
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.addCleanup(listening.close)
        listening.bind(path)
        listening.listen()
        return listening

    def activated(self, name: str, *options: str) -> Daemon:
        """Started with one passed socket, descriptor 3."""
        path = f"{self.folder}/passed"
        passed = self.listening(path)
        wrapper = ["/bin/sh", "-c", f"exec 3<&{passed.fileno()} && exec \"$@\"", "sh", sys.executable, "-c", ACTIVATE]
        return self.run_daemon(*options, wrapper=wrapper, pass_fds=[passed.fileno()], env={"LISTEN_FDS": "1", "LISTEN_FDNAMES": name})

    def test_passed_socket_is_used_instead(self) -> None:
        daemon = self.activated("http", "--http-address=127.0.0.1:0")
        self.assertEqual(daemon.ready["http"], [f"unix:{self.folder}/passed"])
        self.assertFalse(os.path.exists(daemon.socket))
        self.client().create("b")
        self.assertEqual(ask(UnixConnection(f"{self.folder}/passed"), "GET", "/session/b")[0], 200)
        self.assert_clean(daemon)
        # It is systemd's, who listens on.
        self.assertTrue(os.path.exists(f"{self.folder}/passed"))

    def test_socket_of_another_name_is_not(self) -> None:
        daemon = self.activated("else")
        self.assertEqual(daemon.ready["http"], [f"unix:{daemon.socket}"])
        self.assertIn("else", daemon.errors())

    @unittest.skipUnless(shutil.which("systemd-socket-activate"), "systemd-socket-activate is missing")
    def test_first_connection_starts_it(self) -> None:
        path = f"{self.folder}/passed"
        daemon = self.start(wrapper=["systemd-socket-activate", f"--listen={path}", "--fdname=http"])
        wait_until(lambda: os.path.exists(path), "the socket")
        connection = UnixConnection(path)
        wait_until(lambda: self.connects(connection), "a connection")
        self.assertEqual(ask(connection, "GET", "/health"), (200, {"status": "ok"}))
        daemon.wait_ready()
        self.assertEqual(daemon.ready["http"], [f"unix:{path}"])
        self.assert_clean(daemon)

    def connects(self, connection: UnixConnection) -> bool:
        try:
            connection.connect()
        except ConnectionRefusedError:
            return False
        return True


class NotifyTest(Case):
    def test_ready_and_stopping(self) -> None:
        path = f"{self.folder}/notify"
        notified = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(notified.close)
        notified.settimeout(30)
        notified.bind(path)
        daemon = self.start(env={"NOTIFY_SOCKET": path})
        self.assertEqual(notified.recv(4096), b"READY=1")
        # So it has its name.
        self.client().create("b")
        daemon.wait_ready()
        daemon.kill(signal.SIGTERM)
        self.assertEqual(notified.recv(4096), b"STOPPING=1")
        self.assertEqual(daemon.wait(), 0)


class StopTest(Case):
    def test_every_signal_and_any_number(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            with self.subTest(number):
                daemon = self.run_daemon()
                self.assert_clean(daemon, number)

    def test_readers_are_drained(self) -> None:
        daemon = self.run_daemon()
        client = self.client()
        client.create("b")
        streams = [self.stream(daemon, "b") for _ in range(3)]
        client.publish_many("b", 100)
        daemon.kill(signal.SIGTERM)
        for stream in streams:
            stream.read_to_end()
            self.assertTrue(stream.is_complete)
            self.assertEqual([frame["id"] for frame in stream.frames()], list(range(1, 101)))
        self.assertEqual(daemon.wait(), 0)

    def test_stopped_reader_gets_the_drain_window(self) -> None:
        path = self.config("drain-window-ms=1500\n")
        daemon = self.run_daemon(f"--config={path}")
        client = self.client()
        client.create("b", max_queued_bytes=GLib.Variant("t", 2**26))
        stopped = self.stream(daemon, "b")
        stream = self.stream(daemon, "b")
        reading = start_thread(stream.read_to_end)
        # More than its socket takes.
        text = '"' + "x" * 100_000 + '"'
        for _ in range(20):
            client.publish("b", text)
        started = time.monotonic()
        daemon.kill(signal.SIGTERM)
        reading.join(30)
        self.assertTrue(stream.is_complete)
        self.assertEqual(len(stream.frames()), 20)
        self.assertEqual(daemon.wait(), 0)
        self.assertLess(time.monotonic() - started, 1.5 + 1.0)
        self.assertGreater(time.monotonic() - started, 1.4)
        self.assertFalse(stopped.is_complete)

    def test_reader_that_goes_on_within_the_window_gets_all(self) -> None:
        daemon = self.run_daemon()
        client = self.client()
        client.create("b", max_queued_bytes=GLib.Variant("t", 2**26))
        slow = self.stream(daemon, "b")
        for _ in range(20):
            client.publish("b", '"' + "x" * 100_000 + '"')
        daemon.kill(signal.SIGTERM)
        wait_until(lambda: self.is_stopping(client), "that it stops")
        slow.read_to_end()
        self.assertTrue(slow.is_complete)
        self.assertEqual(len(slow.frames()), 20)
        self.assertEqual(daemon.wait(), 0)

    def is_stopping(self, client: Client) -> bool:
        try:
            client.manager("GetBus", "(s)", "b")
        except Refused as refused:
            self.assertEqual(refused.word, "Unavailable")
            return True
        return False

    def test_new_work_is_refused_while_it_drains(self) -> None:
        daemon = self.run_daemon()
        client = self.client()
        client.create("b")
        subscription = client.subscribe("b")
        client.publish("b")
        daemon.kill(signal.SIGTERM)
        wait_until(lambda: self.is_stopping(client), "that it stops")
        self.assert_refused("Unavailable", client.create, "c")
        self.assert_refused("Unavailable", client.subscribe, "b")
        self.assert_refused("Unavailable", client.publish, "b")
        # What is there can be read out, and then nothing keeps it.
        self.assertEqual([event[0] for event in client.receive(subscription, 0)], [1])
        self.assertLess(self.seconds_until_end(daemon), DRAIN_SECONDS / 2)

    def seconds_until_end(self, daemon: Daemon) -> float:
        started = time.monotonic()
        self.assertEqual(daemon.wait(), 0)
        return time.monotonic() - started

    def test_pending_receive_is_answered(self) -> None:
        daemon = self.run_daemon()
        client = self.client()
        client.create("b")
        subscription = client.subscribe("b")
        answers: list[str] = []

        def receive() -> None:
            try:
                answers.append(repr(client.receive(subscription, 20_000)))
            except Refused as refused:
                answers.append(refused.word)

        thread = start_thread(receive)
        wait_until(lambda: self.is_busy(client, subscription), "the pending call")
        daemon.kill(signal.SIGTERM)
        thread.join(30)
        self.assertEqual(answers, ["Closed"])
        self.assertEqual(daemon.wait(), 0)

    def is_busy(self, client: Client, subscription: str) -> bool:
        try:
            client.receive(subscription, 0)
        except Refused as refused:
            return refused.word == "Busy"
        return False

    def post(self, connection: http.client.HTTPConnection, body: bytes, kind: str = "json", **headers: str) -> http.client.HTTPConnection:
        """Sends it, and does not wait for the answer."""
        self.addCleanup(connection.close)
        connection.request("POST", "/session/b/events", body, {"Content-Type": f"application/{kind}", **headers})
        return connection

    def begin_post(self, daemon: Daemon, body: bytes, kind: str, *header: str) -> http.client.HTTPConnection:
        """Sends a part of it."""
        connection = daemon.http()
        self.addCleanup(connection.close)
        connection.putrequest("POST", "/session/b/events")
        connection.putheader("Content-Type", f"application/{kind}")
        connection.putheader(*header)
        connection.endheaders(body or None)
        return connection

    def begin_lines(self, daemon: Daemon, lines: bytes) -> http.client.HTTPConnection:
        chunk = b"%x\r\n%s\r\n" % (len(lines), lines) if lines else b""
        return self.begin_post(daemon, chunk, "x-ndjson", "Transfer-Encoding", "chunked")

    def answer(self, connection: http.client.HTTPConnection) -> tuple[int, Any]:
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())

    def test_publishers_before_an_interceptor_are_answered(self) -> None:
        """Nothing of theirs is published, and all are told to try again."""
        config = self.config("drain-window-ms=60000\n")
        daemon = self.run_daemon("--http-address=127.0.0.1:0", f"--config={config}")
        client, handler = self.client(), self.client()
        client.create("b")
        handler.hold_events("b", "pre")
        token = read_text(daemon.ready["tokenFile"]).strip()
        tcp = http.client.HTTPConnection(*daemon.tcp_address(), timeout=30)
        event = b'{"topic":"a.b","data":1}'
        two = event + b"\n" + event + b"\n"
        wholes = [self.post(daemon.http(), event), self.post(tcp, event, Authorization=f"Bearer {token}"),
                  self.post(daemon.http(), b"[" + event + b"," + event + b"]")]
        lines = [self.post(daemon.http(), two, "x-ndjson"), self.begin_lines(daemon, two)]
        words: list[str] = []

        def publish() -> None:
            words.append(self.assert_refused("Unavailable", client.publish, "b").message)

        publishing = start_thread(publish)
        watcher = self.client()
        wait_until(lambda: watcher.metrics()[("headway_publishes_undecided",)] == 6, "the publishes")
        daemon.kill(signal.SIGTERM)
        for connection in wholes:
            status, answer = self.answer(connection)
            self.assertEqual((status, answer["code"]), (503, "unavailable"))
            self.assertIn("not published", answer["error"])
        for connection in lines:
            status, answer = self.answer(connection)
            self.assertEqual((status, answer["code"], answer["line"], answer["published"]), (503, "unavailable", 1, 0))
        publishing.join(30)
        self.assertEqual(len(words), 1)
        self.assertIn("not published", words[0])
        # Long before the drain window is over: nobody waits for what the handler says.
        self.assertEqual(daemon.wait(), 0)

    def test_open_bodies_are_answered(self) -> None:
        """What has come is published; the answer says how far, and does not wait for the rest."""
        daemon = self.run_daemon()
        client = self.client()
        client.create("b")
        event = b'{"topic":"a.b","data":1}\n'
        some = self.begin_lines(daemon, event * 3 + b'{"top')
        none = self.begin_lines(daemon, b"")
        wait_until(lambda: client.get(path_of_bus("b"), BUS, "LastEventId") == 3, "the lines")
        half = self.begin_post(daemon, event, "json", "Content-Length", "100")
        wait_until(lambda: client.metrics()[("headway_connections", ("transport", "http"))] == 3, "the connections")
        daemon.kill(signal.SIGTERM)
        status, answer = self.answer(some)
        self.assertEqual((status, answer["code"], answer["line"], answer["published"], answer["lastId"]), (503, "unavailable", 4, 3, 3))
        status, answer = self.answer(none)
        self.assertEqual((status, answer["code"], answer["line"], answer["published"]), (503, "unavailable", 1, 0))
        status, answer = self.answer(half)
        self.assertEqual((status, answer["code"]), (503, "unavailable"))
        self.assertEqual(daemon.wait(), 0)

    def test_second_signal_does_no_harm(self) -> None:
        path = self.config("drain-window-ms=500\n")
        daemon = self.run_daemon(f"--config={path}")
        client = self.client()
        client.create("b")
        client.subscribe("b")
        client.publish("b")
        daemon.kill(signal.SIGTERM)
        wait_until(lambda: self.is_stopping(client), "that it stops")
        daemon.kill(signal.SIGTERM)
        daemon.kill(signal.SIGINT)
        self.assertEqual(daemon.wait(), 0)

    def test_lost_message_bus(self) -> None:
        daemon = self.run_daemon()
        client = self.client()
        client.create("b")
        client.publish_many("b", 7)
        stream = self.stream(daemon, "b", "Last-Event-ID: 0")
        self.message_bus.stop()
        stream.read_to_end()
        self.assertTrue(stream.is_complete)
        self.assertEqual(daemon.wait(), 0)
        other = MessageBus(self.folder)
        self.addCleanup(other.stop)
        daemon = self.run_daemon(address=other.address)
        # The exact mark was kept.
        self.assertEqual(ask(daemon.http(), "GET", "/session/b")[1]["lastEventId"], 7)

    def test_lost_name(self) -> None:
        daemon = self.run_daemon()
        client = self.client()
        client.create("b")
        owner = client.owner()
        client.call("/org/freedesktop/DBus", "org.freedesktop.DBus", "RequestName", "(su)", NAME, 2 | 4, destination="org.freedesktop.DBus")
        self.assertNotEqual(client.owner(), owner)
        self.assertEqual(daemon.wait(), 0)
        self.assertNotIn("WARNING", daemon.errors())


class RaceTest(Case):
    """Callers in a tight loop while headwayd comes and goes."""

    def setUp(self) -> None:
        super().setUp()
        self.is_over = threading.Event()
        self.wrong: list[str] = []
        self.counts: dict[str, int] = {}
        self.last_ids: dict[str, int] = {}
        self.config("auto-create-buses=false\n")

    def loop(self, work: Callable[[], str]) -> threading.Thread:
        def run() -> None:
            while not self.is_over.is_set():
                try:
                    outcome = work()
                except Exception as error:
                    self.wrong.append(repr(error))
                    return
                self.counts[outcome] = self.counts.get(outcome, 0) + 1
                if not outcome.startswith("ok"):
                    # Nobody is there for a while.
                    self.is_over.wait(0.001)

        return start_thread(run)

    def dbus(self, what: str, call: Callable[[Client], Any]) -> threading.Thread:
        client = Client(self.message_bus.address)

        def work() -> str:
            try:
                answer = call(client)
            except Refused as refused:
                if refused.word != "Unavailable" and refused.name not in NOBODY_THERE:
                    self.wrong.append(f"{what}: {refused}")
                return refused.word
            if what == "Publish":
                if answer <= self.last_ids.get(what, 0):
                    self.wrong.append(f"id {answer} after {self.last_ids[what]}")
                self.last_ids[what] = answer
            return f"ok {what}"

        return self.loop(work)

    def over_http(self, path: str) -> threading.Thread:
        def work() -> str:
            connection = UnixConnection(path)
            try:
                status, _ = ask(connection, "GET", "/session/b")
            except (OSError, http.client.HTTPException):
                return "nobody"
            finally:
                connection.close()
            if status not in (200, 503):
                self.wrong.append(f"GET: {status}")
            return f"ok HTTP {status}"

        return self.loop(work)

    def start_callers(self) -> list[threading.Thread]:
        return [
            self.dbus("GetBus", lambda client: client.manager("GetBus", "(s)", "b")),
            self.dbus("Publish", lambda client: client.publish("b")),
            self.dbus("Get", lambda client: client.get(path_of_bus("b"), BUS, "Name")),
            self.dbus("Fetch", lambda client: client.bus("b", "Fetch", "(tua{sv})", 0, 1, {})),
            self.over_http(f"{self.folder}/run/http.sock"),
        ]

    def finish(self, threads: list[threading.Thread]) -> None:
        self.is_over.set()
        for thread in threads:
            thread.join(30)
        self.assertEqual(self.wrong[:5], [])
        for what in ("GetBus", "Publish", "Get", "Fetch"):
            self.assertGreater(self.counts.get(f"ok {what}", 0), 0, self.counts)
        self.assertGreater(self.counts.get("ok HTTP 200", 0), 0, self.counts)

    def make(self, *options: str, **arguments: Any) -> Daemon:
        return self.start(f"--config={self.folder}/headway.conf", *options, **arguments)

    def test_restarts_never_lose_a_bus(self) -> None:
        daemon = self.make().wait_ready()
        self.client().create("b")
        threads = self.start_callers()
        for _ in range(20):
            seen = self.counts.get("ok Publish", 0)
            wait_until(lambda: self.counts.get("ok Publish", 0) > seen or self.wrong, "a publish")
            self.assert_clean(daemon)
            daemon = self.make().wait_ready()
        self.finish(threads)
        self.assert_clean(daemon)

    def test_replacement_never_loses_a_bus(self) -> None:
        daemon = self.make().wait_ready()
        self.client().create("b")
        threads = self.start_callers()
        for _ in range(10):
            seen = self.counts.get("ok Publish", 0)
            wait_until(lambda: self.counts.get("ok Publish", 0) > seen or self.wrong, "a publish")
            new = self.make("--replace")
            self.assertEqual(daemon.wait(), 0)
            daemon.close()
            daemon = new.wait_ready()
        self.finish(threads)
        # There is always somebody who owns the name, and who answers.
        self.assertEqual({word for word in self.counts if word in NOBODY_THERE}, set(), self.counts)
        self.assert_clean(daemon)


class ReplaceTest(Case):
    def test_without_anybody(self) -> None:
        self.assert_clean(self.run_daemon("--replace"))

    def test_ids_and_buses_go_on(self) -> None:
        old = self.run_daemon()
        client = self.client()
        client.create("b", ring_size=GLib.Variant("u", 5))
        self.assertEqual(client.publish_many("b", 7), 1)
        owner = client.owner()
        new = self.run_daemon("--replace", log="log2")
        self.assertEqual(old.wait(), 0)
        self.assertNotIn("WARNING", old.errors())
        self.assertNotEqual(client.owner(), owner)
        self.assertEqual(client.publish("b"), 8)
        self.assertEqual(client.list_buses()["b"]["RingSize"], 5)
        self.assertEqual(mode_of(new.socket), 0o600)
        self.assertEqual(ask(new.http(), "GET", "/session/b")[0], 200)

    def test_waits_while_the_old_one_drains(self) -> None:
        old = self.run_daemon()
        client = self.client()
        client.create("b")
        reader = self.client()
        subscription = reader.subscribe("b")
        client.publish("b")
        unique = client.owner()
        started = time.monotonic()
        new = self.start("--replace", log="log2")
        wait_until(lambda: client.owner() != unique, "the new owner")
        self.assert_refused("Unavailable", client.publish, "b")
        self.assert_refused("Unavailable", client.manager, "GetBus", "(s)", "b")
        # The reader of the old one can still read.
        events = reader.call(subscription, "org.headway.Headway1.Subscription", "Receive", "(ui)", 10, 0, destination=unique)[0]
        self.assertEqual(len(events), 1)
        new.wait_ready()
        self.assertLess(time.monotonic() - started, 10)
        self.assertEqual(old.wait(), 0)
        self.assertNotIn("WARNING", old.errors())
        self.assertEqual(client.publish("b"), 2)

    def test_old_one_that_hangs(self) -> None:
        """It is waited for, 10 s long, and then the new one says why it leaves."""
        old = self.run_daemon()
        client = self.client()
        client.create("b")
        old.kill(signal.SIGSTOP)
        try:
            started = time.monotonic()
            self.assert_fails(self.start("--replace", log="log2"), 1, f"{self.folder}/state")
            self.assertGreater(time.monotonic() - started, 9)
        finally:
            old.kill(signal.SIGCONT)
        self.assertEqual(old.wait(), 0)


class IdleTest(Case):
    """--idle-exit=1, of several instances at a time, since time has to pass."""

    def instance(self, name: str) -> tuple[Daemon, Client]:
        folder = os.path.join(self.folder, name)
        os.mkdir(folder)
        message_bus = MessageBus(folder)
        self.addCleanup(message_bus.stop)
        daemon = self.run_daemon("--idle-exit=1", address=message_bus.address, state=f"{name}/state", runtime=f"{name}/run", log=f"{name}/log")
        return daemon, Client(message_bus.address)

    def test_leaves_when_nobody_is_there_and_no_ring_would_be_lost(self) -> None:
        alone, _ = self.instance("alone")
        empty, client = self.instance("empty")
        client.create("b")
        read, read_client = self.instance("read")
        read_client.create("b")
        stream = Stream.over_unix(read.socket, "b")
        subscribed, subscribed_client = self.instance("subscribed")
        subscribed_client.create("b")
        subscribed_client.subscribe("b")
        kept, kept_client = self.instance("kept")
        kept_client.create("b")
        kept_client.publish("b")
        connected, _ = self.instance("connected")
        connection = connected.http()
        self.assertEqual(ask(connection, "GET", "/health")[0], 200)

        started = time.monotonic()
        self.assertEqual(alone.wait(), 0)
        self.assertEqual(empty.wait(), 0)
        self.assertLess(time.monotonic() - started, 5)
        # Three turns of the clock are enough for all that would leave.
        time.sleep(max(0.0, 3.2 - (time.monotonic() - started)))
        for daemon in (read, subscribed, kept, connected):
            self.assertTrue(daemon.is_running(), daemon.log)

        stream.close()
        subscribed_client.leave()
        kept_client.bus("b", "Close")
        connection.close()
        for daemon in (read, subscribed, kept, connected):
            self.assertEqual(daemon.wait(), 0, daemon.log)

    def test_never_by_default(self) -> None:
        daemon = self.run_daemon("--idle-exit=0")
        with self.assertRaises(subprocess.TimeoutExpired):
            daemon.wait(2.5)
        self.assert_clean(daemon)


class SettingsTest(Case):
    def test_change_applies_while_it_runs(self) -> None:
        path = self.config("max-buses=1\nevent-max-bytes=uint64 100\n")
        daemon = self.run_daemon(f"--config={path}")
        client = self.client()
        client.create("a")
        self.assert_refused("QuotaExceeded", client.create, "b")
        self.assert_refused("TooLarge", client.publish, "a", '"' + "x" * 200 + '"')

        self.config("max-buses=2\nevent-max-bytes=uint64 1000\nring-size=3\nauto-create-buses=false\n")
        wait_until(lambda: self.succeeds(client.create, "b"), "the new max-buses")
        wait_until(lambda: self.succeeds(client.publish, "a", '"' + "x" * 200 + '"'), "the new event-max-bytes")
        wait_until(lambda: not self.succeeds(client.manager, "GetBus", "(s)", "c"), "the new auto-create-buses")
        self.assert_refused("NoSuchBus", client.manager, "GetBus", "(s)", "c")
        client.bus("b", "Close")
        client.create("d")
        self.assertEqual(client.list_buses()["d"]["RingSize"], 3)
        self.assertEqual(client.list_buses()["a"]["RingSize"], 8000)
        self.assert_clean(daemon)

    def succeeds(self, func: Callable[..., Any], *arguments: Any) -> bool:
        try:
            func(*arguments)
        except Refused:
            return False
        return True

    def test_bad_change_changes_nothing(self) -> None:
        path = self.config("max-buses=1\n")
        daemon = self.run_daemon(f"--config={path}")
        client = self.client()
        client.create("a")
        self.config("max-buses=0\nring-size=3\n")
        wait_until(lambda: "max-buses" in daemon.errors(), "the warning")
        self.assert_refused("QuotaExceeded", client.create, "b")
        self.config("max-buses=2\n")
        wait_until(lambda: self.succeeds(client.create, "b"), "the new max-buses")
        self.assertEqual(client.list_buses()["b"]["RingSize"], 8000)
        self.assert_clean(daemon)

    def test_auto_create(self) -> None:
        daemon = self.run_daemon()
        client = self.client()
        client.manager("GetBus", "(s)", "one")
        self.assertEqual(ask(daemon.http(), "POST", "/session/two/events", {"topic": "t", "data": 1}), (200, {"id": 1}))
        for method, path in (("GET", "/session/three"), ("GET", "/session/three/events"), ("HEAD", "/session/three/events"), ("DELETE", "/session/three")):
            self.assertEqual(ask(daemon.http(), method, path)[0], 404, (method, path))
        self.assertEqual(sorted(client.list_buses()), ["one", "two"])

    def test_auto_create_off(self) -> None:
        path = self.config("auto-create-buses=false\n")
        daemon = self.run_daemon(f"--config={path}")
        client = self.client()
        self.assert_refused("NoSuchBus", client.manager, "GetBus", "(s)", "one")
        self.assertEqual(ask(daemon.http(), "POST", "/session/two/events", {"topic": "t", "data": 1})[0], 404)
        self.assertEqual(client.list_buses(), {})
        client.create("one")
        client.manager("GetBus", "(s)", "one")
        self.assertEqual(ask(daemon.http(), "POST", "/session/one/events", {"topic": "t", "data": 1}), (200, {"id": 1}))

    def test_max_buses(self) -> None:
        path = self.config("max-buses=3\n")
        daemon = self.run_daemon(f"--config={path}")
        client = self.client()
        for name in ("a", "b", "c"):
            client.create(name)
        self.assertIn("3", self.assert_refused("QuotaExceeded", client.create, "d").message)
        self.assert_refused("QuotaExceeded", client.manager, "GetBus", "(s)", "d")
        status, answer = ask(daemon.http(), "PUT", "/session/d", {})
        self.assertEqual((status, answer["code"]), (413, "quota_exceeded"))
        # All three outlive it, even where fewer are allowed now.
        self.assert_clean(daemon)
        self.config("max-buses=1\n")
        daemon = self.run_daemon(f"--config={path}")
        self.assertEqual(sorted(client.list_buses()), ["a", "b", "c"])
        client.bus("a", "Close")
        wait_until(lambda: len(client.list_buses()) == 2, "that it is gone")
        self.assert_refused("QuotaExceeded", client.create, "a")

    def test_unused_bus_expires(self) -> None:
        path = self.config("bus-expire-seconds=1\n")
        daemon = self.run_daemon(f"--config={path}")
        client = self.client()
        client.create("unused")
        client.publish_many("unused", 5)
        client.create("read")
        stream = self.stream(daemon, "read")
        client.create("received")
        client.subscribe("received")
        wait_until(lambda: "unused" not in client.list_buses(), "that it is gone")
        # Two more turns of the clock.
        time.sleep(2.2)
        self.assertEqual(sorted(client.list_buses()), ["read", "received"])
        client.create("unused")
        # Nothing was published at its end.
        self.assertEqual(client.publish("unused"), 6)
        self.assertEqual(stream.frames(), [])


class FullDiskTest(Case):
    """A daemon on a file system of 64 KiB, in a mount namespace of its own."""

    def test_full_disk_is_unavailable_until_there_is_space(self) -> None:
        os.mkdir(f"{self.folder}/state")
        script = f"mount -t tmpfs -o size=64k none {self.folder}/state && exec \"$@\""
        unshare = ["unshare", "--mount"] if os.getuid() == 0 else ["unshare", "--mount", "--map-root-user"]
        if subprocess.run([*unshare, "sh", "-c", script, "sh", "true"], check=False, capture_output=True).returncode != 0:
            self.skipTest("no small file system can be mounted here")
        daemon = self.run_daemon(wrapper=[*unshare, "sh", "-c", script, "sh"])
        client = self.client()
        client.create("a")
        self.assertEqual(client.publish("a"), 1)
        filler = f"/proc/{daemon.pid}/root{self.folder}/state/filler"
        with open(filler, "wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(4096))
            except OSError:
                pass
        self.assertIn("No space left", self.assert_refused("Unavailable", client.create, "b").message)
        status, answer = ask(daemon.http(), "POST", "/session/b/events", {"topic": "t", "data": 1})
        self.assertEqual((status, answer["code"]), (503, "unavailable"))
        self.assertEqual(client.publish_many("a", 4096), 2)
        self.assertEqual(client.publish_many("a", 4096), 4098)
        self.assertEqual(client.publish_many("a", 1807), 8194)
        self.assert_refused("Unavailable", client.publish, "a")
        self.assertEqual(client.list_buses()["a"]["LastEventId"], 10000)
        self.assertEqual(daemon.errors().count("no event ids can be reserved"), 1)
        os.unlink(filler)
        self.assertEqual(client.publish("a"), 10001)
        client.create("b")
        self.assert_clean(daemon)


if __name__ == "__main__":
    main()
