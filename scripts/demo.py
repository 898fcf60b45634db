#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""demo.py BUILD-FOLDER

Runs headwayd on a private message bus and lets real events flow through it: three publishers (headway pub, curl,
gdbus call) and three readers (headway sub, curl over SSE, gdbus call Fetch) at the same time. One reader is killed
in the middle and resumes. Every event must come to every reader exactly once and in order.
"""

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import gi

gi.require_version("GLib", "2.0")
from gi.repository import GLib  # noqa: E402

BUS = "demo"
DEST = "org.headway.Headway1"
BUS_PATH = "/org/headway/Headway1/bus/demo"
LOG_LINES = 4000
NDJSON_EVENTS = 3000
SINGLE_EVENTS = 40
DEADLINE = 50


def say(text):
    print(text, flush=True)


def show(command):
    say("  $ " + " ".join(shlex.quote(str(word)) for word in command))


class Failure(Exception):
    pass


def wait_for(condition, what, seconds=20):
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            raise Failure(f"waited {seconds} s in vain for {what}")
        time.sleep(0.02)


def log_lines():
    """Lines of a real log of this machine: what its package manager did, or what the kernel said."""
    for path in ("/var/log/dpkg.log", "/var/log/syslog", "/var/log/messages"):
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                lines = [line.rstrip("\n") for line in file]
        except OSError:
            continue
        if lines:
            return path, lines[-LOG_LINES:]
    listing = subprocess.run(["dpkg-query", "-W"], capture_output=True, text=True, check=True).stdout
    return "dpkg-query -W", listing.splitlines()[:LOG_LINES]


def package_events():
    """The packages of this machine as objects of the HTTP contract."""
    form = '${Package}\t${Version}\t${Installed-Size}\n'
    listing = subprocess.run(["dpkg-query", "-W", "-f", form], capture_output=True, text=True, check=True).stdout
    events = []
    for line in listing.splitlines()[:NDJSON_EVENTS]:
        name, version, size = line.split("\t")
        events.append({"topic": "package.installed", "data": {"name": name, "version": version, "size": size}})
    return events


def sse_events(path):
    """The events of whole frames in a file that curl writes; the unfinished one at its end is left out."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read()
    except FileNotFoundError:
        return []
    events = []
    for frame in text.split("\n\n")[:-1]:
        for line in frame.split("\n"):
            if line.startswith("data: "):
                events.append(json.loads(line[len("data: "):]))
    return events


def json_lines(path):
    try:
        with open(path, encoding="utf-8") as file:
            return [json.loads(line) for line in file.read().split("\n")[:-1]]
    except FileNotFoundError:
        return []


