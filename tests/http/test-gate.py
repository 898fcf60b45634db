# SPDX-License-Identifier: LGPL-2.1-or-later
"""Who may come in and what is wrong with a request: sse-contract.md 1.1, 1.2, cases 67, 68, 73-75."""

import itertools
import json
import sys

from http_case import Server, main, read_answer, test

TOKEN = "0123456789abcdefTOKEN"
BEARER = ("Authorization", "Bearer " + TOKEN)
ORIGIN = "https://app.example"


@test
def case_67_max_queued_out_of_range():
    with Server() as server:
        server.create("b")
        for value in ("15", "2049", "0", "99999999999999999999", "00000015"):
            answer = server.request("GET", "/session/b/events?maxQueued=" + value)
            assert (answer.status, answer.code) == (400, "invalid_max_queued"), (value, answer)
            assert "16" in answer.json["error"] and "2048" in answer.json["error"], answer
        for value in ("16", "2048", "016"):
            server.stream("b", "?maxQueued=" + value).close()


@test
def case_68_max_queued_that_is_no_number():
    with Server() as server:
        server.create("b")
        for query in ("maxQueued=abc", "maxQueued=", "maxQueued", "maxQueued=%2B16", "maxQueued=+16", "maxQueued=%2016",
                      "maxQueued=16%20", "maxQueued=16.0", "maxQueued=0x10", "maxQueued=-16", "maxQueued=1e2",
                      "maxQueued=%D9%A1%D9%A6", "maxQueued=16&maxQueued=16", "maxQueued=%zz", "maxQueued=16%00",
                      "maxQueued=%ff", "maxQueued=\u0661\u0666".encode().decode("latin-1")):
            answer = server.request("GET", "/session/b/events?" + query)
            assert (answer.status, answer.code) == (400, "invalid_max_queued"), (query, answer)
            assert server.request("HEAD", "/session/b/events?" + query).status == 400
        for query in ("maxqueued=1", "maxQueued[]=16", "maxQueued%5B%5D=16", "x=%zz", "%=1", "", "&&", "=16"):
            server.stream("b", "?" + query).close()


@test
def case_73_unknown_sessions_are_echoed_safely():
    with Server() as server:
        for path, name in (("nope", "nope"), ("%2e%2e%2fx", "../x"), ("a%0d%0aX", "a\r\nX"), ("a%00b", "a\0b"),
                           ("%22%5c", '"\\'), ("%E2%82%AC", "\u20ac"), ("...", "..."), ("a%2Fb", "a/b"),
                           ("x" * 300, "x" * 300), ("", ""), ("%c3%a9".upper(), "\u00e9")):
            for tail in ("/events", ""):
                if tail == "" and name == "":
                    continue
                answer = server.request("GET", "/session/" + path + tail)
                assert (answer.status, answer.code) == (404, "session_not_found"), (path, answer)
                assert answer.json["sessionId"] == name, answer
                assert set(answer.headers) == {"date", "content-type", "content-length"}, answer.headers
        raw = server.request("GET", "/session/a%0d%0aX/events").body
        assert b"a\\r\\nX" in raw and b"\r" not in raw, raw
        # Raw UTF-8 in a path is what it says.
        answer = server.request("GET", "/session/\u20ac/events".encode().decode("latin-1"))
        assert answer.json["sessionId"] == "\u20ac", answer


@test
def case_74_bad_escapes_in_the_path():
    with Server() as server:
        server.create("b")
        for path in ("/session/%zz/events", "/session/%ff/events", "/session/b%/events", "/session/b%2/events",
                     "/session/%c3%28/events", "/session/%ed%a0%80/events", "/session/b/events%", "/%ff", "/%zz?x=1",
                     "/session/\xff/events"):
            for method in ("GET", "HEAD", "POST", "PUT", "DELETE"):
                answer = server.request(method, path)
                assert answer.status == 400, (method, path, answer)
                if method != "HEAD":
                    assert answer.code == "invalid_request", (method, path, answer)


# Each row of 1.2 as what a request has to have wrong; row 7 is the state of the bus.
ROWS = [
    ("host", 403, None),
    ("origin", 403, None),
    ("token", 401, None),
    ("escape", 400, "invalid_request"),
    ("maxQueued", 400, "invalid_max_queued"),
    ("session", 404, "session_not_found"),
    ("full", 429, "subscriber_limit_exceeded"),
]


def wrong_request(server, wrong):
    bus = "%zz" if "escape" in wrong else "unknown" if "session" in wrong else "full" if "full" in wrong else "b"
    headers = [("Origin", "https://evil.example" if "origin" in wrong else ORIGIN)]
    if "token" not in wrong:
        headers.append(BEARER)
    return server.request("GET", "/session/%s/events%s" % (bus, "?maxQueued=1" if "maxQueued" in wrong else ""),
                          headers=headers, host="evil.example" if "host" in wrong else True)


