# SPDX-License-Identifier: LGPL-2.1-or-later
"""Publishing by POST, and the routes around a bus: http-api.md, decisions.md 1, 5, 10, 13, 18, 38."""

import json
import os
import random
import socket
import struct
import sys
import time

from http_case import Server, main, read_answer, test

NDJSON = "application/x-ndjson"


def post(server, bus, body, type="application/json", query="", **rest):
    return server.request("POST", "/session/%s/events%s" % (bus, query), body, type, **rest)


def lines(*objects):
    return b"".join(json.dumps(o).encode() + b"\n" for o in objects)


def event(data=1, **more):
    return dict({"type": "t", "data": data}, **more)


@test
def one_object_and_an_array():
    with Server() as server:
        assert post(server, "b", event()).json == {"id": 1}
        assert post(server, "b", [event()]).json == {"firstId": 2, "lastId": 2, "count": 1}
        assert post(server, "b", [event(), event(2), event(3)]).json == {"firstId": 3, "lastId": 5, "count": 3}
        assert post(server, "b", []).json == {"count": 0}
        assert post(server, "b", b" \n { \"type\" : \"t\" , \"data\" : null } \r\n").json == {"id": 6}
        assert post(server, "b", event(), "Application/JSON; charset=utf-8").json == {"id": 7}
        assert post(server, "b", [event()] * 4096).json == {"firstId": 8, "lastId": 4103, "count": 4096}


@test
def topic_and_type():
    with Server() as server:
        server.create("b")
        with server.stream("b") as stream:
            for given, type, topic in (({"type": "x.y"}, "x.y", None), ({"topic": "a.b"}, "message", "a.b"),
                                       ({"topic": "a.b", "type": "x"}, "x", "a.b"), ({"topic": "x", "type": "x"}, "x", None),
                                       ({"topic": "message"}, "message", None)):
                assert post(server, "b", dict(given, data=1)).status == 200, given
                frame = stream.next()
                assert (frame.type, frame.envelope.get("topic")) == (type, topic), frame.text
        for given, code in (({"type": "a/b..c"}, "invalid_topic"), ({"type": "a b"}, "invalid_type"), ({"type": ""}, "invalid_type"),
                            ({"topic": "a..b"}, "invalid_topic"), ({"topic": ""}, "invalid_topic"), ({"topic": "a.*"}, "invalid_topic"),
                            ({"type": "client_evicted"}, "invalid_type"), ({"type": "session_closed"}, "invalid_type"),
                            ({"type": "headway.x"}, "invalid_type"), ({"type": "gap"}, "invalid_type"),
                            ({"type": "x" * 129}, "invalid_type"), ({"type": "a\nb"}, "invalid_type"),
                            ({"topic": "a\u0007b"}, "invalid_topic"), ({"topic": "headway.x"}, None)):
            answer = post(server, "b", dict(given, data=1))
            assert answer.status == 400 and (code is None or answer.code == code), (given, answer)
        assert server.info("b")["lastEventId"] == 5
        assert post(server, "b", {"type": "session_died", "data": 1}).status == 200


