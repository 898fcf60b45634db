# SPDX-License-Identifier: LGPL-2.1-or-later
"""Connections: caps, timers, peers that leave, listeners, the stop. decisions.md 8, 19; traps S2, S3, S8."""

import os
import signal
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import time

from http_case import PATIENCE, SERVER, Server, main, read_answer, test


def run(*args):
    """The server, which is expected to give up at once."""
    done = subprocess.run([SERVER] + list(args), capture_output=True, timeout=PATIENCE)
    return done.returncode, done.stderr.decode()


@test
def keep_alive_over_tcp_and_unix():
    with Server() as server:
        server.create("b")
        for unix in (False, True):
            with server.connect(unix) as peer:
                for i in range(100):
                    peer.sendall(server.head("GET", "/session/b"))
                    answer = read_answer(peer)
                    assert answer.status == 200 and "connection" not in answer.headers, answer
                assert server.counts()["connections"] == 1
            server.wait_for(lambda: server.counts()["connections"] == 0, "no connection", 1)
        # Who asks for it is let go.
        for version, headers in (("1.1", [("Connection", "close")]), ("1.0", [])):
            with server.connect() as peer:
                peer.sendall(server.head("GET", "/health", headers, version))
                assert read_answer(peer).status == 200 and peer.recv(1) == b""


@test
def connections_come_and_go_without_a_trace():
    with Server() as server:
        server.create("b")
        server.wait_for(lambda: server.counts()["connections"] == 0, "no connection")
        fds = server.fds()
        half = server.head("POST", "/session/b/events", [("Content-Length", 100), ("Content-Type", "application/json")]) + b'{"type":'
        kinds = [b"", b"GET", server.head("GET", "/health")[:-2], server.head("GET", "/health"), half,
                 server.head("GET", "/session/b/events"), server.head("GET", "/session/b/events", version="1.0"), b"junk\r\n\r\n",
                 server.head("GET", "/health") * 3, server.head("GET", "/health") + b"GET /"]
        memory = []
        for round in range(4):
            for i in range(500):
                peer = server.connect(unix=i % 4 == 0)
                peer.sendall(kinds[i % len(kinds)])
                if i % 3 == 0 and kinds[i % len(kinds)].endswith(b"\r\n\r\n"):
                    peer.recv(10)
                if i % 5 == 0:
                    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                if i % 5 == 1:
                    peer.shutdown(socket.SHUT_WR)
                peer.close()
            server.wait_for(lambda: server.counts()["connections"] == 0, "no connection")
            server.wait_for(lambda: server.fds() == fds, "descriptors")
            memory.append(server.rss_kb())
        assert server.counts()["streams"] == 0
        if "HTTP_TEST_SANITIZED" not in os.environ:
            assert memory[3] - memory[1] < 600, memory


@test
def idle_peers_that_leave_are_noticed_at_once():
    with Server() as server:
        peers = []
        for i in range(50):
            peer = server.connect(unix=i % 2 == 0)
            peer.sendall(server.head("GET", "/health"))
            assert read_answer(peer).status == 200
            peers.append(peer)
        assert server.counts()["connections"] == 50
        for peer in peers:
            peer.close()
        server.wait_for(lambda: server.counts()["connections"] == 0, "no connection", 1)


@test
def a_half_closed_client_gets_its_answer():
    with Server() as server:
        for unix in (False, True):
            with server.connect(unix) as peer:
                peer.sendall(server.head("GET", "/health") * 3)
                peer.shutdown(socket.SHUT_WR)
                rest = b""
                for _ in range(3):
                    answer, rest = read_answer(peer, buffer=rest, keep_rest=True)
                    assert answer.status == 200
                assert rest == b"" and peer.recv(100) == b""


@test
def silent_tcp_connections_leave_the_unix_socket_free():
    with Server("--max-connections", "5") as server:
        silent = [server.connect() for _ in range(8)]
        server.wait_for(lambda: server.counts()["connections"] >= 5, "five connections")
        assert server.request("GET", "/health", unix=True).status == 200
        for peer in silent:
            peer.close()


