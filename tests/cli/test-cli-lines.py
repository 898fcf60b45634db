#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""`headway pub` of many lines, against a real headwayd."""

import json
import re
import signal
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
from cli_case import PATIENCE, Case, main, numbers  # noqa: E402


class Lines:
    """What holds over D-Bus and over HTTP."""

    def test_lines(self):
        out, err = self.run_headway("pub", "demo", "log", "--lines", stdin=b'one\n\n"\\\r\nbad \xff\nlast')
        self.assertEqual(out, "1-5 5\n")
        self.assertIn("1 place was no UTF-8", err)
        events = self.data("demo", 5)
        self.assertEqual(events, ["one", "", '"\\\r', "bad \ufffd", "last"])
        self.assertEqual(self.run_headway("pub", "demo", "log", "--lines", stdin="")[0], "0-0 0\n")

    def test_standard_files_that_are_closed(self):
        """They are not taken by what the program opens itself."""
        def run(closed, *arguments):
            command = ["sh", "-c", f'exec "$@" {closed}', "sh", *self.command(*arguments)]
            return subprocess.run(command, env=self.env, input=b"1\n", capture_output=True, timeout=PATIENCE, check=False)

        for kind in ("--lines", "--json-lines", "--ndjson"):
            done = run("<&-", "pub", "demo", "t", kind)
            self.assertEqual(done.returncode, 1, done)
            self.assertIn(b"cannot read standard input", done.stderr)
        self.run_headway("pub", "demo", "t", "1")
        for arguments in (["pub", "demo", "t", "--lines"], ["sub", "demo", "--after=0", "--count=1"]):
            done = run(">&-", *arguments)
            self.assertEqual(done.returncode, 1, done)
            self.assertIn(b"cannot write to standard output: Bad file descriptor", done.stderr)
        self.assertEqual(run("2>&-", "sub", "demo", "--after=0", "--count=1").returncode, 0)

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
        self.assertIn("line 2: InvalidData: neither a topic nor a type", err)

    def test_line_that_is_not_even_read(self):
        lines = b"a\n" + b"q" * (16 * 1024 * 1024 + 1) + b"\nb\n"
        out, err = self.run_headway("pub", "demo", "t", "--lines", stdin=lines, status=1)
        self.assertEqual(out, "1-1 1\n")
        self.assertEqual(err, "headway: line 2: TooLarge: the line is longer than 16777216 bytes\n")

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