@test
def objects_that_are_refused():
    with Server() as server:
        for body, code in ((b"", "invalid_json"), (b"{", "invalid_json"), (b"1", "invalid_request"), (b'"x"', "invalid_request"),
                           (b"null", "invalid_request"), (b"{}", "invalid_request"), (b'{"type":"t"}', "invalid_request"),
                           (b'{"data":1}', "invalid_request"), (b'{"type":"t","data":1,"dta":2}', "invalid_request"),
                           (b'{"type":"t","data":1,"data":2}', "invalid_request"), (b'{"type":1,"data":1}', "invalid_request"),
                           (b'{"type":"t","data":1,"topic":null}', "invalid_request"), (b'{"type":"t","data":1,"final":1}', "invalid_request"),
                           (b'{"type":"t","data":1,"_meta":[]}', "invalid_request"), (b'{"type":"t","data":1,"_meta":null}', "invalid_request"),
                           (b'{"type":"t","data":1,"id":7}', "invalid_request"), (b'{"type":"t","data":1,"v":1}', "invalid_request"),
                           (b'{"type":"t","data":1,"principal":7}', "invalid_request"),
                           (b'{"type":"t","data":1,"principal":"a b"}', "invalid_principal"),
                           (b'{"type":"t","data":1,"originatorClientId":"a b"}', "invalid_option"),
                           (b'{"type":"t","data":1,"originatorClientId":""}', "invalid_option"),
                           (b'{"type":"t\\u0000","data":1}', "invalid_json"), (b"[1]", "invalid_request"), (b"[[]]", "invalid_request"),
                           (b'{"type":"t","data":NaN}', "invalid_json"), (b'{"type":"t","data":01}', "invalid_json"),
                           (b"{'type':1}", "invalid_json"), (b'{"type":"t","data":"\xff"}', "invalid_json"),
                           (b'{"type":"t","data":1}x', "invalid_json"), (b'\xef\xbb\xbf{"type":"t","data":1}', "invalid_json"),
                           (b'{"type":"t","data":1,/* */}', "invalid_json"), (b"[" * 200000, "invalid_json")):
            answer = post(server, "b", body)
            assert (answer.status, answer.code) == (400, code), (body[:60], answer)
            if code == "invalid_json" and b"\\u0000" not in body:
                assert answer.json["position"] >= 0, answer
        answer = post(server, "b", b'{"type":"t","data":1,"dta":2}')
        assert '"dta"' in answer.json["error"], answer
        answer = post(server, "b", b'{"type":"t","data":[1,]}')
        assert answer.json["position"] == 22, answer
        assert server.request("GET", "/session").json == [], "a refused publish made a bus"


@test
def json_passes_byte_for_byte():
    with Server() as server:
        server.create("b")
        deep = b"[" * 128 + b"]" * 128
        with server.stream("b") as stream:
            for data in (b'{"a":1,"a":2}', b"1e400", b'"\\ud800"', b"-0", b'"\\u0041\\/"', b"12345678901234567890123", deep, b"{ }"):
                assert post(server, "b", b'{"type":"t","data":%s}' % data).status == 200, data
                assert ('"data":%s,"_meta"' % data.decode()).encode() in stream.next().raw
            assert post(server, "b", b'[{"type":"t","data":%s}]' % deep).status == 200
        for bad in (b"[%s]" % deep, b'{"a":%s}' % deep):
            assert post(server, "b", b'{"type":"t","data":%s}' % bad).code == "invalid_json"
            assert post(server, "b", b'[{"type":"t","data":%s}]' % bad).code == "invalid_json"
            assert post(server, "b", b'{"type":"t","data":%s}' % bad, NDJSON).code == "invalid_json"


@test
def an_array_is_all_or_nothing():
    with Server() as server:
        server.create("b")
        for bad, code in ((event(type="a b"), "invalid_type"), ({"type": "t"}, "invalid_request"), (7, "invalid_request"),
                          (event(principal="a b"), "invalid_principal")):
            for index in (0, 3, 9):
                events = [event()] * 10
                events[index] = bad
                answer = post(server, "b", events)
                assert (answer.status, answer.code, answer.json["index"]) == (400, code, index), answer
        answer = post(server, "b", [event()] * 4097)
        assert (answer.status, answer.code, answer.json["limit"]) == (413, "too_large", 4096), answer
        assert server.info("b")["lastEventId"] == 0
        assert post(server, "b", event()).json == {"id": 1}


