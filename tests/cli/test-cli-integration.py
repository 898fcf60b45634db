#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Every command of `headway` against a real headwayd on a private message bus.

Each test has a message bus, a state directory and a daemon of its own. Environment:
HEADWAY, HEADWAYD: the programs. HEADWAY_TEST_VERBOSE: pass the daemon's output through.
"""

import fcntl
import importlib.util
import json
import os
import pty
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
import unittest

sys.dont_write_bytecode = True
import tap  # noqa: E402

HEADWAY = os.environ["HEADWAY"]
HEADWAYD = os.environ["HEADWAYD"]
spec = importlib.util.spec_from_file_location("prometheus", os.path.join(os.path.dirname(__file__), "../wire/check-prometheus.py"))
prometheus = importlib.util.module_from_spec(spec)
spec.loader.exec_module(prometheus)
PATIENCE = 20  # seconds until something that must happen counts as missing


class Program:
    """A running program whose lines are read as they come."""

    def __init__(self, command, env):
        self.process = subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.out = []
        self.err = []
        self.changed = threading.Condition()
        for stream, lines in ((self.process.stdout, self.out), (self.process.stderr, self.err)):
            threading.Thread(target=self.collect, args=(stream, lines), daemon=True).start()

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
        return self.process.wait(PATIENCE)

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
        return [HEADWAY, *([f"--http={self.unix_url}"] if self.http else []), *arguments]

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


class Commands(Case):
    def test_publish_and_read(self):
        self.assertEqual(self.run_headway("pub", "demo", "a.b", '{"n":1}')[0], "1\n")
        self.assertEqual(self.run_headway("pub", "demo", "a.c", stdin='{"n":\n2}\n')[0], "2\n")
        self.assertEqual(self.run_headway("pub", "demo", "x", "-", "--type=kind", "--client=me", "--principal=agent:p", "--final", stdin="3")[0], "3\n")
        self.assertEqual(self.run_headway("pub", "demo", "x", "it's", "--string", "--principal=")[0], "4\n")
        out, err = self.run_headway("sub", "demo", "--after=0", "--count=4", "--json")
        events = [json.loads(line) for line in out.splitlines()]
        events = [event for event in events if "id" in event]
        self.assertEqual([event["id"] for event in events], [1, 2, 3, 4])
        self.assertEqual([event["data"] for event in events], [{"n": 1}, {"n": 2}, 3, "it's"])
        self.assertEqual([event["type"] for event in events], ["message", "message", "kind", "message"])
        self.assertEqual(events[2]["principal"], "agent:p")
        self.assertEqual(events[2]["originatorClientId"], "me")
        self.assertNotIn("principal", events[3])
        self.assertEqual(events[0]["principal"], f"uid:{os.getuid()}")
        self.assertEqual(list(events[0]), ["id", "v", "type", "data", "topic", "principal", "_meta"])
        out, err = self.run_headway("sub", "demo", "a.*", "--after=0", "--count=2")
        self.assertRegex(out, r"\A1  \d\d:\d\d:\d\d\.\d{3}  a\.b  uid:\d+  \{\"n\":1\}\n2  [^\n]*  a\.c  uid:\d+  \{\"n\": 2\}\n\Z")

    def test_data_goes_through_byte_for_byte(self):
        data = r'{"big":123456789012345678901234567890,"e":1E400,"s":"\ud800\u0000","n":1.50, "d":[ ]}'
        self.run_headway("pub", "demo", "t", data)
        self.run_headway("pub", "demo", "t", "--ndjson", stdin='{"data":%s,"_meta":{"k":1.50}}\n' % data)
        out = self.run_headway("sub", "demo", "--after=0", "--count=2", "--json")[0]
        self.assertEqual(out.count('"data":' + data + ","), 2)
        self.assertIn('"k":1.50', out)

    def test_filters(self):
        for number, kind in enumerate(("a", "b", "a"), 1):
            self.run_headway("pub", "demo", "t", str(number), f"--type={kind}", f"--principal=p{kind}")
        self.assertEqual(self.ids("demo", "--type=a", "--count=2"), [1, 3])
        self.assertEqual(self.ids("demo", "--type=b,c", "--count=1"), [2])
        self.assertEqual(self.ids("demo", "other", "t", "--count=3"), [1, 2, 3])
        self.assertEqual(self.ids("demo", "--count=1", after=2), [3])

    def ids(self, *arguments, after=0):
        out = self.run_headway("sub", *arguments, f"--after={after}", "--json")[0]
        return [event["id"] for event in map(json.loads, out.splitlines()) if "id" in event]

    def test_lines(self):
        out, err = self.run_headway("pub", "demo", "log", "--lines", stdin=b'one\n\n"\\\r\nbad \xff\nlast')
        self.assertEqual(out, "1-5 5\n")
        self.assertIn("1 place was no UTF-8", err)
        events = self.data("demo", 5)
        self.assertEqual(events, ["one", "", '"\\\r', "bad \ufffd", "last"])
        self.assertEqual(self.run_headway("pub", "demo", "log", "--lines", stdin="")[0], "0-0 0\n")

    def data(self, bus, count, *more):
        out = self.run_headway("sub", bus, "--after=0", f"--count={count}", "--json", *more)[0]
        return [event["data"] for event in map(json.loads, out.splitlines()) if "id" in event]

    def test_json_lines_stop_at_the_bad_one(self):
        lines = "".join(f"{number}\n" for number in range(700)) + "{bad}\n" + "1\n" * 2000
        out, err = self.run_headway("pub", "demo", "n", "--json-lines", stdin=lines, status=2)
        self.assertEqual(out, "1-700 700\n")
        self.assertRegex(err, r"line 701: InvalidData: (?!event)")
        self.assertIn("--lines", err)
        self.assertEqual(self.data("demo", 700), list(range(700)))

    def test_ndjson(self):
        lines = '{"data":1,"type":"own"}\n\n{"topic":"x","data":2,"principal":"agent:q","originatorClientId":"c"}\r\n{"data":3,"topic":"y"}'
        self.assertEqual(self.run_headway("pub", "demo", "--ndjson", stdin=lines)[0], "1-3 3\n")
        self.assertEqual(self.data("demo", 3), [1, 2, 3])
        copy = self.run_headway("sub", "demo", "--after=0", "--count=3", "--json")[0]
        copy = "".join(line + "\n" for line in copy.splitlines() if "id" in json.loads(line))
        self.assertEqual(self.run_headway("pub", "copy", "--ndjson", stdin=copy)[0], "1-3 3\n")
        out, err = self.run_headway("pub", "demo", "--ndjson", stdin='{"data":1,"topic":"a"}\n{"data":1}\n', status=2)
        self.assertEqual(out, "4-4 1\n")
        self.assertIn("line 2: neither a topic nor a type", err)

    def test_many_lines_in_order(self):
        lines = "".join(f"{number}\n" for number in range(7000))
        self.assertEqual(self.run_headway("pub", "demo", "n", "--json-lines", stdin=lines)[0], "1-7000 7000\n")
        self.assertEqual(self.data("demo", 7000), list(range(7000)))

    def test_lines_are_published_as_they_come(self):
        self.run_headway("create", "demo")
        reader = self.subscribe("demo", "--json")
        writer = self.start("pub", "demo", "log", "--lines")
        for number in range(3):
            writer.process.stdin.write(f"line {number}\n")
            writer.process.stdin.flush()
            self.assertEqual(json.loads(reader.wait_lines(number + 1)[number])["data"], f"line {number}")
        writer.process.send_signal(signal.SIGINT)
        self.assertEqual(writer.wait_exit(), 0)
        self.assertEqual(writer.wait_lines(1), ["1-3 3"])

    def test_errors(self):
        out, err = self.run_headway("pub", "demo", "t", "{foo}", status=2)
        self.assertRegex(err, r"InvalidData: .*1")
        self.assertIn("--string", err)
        self.assertIn("InvalidTopic: ", self.run_headway("pub", "demo", "a..b", "1", status=1)[1])
        self.assertIn("InvalidType: ", self.run_headway("pub", "demo", "t", "1", "--type=client_evicted", status=1)[1])
        self.assertIn("InvalidName: ", self.run_headway("pub", "a b", "t", "1", status=1)[1])
        self.assertIn("NoSuchBus: ", self.run_headway("sub", "nope", status=1)[1])
        self.assertIn("NoSuchBus: ", self.run_headway("info", "nope", status=1)[1])
        self.assertIn("NoSuchBus: ", self.run_headway("close", "nope", status=1)[1])
        self.run_headway("create", "modes")
        self.assertIn("Invalid", self.run_headway("sub", "modes", "--mode=other", status=1)[1])
        self.assertIn("InvalidPattern: ", self.run_headway("sub", "modes", "a..b", status=1)[1])
        self.assertIn("Invalid", self.run_headway("create", "other", "--ring-size=0", status=1)[1])

    def test_buses(self):
        self.assertEqual(json.loads(self.run_headway("buses", "--json")[0]), [])
        made = json.loads(self.run_headway("create", "two.2", "--ring-size=3", "--max-subscribers=2", "--ring-max-bytes=5000", "--json")[0])
        self.assertEqual((made["name"], made["ringSize"], made["lastEventId"]), ("two.2", 3, 0))
        self.assertEqual(self.run_headway("create", "1-one"), ("", ""))
        self.run_headway("pub", "two.2", "t", "--lines", stdin="a\nb\nc\nd\ne\n")
        info = json.loads(self.run_headway("info", "two.2", "--json")[0])
        self.assertEqual((info["firstEventId"], info["lastEventId"], info["subscribers"]), (3, 5, 0))
        self.assertEqual(info["epoch"], made["epoch"])
        self.assertEqual([bus["name"] for bus in json.loads(self.run_headway("buses", "--json")[0])], ["1-one", "two.2"])
        self.assertRegex(self.run_headway("buses")[0], r"\ANAME .*\n1-one .*\ntwo\.2 +3 +5 +\d+ +0\n\Z")
        self.assertRegex(self.run_headway("info", "two.2")[0], r"\Aname +two\.2\n(.*\n)+subscribers +0\n\Z")
        self.assertIn("BusExists: ", self.run_headway("create", "two.2", "--ring-size=4", status=1)[1])
        self.assertEqual(self.run_headway("close", "two.2"), ("", ""))
        self.assertEqual([bus["name"] for bus in json.loads(self.run_headway("buses", "--json")[0])], ["1-one"])

    def test_closed_bus_ends_the_reader(self):
        self.run_headway("create", "demo")
        reader = self.subscribe("demo", "--json")
        self.run_headway("pub", "demo", "t", "1")
        self.run_headway("close", "demo")
        self.assertEqual(reader.wait_exit(), 0)
        last = json.loads(reader.wait_lines(2)[1])
        self.assertEqual((last["id"], last["type"], last["data"]["reason"]), (2, "session_closed", "closed"))

    def test_timeout(self):
        self.run_headway("create", "demo")
        self.run_headway("sub", "demo", "--timeout=0.3", "--count=1", status=4)
        self.run_headway("sub", "demo", "--timeout=0.3", status=0)
        self.run_headway("pub", "demo", "t", "1")
        out = self.run_headway("sub", "demo", "--after=0", "--timeout=1", "--count=2", "--json", status=4)[0]
        self.assertEqual(json.loads(out.splitlines()[0])["id"], 1)

    def test_signals_end_with_0(self):
        self.run_headway("create", "demo")
        for number in (signal.SIGINT, signal.SIGTERM):
            reader = self.subscribe("demo")
            reader.process.send_signal(number)
            self.assertEqual(reader.wait_exit(), 0)
            self.assertEqual((reader.out, reader.err), ([], []))

    def test_nobody_reads_the_output(self):
        self.run_headway("pub", "demo", "t", "--lines", stdin="x" * 100 + "\n" * 5000)
        for arguments in (["--after=0"], []):
            process = subprocess.Popen(self.command("sub", "demo", *arguments), env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            if arguments:
                process.stdout.read(10)
            process.stdout.close()
            self.assertEqual(process.wait(PATIENCE), 0)
            self.assertNotIn(b"rite", process.stderr.read())
            process.stderr.close()

    def test_stuck_output_does_not_hold_up_signals(self):
        self.run_headway("pub", "demo", "t", "--lines", stdin=("x" * 1000 + "\n") * 2000)
        process = subprocess.Popen(self.command("sub", "demo", "--after=0"), env=self.env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        process.stdout.read(10)
        time.sleep(0.3)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(PATIENCE), 0)
        process.stdout.close()

    def test_readable_output_is_harmless(self):
        self.run_headway("pub", "demo", "t", stdin="\"\x7f\u009b1m\u202e\"")
        out = self.run_headway("sub", "demo", "--after=0", "--count=1")[0]
        self.assertIn("\\u007f\\u009b1m\\u202e", out)

    def read_after_restart(self, number):
        self.run_headway("create", "demo")
        self.run_headway("pub", "demo", "n", "--json-lines", stdin="0\n1\n")
        reader = self.subscribe("demo", "--after=0", "--json")
        for round_number in range(2):
            reader.wait_until(lambda: len(numbers(reader)) >= 2 + 3 * round_number, "events")
            self.restart_daemon(number)
            reader.wait_error("resumed behind", round_number + 1)
            first = 2 + 3 * round_number
            self.run_headway("pub", "demo", "n", "--json-lines", stdin=f"{first}\n{first + 1}\n{first + 2}\n")
        reader.wait_until(lambda: len(numbers(reader)) >= 8, "events")
        self.assertEqual(numbers(reader), list(range(8)))
        ids = [event["id"] for event in map(json.loads, reader.out) if "id" in event]
        self.assertEqual(ids, sorted(set(ids)))
        reader.process.send_signal(signal.SIGINT)
        self.assertEqual(reader.wait_exit(), 0)

    def test_resume_after_a_restart(self):
        self.read_after_restart(signal.SIGTERM)

    def test_resume_after_a_crash(self):
        self.read_after_restart(signal.SIGKILL)

    def test_resume_before_the_first_event(self):
        self.run_headway("create", "demo")
        reader = self.subscribe("demo", "--json")
        self.stop_daemon()
        reader.wait_error("waiting to go on")
        self.start_daemon()
        self.run_headway("pub", "demo", "t", "7")
        reader.wait_until(lambda: numbers(reader) == [7], "the event")

    def test_eviction(self):
        self.run_headway("create", "demo")
        reader = subprocess.Popen(self.command("sub", "demo", "--json", "--max-queued=16"), env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + PATIENCE
        while self.subscribers("demo") == 0:
            self.assertLess(time.monotonic(), deadline)
        # Nobody reads: first the pipe fills, then the socket, then the queue.
        lines = "".join(f'{{"n":{number},"pad":"{"x" * 4000}"}}\n' for number in range(2000))
        self.run_headway("pub", "demo", "n", "--json-lines", stdin=lines)
        seen = []
        evicted = False
        for line in reader.stdout:
            event = json.loads(line)
            evicted = evicted or event["type"] == "client_evicted"
            if "id" in event:
                seen.append(event["data"]["n"])
            if seen and seen[-1] == 1999:
                break
        reader.send_signal(signal.SIGINT)
        self.assertEqual(reader.wait(PATIENCE), 0)
        self.assertTrue(evicted)
        self.assertEqual(seen, list(range(2000)))
        self.assertIn("evicted by the daemon; going on behind", reader.stderr.read())
        reader.stdout.close()
        reader.stderr.close()

    def stopped_reader(self, *arguments, lines=4000, principals=("",)):
        """Output of a reader that stands still while @lines events of 1000 bytes are published, then reads on."""
        reader = self.subscribe("demo", *arguments)
        reader.process.send_signal(signal.SIGSTOP)
        for principal in principals:
            text = ("x" * 1000 + "\n") * (lines // len(principals))
            self.run_headway("pub", "demo", "t", "--lines", f"--principal={principal}", stdin=text)
        reader.process.send_signal(signal.SIGCONT)
        return reader

    def budget(self):
        return [] if self.http else ["--budget=100000"]

    def check_gaps(self, reader, reasons):
        reader.wait_until(lambda: sum(map(weigh, reader.out)) >= 4000, "all events or gaps for them")
        events = [json.loads(line) for line in reader.out]
        gaps = [event for event in events if event["type"] == "gap"]
        self.assertTrue(gaps)
        for gap in gaps:
            self.assertNotIn("id", gap)
            self.assertIn(gap["data"]["reason"], reasons)
        got = [own_id(event) for event in events if event["type"] != "gap"]
        self.assertEqual(len(got), len(set(got)))
        self.assertEqual(len(got) + sum(gap["data"]["count"] for gap in gaps), 4000)
        self.assertEqual(reader.err, [])

    def test_routed_gaps(self):
        self.run_headway("create", "demo", "--ring-size=10000")
        reader = self.stopped_reader("--mode=routed", "--json", *self.budget(), principals=("agent:a", "agent:b"))
        self.check_gaps(reader, ["budget"])

    def test_routed_gaps_are_readable(self):
        self.run_headway("create", "demo")
        reader = self.stopped_reader("--mode=routed", "--eviction=fair", *self.budget(), principals=("agent:a",))
        reader.wait_error(r"^headway: \d+ events of agent:a lost between \d+ and \d+ \(budget: too many bytes waited\)$")
        self.assertEqual(sum(" agent:a " in line and " lost " in line for line in reader.out), 0)

    def test_broadcast_gaps(self):
        self.run_headway("create", "demo", "--channel-capacity=64")
        self.check_gaps(self.stopped_reader("--mode=broadcast", "--json"), ["lagged"])

    def test_metrics(self):
        for number, principal in enumerate(("agent:\u00e4\"x", "agent:b")):
            self.run_headway("pub", "demo", "hostile.topic", str(number), f"--principal={principal}", status=None)
        text = self.run_headway("metrics")[0]
        self.assertEqual(list(prometheus.problems(text.encode())), [])
        self.assertRegex(text, r'(?m)^headway_events_published_total\{kind="event"\} [12]$')
        self.assertRegex(text, r'(?m)^headway_route_drops_total\{subscriber="sse",principal_class="user",reason="budget"\} 0$')
        self.assertNotIn("hostile", text)
        other = self.run_headway("metrics", f"--http={self.unix_url}", plain=True)[0]
        names = [[line.split(" ")[0] for line in each.splitlines() if not line.startswith("#")] for each in (text, other)]
        self.assertEqual(*names)

    def test_scope(self):
        self.run_headway("create", "demo")
        one = self.subscribe("demo", "--mode=routed", "--scope=agent:a", "--json", "--count=2")
        system = self.subscribe("demo", "--mode=routed", "--scope=", "--json", "--count=1")
        for number, principal in enumerate(("agent:a", "agent:b", "", "agent:a")):
            self.run_headway("pub", "demo", "t", str(number), f"--principal={principal}")
        self.assertEqual((one.wait_exit(), system.wait_exit()), (0, 0))
        self.assertEqual((numbers(one), numbers(system)), ([0, 3], [2]))

    def test_resume_in_other_modes(self):
        self.run_headway("create", "demo")
        for mode in ("routed", "broadcast"):
            reader = self.subscribe("demo", f"--mode={mode}", "--json", "--count=4")
            self.run_headway("pub", "demo", "n", "--json-lines", stdin="0\n1\n")
            reader.wait_until(lambda: len(numbers(reader)) == 2, "events")
            self.restart_daemon()
            reader.wait_error("resumed behind")
            self.run_headway("pub", "demo", "n", "--json-lines", stdin="2\n3\n")
            self.assertEqual(reader.wait_exit(), 0)
            self.assertEqual(numbers(reader), [0, 1, 2, 3])


def own_id(event):
    """The id of an event itself; in mode routed `id` says where to go on."""
    return event.get("seq", event.get("id"))


def weigh(line):
    """How many events @line stands for: an event, or those lost in a gap."""
    event = json.loads(line)
    return event["data"]["count"] if event["type"] == "gap" else 1


def numbers(reader):
    return [event["data"] for event in map(json.loads, list(reader.out)) if own_id(event)]


class Screen:
    """`headway top` on a pseudo terminal, and what is on its screen."""

    def __init__(self, env, width=80, height=24):
        self.master, slave = pty.openpty()
        self.resize(width, height)
        self.before = termios.tcgetattr(slave)
        self.process = subprocess.Popen([HEADWAY, "top"], env=dict(env, TERM="xterm"), stdin=slave, stdout=slave, stderr=slave,
                                        start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        self.slave = slave
        self.bytes = b""

    def resize(self, width, height):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    def read_until(self, condition):
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < deadline, self.bytes[-2000:]
            if select.select([self.master], [], [], 0.1)[0]:
                self.bytes += os.read(self.master, 65536)
        return self.bytes

    def frames(self):
        """The whole frames so far, each a list of lines without colours."""
        text, *left = self.bytes.decode(errors="replace").split("\033[0m\033[?25h")
        frames = text.split("\033[H")[1:None if left else -1]
        return [[re.sub(r"\033\[[\d;]*[mKJ]", "", line) for line in re.split("\r+\n", frame)] for frame in frames]

    def wait_frame(self, pattern):
        self.read_until(lambda: any(re.search(pattern, "\n".join(frame)) for frame in self.frames()))
        return next(frame for frame in self.frames() if re.search(pattern, "\n".join(frame)))

    def wait_exit(self):
        """The status; whether the terminal is as it was is part of it."""
        self.read_until(lambda: self.process.poll() is not None)
        self.read_until(lambda: self.bytes.endswith(b"\033[0m\033[?25h\033[?1049l"))
        assert termios.tcgetattr(self.slave) == self.before
        return self.process.returncode

    def stop(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.master)
        os.close(self.slave)


class Top(Case):
    def open_screen(self, **size):
        screen = Screen(self.env, **size)
        self.addCleanup(screen.stop)
        return screen

    def make_trouble(self):
        """A stopped routed reader, a principal that floods it, and one that does not."""
        self.run_headway("create", "demo")
        reader = self.subscribe("demo", "--mode=routed", "--budget=100000", "--json")
        reader.process.send_signal(signal.SIGSTOP)
        self.run_headway("pub", "demo", "t", "--lines", "--principal=agent:flood", stdin=("x" * 1000 + "\n") * 2000)
        self.run_headway("pub", "demo", "t", "--lines", "--principal=agent:quiet", stdin="one\n")
        return reader

    def check_frame(self, frame, width=80, height=24):
        self.assertLessEqual(len(frame), height)
        for line in frame:
            self.assertLessEqual(len(line), width, frame)
            self.assertRegex(line, r"\A[^\x00-\x1f\x7f]*\Z")

    def test_screen(self):
        self.make_trouble()
        screen = self.open_screen()
        frame = screen.wait_frame(r"routed +dbus .* slow")
        self.check_frame(frame)
        text = "\n".join(frame)
        self.assertRegex(text, r"(?m)^demo +[\d.-]+ +2001 +[\d.]+[KM] +1$")
        self.assertRegex(text, r"(?m)^agent:flood +1 +\d+ +[\d.]+K? +100% +\d+ +floods$")
        self.assertRegex(text, r"(?m)^agent:quiet +1 +1 +6 +0% +0$")
        self.assertRegex(text, r"(?m)^events of a routed reader +budget +dbus, \w+ +1[89]\d\d ")
        self.assertEqual(frame.index(next(line for line in frame if line.startswith("agent:flood"))) + 1,
                         frame.index(next(line for line in frame if line.startswith("agent:quiet"))))
        os.write(screen.master, b"xq")
        self.assertEqual(screen.wait_exit(), 0)
        for frame in screen.frames():
            self.check_frame(frame)
        self.assertTrue(screen.bytes.startswith(b"\033[?1049h"))

    def test_signals_restore_the_terminal(self):
        self.run_headway("create", "demo")
        for end in (lambda screen: os.write(screen.master, b"\x03"), lambda screen: screen.process.terminate()):
            screen = self.open_screen()
            screen.wait_frame("(?m)^demo")
            end(screen)
            self.assertEqual(screen.wait_exit(), 0)

    def test_resize(self):
        for number in range(40):
            self.run_headway("create", f"bus-with-a-long-name-{number}")
        self.make_trouble()
        screen = self.open_screen()
        screen.wait_frame("(?m)^bus-with")
        for width, height in ((40, 10), (10, 2), (1, 1), (132, 60)):
            seen = len(screen.frames())
            screen.resize(width, height)
            screen.read_until(lambda: len(screen.frames()) >= seen + 2)
            self.check_frame(screen.frames()[-1], width, height)
        self.assertIn("bus-with-a-long-name-39", "\n".join(screen.frames()[-1]))
        os.write(screen.master, b"q")
        self.assertEqual(screen.wait_exit(), 0)

    def test_daemon_goes_and_comes(self):
        self.run_headway("create", "demo")
        screen = self.open_screen()
        screen.wait_frame("(?m)^demo")
        self.stop_daemon()
        self.check_frame(screen.wait_frame("headwayd is not running.*waiting"))
        self.start_daemon()
        self.run_headway("create", "after")
        screen.wait_frame("(?m)^after")
        os.write(screen.master, b"q")
        self.assertEqual(screen.wait_exit(), 0)

    def test_once(self):
        self.make_trouble()
        for arguments in (["top", "--once"], ["top"]):
            out, err = self.run_headway(*arguments)
            self.assertNotIn("\033", out)
            self.check_frame(out.rstrip("\n").split("\n"), height=1000)
            self.assertRegex(out, r"(?m)^agent:flood .* floods$")
            self.assertEqual(err, "")

    def test_nothing_is_there(self):
        out = self.run_headway("top", "--once")[0]
        self.assertRegex(out, r"\AHeadway: 0 events/s and 0 bytes/s published; buses: 0, subscriptions: 0\n\nBUS ")


class HttpCommands(Commands):
    http = True

    def test_ready_line_urls(self):
        path = self.unix_url[len("unix:"):]
        for url in (f"unix:{path}", f"unix://{path}", "http+unix://" + path.replace("/", "%2F")):
            self.assertEqual(self.run_headway(f"--http={url}", "buses", "--json", plain=True)[0], "[]\n")

    def test_token(self):
        self.run_headway("buses", f"--http={self.tcp_url}", plain=True, status=1)
        token = self.run_headway("token", plain=True)[0]
        self.assertRegex(token, r"\A\S{16,}\n\Z")
        self.run_headway("buses", f"--http={self.tcp_url}", f"--token-file={self.ready['tokenFile']}", plain=True)
        self.env["HEADWAY_TOKEN"] = token.strip()
        self.assertEqual(self.run_headway("pub", "demo", "t", "1", f"--http={self.tcp_url}", plain=True)[0], "1\n")
        out = self.run_headway("sub", "demo", "--after=0", "--count=1", f"--http={self.tcp_url}", plain=True)[0]
        self.assertTrue(out.startswith("1  "))

    def test_exactly_once_through_a_line_that_breaks(self):
        """Routed events come out of order, so that the daemon repeats some of them after each break."""
        self.run_headway("create", "demo", "--ring-size=20000")
        path = f"{self.folder}/line.sock"
        line = BreakingLine(path, self.unix_url[len("unix:"):])
        self.addCleanup(line.stop)
        reader = Program([HEADWAY, f"--http=unix:{path}", "sub", "demo", "--mode=routed", "--json", "--count=2400"], self.env)
        self.programs.append(reader)
        deadline = time.monotonic() + PATIENCE
        while self.subscribers("demo") == 0:
            self.assertLess(time.monotonic(), deadline)
        line.hold()
        events = []
        for number in range(400):
            events.append({"data": "x" * 2000, "topic": "t", "principal": "agent:heavy"})
            events += [{"data": number, "topic": "t", "principal": f"agent:{small}"} for small in range(5)]
        self.run_headway("pub", "demo", "--ndjson", stdin="".join(json.dumps(event) + "\n" for event in events))
        for size in (300000, 200000, 150000):
            line.release_and_break_after(size)
            reader.wait_error("resumed behind", line.n_breaks)
        line.release()
        self.assertEqual(reader.wait_exit(), 0)
        reader.wait_until(lambda: len(reader.out) >= 2400, "all lines")
        got = [own_id(event) for event in map(json.loads, reader.out) if own_id(event)]
        self.assertEqual(sorted(got), list(range(1, 2401)))
        self.assertNotEqual(got, sorted(got))
        self.assertGreater(line.count_ids() - len(got), 0, "the daemon repeated nothing")


class BreakingLine:
    """A Unix socket in front of another one, which passes only so much and then breaks the connection."""

    def __init__(self, path, target):
        self.target = target
        self.changed = threading.Condition()
        self.left = None    # bytes that may pass; None: any
        self.n_breaks = 0
        self.passed = []
        self.pairs = []
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen(8)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client = self.listener.accept()[0]
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            server.connect(self.target)
            self.pairs += [client, server]
            threading.Thread(target=self.up, args=(client, server), daemon=True).start()
            threading.Thread(target=self.down, args=(client, server), daemon=True).start()

    def up(self, client, server):
        try:
            while data := client.recv(4096):
                server.sendall(data)
            server.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def down(self, client, server):
        try:
            stream = False
            while data := server.recv(4096):
                stream = stream or b"text/event-stream" in data
                if stream and not self.may_pass(len(data)):
                    break
                self.passed.append(data)
                client.sendall(data)
        except OSError:
            pass
        for end in (client, server):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def may_pass(self, size):
        with self.changed:
            self.changed.wait_for(lambda: self.left is None or self.left > 0)
            if self.left is None:
                return True
            self.left -= size
            if self.left > 0:
                return True
            self.n_breaks += 1
            self.left = None
            self.changed.notify_all()
            return False

    def hold(self):
        self.set_left(0)

    def release(self):
        self.set_left(None)

    def release_and_break_after(self, size):
        before = self.n_breaks
        self.set_left(size)
        with self.changed:
            assert self.changed.wait_for(lambda: self.n_breaks > before, PATIENCE), "the line did not break"

    def set_left(self, left):
        with self.changed:
            self.left = left
            self.changed.notify_all()

    def count_ids(self):
        return b"".join(self.passed).count(b"\nevent: message\n")

    def stop(self):
        self.release()
        self.listener.close()
        for end in self.pairs:
            end.close()


class Alone(Case):
    def start_daemon(self):
        pass

    def test_daemon_is_not_there(self):
        for arguments in (["buses"], ["info", "b"], ["sub", "b"], ["pub", "b", "t", "1"], ["token"], ["create", "b"], ["close", "b"], ["metrics"], ["top"]):
            self.assertIn("headwayd is not running", self.run_headway(*arguments, status=1)[1])


if __name__ == "__main__":
    tap.main()