@test
def case_75_order_of_checks_pairwise():
    with Server("--auth", TOKEN, "--origin", ORIGIN, "--max-subscribers", "1") as server:
        for bus in ("b", "full"):
            assert server.request("PUT", "/session/" + bus, headers=[BEARER]).status == 201
        with server.stream("full", headers=[BEARER]):
            for (name, status, code) in ROWS:
                answer = wrong_request(server, {name})
                assert (answer.status, answer.code) == (status, code), (name, answer)
            for first, second in itertools.combinations(ROWS, 2):
                if first[0] == "session" and second[0] == "full":
                    continue
                answer = wrong_request(server, {first[0], second[0]})
                assert (answer.status, answer.code) == first[1:], (first, second, answer)
            answer = wrong_request(server, {row[0] for row in ROWS})
            assert answer.status == 403 and "Host" in answer.json["error"]


@test
def hosts():
    with Server() as server:
        for host in ("127.0.0.1:%d", "localhost:%d", "LocalHost:%d", "[::1]:%d"):
            assert server.request("GET", "/health", host=host % server.port).status == 200, host
        for host in ("127.0.0.1", "localhost", "evil.example:%d" % server.port, "localhost:1", "localhost:", "",
                     "127.0.0.1:%dx" % server.port, "localhost.evil.example:%d" % server.port, "[::1]", "::1",
                     "a b", "127.0.0.1:%d,evil" % server.port, "127.0.0.2:%d" % server.port, "user@localhost:%d" % server.port):
            answer = server.request("GET", "/health", host=host or False, headers=[] if host else [("Host", "")])
            assert answer.status == 403 and answer.json.keys() == {"error"}, (host, answer)
        assert server.request("GET", "/health", host=False).status == 403
        answer = server.request("GET", "/health", headers=[("Host", "localhost:%d" % server.port)])
        assert answer.status == 403, answer
        # The target may not name another host than the header.
        answer = server.request("GET", "http://evil.example/health")
        assert answer.status == 403, answer
        assert server.request("GET", "http://localhost:%d/health" % server.port).status == 200
        # None of that on the Unix socket.
        assert server.request("GET", "/health", host="evil.example", unix=True).status == 200
        assert server.request("GET", "/health", headers=[("Origin", "null")], unix=True).status == 200


@test
def tokens():
    with Server("--auth", TOKEN) as server:
        for good in ("Bearer " + TOKEN, "bearer " + TOKEN, "BEARER  " + TOKEN, "Bearer   " + TOKEN + "  "):
            assert server.request("GET", "/session", headers=[("Authorization", good)]).status == 200, good
        errors = set()
        for bad in (None, "", "Bearer", "Bearer ", "Bearer " + TOKEN.lower(), "Bearer " + TOKEN[:-1], "Bearer x" + TOKEN,
                    "Bearer " + TOKEN + "x", "Basic " + TOKEN, TOKEN, "Bearer\t" + TOKEN, "Bearer:" + TOKEN):
            headers = [] if bad is None else [("Authorization", bad)]
            for path in ("/session", "/session/b/events", "/nothing", "/capabilities", "/metrics", "/"):
                answer = server.request("GET", path, headers=headers)
                assert answer.status == 401, (bad, path, answer)
                assert answer.headers["www-authenticate"] == "Bearer"
                errors.add(answer.body)
        assert len(errors) == 1, errors
        two = [("Authorization", "Bearer " + TOKEN)] * 2
        assert server.request("GET", "/session", headers=two).status == 401
        assert server.request("GET", "/health").status == 200
        assert server.request("GET", "/session", unix=True).status == 200
        # A body that nobody may send is not read.
        with server.connect() as peer:
            peer.sendall(server.head("POST", "/session/b/events", [("Content-Length", 10 ** 12),
                                                                   ("Content-Type", "application/json")]))
            assert read_answer(peer).status == 401