@test
def limits_of_size():
    with Server("--event-max-bytes", "1000") as server:
        assert post(server, "b", event("x" * 997)).status == 200      # data 999 and topic 1
        answer = post(server, "b", event("x" * 998))
        assert (answer.status, answer.code, answer.json["limit"]) == (413, "too_large", 1000), answer
        answer = post(server, "b", event(1, _meta={"a": "x" * 5000}))
        assert answer.status in (400, 413), answer
        # Over the limit from Content-Length: nothing is read.
        for length in (16 * 1024 * 1024 + 1, 10 ** 15):
            with server.connect() as peer:
                peer.sendall(server.head("POST", "/session/b/events", [("Content-Length", length), ("Content-Type", "application/json")]))
                answer = read_answer(peer)
                assert (answer.status, answer.code, answer.json["limit"]) == (413, "too_large", 16 * 1024 * 1024), answer
                assert answer.headers["connection"] == "close" and peer.recv(10) == b""
        # Chunked: cut off at the limit.
        with server.connect() as peer:
            peer.sendall(server.head("POST", "/session/b/events", [("Transfer-Encoding", "chunked"), ("Content-Type", "application/json")]))
            chunk = b"100000\r\n" + b" " * 0x100000 + b"\r\n"
            try:
                for _ in range(64):
                    peer.sendall(chunk)
            except (BrokenPipeError, ConnectionResetError):
                pass
            answer = read_answer(peer)
            assert (answer.status, answer.code) == (413, "too_large"), answer
        # One object has less room than an array.
        assert post(server, "b", b" " * 70000 + json.dumps(event()).encode()).status == 413
        assert post(server, "b", b" " * 70000 + b"[" + json.dumps(event()).encode() + b"]").status == 200


@test
def expect_100_continue():
    with Server() as server:
        body = json.dumps(event()).encode()
        headers = [("Content-Length", len(body)), ("Content-Type", "application/json"), ("Expect", "100-continue")]
        with server.connect() as peer:
            peer.sendall(server.head("POST", "/session/b/events", headers))
            assert peer.recv(1000).startswith(b"HTTP/1.1 100 ")
            peer.sendall(body)
            assert read_answer(peer).json == {"id": 1}
        headers[0] = ("Content-Length", 10 ** 9)
        with server.connect() as peer:
            peer.sendall(server.head("POST", "/session/b/events", headers))
            assert read_answer(peer).status == 413


@test
def content_types():
    with Server() as server:
        for type in (None, "", "text/plain", "application/x-www-form-urlencoded", "application/jsonx", "multipart/form-data; boundary=x"):
            answer = post(server, "b", event(), type)
            assert (answer.status, answer.code) == (415, "unsupported_media_type"), (type, answer)
        assert server.request("POST", "/session/b/events").status == 415
        assert server.request("PUT", "/session/b", b"{}", "text/plain").status == 415
        assert server.request("PUT", "/session/b").status == 201


@test
def codings_and_charsets():
    with Server() as server:
        for headers, type in (([("Content-Encoding", "gzip")], "application/json"), ([("Content-Encoding", "br")], NDJSON),
                              ([], "application/json; charset=latin1"), ([], NDJSON + "; charset=utf-16")):
            answer = post(server, "b", event(), type, headers=headers)
            assert (answer.status, answer.code) == (415, "unsupported_media_type"), (headers, type, answer)
        for headers, type in (([("Content-Encoding", "identity")], "application/json"),
                              ([], "application/json; charset=UTF-8"), ([], 'application/json; charset="utf-8"')):
            assert post(server, "b", event(), type, headers=headers).status == 200, (headers, type)


@test
def chunked_bodies_split_anywhere():
    with Server() as server:
        body = json.dumps([event("\U0001F600"), event(2)]).encode()
        for type, want in (("application/json", 2), (NDJSON, None)):
            payload = body if want else lines(event("\U0001F600"), event(2))
            for split in range(1, len(payload)):
                with server.connect() as peer:
                    peer.sendall(server.head("POST", "/session/b/events", [("Transfer-Encoding", "chunked"), ("Content-Type", type)]))
                    for part in (payload[:split], payload[split:]):
                        peer.sendall(b"%x\r\n%s\r\n" % (len(part), part))
                    peer.sendall(b"0\r\n\r\n")
                    answer = read_answer(peer)
                    assert answer.status == 200 and answer.json["count"] == 2, (split, answer)