@test
def the_cap_on_connections():
    with Server("--max-connections", "10") as server:
        server.create("b")
        server.wait_for(lambda: server.counts()["connections"] == 0, "no connection")
        peers = [server.connect() for _ in range(5)]
        streams = [server.stream("b") for _ in range(5)]
        server.wait_for(lambda: server.counts()["connections"] == 10, "ten connections")
        # No answer, just the end.
        with server.connect() as peer:
            try:
                assert peer.recv(1) == b""
            except ConnectionResetError:
                pass
        streams[0].close()
        server.wait_for(lambda: server.counts()["connections"] == 9, "one less", 1)
        assert server.request("GET", "/health").status == 200
        for peer in peers:
            peer.close()
        for stream in streams:
            stream.close()


@test
def timers_of_headers_and_idle_connections():
    with Server() as server:
        with server.connect() as silent, server.connect() as partial, server.connect() as idle, server.connect() as again:
            partial.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n")
            for peer in (idle, again):
                peer.sendall(server.head("GET", "/health"))
                assert read_answer(peer).status == 200
            again.sendall(b"GET /hea")
            began = time.monotonic()
            for peer, least, most in ((silent, 14, 18), (partial, 14, 18), (again, 14, 18), (idle, 29, 33)):
                peer.settimeout(40)
                try:
                    assert peer.recv(1000) == b"", "an answer to nothing"
                except ConnectionResetError:
                    pass
                waited = time.monotonic() - began
                assert least < waited < most, (waited, least, most)
        server.wait_for(lambda: server.counts()["connections"] == 0, "no connection", 1)


@test
def a_body_that_dribbles_and_a_reader_that_does_not_read():
    with Server() as server:
        server.create("b")
        body = b'{"type":"t","data":"' + b"x" * 200 + b'"}'
        with server.connect() as peer:
            peer.sendall(server.head("POST", "/session/b/events", [("Content-Length", len(body)), ("Content-Type", "application/json")]))
            for i in range(0, len(body), 10):
                peer.sendall(body[i:i + 10])
                time.sleep(0.001)
            assert read_answer(peer).status == 200
        # A client that pipelines and never reads is stopped by its own socket.
        with server.connect(rcvbuf=4096) as peer:
            peer.setblocking(False)
            data = server.head("GET", "/capabilities") * 100
            sent = 0
            end = time.monotonic() + 0.5
            while time.monotonic() < end:
                try:
                    sent += peer.send(data)
                except BlockingIOError:
                    time.sleep(0.005)
            assert server.request("GET", "/health").status == 200
            assert sent < 30 * 1024 * 1024
        server.wait_for(lambda: server.counts()["connections"] == 0, "no connection")


@test
def listeners():
    for address, host in (("127.0.0.1:0", "127.0.0.1"), ("localhost:0", "127.0.0.1"), ("[::1]:0", "[::1]")):
        with Server(tcp=address) as server:
            assert server.uris[0] == "http://%s:%d" % (host, server.port) and server.uris[1] == "unix:" + server.socket_path
            assert server.port > 0
            family = socket.AF_INET6 if "[" in host else socket.AF_INET
            with socket.socket(family) as peer:
                peer.connect((host.strip("[]"), server.port))
                peer.sendall(server.head("GET", "/health", host="%s:%d" % (host, server.port)))
                assert read_answer(peer).status == 200
            # The port is taken.
            code, said = run("--address", "%s:%d" % (host, server.port))
            assert code == 1 and str(server.port) in said and "in use" in said, (code, said)
    for bad in ("", "x", "127.0.0.1", "127.0.0.1:", "127.0.0.1:99999", "::1:80", "[127.0.0.1]:80", "example.org:80", "127.0.0.1:-1", ":80"):
        code, said = run("--address", bad)
        assert code == 1 and "no address to listen on" in said, (bad, said)
    # Without a token nobody listens outside.
    code, said = run("--address", "0.0.0.0:0")
    assert code == 1 and "not without a token" in said, said
    with Server("--auth", "t" * 20, tcp="0.0.0.0:0") as server:
        bearer = [("Authorization", "Bearer " + "t" * 20)]
        assert server.request("GET", "/session", headers=bearer).status == 200
        assert server.request("GET", "/session", headers=bearer, host="192.0.2.1:%d" % server.port).status == 200
        assert server.request("GET", "/session", headers=bearer, host="evil.example:%d" % server.port).status == 403