@test
def origins_and_preflight():
    with Server("--auth", TOKEN, "--origin", ORIGIN) as server:
        assert server.request("PUT", "/session/b", headers=[BEARER]).status == 201
        for bad in ("https://evil.example", "null", "", "https://app.example:443", "http://app.example", ORIGIN + "/",
                    "HTTPS://APP.EXAMPLE"):
            answer = server.request("GET", "/session", headers=[BEARER, ("Origin", bad)])
            assert answer.status == 403 and answer.headers["vary"] == "Origin", (bad, answer)
            assert "access-control-allow-origin" not in answer.headers
        answer = server.request("GET", "/session", headers=[BEARER, ("Origin", ORIGIN)])
        assert answer.status == 200 and answer.headers["access-control-allow-origin"] == ORIGIN
        assert answer.headers["vary"] == "Origin"
        exposed = "Retry-After, X-Qwen-Event-Epoch, X-Qwen-SSE-Stream-Id"
        assert answer.headers["access-control-expose-headers"] == exposed
        assert "access-control-allow-credentials" not in answer.headers
        with server.stream("b", headers=[BEARER, ("Origin", ORIGIN)]) as stream:
            assert stream.strict.headers["Access-Control-Allow-Origin"] == ORIGIN
            assert stream.strict.headers["Access-Control-Expose-Headers"] == exposed
            assert stream.strict.headers["Vary"] == "Origin"
        # Errors tell the browser as much, so that the page can read them.
        answer = server.request("GET", "/session/x/events", headers=[BEARER, ("Origin", ORIGIN)])
        assert answer.status == 404 and answer.headers["access-control-allow-origin"] == ORIGIN

        preflight = [("Origin", ORIGIN), ("Access-Control-Request-Method", "POST")]
        answer = server.request("OPTIONS", "/session/b/events", headers=preflight)
        assert answer.status == 204, answer
        assert answer.headers["access-control-allow-headers"] == (
            "Authorization, Content-Type, X-Qwen-Client-Id, Last-Event-ID, X-Qwen-Event-Epoch")
        assert answer.headers["access-control-max-age"] == "86400"
        assert "POST" in answer.headers["access-control-allow-methods"]
        assert server.request("OPTIONS", "/session/b/events", headers=preflight, host="evil").status == 403
        bad = [("Origin", "null"), ("Access-Control-Request-Method", "POST")]
        assert server.request("OPTIONS", "/session/b/events", headers=bad).status == 403
        # Without a request method it is no preflight, and needs the token.
        assert server.request("OPTIONS", "/session/b/events", headers=[("Origin", ORIGIN)]).status == 401
        own = "http://127.0.0.1:%d" % server.port
        assert server.request("GET", "/session", headers=[BEARER, ("Origin", own)]).status == 200


@test
def methods():
    with Server() as server:
        server.create("b")
        answer = server.request("OPTIONS", "/session/b/events")
        assert answer.status == 200 and answer.headers["allow"] == "GET, HEAD, POST, OPTIONS"
        for method, path, allow in (("PUT", "/session/b/events", "GET, HEAD, POST, OPTIONS"),
                                    ("DELETE", "/session/b/events", "GET, HEAD, POST, OPTIONS"),
                                    ("FOO", "/session/b/events", "GET, HEAD, POST, OPTIONS"),
                                    ("PATCH", "/session/b", "GET, HEAD, PUT, DELETE"),
                                    ("POST", "/session/b", "GET, HEAD, PUT, DELETE"),
                                    ("POST", "/session", "GET, HEAD"), ("PUT", "/health", "GET, HEAD"),
                                    ("DELETE", "/capabilities", "GET, HEAD"), ("POST", "/metrics", "GET, HEAD")):
            answer = server.request(method, path)
            assert (answer.status, answer.code) == (405, "method_not_allowed"), (method, path, answer)
            assert answer.headers["allow"] == allow
        for path in ("/", "/nothing", "/session/b/nothing", "/session/b/events/more", "//", "/health/x", "/Health"):
            answer = server.request("GET", path)
            assert (answer.status, answer.code) == (404, "not_found"), (path, answer)


@test
def parameters_are_checked_in_order_and_before_the_session():
    chain = [("maxQueued=1", "invalid_max_queued"), ("mode=x", "invalid_mode"), ("topic=a..b", "invalid_pattern"),
             ("types=a%20b", "invalid_type"), ("scope=u", "invalid_option"), ("eviction=fair", "invalid_option")]
    with Server() as server:
        for i, (query, code) in enumerate(chain):
            for path in ("unknown",):
                answer = server.request("GET", "/session/%s/events?%s" % (path, query))
                assert (answer.status, answer.code) == (400, code), (query, answer)
            for later, _ in chain[i + 1:]:
                answer = server.request("GET", "/session/unknown/events?%s&%s" % (later, query))
                assert answer.code == code, (query, later, answer)


@test
def parameters_that_are_refused():
    with Server() as server:
        server.create("b")
        for query, code in (("mode=", "invalid_mode"), ("mode", "invalid_mode"), ("mode=stream&mode=stream", "invalid_mode"),
                            ("mode=Stream", "invalid_mode"), ("topic=", "invalid_pattern"), ("topic", "invalid_pattern"),
                            ("topic=%zz", "invalid_pattern"), ("topic=%ff", "invalid_pattern"), ("topic=a%00", "invalid_pattern"),
                            ("topic=a.*b", None), ("topic=a&topic=", "invalid_pattern"), ("types=", "invalid_type"),
                            ("types=a,,b", "invalid_type"), ("types=a,", "invalid_type"), ("types", "invalid_type"),
                            ("mode=stream&scope=x", "invalid_option"), ("mode=broadcast&eviction=fair", "invalid_option"),
                            ("mode=routed&scope=a%20b", "invalid_principal"), ("mode=routed&eviction=x", "invalid_option"),
                            ("mode=routed&scope=a&scope=a", "invalid_option")):
            answer = server.request("GET", "/session/b/events?" + query)
            if code is None:
                continue
            assert (answer.status, answer.code) == (400, code), (query, answer)