@test
def bodies_around_what_is_collected_whole():
    """Up to 8 KiB libsoup collects a body; a larger one comes in pieces. Nobody outside can tell."""
    with Server() as server:
        server.create("b")
        with server.stream("b") as stream:
            for size in (8190, 8191, 8192, 8193, 8194, 16385):
                text = "x" * (size - len(json.dumps(event(""))))
                body = json.dumps(event(text)).encode()
                assert len(body) == size
                plain = server.head("POST", "/session/b/events", [("Content-Length", size), ("Content-Type", "application/json")])
                chunked = server.head("POST", "/session/b/events", [("Transfer-Encoding", "chunked"), ("Content-Type", "application/json")])
                for split in (1, size // 2, size - 1):
                    for requests in ((plain + body[:split], body[split:] + plain + body),
                                     (chunked + b"%x\r\n%s" % (size, body[:split]), body[split:] + b"\r\n0\r\n\r\n" + plain + body)):
                        with server.connect() as peer:
                            for part in requests:
                                peer.sendall(part)
                                time.sleep(0.005)
                            first, rest = read_answer(peer, keep_rest=True)
                            second = read_answer(peer, buffer=rest)
                            assert (first.status, second.json["id"]) == (200, first.json["id"] + 1), (size, split, first, second)
                        for frame in stream.take(2):
                            assert frame.envelope["data"] == text, (size, split)
        last = server.info("b")["lastEventId"]
        # Who leaves within one has published nothing.
        for size in (100, 8192, 8193):
            for is_reset in (False, True):
                with server.connect() as peer:
                    peer.sendall(server.head("POST", "/session/b/events", [("Content-Length", size), ("Content-Type", "application/json")]))
                    peer.sendall(json.dumps(event("x" * (size - 23))).encode()[:size - 1])
                    time.sleep(0.01)
                    if is_reset:
                        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        server.wait_for(lambda: server.counts()["connections"] == 0, "no connection")
        assert server.info("b")["lastEventId"] == last


@test
def targets_that_are_no_path_of_ours():
    """libsoup answers these by itself, once it has their bodies."""
    with Server() as server:
        server.create("b")
        body = json.dumps(event()).encode()
        for method, target in (("OPTIONS", "*"), ("POST", "*"), ("GET", "*"), ("POST", "https://127.0.0.1/session/b/events"), ("POST", "ftp://127.0.0.1/x")):
            for length in ([], [("Content-Length", len(body))], [("Transfer-Encoding", "chunked")]):
                with server.connect() as peer:
                    peer.sendall(server.head(method, target, [*length, ("Content-Type", "application/json")]))
                    if length:
                        peer.sendall(body if length[0][0] == "Content-Length" else b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body))
                    answer = read_answer(peer)
                    assert 400 <= answer.status < 500 and answer.json["error"], (method, target, length, answer)
                    assert peer.recv(10) == b"", (method, target)
        assert server.info("b")["lastEventId"] == 0


@test
def requests_behind_a_chunked_body():
    with Server() as server:
        body = json.dumps(event()).encode()
        head = server.head("POST", "/session/b/events", [("Transfer-Encoding", "chunked"), ("Content-Type", "application/json")])
        one = head + b"%X;ext=1\r\n%s\r\n00\r\nX-Trailer: 1\r\nY: %%zz\r\n\r\n" % (len(body), body)
        data = (one + server.head("GET", "/session/b")) * 20
        for size in (1, 50, 1000, len(data)):
            with server.connect() as peer:
                for at in range(0, len(data), size):
                    peer.sendall(data[at:at + size])
                rest = b""
                for _ in range(20):
                    answer, rest = read_answer(peer, buffer=rest, keep_rest=True)
                    assert answer.status == 200, answer
                    last = answer.json["id"]
                    answer, rest = read_answer(peer, buffer=rest, keep_rest=True)
                    assert answer.json["lastEventId"] == last, answer
                assert rest == b""
        for bad in (b"zz\r\n", b"-1\r\n", b"5\r\nhelloX", b"\r\n", b"1" * 200):
            for type in ("application/json", NDJSON):
                with server.connect() as peer:
                    peer.sendall(server.head("POST", "/session/b/events", [("Transfer-Encoding", "chunked"), ("Content-Type", type)]))
                    peer.sendall(bad)
                    answer = read_answer(peer)
                    assert (answer.status, answer.code) == (400, "invalid_request"), (bad, answer)
                    assert peer.recv(10) == b""
        server.wait_for(lambda: server.counts()["connections"] == 0, "no connection")