class DbusLines(Lines, Case):
    """The socket of OpenPublisher, and what happens when the daemon goes."""

    def judge_long_line(self, size, *options, around='"'):
        """The daemon answers while the line is still being written."""
        topic = ("t",) if "--ndjson" not in options else ()
        short, end = ('{"topic":"t","data":"', '"}\n') if "--ndjson" in options else (around, f"{around}\n")
        lines = f"{short}a{end}{short}{'q' * size}{end}{short}b{end}"
        out, err = self.run_headway("pub", "demo", *topic, *options, stdin=lines, status=1)
        self.assertEqual(err, "headway: line 2: TooLarge: the line is longer than 1114112 bytes\n")
        self.assertRegex(out, r"\A(\d+)-\1 1\n\Z")

    def test_line_is_refused_before_its_end(self):
        for size in 2000000, 5000000:
            self.judge_long_line(size, "--lines", around="")
            self.judge_long_line(size, "--json-lines")
            self.judge_long_line(size, "--ndjson")
        self.assertEqual(self.data("demo", 6), ["a"] * 6)
        self.assertEqual(self.last_id(), 6)

    def write_slowly(self, writer, numbers):
        """Fills the input of @writer from a thread of its own, until it is closed."""
        def run():
            try:
                for number in numbers:
                    writer.process.stdin.write(f"{number}\n")
                writer.process.stdin.close()
            except (OSError, ValueError):
                pass
        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        return thread

    def wait_last_id(self, least):
        deadline = time.monotonic() + PATIENCE
        while self.last_id() < least:
            self.assertLess(time.monotonic(), deadline)

    def last_id(self):
        return json.loads(self.run_headway("info", "demo", "--json")[0])["lastEventId"]

    def restart_in_the_middle(self, number):
        """Publishes numbers without end until the daemon goes, and 5000 more.

        Returns the line that the new daemon went on with, how many were in doubt, the last line, and what the new daemon has from the first of these on.
        """
        self.run_headway("create", "demo", "--ring-size=60000")
        writer = self.start("pub", "demo", "n", "--json-lines")
        is_away = threading.Event()

        def lines():
            line = 0
            while not is_away.is_set():
                yield (line := line + 1)
            yield from range(line + 1, line + 5001)

        self.write_slowly(writer, lines())
        self.wait_last_id(21000)  # the rate lets the rest come slowly
        self.stop_daemon(number)
        is_away.set()
        self.start_daemon()
        self.assertEqual(writer.wait_exit(), 0, writer.err)
        first, last, count = map(int, re.fullmatch(r"(\d+)-(\d+) (\d+)", writer.wait_lines(1)[0]).groups())
        self.assertEqual(first, 1)
        self.assertGreater(count, 26000)
        writer.wait_error("waiting to go on with line")
        writer.wait_error("going on with line")
        self.assertEqual(self.last_id(), last)
        told = re.search(r"going on with line (\d+)(?:; (?:up to )?(\d+) line)?", " ".join(writer.err))
        line = int(told.group(1))
        return line, int(told.group(2) or 0), count, self.data("demo", count + 1 - line)

    def test_restart(self):
        line, _, last, data = self.restart_in_the_middle(signal.SIGTERM)
        self.assertEqual(data, list(range(line, last + 1)))

    def test_crash(self):
        line, in_doubt, last, data = self.restart_in_the_middle(signal.SIGKILL)
        self.assertEqual(data, list(range(line, last + 1)))
        self.assertGreater(in_doubt, 0)

    def test_daemon_does_not_come_back(self):
        self.run_headway("create", "demo")
        writer = self.start("pub", "demo", "n", "--json-lines", "--retry=1")
        writer.process.stdin.write("1\n2\n")
        writer.process.stdin.flush()
        self.wait_last_id(2)
        self.stop_daemon(signal.SIGKILL)
        writer.process.stdin.write("3\n")
        writer.process.stdin.flush()
        self.assertEqual(writer.wait_exit(), 1)
        writer.wait_error(r"waiting to go on with line 3")
        writer.wait_error(r"given up after 1 s: line 3 and what follows it may be missing")
        self.assertEqual(writer.wait_lines(1), ["1-2 2"])

    def test_no_retry(self):
        writer = self.start("pub", "demo", "n", "--json-lines", "--retry=0")
        writer.process.stdin.write("1\n")
        writer.process.stdin.flush()
        self.wait_last_id_of_new_bus()
        self.stop_daemon()
        writer.process.stdin.write("2\n")
        writer.process.stdin.flush()
        self.assertEqual(writer.wait_exit(), 1)
        self.assertEqual(writer.wait_lines(1), ["1-1 1"])
        writer.wait_error("given up")

    def wait_last_id_of_new_bus(self):
        deadline = time.monotonic() + PATIENCE
        while '"lastEventId":1' not in self.run_headway("info", "demo", "--json", status=None)[0]:
            self.assertLess(time.monotonic(), deadline)

    def test_idle_input_outlives_the_daemon(self):
        """Nothing is asked of a daemon that is away while there is nothing to publish."""
        self.run_headway("create", "demo")
        writer = self.start("pub", "demo", "n", "--json-lines", "--retry=20")
        writer.process.stdin.write("1\n")
        writer.process.stdin.flush()
        self.wait_last_id(1)
        self.restart_daemon()
        writer.process.stdin.write("2\n")
        writer.process.stdin.close()
        self.assertEqual(writer.wait_exit(), 0)
        writer.wait_error("going on with line 2$")
        self.assertEqual(writer.wait_lines(1)[0].split()[1], "2")

    def test_nothing_behind_a_refused_line_is_published(self):
        lines = ['{"data":1,"topic":"a"}', '{"data":2,"topic":"a..b"}', '{"data":3,"topic":"a"}', '{"data":4,"type":"client_evicted"}'] * 1000
        out, err = self.run_headway("pub", "demo", "--ndjson", stdin="\n".join(lines), status=1)
        self.assertEqual(out, "1-1 1\n")
        self.assertRegex(err, r"\Aheadway: line 2: InvalidTopic: .*\n\Z")
        self.assertEqual(self.last_id(), 1)

    def test_nothing_is_sent_behind_a_refusal(self):
        self.run_headway("create", "demo")
        writer = self.start("pub", "demo", "--ndjson")
        for line in ('{"data":1,"topic":"a"}', '{"data":2,"topic":"a..b"}'):
            writer.process.stdin.write(line + "\n")
            writer.process.stdin.flush()
        self.assertEqual(writer.wait_exit(), 1)
        self.assertEqual(writer.wait_lines(1), ["1-1 1"])

    def test_position_is_that_of_the_line(self):
        err = self.run_headway("pub", "demo", "n", "--json-lines", stdin="[1,01]\n", status=2)[1]
        self.assertIn("line 1: InvalidData: no JSON at byte 4", err)

    def test_bus_is_closed(self):
        self.run_headway("create", "demo")
        writer = self.start("pub", "demo", "n", "--json-lines")
        writer.process.stdin.write("1\n")
        writer.process.stdin.flush()
        self.wait_last_id(1)
        self.run_headway("close", "demo")
        writer.process.stdin.write("2\n")
        writer.process.stdin.flush()
        self.assertEqual(writer.wait_exit(), 1)
        writer.wait_error("NoSuchBus")
        self.assertEqual(writer.wait_lines(1), ["1-1 1"])

    def test_large_lines(self):
        text = "x" * 1000000
        self.assertEqual(self.run_headway("pub", "demo", "t", "--lines", stdin=f"{text}\n" * 20)[0], "1-20 20\n")
        self.assertEqual(self.data("demo", 20), [text] * 20)
        err = self.run_headway("pub", "demo", "t", "--lines", stdin="y" * 1100000 + "\nshort\n", status=1)[1]
        self.assertIn("line 1: TooLarge", err)


class HttpLines(Lines, Case):
    http = True


if __name__ == "__main__":
    main()
