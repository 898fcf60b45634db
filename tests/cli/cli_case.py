# SPDX-License-Identifier: LGPL-2.1-or-later
"""A message bus, a state directory and a headwayd of its own for each test of `headway`.

Environment: HEADWAY, HEADWAYD: the programs. HEADWAY_TEST_VERBOSE: pass the daemon's output through.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(1, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from unittest_tap import main  # noqa: E402, F401

HEADWAY = os.environ["HEADWAY"]
HEADWAYD = os.environ["HEADWAYD"]
PATIENCE = 20  # seconds until something that must happen counts as missing


class Program:
    """A running program whose lines are read as they come."""

    def __init__(self, command, env):
        self.process = subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.out = []
        self.err = []
        self.changed = threading.Condition()
        self.collectors = [threading.Thread(target=self.collect, args=(stream, lines), daemon=True)
                           for stream, lines in ((self.process.stdout, self.out), (self.process.stderr, self.err))]
        for collector in self.collectors:
            collector.start()

    def collect(self, stream, lines):
        for line in stream:
            with self.changed:
                lines.append(line.rstrip("\n"))
                self.changed.notify_all()

    def wait_until(self, condition, what):
        with self.changed:
            if not self.changed.wait_for(condition, PATIENCE):
                raise AssertionError(f"{what} did not come; out {shorten(self.out)}, err {shorten(self.err)}")

    def wait_lines(self, count):
        self.wait_until(lambda: len(self.out) >= count, f"line {count}")
        return self.out[:count]

    def wait_error(self, pattern, count=1):
        self.wait_until(lambda: sum(1 for line in self.err if re.search(pattern, line)) >= count, f"/{pattern}/")

    def wait_exit(self):
        """Its exit status, once everything that it has written is read."""
        status = self.process.wait(PATIENCE)
        for collector in self.collectors:
            collector.join(PATIENCE)
        return status

    def stop(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            try:
                stream.close()
            except OSError:
                pass


def shorten(lines):
    return len(lines), [line[:200] for line in lines[-5:]]


class Case(unittest.TestCase):
    http = False
    via = None  # of `sub`, where it is not the default

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="headway-cli-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.programs = []
        self.addCleanup(self.stop_programs)
        self.bus = subprocess.Popen(["dbus-daemon", "--session", "--nofork", "--nopidfile", "--print-address"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(self.stop_bus)
        self.env = dict(
            os.environ, DBUS_SESSION_BUS_ADDRESS=self.bus.stdout.readline().strip(), LC_ALL="C.UTF-8",
            XDG_RUNTIME_DIR=self.folder, XDG_STATE_HOME=self.folder, XDG_CONFIG_HOME=self.folder,
        )
        self.env.pop("HEADWAY_TOKEN", None)
        self.daemon = None
        self.settings = ""
        self.start_daemon()

    def stop_bus(self):
        self.bus.kill()
        self.bus.wait()
        self.bus.stdout.close()

    def stop_programs(self):
        for program in self.programs:
            program.stop()
        self.stop_daemon(signal.SIGKILL)

    def start_daemon(self):
        command = [HEADWAYD, "--state-dir", f"{self.folder}/state", "--runtime-dir", f"{self.folder}/run", "--http-address", "127.0.0.1:0"]
        if self.settings:
            with open(f"{self.folder}/headway.conf", "w", encoding="utf-8") as file:
                file.write("[headway]\n" + self.settings)
            command += ["--config", f"{self.folder}/headway.conf"]
        errors = None if os.environ.get("HEADWAY_TEST_VERBOSE") else subprocess.DEVNULL
        self.daemon = subprocess.Popen(command, env=self.env, stdout=subprocess.PIPE, stderr=errors, text=True)
        self.ready = json.loads(self.daemon.stdout.readline())
        self.unix_url = next(uri for uri in self.ready["http"] if uri.startswith("unix:"))
        self.tcp_url = next(uri for uri in self.ready["http"] if uri.startswith("http:"))

    def stop_daemon(self, number=signal.SIGTERM):
        if self.daemon is None:
            return
        self.daemon.send_signal(number)
        status = self.daemon.wait(PATIENCE)
        self.daemon.stdout.close()
        self.daemon = None
        if number == signal.SIGTERM:
            self.assertEqual(status, 0)

    def restart_daemon(self, number=signal.SIGTERM):
        self.stop_daemon(number)
        self.start_daemon()

    def command(self, *arguments):
        connection = [f"--http={self.unix_url}"] if self.http else []
        way = [f"--via={self.via}"] if self.via and arguments[0] == "sub" else []
        return [HEADWAY, *connection, *arguments, *way]

    def start(self, *arguments):
        program = Program(self.command(*arguments), self.env)
        self.programs.append(program)
        return program

    def run_headway(self, *arguments, status=0, stdin="", plain=False):
        command = [HEADWAY, *arguments] if plain else self.command(*arguments)
        if isinstance(stdin, str):
            stdin = stdin.encode()
        done = subprocess.run(command, env=self.env, input=stdin, capture_output=True, timeout=60, check=False)
        if status is not None:
            self.assertEqual(done.returncode, status, done)
        return done.stdout.decode(), done.stderr.decode()

    def subscribe(self, *arguments):
        """A reader that is subscribed for sure when this returns."""
        before = self.subscribers(arguments[0])
        program = self.start("sub", *arguments)
        deadline = time.monotonic() + PATIENCE
        while self.subscribers(arguments[0]) <= before:
            self.assertLess(time.monotonic(), deadline, "no subscription")
            self.assertIsNone(program.process.poll(), program.err)
        return program

    def subscribers(self, bus):
        return json.loads(self.run_headway("info", bus, "--json")[0])["subscribers"]


def own_id(event):
    """The id of an event itself; in mode routed `id` says where to go on."""
    return event.get("seq", event.get("id"))


def weigh(line):
    """How many events @line stands for: an event, or those lost in a gap."""
    event = json.loads(line)
    return event["data"]["count"] if event["type"] == "gap" else 1


def numbers(reader):
    return [event["data"] for event in map(json.loads, list(reader.out)) if own_id(event)]
