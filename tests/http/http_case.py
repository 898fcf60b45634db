# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the HTTP tests share: the server under test, raw requests, streams, TAP."""

import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import traceback

from sse_strict import StrictStream

SERVER = os.environ.get("HTTP_TEST_SERVER", "http-test-server")

# Only bounds a test that hangs; nothing waits this long when all is well. Sanitizers are slow.
PATIENCE = float(os.environ.get("HTTP_TEST_PATIENCE", "20"))


class Server:
    """One http-test-server on a port of its own."""

    def __init__(self, *args, tcp="127.0.0.1:0", socket_path=None, **env):
        self.folder = tempfile.TemporaryDirectory(prefix="headway-http-")
        self.socket_path = socket_path or os.path.join(self.folder.name, "http.sock")
        command = [SERVER, "--socket", self.socket_path] + list(args)
        if tcp:
            command += ["--address", tcp]
        environment = dict(os.environ, G_DEBUG="fatal-criticals,fatal-warnings", TMPDIR=self.folder.name)
        environment.update(env)
        self.stderr = tempfile.TemporaryFile()
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.stderr, env=environment)
        line = self.process.stdout.readline()
        if not line:
            self.stderr.seek(0)
            raise AssertionError("no ready line: %r" % self.stderr.read())
        self.uris = json.loads(line)["http"]
        self.port = None
        for uri in self.uris:
            if uri.startswith("http://"):
                self.port = int(uri.rsplit(":", 1)[1])

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if kind is None:
            self.stop()
        else:
            self.process.kill()
            self.process.wait()
            self.stderr.seek(0)
            sys.stderr.write(self.stderr.read().decode(errors="replace"))
        self.process.stdout.close()
        self.stderr.close()
        self.folder.cleanup()

    def stop(self):
        """Ends as the daemon does; anything on stderr is a failure."""
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout=PATIENCE)
        self.stderr.seek(0)
        said = self.stderr.read().decode(errors="replace")
        assert code == 0 and said == "", "exit %d, stderr %r" % (code, said)

    def counts(self):
        self.process.send_signal(signal.SIGUSR1)
        return json.loads(self.process.stdout.readline())

    def fds(self):
        return len(os.listdir("/proc/%d/fd" % self.process.pid))

    def rss_kb(self):
        with open("/proc/%d/status" % self.process.pid) as status:
            for line in status:
                if line.startswith("VmRSS:"):
                    return int(line.split()[1])
        return 0

    def connect(self, unix=False, rcvbuf=None):
        peer = socket.socket(socket.AF_UNIX if unix else socket.AF_INET, socket.SOCK_STREAM)
        if rcvbuf is not None:
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, rcvbuf)
        peer.settimeout(PATIENCE)
        peer.connect(self.socket_path if unix else ("127.0.0.1", self.port))
        return peer

    # -- Requests --------------------------------------------------------------------------------

    def head(self, method, path, headers=(), version="1.1", host=True):
        lines = ["%s %s HTTP/%s" % (method, path, version)]
        if host is True:
            lines.append("Host: 127.0.0.1:%s" % self.port)
        elif host:
            lines.append("Host: %s" % host)
        lines += ["%s: %s" % pair for pair in headers]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")

    def request(self, method, path, body=None, type="application/json", headers=(), unix=False, **rest):
        """One request on a connection of its own."""
        headers = list(headers)
        if body is not None:
            body = body if isinstance(body, bytes) else json.dumps(body, separators=(",", ":")).encode()
            headers.append(("Content-Length", len(body)))
            if type:
                headers.append(("Content-Type", type))
        with self.connect(unix) as peer:
            peer.sendall(self.head(method, path, headers, **rest) + (body or b""))
            return read_answer(peer, method)

    def publish(self, bus, *events, **rest):
        """Publishes; an event is a publish object, or data of type foo."""
        objects = [e if isinstance(e, dict) and "data" in e else {"type": "foo", "data": e} for e in events]
        answer = self.request("POST", "/session/%s/events" % bus, objects, **rest)
        assert answer.status == 200, answer
        return answer.json

    def create(self, bus, **options):
        answer = self.request("PUT", "/session/%s" % bus, options)
        assert answer.status == 201, answer
        return answer.json

    def info(self, bus):
        return self.request("GET", "/session/%s" % bus).json

    def stream(self, bus, query="", headers=(), **rest):
        return Stream(self, bus, query, headers, **rest)

    def wait_for(self, condition, what="a condition", patience=None):
        end = time.monotonic() + (patience or PATIENCE)
        while not condition():
            assert time.monotonic() < end, "waited in vain for " + what
            time.sleep(0.01)

    def wait_streams(self, n, patience=None):
        self.wait_for(lambda: self.counts()["streams"] == n, "%d streams" % n, patience)


