# SPDX-License-Identifier: LGPL-2.1-or-later
"""The session stream on raw sockets: sse-contract.md 1.1, 1.3 to 1.6, cases 66-72, 78-80, 83, 87."""

import sys
import time

from http_case import Server, main, test


def kinds(frames):
    return [frame.type for frame in frames]


def with_cursor(cursor, epoch=None):
    headers = [("Last-Event-ID", cursor)]
    return headers + ([("X-Qwen-Event-Epoch", epoch)] if epoch is not None else [])


@test
def case_66_headers_and_first_bytes():
    with Server() as server:
        server.create("b")
        with server.connect() as peer:
            peer.sendall(server.head("GET", "/session/b/events", [("Accept", "text/event-stream")]))
            seen = b""
            while not seen.endswith(b"retry: 3000\n\n\r\n"):
                data = peer.recv(4096)
                assert data, seen
                seen += data
            head, body = seen.split(b"\r\n\r\n", 1)
            assert body == b"d\r\nretry: 3000\n\n\r\n", body
            assert head.startswith(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"), head
        # The parser of the other tests checks each header.
        with server.stream("b") as one, server.stream("b") as two:
            assert one.strict.headers["X-Qwen-Event-Epoch"] == server.info("b")["epoch"]
            assert one.strict.headers["X-Qwen-SSE-Stream-Id"] != two.strict.headers["X-Qwen-SSE-Stream-Id"]


@test
def any_accept_header_and_a_trailing_slash_get_the_stream():
    with Server() as server:
        server.create("b")
        for accept in ("text/event-stream", "application/json", "*/*", "nonsense"):
            server.stream("b", headers=[("Accept", accept)]).close()
        server.stream("b", path="/session/b/events/").close()
        server.stream("b", headers=[("X-Qwen-Client-Id", "not valid!")]).close()
        server.stream("b", "?connectReason=whatever&previousStreamId=17&x=%zz").close()


@test
def golden_sample():
    with Server() as server:
        server.create("b")
        with server.stream("b") as stream:
            server.publish("b", {"type": "foo", "data": 1, "_meta": {"serverTimestamp": 1}})
            frame = stream.next()
            assert frame.raw == (b'id: 1\nevent: foo\ndata: {"id":1,"v":1,"type":"foo","data":1,'
                                 b'"_meta":{"serverTimestamp":1}}\n\n'), frame.raw
            assert len(frame.text) == 66


@test
def case_69_cursors_that_count():
    with Server() as server:
        server.create("b")
        server.publish("b", 1, 2, 3)
        for text, first in ((" 1", 2), ("1 ", 2), ("01", 2), ("00", 1), ("0", 1), ("\t2", 3), ("0000000000002", 3)):
            with server.stream("b", headers=with_cursor(text)) as stream:
                frames = stream.take(4 - first + 1)
                assert [f.id for f in frames[:-1]] == list(range(first, 4)), (text, frames)
                count = 4 - first
                assert frames[-1].data == {"lastReplayedEventId": 3, "lastEventId": 3, "replayedCount": count}


@test
def case_70_cursors_that_do_not_count():
    with Server() as server:
        server.create("b")
        server.publish("b", 1)
        for text in ("", "-1", "+1", "1.5", "0x1", "1e0", "abc", "1,1", "9007199254740992",
                     "99999999999999999999999", "\xff", "9" * 8000, "1 1"):
            with server.stream("b", headers=with_cursor(text)) as stream:
                assert stream.is_quiet(0.05), text
        with server.connect() as peer:
            peer.sendall(server.head("GET", "/session/b/events", with_cursor("9" * 20000)))
            answer = peer.recv(65536)
            assert answer == b"" or answer.startswith(b"HTTP/1.1 431 "), answer


@test
def the_largest_cursor_is_a_reset_with_all_its_digits():
    with Server() as server:
        server.create("b")
        server.publish("b", 1)
        with server.stream("b", headers=with_cursor("9007199254740991")) as stream:
            frame = stream.next()
            assert frame.type == "state_resync_required" and '"lastDeliveredId":9007199254740991,' in frame.text
            assert frame.data == {"reason": "epoch_reset", "lastDeliveredId": 2 ** 53 - 1, "earliestAvailableId": 1}


@test
def case_71_two_cursors_are_none():
    with Server() as server:
        server.create("b")
        server.publish("b", 1, 2)
        with server.stream("b", headers=[("Last-Event-ID", "0"), ("Last-Event-ID", "1")]) as stream:
            assert stream.is_quiet()


@test
def case_72_epochs():
    with Server() as server:
        epoch = server.create("b")["epoch"]
        server.publish("b", 1, 2, 3)
        mismatch = {"reason": "epoch_reset", "detail": "epoch_mismatch", "lastDeliveredId": 2, "earliestAvailableId": 1}
        upper = epoch.upper() if epoch.upper() != epoch else "x" + epoch[1:]
        for bad in (upper, "a" * 64, "x"):
            with server.stream("b", headers=with_cursor("2", bad)) as stream:
                frames = stream.take(5)
                assert frames[0].data == mismatch, frames
                assert [f.id for f in frames] == [None, 1, 2, 3, None]
                assert frames[4].data["replayedCount"] == 3
        for ignored in ("bad token!", "", "a" * 65, epoch):
            with server.stream("b", headers=with_cursor("2", ignored)) as stream:
                assert [f.id for f in stream.take(2)] == [3, None], ignored
        with server.stream("b", headers=[("X-Qwen-Event-Epoch", "other")]) as stream:
            assert stream.is_quiet()


@test
def cases_31_to_36_over_http():
    with Server() as server:
        server.create("b", ringSize=3)
        server.publish("b", 1, 2, 3, 4, 5)
        for cursor, resync, ids in ((0, ("ring_evicted", 0, 3), [3, 4, 5]), (1, ("ring_evicted", 1, 3), [3, 4, 5]),
                                    (2, None, [3, 4, 5]), (3, None, [4, 5]), (5, None, []),
                                    (6, ("epoch_reset", 6, 3), [3, 4, 5])):
            with server.stream("b", headers=with_cursor(cursor)) as stream:
                if resync is not None:
                    reason, last, earliest = resync
                    assert stream.next().data == {"reason": reason, "lastDeliveredId": last,
                                                  "earliestAvailableId": earliest}
                assert stream.ids(len(ids)) == ids
                done = stream.next()
                expected = {"replayedCount": len(ids)}
                if ids:
                    expected.update(lastReplayedEventId=5, lastEventId=5)
                assert done.type == "replay_complete" and done.data == expected, done
                assert stream.is_quiet(0.02)
        with server.stream("b", headers=with_cursor(4)) as stream:
            assert kinds(stream.take(2)) == ["foo", "replay_complete"]
            server.publish("b", 6)
            assert stream.next().id == 6


@test
def case_40_a_replay_of_a_full_ring():
    with Server() as server:
        server.create("b")
        server.publish("b", *([1] * 4096))
        server.publish("b", *([1] * 3905))
        with server.stream("b", headers=with_cursor(0)) as stream:
            frames = stream.take(8002)
            assert frames[0].data == {"reason": "ring_evicted", "lastDeliveredId": 0, "earliestAvailableId": 2}
            assert [f.id for f in frames[1:-1]] == list(range(2, 8002))
            assert frames[-1].data == {"lastReplayedEventId": 8001, "lastEventId": 8001, "replayedCount": 8000}


@test
def case_78_http_1_0_is_delimited_by_its_end():
    with Server() as server:
        server.create("b")
        with server.stream("b", version="1.0", headers=with_cursor(0)) as stream:
            assert stream.next().type == "replay_complete"
            server.publish("b", 1, {"type": "t", "data": "x" * 5000})
            assert stream.ids(2) == [1, 2]
            server.request("DELETE", "/session/b")
            assert kinds(stream.rest()) == ["session_closed"]


@test
def http_1_0_needs_no_host():
    with Server() as server:
        server.create("b")
        with server.connect() as peer:
            peer.sendall(b"GET /session/b/events HTTP/1.0\r\n\r\n")
            assert peer.recv(64).startswith(b"HTTP/1.0 200 OK\r\n")
        with server.connect(unix=True) as peer:
            peer.sendall(b"GET /health HTTP/1.0\r\n\r\n")
            assert peer.recv(64).startswith(b"HTTP/1.0 200 ")


@test
def case_79_never_compressed():
    with Server() as server:
        server.create("b")
        with server.stream("b", headers=[("Accept-Encoding", "gzip, br")]) as stream:
            assert "Content-Encoding" not in stream.strict.headers


@test
def case_80_snapshots():
    with Server() as server:
        server.create("b")
        bare = {"sessionId": "b", "currentModelId": None, "currentApprovalMode": None}
        with server.stream("b", "?snapshot=1") as stream:
            frame = stream.next()
            assert frame.type == "session_snapshot" and frame.data == bare, frame
            server.publish("b", 1)
            assert stream.next().id == 1
        answer = server.request("PUT", "/session/b/snapshot", {"currentModelId": "m", "extra": [1]})
        assert answer.status == 204, answer
        with server.stream("b", "?snapshot=1", with_cursor(0)) as stream:
            frames = stream.take(3)
            assert kinds(frames) == ["foo", "replay_complete", "session_snapshot"]
            assert frames[2].data == dict(bare, currentModelId="m", extra=[1])
        for off in ("?snapshot=true", "?snapshot=0", "?snapshot=", "?snapshot", "?Snapshot=1", "?snapshot=1&snapshot=1"):
            with server.stream("b", off) as stream:
                assert stream.is_quiet(0.03), off


@test
def snapshots_that_are_refused():
    with Server("--event-max-bytes", "1000") as server:
        server.create("b")
        for body, status, code in ((b"[1]", 400, "invalid_json"), (b"{", 400, "invalid_json"),
                                   (b'{"a":"%s"}' % (b"x" * 1000), 413, "too_large"), (b"", 400, "invalid_request")):
            answer = server.request("PUT", "/session/b/snapshot", body)
            assert (answer.status, answer.code) == (status, code), (body[:20], answer)
        assert server.request("PUT", "/session/none/snapshot", {}).code == "session_not_found"
        answer = server.request("GET", "/session/b/snapshot")
        assert answer.status == 405 and answer.headers["allow"] == "PUT"


@test
def case_83_a_bus_that_closes_ends_its_streams():
    with Server() as server:
        server.create("b")
        with server.stream("b") as stream, server.stream("b", version="1.0") as old:
            server.publish("b", 1)
            assert server.request("DELETE", "/session/b").status == 204
            for one in (stream, old):
                frames = one.rest()
                assert [(f.id, f.type) for f in frames] == [(1, "foo"), (2, "session_closed")]
                assert frames[1].data == {"sessionId": "b", "reason": "closed"}
                one.expect_closed()
        answer = server.request("GET", "/session/b/events")
        assert (answer.status, answer.code) == (404, "session_not_found")
        server.wait_for(lambda: server.counts()["session_terminal"] == 2, "two terminal streams")


@test
def case_87_data_that_could_break_frames():
    samples = ['"a\\r\\nb"', '"\\u0000"', '"\\""', '"\\\\"', '"\\t"', '"\u2028\u2029"', '"\U0001F600"', '"\x7f"',
               '{"a":1,"a":2}', '1e400', '"\\ud800"', '12345678901234567890.00', '[ 1 ,\t2 ]']
    with Server() as server:
        server.create("b")
        with server.stream("b") as stream:
            for sample in samples:
                body = ('{"type":"t","data":%s,"_meta":{"serverTimestamp":1}}' % sample).encode()
                assert server.request("POST", "/session/b/events", body).status == 200, sample
                frame = stream.next()
                assert '"data":%s,"_meta"' % sample in frame.text, (sample, frame.text)
            # CR and LF between tokens become blanks, nothing else changes.
            body = b'{"type":"t","data":{\r\n"a":\n[1,\r2]\n}}'
            assert server.request("POST", "/session/b/events", body).status == 200
            assert '"data":{  "a": [1, 2] }' in stream.next().text


@test
def filters_by_topic_and_type():
    with Server() as server:
        server.create("b")
        events = [{"topic": "a.b", "data": 1}, {"topic": "a.c", "type": "x", "data": 2}, {"type": "y", "data": 3},
                  {"topic": "a.b.c", "type": "y", "data": 4}]
        for query, want in (("?topic=a.*", [1, 2, 4]), ("?topic=*.b", [1]), ("?types=x,y", [2, 3, 4]), ("", [1, 2, 3, 4]),
                            ("?topic=a.b&topic=y", [1, 3]), ("?topic=a.*&types=y", [4]), ("?types=x&types=message", [1, 2])):
            with server.stream("b", query) as stream:
                first = server.publish("b", *events)["firstId"]
                assert [f.data for f in stream.take(len(want))] == want, query
            with server.stream("b", query, with_cursor(first - 1)) as stream:
                frames = stream.take(len(want) + 1)
                assert [f.data for f in frames[:-1]] == want, query
                assert frames[-1].data.get("filtered") == (True if query else None), (query, frames[-1])
        with server.stream("b", "?topic=nothing.here") as stream:
            server.publish("b", *events)
            server.request("DELETE", "/session/b")
            assert kinds(stream.rest()) == ["session_closed"]


@test
def a_stream_over_the_unix_socket():
    with Server() as server:
        server.create("b")
        with server.stream("b", unix=True) as stream:
            server.publish("b", *range(50))
            assert stream.ids(50) == list(range(1, 51))


@test
def large_events_arrive_whole():
    with Server() as server:
        server.create("b")
        with server.stream("b") as stream:
            for size in (1, 1000, 65536, 1000000):
                server.publish("b", "x" * size)
                assert stream.next().data == "x" * size


@test
def one_frame_is_built_for_all_readers():
    with Server() as server:
        server.create("b")
        streams = [server.stream("b") for _ in range(20)]
        before = server.counts()["framesBuilt"]
        server.publish("b", *range(100))
        for stream in streams:
            assert stream.ids(100) == list(range(1, 101))
        assert server.counts()["framesBuilt"] - before == 100
        for stream in streams:
            stream.close()


sys.exit(main())