@test
def ndjson_lines_split_at_every_byte():
    with Server() as server:
        payload = lines(event("\u20ac"), event(2)) + b"\r\n\n" + lines(event(3))[:-1]
        server.create("b")
        with server.stream("b") as stream:
            for split in range(1, len(payload)):
                with server.connect() as peer:
                    peer.sendall(server.head("POST", "/session/b/events", [("Content-Length", len(payload)), ("Content-Type", NDJSON)]))
                    peer.sendall(payload[:split])
                    whole = payload[:split].count(b"}")
                    frames = [stream.next() for _ in range(min(payload[:split].count(b"\n"), 2))]
                    peer.sendall(payload[split:])
                    frames += [stream.next() for _ in range(3 - len(frames))]
                    assert [f.data for f in frames] == ["\u20ac", 2, 3], (split, frames)
                    answer = read_answer(peer)
                    assert answer.json == {"firstId": frames[0].id, "lastId": frames[2].id, "count": 3}, (split, whole, answer)


@test
def ndjson_is_published_as_it_arrives():
    with Server() as server:
        server.create("b")
        with server.stream("b") as stream, server.connect() as peer:
            peer.sendall(server.head("POST", "/session/b/events", [("Transfer-Encoding", "chunked"), ("Content-Type", NDJSON)]))
            for i in range(1, 6):
                line = lines(event(i))
                peer.sendall(b"%x\r\n%s\r\n" % (len(line), line))
                assert stream.next().data == i
            peer.sendall(b"0\r\n\r\n")
            assert read_answer(peer).json == {"firstId": 1, "lastId": 5, "count": 5}
            # The connection goes on.
            peer.sendall(server.head("GET", "/health"))
            assert read_answer(peer).status == 200


@test
def ndjson_bad_lines():
    with Server("--event-max-bytes", "1000") as server:
        cases = ((b"nonsense", 400, "invalid_json"), (b"{}", 400, "invalid_request"), (b"[1]", 400, "invalid_request"),
                 (b'{"type":"a b","data":1}', 400, "invalid_type"), (b'{"type":"t","data":"%s"}' % (b"x" * 1000), 413, "too_large"),
                 (b" " * 67000, 413, "too_large"), (b'{"type":"t","data":1}{}', 400, "invalid_json"))
        for bad, status, code in cases:
            for before in (0, 1, 31, 32, 33, 100):
                first = server.request("GET", "/session/b").json.get("lastEventId", 0) + 1
                body = lines(*[event()] * before) + bad + b"\n" + lines(event(), event())
                answer = post(server, "b", body, NDJSON)
                assert (answer.status, answer.code) == (status, code), (bad[:20], before, answer)
                assert answer.json["line"] == before + 1 and answer.json["published"] == before, (bad[:20], before, answer)
                if before > 0:
                    assert (answer.json["firstId"], answer.json["lastId"]) == (first, first + before - 1), answer
                else:
                    assert "firstId" not in answer.json and "lastId" not in answer.json, answer
        # Blank lines count, and the last LF is optional.
        answer = post(server, "b", b"\n \r\n" + lines(event()) + b"\nx", NDJSON)
        assert (answer.json["line"], answer.json["published"]) == (5, 1), answer
        assert post(server, "b", b"", NDJSON).json == {"count": 0}
        assert post(server, "b", b"\n\r\n  \n", NDJSON).json == {"count": 0}
        # A line without an end is cut off as well.
        with server.connect() as peer:
            peer.sendall(server.head("POST", "/session/b/events", [("Transfer-Encoding", "chunked"), ("Content-Type", NDJSON)]))
            try:
                for _ in range(64):
                    peer.sendall(b"10000\r\n" + b"x" * 0x10000 + b"\r\n")
            except (BrokenPipeError, ConnectionResetError):
                pass
            answer = read_answer(peer)
            assert (answer.status, answer.json["line"]) == (413, 1), answer