class Demo:
    def __init__(self, build):
        self.headwayd = os.path.join(build, "src/daemon/headwayd")
        self.headway = os.path.join(build, "src/cli/headway")
        self.folder = tempfile.mkdtemp(prefix="headway-demo.")
        self.processes = []
        self.env = dict(os.environ, GSETTINGS_SCHEMA_DIR=os.path.join(build, "data"), GSETTINGS_BACKEND="memory")

    def path(self, name):
        return os.path.join(self.folder, name)

    def start(self, command, stdout=None, quiet=False):
        if not quiet:
            show(command)
        process = subprocess.Popen(command, env=self.env, stdin=subprocess.DEVNULL, stdout=stdout,
                                   stderr=open(self.path("stderr"), "ab"))
        self.processes.append(process)
        return process

    def run(self, command, stdin=None):
        show(command)
        source = open(stdin, "rb") if stdin else subprocess.DEVNULL
        result = subprocess.run(command, env=self.env, stdin=source, capture_output=True, text=True, timeout=DEADLINE)
        if result.returncode != 0:
            raise Failure(f"{command[0]} exited with {result.returncode}: {result.stderr.strip()}")
        return result.stdout.strip()

    def start_bus(self):
        if self.session_bus_is_usable():
            say("A session bus is there: the demo uses it.")
            return
        say("A message bus of its own, so that nothing of yours is touched:")
        process = self.start(["dbus-daemon", "--session", "--nofork", "--print-address=1"], subprocess.PIPE)
        self.env["DBUS_SESSION_BUS_ADDRESS"] = process.stdout.readline().decode().strip()

    def session_bus_is_usable(self):
        if not os.environ.get("DBUS_SESSION_BUS_ADDRESS"):
            return False
        call = ["gdbus", "call", "--session", "-d", "org.freedesktop.DBus", "-o", "/org/freedesktop/DBus",
                "-m", "org.freedesktop.DBus.NameHasOwner", DEST]
        answer = subprocess.run(call, capture_output=True, text=True, check=False)
        return answer.returncode == 0 and "false" in answer.stdout

    def start_daemon(self):
        say("\nThe daemon:")
        process = self.start([self.headwayd, "--http-address=127.0.0.1:0", "--state-dir=" + self.path("state"),
                              "--runtime-dir=" + self.path("run")], subprocess.PIPE)
        line = process.stdout.readline().decode()
        if not line:
            raise Failure("headwayd did not start: " + open(self.path("stderr")).read())
        say("  " + line.strip())
        ready = json.loads(line)
        self.url = next(uri for uri in ready["http"] if uri.startswith("http:"))
        with open(ready["tokenFile"], encoding="ascii") as file:
            self.token = file.read().strip()
        self.curl_config = self.path("curl.conf")
        with open(self.curl_config, "w", encoding="ascii") as file:
            file.write(f'header = "Authorization: Bearer {self.token}"\n')

    # --- Readers --------------------------------------------------------------------------------

    def start_curl(self, output, last_event_id):
        headers = [] if last_event_id is None else ["-H", f"Last-Event-ID: {last_event_id}"]
        return self.start(["curl", "-sN", "-K", self.curl_config, *headers,
                           f"{self.url}/session/{BUS}/events?maxQueued=2048"], open(self.path(output), "wb"))

    def sse(self):
        """What all the runs of curl have read, in order."""
        return [event for run in range(1, self.curl_runs + 1) for event in sse_events(self.path(f"sse-{run}"))]

    def resume_curl(self):
        """As an EventSource does: with the last id, and again whenever the stream ends before everything is there."""
        while not self.is_over:
            last = max(event["id"] for event in self.sse() if "id" in event)
            if last >= self.total:
                return
            self.curl_runs += 1
            say(f"\nThe curl reader comes back with Last-Event-ID: {last}")
            self.start_curl(f"sse-{self.curl_runs}", last).wait()

    def fetch_all(self, total):
        """Plain `gdbus call … Fetch`, over and over, each a connection of its own."""
        self.fetched = []
        last, first = 0, True
        until = time.monotonic() + DEADLINE
        while len(self.fetched) < total and time.monotonic() < until:
            command = ["gdbus", "call", "--session", "-d", DEST, "-o", BUS_PATH, "-m", DEST + ".Bus.Fetch",
                       str(last), "1000", "{'timeout-ms': <uint32 2000>}"]
            if first:
                show(command)
                first = False
            answer = subprocess.run(command, env=self.env, capture_output=True, text=True, check=True)
            events = GLib.Variant.parse(GLib.VariantType("(a(tsssxsa{sv}))"), answer.stdout, None, None).unpack()[0]
            for event in events:
                if event[0] == 0:
                    raise Failure(f"Fetch was told of a loss: {event}")
                self.fetched.append({"id": event[0], "topic": event[1], "data": json.loads(event[5])})
                last = event[0]

    # --- The show -------------------------------------------------------------------------------

    def publish_all(self):
        log_path, lines = log_lines()
        packages = package_events()
        with open(self.path("log"), "w", encoding="utf-8") as file:
            file.write("".join(line + "\n" for line in lines))
        with open(self.path("ndjson"), "w", encoding="utf-8") as file:
            file.write("".join(json.dumps(event) + "\n" for event in packages))
        singles = [{"n": n, "load": os.getloadavg()[0]} for n in range(SINGLE_EVENTS)]
        self.expected = {"log.package": lines, "package.installed": [event["data"] for event in packages],
                         "demo.load": singles}
        self.total = sum(len(events) for events in self.expected.values())
        say(f"\nThree publishers at once: {len(lines)} lines of {log_path}, {len(packages)} packages as NDJSON, "
            f"{len(singles)} single calls:")

        def publish_log():
            self.run([self.headway, "pub", BUS, "log.package", "--lines"], self.path("log"))

        def publish_ndjson():
            self.run(["curl", "-sS", "--fail-with-body", "-K", self.curl_config, "-H",
                      "Content-Type: application/x-ndjson", "--data-binary", "@" + self.path("ndjson"),
                      f"{self.url}/session/{BUS}/events"])

        def publish_singles():
            for n, data in enumerate(singles):
                command = ["gdbus", "call", "--session", "-d", DEST, "-o", BUS_PATH, "-m", DEST + ".Bus.Publish",
                           "demo.load", json.dumps(data), "{}"]
                if n == 0:
                    show(command)
                subprocess.run(command, env=self.env, check=True, capture_output=True)

        self.in_threads([publish_log, publish_ndjson, publish_singles])

    def in_threads(self, functions):
        self.failures = []

        def guarded(function):
            try:
                function()
            except (Failure, subprocess.SubprocessError, GLib.Error) as failure:
                self.failures.append(failure)

        threads = [threading.Thread(target=guarded, args=(function,)) for function in functions]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self.failures:
            raise Failure(str(self.failures[0]))

    def kill_reader_midway(self, reader):
        """SIGKILL as soon as some of the events have come; returns the id of the last whole frame."""
        wait_for(lambda: len(sse_events(self.path("sse-1"))) >= 200, "the first events over SSE")
        reader.send_signal(signal.SIGKILL)
        reader.wait()
        return max(event["id"] for event in sse_events(self.path("sse-1")) if "id" in event)

    def show_flow(self):
        self.run([self.headway, "create", BUS, "--ring-size=20000"])
        say("\nThree readers:")
        self.curl_runs, self.is_over = 1, False
        reader = self.start_curl("sse-1", None)
        self.start([self.headway, "sub", BUS, "--json", "--after=0", "--max-queued=65536"],
                   open(self.path("sub"), "wb"))
        fetcher = threading.Thread(target=self.fetch_guarded)
        wait_for(lambda: os.path.exists(self.path("sse-1")) and os.path.getsize(self.path("sse-1")) > 0,
                 "the SSE stream")
        publisher = threading.Thread(target=self.publish_guarded)
        self.total, self.fetch_failure, self.publish_failure = 1 << 30, None, None
        publisher.start()
        fetcher.start()
        last = self.kill_reader_midway(reader)
        say(f"\nThe curl reader was killed (SIGKILL) after event {last}.")
        threading.Thread(target=self.resume_curl, daemon=True).start()
        publisher.join()
        if self.publish_failure:
            raise self.publish_failure
        return fetcher

    def publish_guarded(self):
        try:
            self.publish_all()
        except Exception as failure:
            self.publish_failure = failure

    def fetch_guarded(self):
        try:
            while self.publish_failure is None and (self.total == 1 << 30):
                time.sleep(0.01)
            self.fetch_all(self.total)
        except Exception as failure:
            self.fetch_failure = failure

    def readers(self):
        sse = [event for event in self.sse() if "id" in event]
        sub = [event for event in json_lines(self.path("sub")) if "id" in event]
        return {"curl (SSE, killed and resumed)": sse, "headway sub": sub, "gdbus call Fetch": self.fetched}

    def check(self, fetcher):
        fetcher.join()
        try:
            wait_for(lambda: all(len(events) >= self.total for events in self.readers().values()),
                     "all events to arrive", 10)
        except Failure as failure:
            counts = ", ".join(f"{name}: {len(events)}" for name, events in self.readers().items())
            raise Failure(f"{failure} ({counts} of {self.total}); {open(self.path('stderr')).read()}") from None
        if self.fetch_failure:
            raise self.fetch_failure
        delivered = lost = 0
        say("")
        for name, events in self.readers().items():
            ids = [event["id"] for event in events]
            in_order = ids == list(range(1, self.total + 1))
            intact = all([event["data"] for event in events if event["topic"] == topic] == expected
                         for topic, expected in self.expected.items())
            delivered += len(set(ids))
            lost += self.total - len(set(ids))
            say(f"  {name}: {len(ids)} events, "
                f"{'every one once and in order' if in_order else 'NOT once and in order'}, "
                f"{'data intact' if intact else 'DATA DAMAGED'}")
            if not in_order or not intact:
                raise Failure(f"{name} did not get what was published")
        return delivered, lost

    def stop(self):
        self.is_over = True
        for process in reversed(self.processes):
            if process.poll() is None:
                process.terminate()
        for process in self.processes:
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


def main():
    demo = Demo(os.path.abspath(sys.argv[1]))
    started = time.monotonic()
    try:
        demo.start_bus()
        demo.start_daemon()
        fetcher = demo.show_flow()
        delivered, lost = demo.check(fetcher)
    except Failure as failure:
        say(f"\nThe demo failed: {failure}")
        return 1
    finally:
        demo.stop()
    say(f"\n{time.monotonic() - started:.1f} s: published {demo.total}, "
        f"delivered {delivered} (3 readers), lost {lost}")
    return 0 if lost == 0 and delivered == 3 * demo.total else 1


if __name__ == "__main__":
    sys.exit(main())
