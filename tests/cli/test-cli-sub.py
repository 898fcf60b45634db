#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""`headway sub` in each of its ways, against a real headwayd."""

import json
import re
import signal
import socket
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
from cli_case import HEADWAY, PATIENCE, Case, Program, main, numbers, own_id, weigh  # noqa: E402


class Ways:
    """What holds for every way to read; each way is a class below."""

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

    def test_closed_bus_ends_the_reader(self):
        self.run_headway("create", "demo")
        reader = self.subscribe("demo", "--json")
        self.run_headway("pub", "demo", "t", "1")
        self.run_headway("close", "demo")
        self.assertEqual(reader.wait_exit(), 0)
        last = json.loads(reader.wait_lines(2)[1])
        self.assertEqual((last["id"], last["type"], last["data"]["reason"]), (2, "session_closed", "closed"))

    def test_large_events(self):
        """One that waits for room beside what was read before, and many that fill the room before any count."""
        self.run_headway("create", "demo", "--ring-size=100")
        reader = self.subscribe("demo", "--json")
        for sizes in ([1], [300000], [20000] * 64):
            self.run_headway("pub", "demo", "t", "--lines", stdin="".join("x" * size + "\n" for size in sizes))
        reader.wait_until(lambda: len(reader.out) >= 66, "all of them")
        self.assertEqual([len(event["data"]) for event in map(json.loads, reader.out)], [1, 300000] + [20000] * 64)

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


class Kept:
    """Where events are sent without being asked for, they outlive the daemon that has sent them."""

    def test_what_was_sent_is_not_lost(self):
        self.run_headway("create", "demo")
        reader = self.subscribe("demo", "--json", "--count=202")
        self.run_headway("pub", "demo", "n", "0")
        reader.wait_lines(1)
        reader.process.send_signal(signal.SIGSTOP)
        self.run_headway("pub", "demo", "n", "--json-lines", stdin="".join(f"{number}\n" for number in range(1, 201)))
        self.assertEqual(json.loads(self.run_headway("info", "demo", "--json")[0])["lastEventId"], 201)
        self.restart_daemon(signal.SIGKILL)
        reader.process.send_signal(signal.SIGCONT)
        reader.wait_error("resumed behind 201")
        self.run_headway("pub", "demo", "n", "201")
        self.assertEqual(reader.wait_exit(), 0)
        reader.wait_until(lambda: numbers(reader) == list(range(202)), "all of them")


class StreamWay(Ways, Kept, Case):
    via = "stream"


class SignalsWay(Ways, Kept, Case):
    via = "signals"


class ReceiveWay(Ways, Case):
    via = "receive"


class HttpWay(Ways, Kept, Case):
    http = True

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


def timeless(lines):
    """Each reader has its own synthetic events, whose time is their own."""
    return [re.sub(r'("serverTimestamp":)\d+', r"\1T", line) if line.startswith('{"v"') else line for line in lines]


class AllWays(Case):
    """One bus that is read in all four ways at once: what is printed must be the same."""

    def start_readers(self, *arguments, wait=True):
        readers = []
        for way in ("stream", "signals", "receive", "http"):
            before = self.subscribers("demo")
            connection = [f"--http={self.unix_url}"] if way == "http" else []
            more = [] if way == "http" else [f"--via={way}"]
            reader = Program([HEADWAY, *connection, "sub", "demo", *arguments, *more], self.env)
            self.programs.append(reader)
            deadline = time.monotonic() + PATIENCE
            while wait and self.subscribers("demo") <= before:
                self.assertLess(time.monotonic(), deadline, reader.err)
            readers.append(reader)
        return readers

    def publish(self):
        """Three events out of seven are still there; they have all that an event can have."""
        self.run_headway("create", "demo", "--ring-size=3")
        for number in range(4):
            self.run_headway("pub", "demo", "gone", str(number))
        self.publish_some()

    def publish_some(self):
        self.run_headway("pub", "demo", "a.b", '{"n": [1,\n2], "s": "\\ud800\u20ac"}', "--type=kind", "--client=me:1", "--principal=agent:a")
        self.run_headway("pub", "demo", "--ndjson", "--http=" + self.unix_url, plain=True,
                         stdin='{"data":"two","type":"own","principal":"agent:a","_meta":{"k":1.50,"x":{"y":null}}}\n'
                               '{"data":3,"topic":"a.\\"q\\\\","principal":"agent:a"}\n')

    def check(self, readers, count):
        for reader in readers:
            self.assertEqual(reader.wait_exit(), 0, reader.err)
            reader.wait_until(lambda: len(reader.out) >= count, "the rest")
            self.assertEqual((timeless(reader.out), sorted(reader.err)), (timeless(readers[0].out), sorted(readers[0].err)))
        self.assertEqual(len(readers[0].out), count)

    def read(self, *arguments, synthetic):
        self.publish()
        readers = self.start_readers("--after=2", *arguments)
        self.publish_some()
        self.run_headway("close", "demo")
        self.check(readers, 7 + synthetic)
        return readers[0]

    def test_json(self):
        lines = [json.loads(line) for line in self.read("--json", synthetic=2).out]
        self.assertEqual([line["type"] for line in lines],
                         ["state_resync_required", "kind", "own", "message", "replay_complete", "kind", "own", "message", "session_closed"])
        self.assertEqual([line["id"] for line in lines if "id" in line], list(range(5, 12)))

    def test_readable(self):
        reader = self.read(synthetic=0)
        self.assertEqual(len(reader.err), 2)

    def test_broadcast(self):
        self.read("--json", "--mode=broadcast", synthetic=2)

    def test_filters(self):
        self.publish()
        readers = self.start_readers("a.*", "--type=kind,message", "--after=0", "--json", "--count=4")
        self.publish_some()
        self.check(readers, 6)

    def test_count_and_timeout(self):
        self.publish()
        for reader in self.start_readers("--after=4", "--count=4", "--timeout=1", "--json", wait=False):
            self.assertEqual(reader.wait_exit(), 4)
        readers = self.start_readers("--after=4", "--count=2", "--json", wait=False)
        self.check(readers, 2)

    def test_routed(self):
        self.publish()
        readers = self.start_readers("--after=2", "--mode=routed", "--json", "--count=6")
        for number in range(3):
            for reader in readers:
                reader.wait_lines(5 + number)
            self.run_headway("pub", "demo", "live", str(number), "--principal=agent:a")
        self.check(readers, 8)
        self.assertEqual([own_id(line) for line in map(json.loads, readers[0].out) if own_id(line)], list(range(5, 11)))


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


if __name__ == "__main__":
    main()
