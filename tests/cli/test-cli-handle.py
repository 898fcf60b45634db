#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""`headway handle` against a real headwayd, and what publishers over D-Bus and HTTP get of it."""

import json
import os
import signal
import sys
import time

sys.dont_write_bytecode = True
from cli_case import HEADWAY, PATIENCE, Case, Program, main  # noqa: E402

GUARD = """
case $HEADWAY_TOPIC in
g.deny) echo "not today" >&2; echo "second line" >&2; exit 1 ;;
g.silent) exit 1 ;;
g.change) echo '{"was": "changed"}' ;;
g.broken) echo '{"was": ' ;;
g.fail) exit 3 ;;
g.killed) kill -TERM $$ ;;
g.large) head -c 6000000 /dev/zero | tr '\\0' 1 ;;
esac
"""


class Handle(Case):
    def handle(self, *arguments, registered=True):
        program = self.start("handle", *arguments)
        if registered:
            program.wait_error("registered at bus")
        return program

    def handle_into(self, reader, *arguments):
        """The same with @reader at its output. "status 0" on standard error is how it ended."""
        script = '{ sh -c "echo pid \\$\\$ >&2; exec \\"\\$@\\"" sh "$@"; echo status $? >&2; } | ' + reader
        program = Program(["sh", "-c", script, "sh", HEADWAY, "handle", *arguments], self.env)
        self.programs.append(program)
        return program

    def setUp(self):
        super().setUp()
        self.run_headway("create", "demo")

    def events(self, count):
        lines = self.run_headway("sub", "demo", "--after=0", f"--count={count}", "--json")[0].splitlines()
        return [event for event in map(json.loads, lines) if "id" in event]

    def test_an_event_on_standard_input(self):
        program = self.handle("demo", "a.*", "--", "sh", "-c", 'cat; echo "$HEADWAY_ID $HEADWAY_TOPIC $HEADWAY_TYPE $HEADWAY_PRINCIPAL ${HEADWAY_LOST-none}"')
        self.run_headway("pub", "demo", "a.b", '{"n":1}', "--type=kind", "--principal=alice", "--client=me")
        lines = program.wait_lines(2)
        self.assertEqual({**json.loads(lines[0]), "_meta": None},
                         {"id": 1, "v": 1, "type": "kind", "data": {"n": 1}, "topic": "a.b", "principal": "alice", "originatorClientId": "me", "_meta": None})
        self.assertEqual(lines[1], "1 a.b kind alice none")

    def test_an_interceptor(self):
        program = self.handle("demo", "g.*", "--phase=pre", "--on-error=deny", "--", "sh", "-c", GUARD)
        self.run_headway("pub", "demo", "g.fine", "1")
        self.assertIn("Denied: ", self.run_headway("pub", "demo", "g.deny", "2", status=1)[1])
        self.assertIn("not today", self.run_headway("pub", "demo", "g.deny", "2", f"--http={self.unix_url}", status=1, plain=True)[1])
        self.assertIn("the command denied it", self.run_headway("pub", "demo", "g.silent", "2", status=1)[1])
        self.run_headway("pub", "demo", "g.change", "3")
        for topic, text in (("g.broken", "wrote no JSON"), ("g.fail", "ended with 3"), ("g.killed", "signal 15"), ("g.large", "more than 5242880 bytes")):
            self.assertIn("Denied: ", self.run_headway("pub", "demo", topic, "4", status=1)[1])
            program.wait_error(text)
        self.run_headway("pub", "demo", "free", "5")
        self.assertEqual([(event["id"], event["data"]) for event in self.events(3)], [(1, 1), (2, {"was": "changed"}), (3, 5)])
        self.assertIn("second line", program.err)

    def test_an_interceptor_that_writes_no_json(self):
        """headwayd tells nobody but its journal; so the command line is to tell whatever it would refuse."""
        program = self.handle("demo", "--phase=pre", "--on-error=deny", "--", "sh", "-c", f"cat {self.folder}/output")
        for count, output in enumerate(("hello", " hello", "x", "'a'", "nul", "-", "01", "{x", "[1,", "[1,]", "{'a': 1}", "null x"), 1):
            with open(f"{self.folder}/output", "w", encoding="utf-8") as file:
                file.write(output)
            self.assertIn("Denied: ", self.run_headway("pub", "demo", "t", "4", status=1)[1])
            program.wait_error("wrote no JSON: ", count)

    def test_a_command_that_hangs_is_killed(self):
        mark = f"{self.folder}/pid"
        program = self.handle("demo", "--phase=pre", "--on-error=deny", "--timeout=300", "--", "sh", "-c", f"sleep 1000 & echo $! > {mark}; wait")
        self.assertIn("Denied: ", self.run_headway("pub", "demo", "t", "1", status=1)[1])
        program.wait_error("longer than 300 ms")
        with open(mark, encoding="ascii") as file:
            pid = int(file.read())
        deadline = time.monotonic() + PATIENCE
        while is_alive(pid):
            self.assertLess(time.monotonic(), deadline)

    def test_what_is_left_running_holds_nothing_up(self):
        program = self.handle("demo", "--", "sh", "-c", 'echo "$HEADWAY_ID"; sleep 3 &')
        start = time.monotonic()
        self.run_headway("pub", "demo", "t", "--lines", stdin="a\nb\nc\n")
        self.assertEqual(program.wait_lines(3), ["1", "2", "3"])
        self.assertLess(time.monotonic() - start, 3)

    def test_parallel(self):
        script = 'echo start; read -r event; case $event in *hold*) while [ ! -e "$0" ]; do sleep 0.01; done ;; esac; echo end'
        for parallel, wanted in ((1, ["start", "end", "start", "end"]), (2, ["start", "start", "end", "end"])):
            go = f"{self.folder}/go{parallel}"
            program = self.handle("demo", f"t{parallel}", f"--parallel={parallel}", "--timeout=60000", "--", "sh", "-c", script, go)
            for principal in "ab":
                self.run_headway("pub", "demo", f"t{parallel}", '"hold"', f"--principal={principal}")
            program.wait_lines(parallel)
            with open(go, "wb"):
                pass
            self.assertEqual(program.wait_lines(4), wanted)

    def test_an_end_drains(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            go = f"{self.folder}/go{number}"
            program = self.handle("demo", f"t{number}", "--timeout=60000", "--", "sh", "-c", f'while [ ! -e {go} ]; do sleep 0.01; done; echo "$HEADWAY_TOPIC"')
            self.run_headway("pub", "demo", f"t{number}", "--lines", stdin="a\nb\nc\n")
            program.process.send_signal(number)
            with open(go, "wb"):
                pass
            self.assertEqual(program.wait_exit(), 0)
            self.assertEqual(program.wait_lines(3), [f"t{number}"] * 3)

    def test_a_second_signal_ends_it_at_once(self):
        program = self.handle("demo", "--timeout=60000", "--", "sh", "-c", "echo start; sleep 1000")
        self.run_headway("pub", "demo", "t", "1")
        program.wait_lines(1)
        program.process.send_signal(signal.SIGINT)
        program.process.send_signal(signal.SIGTERM)
        self.assertEqual(program.wait_exit(), 1)
        program.wait_error("ended before all was handled")

    def test_nobody_reads(self):
        program = self.handle_into("head -n 1", "demo", "--", "echo", "hi")
        program.wait_error("registered at bus")
        self.run_headway("pub", "demo", "t", "1")
        self.assertEqual(program.wait_lines(1), ["hi"])
        program.wait_error("status 0")

    def test_nobody_reads_from_the_start(self):
        self.handle_into("true", "demo", "--", "echo", "hi").wait_error("status 0")

    def test_nobody_reads_drains(self):
        """As after a signal, of which the first one ends it no sooner."""
        go = f"{self.folder}/go"
        script = f'[ $HEADWAY_ID -gt 1 ] || echo hi; while [ ! -e {go} ]; do sleep 0.01; done; echo $HEADWAY_ID >> {self.folder}/seen'
        program = self.handle_into("{ head -n 1; exec 0<&-; echo gone >&2; }", "demo", "--timeout=60000", "--", "sh", "-c", script)
        program.wait_error("registered at bus")
        self.run_headway("pub", "demo", "t", "--lines", stdin="a\nb\nc\n")
        program.wait_error("gone")
        os.kill(int(next(line for line in program.err if line.startswith("pid ")).split()[1]), signal.SIGTERM)
        with open(go, "wb"):
            pass
        program.wait_error("status 0")
        with open(f"{self.folder}/seen", encoding="ascii") as file:
            self.assertEqual(file.read(), "1\n2\n3\n")

    def test_nobody_reads_but_pre_needs_nobody(self):
        program = self.handle_into("true", "demo", "--phase=pre", "--", "echo", "2")
        program.wait_error("registered at bus")
        for _ in range(2):
            self.run_headway("pub", "demo", "t", "1")
        self.assertEqual([event["data"] for event in self.events(2)], [2, 2])

    def test_a_killed_one_takes_its_command_along(self):
        program = self.handle("demo", "--timeout=60000", "--", "sh", "-c", "echo $$; exec sleep 1000")
        self.run_headway("pub", "demo", "t", "1")
        pid = int(program.wait_lines(1)[0])
        program.process.kill()
        deadline = time.monotonic() + PATIENCE
        while is_alive(pid):
            self.assertLess(time.monotonic(), deadline)

    def test_a_restart(self):
        program = self.handle("demo", "--", "sh", "-c", 'echo "$HEADWAY_TOPIC"')
        self.run_headway("pub", "demo", "before", "1")
        program.wait_lines(1)
        self.restart_daemon(signal.SIGKILL)
        program.wait_error("waiting to go on")
        program.wait_error("registered again at bus")
        self.run_headway("pub", "demo", "after", "1")
        self.assertEqual(program.wait_lines(2), ["before", "after"])
        program.process.send_signal(signal.SIGTERM)
        self.assertEqual(program.wait_exit(), 0)

    def test_the_handler_is_killed(self):
        """Its publishes go on by on-error, and another one is asked from then on."""
        program = self.handle("demo", "--phase=pre", "--timeout=60000", "--", "sh", "-c", "sleep 2")
        publisher = self.start("pub", "demo", "t", "1")
        deadline = time.monotonic() + PATIENCE
        while "headway_handler_calls 1\n" not in self.run_headway("metrics")[0]:
            self.assertLess(time.monotonic(), deadline)
        program.process.kill()
        self.assertEqual(publisher.wait_exit(), 0)
        self.handle("demo", "--phase=pre", "--", "sh", "-c", "echo 2")
        self.run_headway("pub", "demo", "t", "1")
        self.assertEqual([event["data"] for event in self.events(2)], [1, 2])

    def test_the_bus_is_closed(self):
        program = self.handle("demo", "--", "true")
        self.run_headway("close", "demo")
        self.assertEqual(program.wait_exit(), 0)

    def test_errors(self):
        with open(f"{self.folder}/plain", "wb"):
            pass
        for arguments, text in ((("demo",), 'behind "--"'), (("demo", "--"), 'behind "--"'), (("--", "true"), "BUS"),
                                (("demo", "--", "no-such-program"), 'no program "no-such-program"'),
                                (("demo", "--", "/no/such/program"), 'no program "/no/such/program"'),
                                (("demo", "--", f"{self.folder}/plain"), f'"{self.folder}/plain" may not be executed'),
                                (("demo", "--", self.folder), f'"{self.folder}" may not be executed'), (("demo", "--phase=during", "--", "true"), "during"),
                                (("demo", "--on-error=panic", "--", "true"), "panic"), (("demo", "--timeout=0", "--", "true"), "60000"),
                                (("demo", "--parallel=33", "--", "true"), "32"), (("demo", "--priority=-1", "--", "true"), "priority"),
                                ((f"--http={self.unix_url}", "demo", "--", "true"), "--http")):
            self.assertIn(text, self.run_headway("handle", *arguments, status=2)[1])
        self.assertIn("NoSuchBus: ", self.run_headway("handle", "nope", "--", "true", status=1)[1])
        self.assertIn("InvalidPattern: ", self.run_headway("handle", "demo", "a..b", "--", "true", status=1)[1])
        self.assertIn("InvalidOption: ", self.run_headway("handle", "demo", "--name=a b", "--", "true", status=1)[1])

    def test_http(self):
        """A veto over HTTP: 403 with the reason; an array is all or nothing; a line of NDJSON is denied alone."""
        self.handle("demo", "g.*", "--phase=pre", "--", "sh", "-c", GUARD)
        status, answer = self.post('{"topic":"g.deny","data":1}')
        self.assertEqual((status, answer["code"], answer["reason"]), (403, "denied", "not today"))
        status, answer = self.post('[{"topic":"g.fine","data":1},{"topic":"g.deny","data":2}]')
        self.assertEqual((status, answer["code"], answer["index"], answer["reason"]), (403, "denied", 1, "not today"))
        self.assertEqual(answer["error"], "event 1: not today")
        status, answer = self.post('[{"topic":"g.fine","data":1},{"topic":"g.change","data":2}]')
        self.assertEqual((status, answer), (200, {"firstId": 1, "lastId": 2, "count": 2}))
        lines = '{"topic":"g.fine","data":3}\n{"topic":"g.deny","data":4}\n{"topic":"g.fine","data":5}\n'
        status, answer = self.post(lines, "application/x-ndjson")
        self.assertEqual((status, answer["code"], answer["line"], answer["published"], answer["lastId"]), (403, "denied", 2, 1, 3))
        self.assertEqual([event["data"] for event in self.events(3)], [1, {"was": "changed"}, 3])

    def test_many_lines(self):
        """More lines than may wait for a handler: each is published once, in order, beside another writer of the same principal."""
        self.handle("demo", "t.*", "--phase=pre", "--", "true")
        writers = [self.start("pub", "demo", "t.x", "--json-lines") for _ in range(2)]
        for number, writer in enumerate(writers):
            writer.process.stdin.write("".join(f"{line}\n" for line in range(number * 1000, number * 1000 + 250)))
            writer.process.stdin.close()
        lines = "".join(f'{{"topic":"t.x","data":{line}}}\n' for line in range(2000, 2200))
        status, answer = self.post(lines, "application/x-ndjson")
        self.assertEqual((status, answer.get("count")), (200, 200), answer)
        for writer in writers:
            self.assertEqual(writer.wait_exit(), 0, writer.err)
            self.assertEqual(writer.err, [])
            self.assertTrue(writer.wait_lines(1)[0].endswith(" 250"))
        data = [event["data"] for event in self.events(700)]
        for first, count in ((0, 250), (1000, 250), (2000, 200)):
            self.assertEqual([one for one in data if first <= one < first + 1000], list(range(first, first + count)))

    def post(self, body, content_type="application/json"):
        import http.client  # pylint: disable=import-outside-toplevel
        with open(self.ready["tokenFile"], encoding="ascii") as file:
            token = file.read().strip()
        connection = http.client.HTTPConnection(self.tcp_url.removeprefix("http://"), timeout=PATIENCE)
        connection.request("POST", "/session/demo/events", body, {"Content-Type": content_type, "Authorization": f"Bearer {token}"})
        answer = connection.getresponse()
        result = answer.status, json.loads(answer.read())
        connection.close()
        return result


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


if __name__ == "__main__":
    main()
