# SPDX-License-Identifier: LGPL-2.1-or-later
"""Slots, heartbeats, slow and dead readers: sse-contract.md cases 76, 77, 82, 84-86, 88-90, 100."""

import socket
import struct
import sys
import time

from http_case import Server, main, read_answer, test


def stall(server, bus, query="?maxQueued=16", **rest):
    """A reader with a small window that reads nothing beyond the first frame."""
    return server.stream(bus, query, rcvbuf=4096, **rest)


def publish_until(server, bus, condition, size=4000, most=4000):
    """Publishes until the condition holds; returns the last id."""
    for _ in range(most // 16):
        last = server.publish(bus, *["x" * size] * 16)["lastId"]
        if condition():
            return last
    raise AssertionError("nothing came of %d events" % most)


@test
def case_76_the_65th_reader():
    with Server() as server:
        server.create("b")
        streams = [server.stream("b") for _ in range(64)]
        answer = server.request("GET", "/session/b/events")
        assert (answer.status, answer.code) == (429, "subscriber_limit_exceeded"), answer
        assert answer.headers["retry-after"] == "5"
        assert answer.json["limit"] == 64 and answer.json["scope"] == "bus"
        for stream in streams[:32]:
            stream.close()
        for stream in streams[32:]:
            stream.reset()
        began = time.monotonic()
        server.wait_for(lambda: server.info("b")["subscribers"] == 0, "free slots", 1)
        server.stream("b").close()
        assert time.monotonic() - began < 1


@test
def case_77_head_takes_no_slot():
    with Server() as server:
        server.create("b")
        peers = []
        for _ in range(64):
            peer = server.connect()
            peer.sendall(server.head("HEAD", "/session/b/events"))
            answer = read_answer(peer, "HEAD")
            assert answer.status == 200 and answer.headers["content-type"] == "text/event-stream", answer
            assert answer.headers["x-qwen-event-epoch"] == server.info("b")["epoch"]
            assert "content-length" not in answer.headers, answer
            peers.append(peer)
        assert server.info("b")["subscribers"] == 0
        server.stream("b").close()
        # The connections live on.
        peers[0].sendall(server.head("HEAD", "/session/none/events") + server.head("GET", "/health"))
        answer, rest = read_answer(peers[0], "HEAD", keep_rest=True)
        assert answer.status == 404
        assert read_answer(peers[0], buffer=rest).status == 200
        for peer in peers:
            peer.close()


@test
def heartbeats_have_a_clock_of_their_own():
    with Server("--heartbeat-ms", "300") as server:
        server.create("b")
        with server.stream("b") as stream, server.stream("b", version="1.0") as old:
            for one in (stream, old):
                for beat in range(1, 5):
                    frame = one.next(heartbeats=True)
                    assert frame.kind == "heartbeat", frame
                    if one is stream:
                        late = time.monotonic() - one.opened - beat * 0.3
                        assert -0.05 < late < 0.25, (beat, late)
            # Other traffic does not put them off.
            seen = []
            end = time.monotonic() + 1.0
            while time.monotonic() < end:
                server.publish("b", 1)
                frame = stream.next(heartbeats=True)
                while frame.kind == "heartbeat":
                    seen.append(time.monotonic())
                    frame = stream.next(heartbeats=True)
                time.sleep(0.01)
            assert 2 <= len(seen) <= 4, seen
    with Server("--heartbeat-ms", "0") as server:
        server.create("b")
        with server.stream("b") as stream:
            assert stream.is_quiet(0.3)


@test
def case_82_an_idle_writer():
    with Server("--writer-idle-timeout-ms", "1000") as server:
        server.create("b")
        with server.stream("b") as stream, server.stream("b", version="1.0") as old:
            for one in (stream, old):
                frames = one.rest()
                assert [f.type for f in frames] == ["client_evicted"], frames
                data = frames[0].data
                assert data["reason"] == data["errorKind"] == "writer_idle_timeout" and data["timeoutMs"] == 1000, data
                assert 1000 <= data["idleForMs"] <= 1300, data
                assert data["lastDeliveredId"] == 0
            waited = time.monotonic() - stream.opened
            assert 0.95 < waited < 2, waited
        server.wait_for(lambda: server.counts()["writer_idle_timeout"] == 2, "the reason")


@test
def writes_keep_a_writer_from_being_idle():
    with Server("--writer-idle-timeout-ms", "600", "--heartbeat-ms", "200") as server:
        server.create("b")
        with server.stream("b") as stream:
            assert stream.is_quiet(1.5)
            server.publish("b", 1)
            assert stream.next().id == 1


@test
def case_84_the_last_word_arrives():
    with Server() as server:
        server.create("b")
        for version in ("1.1", "1.0"):
            with stall(server, "b", version=version) as stream, server.stream("b") as other:
                first = server.info("b")["lastEventId"] + 1
                last = publish_until(server, "b", lambda: server.info("b")["subscribers"] == 1)
                # The others have not noticed anything.
                assert other.ids(last - first + 1) == list(range(first, last + 1))
                frames = stream.rest()
                assert frames[-1].type == "client_evicted", frames[-1]
                data = frames[-1].data
                assert data["reason"] == "queue_overflow" and data["queueSize"] == data["maxQueued"] == 16, data
                ids = [f.id for f in frames if f.id is not None]
                assert ids == list(range(first, first + len(ids))), ids
                assert data["lastDeliveredId"] == ids[-1] and data["droppedAfter"] == ids[-1] + 1, data
                warnings = [f for f in frames if f.type == "slow_client_warning"]
                assert len(warnings) == 1 and warnings[0].data["queueSize"] == 12, warnings
                assert warnings[0].data["threshold"] == "frames"
                stream.expect_closed()
        server.wait_for(lambda: server.counts()["event_bus_evicted"] == 2, "the reason")


@test
def eviction_by_bytes():
    with Server() as server:
        server.create("b", maxQueuedBytes=100000)
        with stall(server, "b", "?maxQueued=2048") as stream:
            publish_until(server, "b", lambda: server.info("b")["subscribers"] == 0, size=20000)
            data = stream.rest()[-1].data
            assert data["reason"] == "queue_bytes_overflow" and data["maxQueuedBytes"] == 100000, data
            assert data["eventBytes"] > 20000 and data["queuedBytes"] + data["eventBytes"] > 100000


@test
def case_85_a_reader_that_stays_dead():
    with Server("--drain-window-ms", "700", "--max-subscribers", "1") as server:
        server.create("b")
        server.wait_for(lambda: server.counts()["connections"] == 0, "no connection")
        before = server.fds()
        with stall(server, "b") as stream:
            publish_until(server, "b", lambda: server.info("b")["subscribers"] == 0)
            # The slot is free at once, the socket goes with the window.
            assert server.counts()["streams"] == 1
            server.stream("b").close()
            server.wait_streams(0, 3)
            assert server.counts()["drain_timeout"] == 1
            server.wait_for(lambda: server.fds() == before, "descriptors")
            # What the reader finds when it comes back is a broken end, not a clean one.
            try:
                while stream.peer.recv(65536):
                    pass
                raise AssertionError("the connection was closed, not reset")
            except ConnectionResetError:
                pass


@test
def a_dead_reader_when_the_bus_closes():
    with Server("--drain-window-ms", "500") as server:
        server.create("b")
        with stall(server, "b", "?maxQueued=2048") as stream, server.stream("b") as other:
            publish_until(server, "b", lambda: server.counts()["blocked"] > 0)
            assert server.request("DELETE", "/session/b").status == 204
            while other.next() is not None:
                pass
            other.close()
            server.wait_streams(0, 3)
            try:
                while stream.peer.recv(65536):
                    pass
                raise AssertionError("the connection was closed, not reset")
            except ConnectionResetError:
                pass


@test
def a_reader_that_stops_behind_the_final_chunk():
    with Server("--drain-window-ms", "400") as server:
        server.create("b")
        with server.stream("b") as stream:
            server.request("DELETE", "/session/b")
            assert [f.type for f in stream.rest()] == ["session_closed"]
            # It never closes, but everything was delivered: no reset.
            server.wait_streams(0, 3)
            assert stream.peer.recv(1) == b""
            assert server.counts()["session_terminal"] == 1


@test
def case_86_a_slow_reader_that_recovers():
    with Server() as server:
        server.create("b")
        with stall(server, "b", "?maxQueued=2048") as stream:
            for _ in range(75):
                server.publish("b", *["y" * 300] * 16)
            ids = []
            while len(ids) < 1200:
                stream._read(2048)
                ids += [f.id for f in stream.pending if f.id is not None]
                stream.pending = []
            assert ids == list(range(1, 1201))
            server.publish("b", 1)
            assert stream.next().id == 1201


@test
def a_stalled_reader_does_not_slow_others_down():
    with Server() as server:
        server.create("b")
        with stall(server, "b", "?maxQueued=2048") as dead, server.stream("b") as stream:
            for i in range(100):
                first = server.publish("b", *["z" * 500] * 16)["firstId"]
                assert stream.ids(16) == list(range(first, first + 16))
            assert server.info("b")["subscribers"] == 2
            assert dead.strict.status == 200


@test
def many_events_at_once_never_evict_a_reader_that_keeps_up():
    with Server() as server:
        server.create("b")
        # 4096 events of one call through a queue of 16.
        with server.stream("b", "?maxQueued=16", unix=True) as stream:
            server.publish("b", *[1] * 400)
            assert stream.ids(400) == list(range(1, 401))


@test
def case_88_a_reader_that_reads_single_bytes():
    with Server() as server:
        server.create("b")
        with server.stream("b") as stream:
            server.publish("b", "\U0001F600 \u20ac")
            while not stream.pending:
                stream._read(1)
            assert stream.next().data == "\U0001F600 \u20ac"


@test
def case_89_resets_in_the_middle():
    with Server() as server:
        server.create("b", maxSubscribers=1000)
        server.publish("b", "x" * 50000)
        server.stream("b").close()
        server.wait_streams(0)
        fds, memory = server.fds(), server.rss_kb()
        for i in range(1000):
            peer = server.connect(rcvbuf=4096)
            peer.sendall(server.head("GET", "/session/b/events", [("Last-Event-ID", "0")]))
            if i % 3 == 0:
                peer.recv(1000)
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            peer.close()
        server.wait_streams(0)
        server.wait_for(lambda: server.fds() == fds, "descriptors")
        counts = server.counts()
        assert counts["connections"] == 0
        assert counts["client_disconnect"] + counts["socket_error"] >= counts["opened"] - 1, counts
        assert counts["socket_error"] == 0, counts
        # A leak of a stream would be 50 kB each. Sanitizers keep what is freed for a while.
        assert server.rss_kb() - memory < 20000 or "HTTP_TEST_SANITIZED" in __import__("os").environ


@test
def case_90_a_request_behind_the_stream():
    with Server() as server:
        server.create("b")
        with server.connect() as peer:
            peer.sendall(server.head("GET", "/session/b/events") + server.head("GET", "/health"))
            from sse_strict import StrictStream
            strict = StrictStream()
            while not strict.frames:
                strict.feed(peer.recv(65536))
            peer.sendall(server.head("GET", "/health") * 10)
            server.publish("b", 1)
            while len(strict.frames) < 2:
                strict.feed(peer.recv(65536))
            server.request("DELETE", "/session/b")
            while not strict.is_finished:
                strict.feed(peer.recv(65536))
            assert [f.type for f in strict.frames[1:]] == ["foo", "session_closed"]
            assert peer.recv(100) == b""


@test
def a_client_that_floods_behind_its_stream_is_not_read_for_ever():
    # Its end stands behind what nobody reads, so a heartbeat has to find it out.
    with Server("--heartbeat-ms", "500") as server:
        server.create("b")
        with server.stream("b") as stream:
            stream.peer.setblocking(False)
            sent = 0
            end = time.monotonic() + 0.5
            while time.monotonic() < end:
                try:
                    sent += stream.peer.send(b"x" * 65536)
                except BlockingIOError:
                    time.sleep(0.01)
            assert sent < 20 * 1024 * 1024, sent
            stream.peer.settimeout(20)
            server.publish("b", 1)
            assert stream.next().id == 1
        server.wait_streams(0)


@test
def a_half_closed_reader_is_gone():
    with Server() as server:
        server.create("b")
        with server.stream("b") as stream:
            stream.peer.shutdown(socket.SHUT_WR)
            server.wait_for(lambda: server.info("b")["subscribers"] == 0, "the slot", 1)
            assert server.counts()["client_disconnect"] == 1


sys.exit(main())