class Answer:
    def __init__(self, status, headers, body, version="HTTP/1.1"):
        self.status = status
        self.headers = headers
        self.body = body
        self.version = version

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def code(self):
        return self.json.get("code")

    def __repr__(self):
        return "<%s %r %r>" % (self.status, self.headers, self.body[:300])


def read_head(peer, buffer=b""):
    while b"\r\n\r\n" not in buffer:
        data = peer.recv(65536)
        assert data, "the connection ended in a header block: %r" % buffer[:200]
        buffer += data
    head, rest = buffer.split(b"\r\n\r\n", 1)
    lines = head.decode("latin-1").split("\r\n")
    headers = {}
    for line in lines[1:]:
        name, value = line.split(": ", 1)
        assert name.lower() not in headers, "a header that comes twice: " + name
        headers[name.lower()] = value
    return lines[0], headers, rest


def read_answer(peer, method="GET", buffer=b"", keep_rest=False):
    """One answer with a Content-Length. `keep_rest`: returns what comes behind it as well."""
    line, headers, rest = read_head(peer, buffer)
    status = int(line.split()[1])
    length = int(headers.get("content-length", 0))
    if method == "HEAD" or status == 204:
        length = 0
    while len(rest) < length:
        data = peer.recv(65536)
        assert data, "the connection ended in a body"
        rest += data
    answer = Answer(status, headers, rest[:length], line.split()[0])
    if status >= 400 and length > 0:
        assert headers["content-type"] == "application/json; charset=utf-8", headers
        assert answer.json["error"], answer
    return (answer, rest[length:]) if keep_rest else answer


class Stream:
    """One open session stream, read strictly."""

    def __init__(self, server, bus, query="", headers=(), version="1.1", method="GET", unix=False, rcvbuf=None,
                 path=None, read_head_now=True):
        self.server = server
        self.peer = server.connect(unix, rcvbuf)
        self.strict = StrictStream(version, is_routed="mode=routed" in query)
        self.opened = time.monotonic()
        self.pending = []
        path = path or "/session/%s/events" % bus
        self.peer.sendall(server.head(method, path + query, headers, version))
        if read_head_now:
            frame = self.next()
            assert frame.kind == "retry", frame

    def __enter__(self):
        return self

    def __exit__(self, *args):
        self.close()

    def close(self):
        self.peer.close()

    def reset(self):
        self.peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.peer.close()

    def _read(self, size=65536):
        data = self.peer.recv(size)
        if data:
            self.pending += self.strict.feed(data)
        else:
            self.strict.end()
        return data

    def next(self, heartbeats=False):
        """The next frame, without heartbeats; None behind the end."""
        while True:
            while self.pending:
                frame = self.pending.pop(0)
                if heartbeats or frame.kind != "heartbeat":
                    return frame
            if self.strict.is_finished:
                return None
            self._read()

    def take(self, n):
        return [self.next() for _ in range(n)]

    def ids(self, n):
        return [frame.id for frame in self.take(n)]

    def rest(self):
        """All frames to the clean end."""
        frames = []
        while True:
            frame = self.next()
            if frame is None:
                return frames
            frames.append(frame)

    def is_quiet(self, seconds=0.15):
        """Nothing but heartbeats comes, and the stream stays open. A negative can only be waited for."""
        end = time.monotonic() + seconds
        while not self.pending:
            left = end - time.monotonic()
            if left <= 0:
                return True
            if select.select([self.peer], [], [], left)[0]:
                if not self._read():
                    return False
                self.pending = [frame for frame in self.pending if frame.kind != "heartbeat"]
        return False

    def expect_closed(self):
        """Behind the final chunk the server closes."""
        self.strict.end() if self.peer.recv(1) == b"" else self.strict.feed(b"?")


# -- TAP -----------------------------------------------------------------------------------------

TESTS = []


def test(function):
    TESTS.append(function)
    return function


def main():
    wanted = sys.argv[1:]
    tests = [t for t in TESTS if not wanted or t.__name__ in wanted]
    failed = 0
    print("1..%d" % len(tests), flush=True)
    for number, function in enumerate(tests, 1):
        name = function.__name__.replace("_", "-")
        began = time.monotonic()
        try:
            function()
            print("ok %d - %s (%.2f s)" % (number, name, time.monotonic() - began), flush=True)
        except Exception:
            failed += 1
            for line in traceback.format_exc().splitlines():
                print("# " + line, flush=True)
            print("not ok %d - %s" % (number, name), flush=True)
    return 1 if failed else 0
