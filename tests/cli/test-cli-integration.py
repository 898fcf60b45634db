#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The commands of `headway` that end by themselves, and `headway top`, against a real headwayd."""

import fcntl
import importlib.util
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time

sys.dont_write_bytecode = True
from cli_case import HEADWAY, PATIENCE, Case, main  # noqa: E402

spec = importlib.util.spec_from_file_location("prometheus", os.path.join(os.path.dirname(__file__), "../wire/check-prometheus.py"))
prometheus = importlib.util.module_from_spec(spec)
spec.loader.exec_module(prometheus)


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

    def test_readable_output_is_harmless(self):
        self.run_headway("pub", "demo", "t", stdin="\"\x7f\u009b1m\u202e\"")
        out = self.run_headway("sub", "demo", "--after=0", "--count=1")[0]
        self.assertIn("\\u007f\\u009b1m\\u202e", out)

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
        frame = screen.wait_frame(r"routed +stream .* slow")
        self.check_frame(frame)
        text = "\n".join(frame)
        self.assertRegex(text, r"(?m)^demo +[\d.-]+ +2001 +[\d.]+[KM] +1$")
        self.assertRegex(text, r"(?m)^agent:flood +1 +\d+ +[\d.]+K? +100% +\d+ +floods$")
        self.assertRegex(text, r"(?m)^agent:quiet +1 +1 +6 +0% +0$")
        self.assertRegex(text, r"(?m)^events of a routed reader +budget +stream, \w+ +1[789]\d\d ")
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


class Alone(Case):
    def start_daemon(self):
        pass

    def test_daemon_is_not_there(self):
        for arguments in (["buses"], ["info", "b"], ["sub", "b"], ["pub", "b", "t", "1"], ["token"], ["create", "b"], ["close", "b"], ["metrics"], ["top"]):
            self.assertIn("headwayd is not running", self.run_headway(*arguments, status=1)[1])


if __name__ == "__main__":
    main()