@test
def malformed_requests():
    with Server() as server:
        for raw, status in ((b"nonsense\r\n\r\n", 400), (b"GET\r\n\r\n", 400), (b"GET / HTTP/3.0\r\n\r\n", 505),
                            (b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03\n\n", 400),
                            (b"GET /health HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Length: x\r\n\r\n" % server.port, 400),
                            (b"POST /health HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nTransfer-Encoding: zip\r\n\r\n" % server.port, 501),
                            (b"GET /\x00 HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % server.port, 400),
                            (b"POST /health HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n" % server.port, 400),
                            (b"POST /health HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\n" % server.port, 400)):
            with server.connect() as peer:
                peer.sendall(raw)
                answer = read_answer(peer)
                assert answer.status in (status, 400), (raw, answer)
                assert answer.json["code"] == "invalid_request" and answer.headers["connection"] == "close", answer
                assert peer.recv(100) == b""
        assert server.request("GET", "/health").status == 200
        assert server.request("GET", "/health", headers=[("A", "x" * 15000)]).status == 200
        for size in (17000, 100000, 1000000):
            with server.connect() as peer:
                try:
                    peer.sendall(server.head("GET", "/health", [("A", "x" * size)]))
                    assert read_answer(peer).status == 431
                except (BrokenPipeError, ConnectionResetError):
                    assert size > 100000
        # The second request of a connection as well.
        with server.connect() as peer:
            peer.sendall(server.head("GET", "/health") + server.head("GET", "/health", [("A", "x" * 20000)]))
            answer, rest = read_answer(peer, keep_rest=True)
            assert answer.status == 200 and read_answer(peer, buffer=rest).status == 431
            assert peer.recv(100) == b""
        server.wait_for(lambda: server.counts()["connections"] == 0, "no connection")


@test
def empty_lines_before_a_request_do_not_matter():
    with Server() as server:
        with server.connect() as peer:
            peer.sendall(b"\r\n\n" + server.head("GET", "/health") + b"\r\n\r\n" + server.head("GET", "/health"))
            answer, rest = read_answer(peer, keep_rest=True)
            assert answer.status == 200 and read_answer(peer, buffer=rest).status == 200


@test
def capabilities():
    with Server() as server:
        value = server.request("GET", "/capabilities").json
        assert value["v"] == 1 and value["protocolVersions"] == {"current": "v1", "supported": ["v1"]}
        assert value["transports"] == ["rest"]
        features = value["features"]
        for tag in ("health", "capabilities", "session_events", "slow_client_warning", "typed_event_schema", "client_identity",
                    "topic_filter", "routed_mode", "gap_events", "publish_ndjson", "handlers", "writer_idle_timeout"):
            assert features.count(tag) == 1, (tag, features)
        assert value["limits"]["maxSubscribers"] == 64
        assert server.request("GET", "/health").json == {"status": "ok"}
        assert server.request("HEAD", "/health").headers["content-length"] == str(len(json.dumps({"status": "ok"}, separators=(",", ":"))))
        answer = server.request("GET", "/metrics")
        assert answer.status == 200
    with Server("--writer-idle-timeout-ms", "0") as server:
        assert "writer_idle_timeout" not in server.request("GET", "/capabilities").json["features"]


@test
def case_150_a_retired_token_publishes_nothing():
    """The authority of an HTTP client is the token: who holds one that has been replaced is denied before anything else."""
    retired, event = ("Authorization", "Bearer " + TOKEN.lower()), {"type": "t", "data": 1}
    with Server("--auth", TOKEN.lower()) as server:
        assert server.request("POST", "/session/b/events", event, headers=[retired]).json == {"id": 1}
    with Server("--auth", TOKEN) as server:
        assert server.request("POST", "/session/b/events", event, headers=[BEARER]).json == {"id": 1}
        with server.stream("b", headers=[BEARER]) as stream:
            for type in ("application/json", "application/x-ndjson"):
                assert server.request("POST", "/session/b/events", event, type, headers=[retired]).status == 401, type
            assert server.request("POST", "/session/new/events", event, headers=[retired]).status == 401
            assert server.request("GET", "/session/new", headers=[BEARER]).status == 404
            # Nothing reached a reader, and no id was used.
            assert server.request("POST", "/session/b/events", event, headers=[BEARER]).json == {"id": 2}
            assert stream.ids(1) == [2]


sys.exit(main())