@test
def the_unix_socket_and_what_stood_in_its_place():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "s")
        with Server(socket_path=path) as server:
            assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
            code, said = run("--socket", path)
            assert code == 1 and "in use" in said.lower(), said
            assert server.request("GET", "/health", unix=True).status == 200
        assert not os.path.exists(path)
        # Left behind by one that died.
        dead = socket.socket(socket.AF_UNIX)
        dead.bind(path)
        dead.close()
        with Server(socket_path=path) as server:
            assert server.request("GET", "/health", unix=True).status == 200
        with open(path, "w") as other:
            other.write("precious")
        code, said = run("--socket", path)
        assert code == 1 and open(path).read() == "precious", said
        code, said = run("--socket", os.path.join(folder, "none", "s"))
        assert code == 1 and "No such file" in said, said
        code, said = run("--socket", os.path.join(folder, "x" * 200))
        assert code == 1, said


@test
def other_users_by_unix_socket():
    if os.getuid() != 0:
        return
    for args, status in (((), 403), (("--system",), 200)):
        with Server(*args) as server:
            os.chmod(server.folder.name, 0o755)
            os.chmod(server.socket_path, 0o666)
            script = ("import os,socket,sys; os.setuid(65534); s=socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]);"
                      "s.sendall(b'%s /session/%s HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n\\r\\n' % (sys.argv[2].encode(), sys.argv[3].encode()));"
                      "print(s.recv(4096).decode().split()[1])")

            def ask(method, bus):
                out = subprocess.run([sys.executable, "-c", script, server.socket_path, method, bus], capture_output=True, timeout=PATIENCE)
                assert out.returncode == 0, out
                return int(out.stdout)
            server.create("b")
            assert ask("GET", "b") == status
            if status == 200:
                # It may close what is its own, and nothing else.
                assert ask("DELETE", "b") == 403
                assert ask("PUT", "mine") == 201
                assert ask("DELETE", "mine") == 204


@test
def the_stop_drains_and_ends():
    with Server() as server:
        server.create("b")
        stream = server.stream("b")
        old = server.stream("b", version="1.0")
        idle = server.connect()
        idle.sendall(server.head("GET", "/health"))
        read_answer(idle)
        server.publish("b", *range(100))
        began = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        for one in (stream, old):
            # No event of the stop itself: the bus lives on in the next life.
            assert [f.id for f in one.rest()] == list(range(1, 101))
            one.close()
        assert idle.recv(100) == b""
        assert server.process.wait(timeout=PATIENCE) == 0
        assert time.monotonic() - began < 2
        idle.close()
        server.process.returncode = None
        server.stop = lambda: None


@test
def the_stop_does_not_wait_for_the_dead():
    with Server("--drain-window-ms", "500") as server:
        server.create("b")
        stream = server.stream("b", "?maxQueued=2048", rcvbuf=4096)
        half = server.connect()
        half.sendall(server.head("POST", "/session/b/events", [("Transfer-Encoding", "chunked"), ("Content-Type", "application/x-ndjson")]))
        for _ in range(100):
            server.publish("b", *["x" * 4000] * 16)
            if server.counts()["blocked"]:
                break
        began = time.monotonic()
        server.stop()
        assert 0.4 < time.monotonic() - began < 3
        stream.close()
        half.close()
        server.stop = lambda: None


@test
def a_server_without_descriptors_recovers():
    with Server("--max-connections", "100000", G_DEBUG="fatal-criticals") as server:
        server.create("b")
        limit = server.fds() + 8
        subprocess.run(["prlimit", "--pid", str(server.process.pid), "--nofile=%d" % limit], check=True)
        peers = [server.connect() for _ in range(30)]
        time.sleep(0.3)
        with open("/proc/%d/stat" % server.process.pid) as f:
            before = sum(map(int, f.read().rsplit(")", 1)[1].split()[11:13]))
        time.sleep(0.5)
        with open("/proc/%d/stat" % server.process.pid) as f:
            spent = sum(map(int, f.read().rsplit(")", 1)[1].split()[11:13])) - before
        assert spent < 15, "it spins: %d ticks in half a second" % spent
        for peer in peers:
            peer.close()
        assert server.request("GET", "/health").status == 200
        # One warning, which this test has asked for.
        server.process.send_signal(signal.SIGTERM)
        server.process.wait(timeout=PATIENCE)
        server.stderr.seek(0)
        said = server.stderr.read().decode()
        assert said.count("cannot accept connections") == 1, said
        server.stop = lambda: None


sys.exit(main())