@test
def ndjson_leaves_its_connection_as_it_was():
    """Whole bodies of so many lines that they take several turns, and then others on the same connection."""
    with Server() as server:
        with server.connect() as peer:
            last = 0
            for count in (31, 32, 33, 64, 65, 5000, 1):
                body = lines(*(event(i) for i in range(count)))
                peer.sendall(server.head("POST", "/session/b/events", [("Content-Length", len(body)), ("Content-Type", NDJSON)]) + body)
                assert read_answer(peer).json == {"firstId": last + 1, "lastId": last + count, "count": count}
                last += count
                peer.sendall(server.head("GET", "/session/b"))
                assert read_answer(peer).json["lastEventId"] == last
        with server.connect() as peer:
            body = lines(*(event(i) for i in range(100)))
            one = server.head("POST", "/session/b/events", [("Content-Length", len(body)), ("Content-Type", NDJSON)]) + body
            peer.sendall(one * 20)
            rest = b""
            for _ in range(20):
                answer, rest = read_answer(peer, buffer=rest, keep_rest=True)
                assert answer.json["count"] == 100, answer
        # Those that leave are noticed.
        server.wait_for(lambda: server.counts()["connections"] == 0, "no connection")


@test
def ndjson_many_lines_keep_their_order():
    with Server() as server:
        server.create("b", ringSize=100000)
        blocks = [lines(*[event(i) for i in range(at, at + 1000)]) for at in range(0, 20000, 1000)]
        length = sum(len(block) for block in blocks)
        with server.stream("b", "?maxQueued=2048", unix=True) as stream, server.connect(unix=True) as peer:
            peer.sendall(server.head("POST", "/session/b/events", [("Content-Length", length), ("Content-Type", NDJSON)]))
            for number, block in enumerate(blocks):
                peer.sendall(block)
                frames = [f for f in stream.take(1000)]
                while any(f.id is None for f in frames):
                    assert all(f.type == "slow_client_warning" for f in frames if f.id is None), frames
                    frames = [f for f in frames if f.id is not None]
                    frames += stream.take(1000 - len(frames))
                assert [f.data for f in frames] == list(range(number * 1000, number * 1000 + 1000))
            assert read_answer(peer).json["count"] == 20000


@test
def ndjson_from_a_client_that_leaves():
    with Server() as server:
        server.create("b")
        for reset in (False, True):
            last = server.info("b")["lastEventId"]
            peer = server.connect()
            peer.sendall(server.head("POST", "/session/b/events", [("Transfer-Encoding", "chunked"), ("Content-Type", NDJSON)]))
            payload = lines(*[event(i) for i in range(10)]) + b'{"type":"t","da'
            peer.sendall(b"%x\r\n%s\r\n" % (len(payload), payload))
            server.wait_for(lambda: server.info("b")["lastEventId"] == last + 10, "ten events")
            if reset:
                import struct
                peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            peer.close()
        server.wait_for(lambda: server.counts()["connections"] == 0, "no connection")
        assert server.info("b")["lastEventId"] == 20


@test
def one_publisher_does_not_starve_the_others():
    with Server() as server:
        server.create("b")
        line = lines(event("x" * 100))
        block = line * 600
        with server.connect() as peer:
            peer.sendall(server.head("POST", "/session/b/events", [("Transfer-Encoding", "chunked"), ("Content-Type", NDJSON)]))
            peer.setblocking(False)
            chunk = b"%x\r\n%s\r\n" % (len(block), block)
            pending = b""
            slowest = 0
            for _ in range(50):
                for _ in range(20):
                    pending = pending or chunk
                    try:
                        pending = pending[peer.send(pending):]
                    except BlockingIOError:
                        break
                began = time.monotonic()
                assert server.request("GET", "/health").status == 200
                slowest = max(slowest, time.monotonic() - began)
            assert slowest < 1, slowest
            assert server.info("b")["lastEventId"] > 32


