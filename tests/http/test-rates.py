# SPDX-License-Identifier: LGPL-2.1-or-later
"""Rates of publishers, metrics and security events over HTTP; routing.md cases 14, 156, 157."""

import importlib.util
import os
import signal
import socket
import struct
import sys
import time

from http_case import PATIENCE, Server, main, read_answer, test

TOKEN = "0123456789abcdef0123456789abcdef0123456789ab"
MIB = 1024 * 1024


def load_check():
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "wire", "check-prometheus.py")
    spec = importlib.util.spec_from_file_location("check_prometheus", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def data(cost):
    """Data that costs so much with its topic `t`."""
    return "x" * (cost - 3)


def event(cost=10, **more):
    return {"topic": "t", "data": data(cost), **more}


def post(server, body, type="application/json", **rest):
    return server.request("POST", "/session/b/events", body, type, **rest)


def limited(**settings):
    return Server(*["--set=%s=%d" % (key.replace("_", "-"), value) for key, value in settings.items()])


def metrics(server, **rest):
    """What /metrics says, by name and label values."""
    answer = server.request("GET", "/metrics", **rest)
    assert answer.status == 200 and answer.headers["content-type"].startswith("text/plain; version=0.0.4"), answer.headers
    values = {}
    for line in answer.body.decode().splitlines():
        if line.startswith("#"):
            continue
        series, value = line.rsplit(" ", 1)
        name, _, labels = series.partition("{")
        words = [part.split('"')[1] for part in labels.rstrip("}").split(",") if part]
        values[(name, *words)] = float(value)
    return values, answer.body


# -- Rates ---------------------------------------------------------------------------------------

@test
def over_the_rate_is_429_and_says_when():
    with limited(principal_bytes_per_second=1000) as server:
        assert post(server, [event(500), event(500)]).status == 200
        answer = post(server, event(500))
        assert (answer.status, answer.code) == (429, "rate_limited"), answer
        wait_ms = answer.json["retryAfterMs"]
        assert 1 <= wait_ms <= 500 and answer.headers["retry-after"] == "1", answer
        assert answer.json["limit"] == 1000 and "principal-bytes-per-second" in answer.json["error"], answer
        # Other principals go on, and so does this one when the time has come; nothing was used up by asking.
        assert post(server, event(500, principal="other")).json["id"] == 3
        time.sleep(wait_ms / 1000 + 0.01)
        assert post(server, event(500)).json["id"] == 4


@test
def case_14_malformed_traffic_charges_nothing():
    with limited(principal_bytes_per_second=1000) as server:
        server.create("b")
        for _ in range(20):
            assert post(server, b'{"topic":"t","data":[' + b"1" * 900).status == 400
            assert post(server, {"topic": "..", "data": data(900)}).status == 400
        assert post(server, [event(500), event(500)]).json["firstId"] == 1


@test
def what_never_fits_is_refused_for_good():
    with limited(principal_bytes_per_second=1000, principal_events_per_second=3) as server:
        for body, limit, setting in (([event(500)] * 3, 1000, "principal-bytes-per-second"), (event(1001), 1000, "bytes"),
                                     ([event(10)] * 4, 3, "principal-events-per-second")):
            answer = post(server, body)
            assert (answer.status, answer.code, answer.json["limit"]) == (413, "quota_exceeded", limit), answer
            assert setting in answer.json["error"] and "retry-after" not in answer.headers, answer
        # Both sides of the limit.
        assert post(server, event(1000)).status == 200


@test
def fifteen_mebibytes_at_once_never_fit_the_default_rate():
    with Server() as server:
        batch = [event(MIB)] * 10
        assert post(server, batch).json["count"] == 10
        answer = post(server, batch + [event(MIB)] * 5)
        assert (answer.status, answer.code, answer.json["limit"]) == (413, "quota_exceeded", 10 * MIB), answer
        assert "principal-bytes-per-second" in answer.json["error"], answer
        assert server.info("b")["lastEventId"] == 10
    with limited(principal_bytes_per_second=0) as server:
        assert post(server, batch + [event(MIB)] * 5).json["count"] == 15


@test
def ndjson_waits_until_it_may():
    with limited(principal_bytes_per_second=20000) as server:
        line = b'{"topic":"t","data":"' + b"x" * 497 + b'"}\n'
        began = time.monotonic()
        answer = post(server, line * 80, "application/x-ndjson")
        took = time.monotonic() - began
        assert answer.status == 200 and answer.json == {"firstId": 1, "lastId": 80, "count": 80}, answer
        # 40 000 bytes: the first second's worth at once, the rest takes one more.
        assert 0.9 < took < 10, took
        values, _ = metrics(server)
        assert values[("headway_publish_rejected_total", "rate")] == 0


@test
def ndjson_with_a_line_that_never_fits():
    with limited(principal_bytes_per_second=1000) as server:
        good = b'{"topic":"t","data":1}\n'
        answer = post(server, good * 2 + b'{"topic":"t","data":"' + b"x" * 1000 + b'"}\n' + good, "application/x-ndjson")
        assert (answer.status, answer.code) == (413, "quota_exceeded"), answer
        assert (answer.json["line"], answer.json["published"], answer.json["lastId"]) == (3, 2, 2), answer


@test
def a_client_that_leaves_while_it_waits_is_forgotten():
    with limited(principal_bytes_per_second=1000) as server:
        line = b'{"topic":"t","data":"' + b"x" * 497 + b'"}\n'
        peer = server.connect()
        peer.sendall(server.head("POST", "/session/b/events", [("Content-Type", "application/x-ndjson"),
                                                               ("Content-Length", len(line) * 100)]) + line * 100)
        server.wait_for(lambda: server.request("GET", "/session/b").status == 200 and server.info("b")["lastEventId"] >= 2)
        # A reset: one that merely says it is done sending still gets what it asked for.
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        peer.close()
        server.wait_for(lambda: server.counts()["connections"] == 0)
        last = server.info("b")["lastEventId"]
        time.sleep(0.7)
        assert server.info("b")["lastEventId"] == last


@test
def lines_that_wait_for_the_rates_do_not_hold_up_the_stop():
    with limited(principal_bytes_per_second=1000) as server:
        line = b'{"topic":"t","data":"' + b"x" * 497 + b'"}\n'
        with server.connect() as peer:
            peer.sendall(server.head("POST", "/session/b/events", [("Content-Type", "application/x-ndjson"),
                                                                   ("Content-Length", len(line) * 100)]) + line * 100)
            server.wait_for(lambda: server.request("GET", "/session/b").status == 200 and server.info("b")["lastEventId"] >= 2)
            began = time.monotonic()
            server.process.send_signal(signal.SIGTERM)
            answer = read_answer(peer)
            assert time.monotonic() - began < 5
        assert (answer.status, answer.code) == (503, "unavailable"), answer
        assert answer.json["line"] == answer.json["published"] + 1 == answer.json["lastId"] + 1 < 50, answer.json
        assert server.process.wait(timeout=PATIENCE) == 0
        server.stop = lambda: None


# -- Metrics -------------------------------------------------------------------------------------

@test
def case_156_metrics_are_clean_and_all_there():
    check = load_check()
    hostile = "evil-name"
    with Server() as server:
        first, body = metrics(server)
        assert list(check.problems(body)) == []
        for family in ("headway_events_published_total", "headway_receiver_lagged_total", "headway_route_drops_total",
                       "headway_route_starved_total", "headway_route_active_principals", "headway_route_bytes",
                       "headway_publish_rejected_total", "headway_dispatch_drops_total", "headway_dispatch_degraded_total",
                       "headway_verdicts_total", "headway_gaps_delivered_total"):
            values = [value for key, value in first.items() if key[0] == family]
            assert values and set(values) == {0}, (family, values)
        server.create(hostile)
        with server.stream(hostile, "?mode=routed&scope=evil-name&topic=evil-name.*&types=evil-name"), server.stream(hostile):
            server.publish(hostile, {"topic": "evil-name.x", "type": "evil-name", "data": "evil", "principal": "evil-name",
                                     "originatorClientId": "evil-name"})
            server.request("GET", "/session/evil-name2/events?mode=evil")
            server.request("GET", "/evil")
            last, body = metrics(server)
        assert b"evil" not in body
        assert list(check.problems(body)) == []
        assert set(first) == set(last)


@test
def counters_of_routed_streams():
    with Server("--set=channel-capacity=4") as server:
        server.create("b", ringSize=100000)
        with server.stream("b", "?mode=routed", rcvbuf=4096) as routed, server.stream("b", "?mode=broadcast", rcvbuf=4096) as broadcast:
            for _ in range(60):
                server.publish("b", *[event(32000, principal="agent.a")] * 4)
            waiting, _ = metrics(server)
            assert waiting[("headway_route_active_principals", "sse")] == 1
            assert 0 < waiting[("headway_route_bytes", "sse")] <= MIB
            assert waiting[("headway_subscriptions", "routed")] == waiting[("headway_subscriptions", "broadcast")] == 1
            gaps = lost = lagged = 0
            for stream, key in ((routed, "seq"), (broadcast, "id")):
                frame = None
                while frame is None or frame.envelope.get(key) != 240:
                    frame = stream.next()
                    if frame.type == "gap":
                        gaps += 1
                        lost += frame.data["count"] if key == "seq" else 0
                        lagged += frame.data["count"] if key == "id" else 0
            values, body = metrics(server)
            assert lost > 0 and lagged > 0
            assert values[("headway_route_drops_total", "sse", "agent", "budget")] == lost, (lost, values)
            assert values[("headway_receiver_lagged_total", "sse")] == lagged
            assert values[("headway_gaps_delivered_total", "sse")] == gaps
            assert values[("headway_route_bytes", "sse")] == values[("headway_route_active_principals", "sse")] == 0
            assert values[("headway_security_events_total", "events_lost")] > 0
            assert list(load_check().problems(body)) == []


@test
def refusals_have_their_reasons():
    with limited(principal_bytes_per_second=1000) as server:
        for body, type in ((event(900), None), (event(900), "rate"), (event(2000), "rate"), (b"{", "invalid"),
                           ({"topic": "t", "data": "x" * MIB}, "too_large")):
            before, _ = metrics(server)
            post(server, body)
            after, _ = metrics(server)
            changed = [key[1] for key in before if key[0] == "headway_publish_rejected_total" and after[key] != before[key]]
            assert changed == ([type] if type else []), (type, changed)


# -- Security events -----------------------------------------------------------------------------

@test
def the_gate_tells_what_it_refuses():
    with Server("--auth", TOKEN) as server:
        def change(kind, act):
            before, _ = metrics(server, unix=True)
            act()
            after, _ = metrics(server, unix=True)
            changed = {key[1]: after[key] - before[key] for key in before
                       if key[0] == "headway_security_events_total" and after[key] != before[key]}
            assert changed == {kind: 1}, (kind, changed)

        good = ("Authorization", "Bearer " + TOKEN)
        change("host_refused", lambda: server.request("GET", "/session", host="evil.example", headers=[good]))
        change("origin_refused", lambda: server.request("GET", "/session", headers=[good, ("Origin", "http://evil.example")]))
        change("authentication_failed", lambda: server.request("GET", "/session"))
        change("authentication_failed", lambda: server.request("GET", "/session", headers=[("Authorization", "Bearer x")]))
        change("malformed", lambda: server.request("POST", "/session/b/events", b"{", headers=[good]))


@test
def the_cap_on_connections_is_told():
    with Server("--max-connections", "2") as server:
        with server.connect() as first, server.connect() as second:
            server.wait_for(lambda: server.counts()["connections"] == 2)
            with server.connect() as third:
                assert third.recv(1) == b""
            second.close()
            server.wait_for(lambda: server.counts()["connections"] == 1)
            first.sendall(server.head("GET", "/metrics"))
            assert b'headway_security_events_total{kind="connection_limit"} 1\n' in read_answer(first).body


sys.exit(main())