@test
def pipelined_requests_are_answered_in_order():
    with Server() as server:
        requests = b""
        for i in range(50):
            body = json.dumps(event(i)).encode()
            requests += server.head("POST", "/session/b/events", [("Content-Length", len(body)), ("Content-Type", "application/json")]) + body
            requests += server.head("GET", "/session/b")
        random.seed(7)
        for size in (1, 7, 100, 1000, len(requests)):
            with server.connect() as peer:
                at = 0
                while at < len(requests):
                    step = size if size > 1 else random.choice((1, 1, 1, 5000))
                    peer.sendall(requests[at:at + step])
                    at += step
                rest = b""
                last = None
                for _ in range(50):
                    answer, rest = read_answer(peer, buffer=rest, keep_rest=True)
                    assert last is None or answer.json["id"] == last + 1, answer
                    last = answer.json["id"]
                    answer, rest = read_answer(peer, buffer=rest, keep_rest=True)
                    assert answer.json["lastEventId"] == last
                assert rest == b""


@test
def principals():
    with Server() as server:
        server.create("b")
        own = "uid:%d" % os.getuid()
        with server.stream("b") as stream:
            for unix, given, want in ((False, {}, None), (False, {"principal": None}, None), (False, {"principal": ""}, None),
                                      (False, {"principal": "agent:a"}, "agent:a"), (True, {}, own), (True, {"principal": None}, None),
                                      (True, {"principal": ""}, None), (True, {"principal": "user@x"}, "user@x")):
                assert post(server, "b", event(**given), unix=unix).status == 200, given
                assert stream.next().envelope.get("principal") == want, (unix, given)
    with Server("--auth", "t" * 20) as server:
        bearer = [("Authorization", "Bearer " + "t" * 20)]
        server.request("PUT", "/session/b", headers=bearer)
        with server.stream("b", headers=bearer) as stream:
            for given, want in (({}, "http:token"), ({"principal": None}, None), ({"principal": "x"}, "x")):
                assert post(server, "b", event(**given), headers=bearer).status == 200
                assert stream.next().envelope.get("principal") == want


@test
def client_ids():
    with Server() as server:
        server.create("b")
        with server.stream("b") as stream:
            for headers, given, want in (([], {}, None), ([], {"originatorClientId": "c1"}, "c1"),
                                         ([("X-Qwen-Client-Id", "h")], {}, "h"), ([("X-Qwen-Client-Id", "h")], {"originatorClientId": "c"}, "c")):
                for type in ("application/json", NDJSON):
                    assert post(server, "b", event(**given), type, headers=headers).status == 200
                    assert stream.next().envelope.get("originatorClientId") == want
        for bad in ("a b", "", "x" * 129):
            answer = post(server, "b", event(), headers=[("X-Qwen-Client-Id", bad)])
            assert (answer.status, answer.code) == (400, "invalid_client_id"), (bad, answer)


@test
def meta():
    with Server() as server:
        server.create("b")
        with server.stream("b") as stream:
            before = time.time() * 1000 - 1
            for given, check in (({"source": "t"}, lambda m: m["source"] == "t" and before <= m["serverTimestamp"] <= time.time() * 1000 + 1),
                                 ({"serverTimestamp": 123}, lambda m: m["serverTimestamp"] == 123),
                                 ({"serverTimestamp": -1}, lambda m: m["serverTimestamp"] == -1),
                                 ({"serverTimestamp": 1.5}, lambda m: m["serverTimestamp"] == 1.5),
                                 ({"serverTimestamp": "x"}, lambda m: m["serverTimestamp"] >= before),
                                 ({"serverTimestamp": None}, lambda m: m["serverTimestamp"] >= before)):
                assert post(server, "b", event(_meta=given)).status == 200
                frame = stream.next()
                assert check(frame.envelope["_meta"]), frame.text


@test
def auto_create_only_by_post():
    with Server() as server:
        for method in ("GET", "HEAD", "DELETE"):
            assert server.request(method, "/session/new/events" if method != "DELETE" else "/session/new").status == 404
        assert post(server, "new", event()).json == {"id": 1}
        assert post(server, "other", event(), NDJSON).json["count"] == 1
        assert [bus["name"] for bus in server.request("GET", "/session").json] == ["new", "other"]
        for bad in ("a%20b", "x" * 256, "..%2f", "a%00", "\u20ac".encode().decode("latin-1")):
            answer = post(server, bad, event())
            assert (answer.status, answer.code) == (400, "invalid_name"), (bad, answer)
            assert server.request("PUT", "/session/" + bad).code == "invalid_name"
    with Server("--no-auto-create") as server:
        for type in ("application/json", NDJSON):
            answer = post(server, "new", event(), type)
            assert (answer.status, answer.code) == (404, "session_not_found"), answer
        server.create("new")
        assert post(server, "new", event()).json == {"id": 1}


@test
def put_get_delete():
    with Server() as server:
        made = server.create("b", ringSize=10, maxSubscribers=3)
        assert made["name"] == "b" and made["ringSize"] == 10 and made["lastEventId"] == made["firstEventId"] == 0
        assert set(made) == {"name", "epoch", "lastEventId", "firstEventId", "ringSize", "ringBytes", "subscribers"}
        for body in (None, {}, {"ringSize": 10}, {"maxSubscribers": 3, "ringSize": 10}):
            assert server.request("PUT", "/session/b", body).status == 200, body
        for body in ({"ringSize": 11}, {"maxSubscribers": 4}, {"ringMaxBytes": 5}):
            answer = server.request("PUT", "/session/b", body)
            assert (answer.status, answer.code) == (409, "bus_exists"), (body, answer)
        for body, code in (({"ringsize": 1}, "invalid_option"), ({"ringSize": 0}, "invalid_option"), ({"ringSize": 1000001}, "invalid_option"),
                           ({"ringSize": "1"}, "invalid_option"), ({"ringSize": 1.5}, "invalid_option"), ({"ringSize": -1}, "invalid_option"),
                           (b'{"ringSize":1,"ringSize":1}', "invalid_option"), (b"[]", "invalid_request"), (b"{", "invalid_json")):
            answer = server.request("PUT", "/session/c", body)
            assert (answer.status, answer.code) == (400, code), (body, answer)
        server.publish("b", *range(12))
        info = server.info("b")
        assert (info["lastEventId"], info["firstEventId"]) == (12, 3) and info["ringBytes"] > 0, info
        with server.stream("b"):
            assert server.info("b")["subscribers"] == 1
        assert server.request("DELETE", "/session/b").status == 204
        server.wait_for(lambda: server.request("GET", "/session/b").status == 404, "the end of the bus")
        assert server.request("DELETE", "/session/b").code == "session_not_found"


@test
def publishing_while_a_bus_drains():
    with Server("--drain-window-ms", "2000") as server:
        server.create("b")
        with server.stream("b", "?maxQueued=2048", rcvbuf=4096):
            for _ in range(100):
                server.publish("b", *["x" * 4000] * 16)
                if server.counts()["blocked"]:
                    break
            server.request("DELETE", "/session/b")
            answer = post(server, "b", event())
            assert (answer.status, answer.code) == (410, "closed"), answer
            assert server.request("GET", "/session/b/events").status == 404
            assert server.request("PUT", "/session/b").status == 410


@test
def seeding():
    with Server() as server:
        server.create("b")
        with server.stream("b") as stream:
            assert post(server, "b", [event(), event()], query="?seed=1").json == {"firstId": 1, "lastId": 2, "count": 2}
            assert post(server, "b", event()).json == {"id": 3}
            assert stream.next().id == 3
        with server.stream("b", headers=[("Last-Event-ID", "0")]) as stream:
            frames = stream.take(3)
            assert frames[0].data == {"reason": "ring_evicted", "lastDeliveredId": 0, "earliestAvailableId": 3}
            assert frames[1].id == 3 and frames[2].data["replayedCount"] == 1
        for query in ("?seed=2", "?seed=", "?seed", "?seed=1&seed=1"):
            assert post(server, "b", [event()], query=query).code == "invalid_option", query
        assert post(server, "b", event(), NDJSON, query="?seed=1").code == "invalid_option"
        assert post(server, "b", [event()], query="?seed=0").json["firstId"] == 4


sys.exit(main())
