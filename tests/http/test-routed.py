# SPDX-License-Identifier: LGPL-2.1-or-later
"""Routed and broadcast streams: parameters, resume ids, gaps, reconnects; routing.md cases 155, 159, 160."""

import random
import sys
import time

from http_case import Server, main, test


def data(cost):
    """Data that costs so much with its topic `t`."""
    return "x" * (cost - 3)


def event(principal, cost=10, **more):
    return {"topic": "t", "data": data(cost), "principal": principal, **more}


def seqs(frames):
    return [frame.envelope.get("seq") for frame in frames]


def stall(server, bus, query, **rest):
    return server.stream(bus, query, rcvbuf=4096, **rest)


def pin(server, bus, stream, events=24, cost=32000):
    """Fills the socket of a stalled reader, so that what comes now waits in its subscription."""
    blocked = server.counts()["blocked"]
    for _ in range(40):
        server.publish(bus, *[event("pin", cost)] * events)
        if server.counts()["blocked"] > blocked:
            return server.info(bus)["lastEventId"]
    raise AssertionError("the socket takes everything")


@test
def frames_of_a_routed_stream():
    with Server() as server:
        server.create("b")
        with server.stream("b", "?mode=routed") as routed, server.stream("b", "?mode=routed", version="1.0") as old:
            with server.stream("b") as plain, server.stream("b", "?mode=broadcast") as broadcast:
                server.publish("b", event("alice"), {"type": "t", "data": 1, "principal": "", "originatorClientId": "c"})
                for stream in (routed, old):
                    first, second = stream.take(2)
                    assert first.raw.startswith(b'id: 1\nevent: message\ndata: {"id":1,"seq":1,"v":1,"type":"message","data":'), first.raw
                    assert second.raw.startswith(b'id: 2\nevent: t\ndata: {"id":2,"seq":2,"v":1,"type":"t","data":1,'), second.raw
                for stream in (plain, broadcast):
                    assert stream.ids(2) == [1, 2]


@test
def one_rest_for_all_and_one_head_for_those_who_keep_up():
    with Server() as server:
        server.create("b")
        streams = [server.stream("b", query) for query in ("?mode=routed", "?mode=routed", "", "?mode=broadcast")]
        built = server.counts()["framesBuilt"]
        server.publish("b", event("alice", 1000))
        for stream in streams:
            assert stream.next().id == 1
            stream.close()
        assert server.counts()["framesBuilt"] - built == 2


@test
def large_events_in_two_pieces_arrive_whole():
    with Server() as server:
        server.create("b")
        with stall(server, "b", "?mode=routed") as stream, stall(server, "b", "?mode=routed", version="1.0") as old:
            server.publish("b", event("alice", 900 * 1000), event("bob", 100))
            for one in (stream, old):
                frames = one.take(2)
                assert sorted(seqs(frames)) == [1, 2], frames
                assert sorted(len(frame.data) for frame in frames) == [97, 900 * 1000 - 3]


@test
def case_159_resume_ids_lose_nothing():
    with Server() as server:
        server.create("b")
        with stall(server, "b", "?mode=routed&topic=t") as stream:
            base = pin(server, "b", stream)
            server.publish("b", event("alice", 5000), event("alice", 5000), event("bob", 100))
            # Nothing is read before all of it waits.
            frames = []
            while len(frames) < base + 3:
                frames.append(stream.next())
            tail = [(frame.envelope["seq"] - base, frame.id) for frame in frames if frame.envelope["seq"] > base]
            assert sorted(seq for seq, _ in tail) == [1, 2, 3], tail
            assert tail.index([t for t in tail if t[0] == 1][0]) < tail.index([t for t in tail if t[0] == 2][0]), tail
        # Cut after any frame, the rest comes again from the id that it had.
        for cut in range(0, len(frames), 7):
            seen = {frame.envelope["seq"] for frame in frames[:cut + 1]}
            last = frames[cut].id or 0
            if last < server.info("b")["firstEventId"] - 1:
                continue
            with server.stream("b", "?mode=routed&topic=t", headers=[("Last-Event-ID", last)]) as again:
                got = []
                while not got or got[-1].type != "replay_complete":
                    got.append(again.next())
                seen |= {frame.envelope["seq"] for frame in got[:-1]}
                assert [frame.id for frame in got[:-1]] == seqs(got[:-1]), "ids of a replay"
            assert seen == set(range(1, base + 4)), (cut, last, sorted(set(range(1, base + 4)) - seen)[:5])


@test
def ids_are_left_out_while_they_are_zero():
    with Server("--set", "route-quantum-bytes=4096") as server:
        server.create("b", ringSize=10)
        with stall(server, "b", "?mode=routed&topic=t") as stream:
            # The first of all waits behind a replay of nothing: its principal has to save up for it.
            server.publish("b", event("alice", 1000000), event("bob", 1000))
            server.publish("b", *[event("alice", 9000)] * 20, *[event("bob", 100)] * 5)
            frames = stream.take(27)
            assert sorted(seqs(frames)) == list(range(1, 28))
            last = 0
            for frame in frames:
                assert (frame.id or 0) >= last, frames
                last = frame.id or 0
            assert last == 27


@test
def case_160_a_loss_is_told_once():
    with Server() as server:
        server.create("b", ringSize=100000)
        with stall(server, "b", "?mode=routed&scope=alice") as stream:
            server.wait_for(lambda: server.info("b")["subscribers"] == 1)
            for _ in range(80):
                server.publish("b", *[event("alice", 32000)] * 4)
            total = server.info("b")["lastEventId"]
            frames = []
            told = 0
            while not frames or frames[-1].envelope.get("seq") != total:
                frame = stream.next()
                if frame.type == "gap":
                    assert frame.id is None and frame.data["reason"] == "budget" and frame.data["principal"] == "alice", frame
                    told += frame.data["count"]
                frames.append(frame)
            got = [frame for frame in frames if frame.type != "gap"]
            assert told > 0 and len(got) + told == total, (told, len(got), total)
            assert got[-1].id == total
        with server.stream("b", "?mode=routed&scope=alice", headers=[("Last-Event-ID", total)]) as again:
            assert again.next().data == {"replayedCount": 0, "filtered": True}
            assert again.is_quiet()


@test
def case_155_only_the_reader_that_stops_loses():
    with Server("--set", "principal-bytes-per-second=0") as server:
        server.create("b", ringSize=100000)
        with stall(server, "b", "?mode=routed") as slow, server.stream("b", "?mode=routed") as fast, server.stream("b") as plain:
            worst = 0
            for number in range(60):
                began = time.monotonic()
                server.publish("b", *[event("alice", 32000)] * 4)
                for stream in (fast, plain):
                    assert stream.ids(4) == [4 * number + n for n in range(1, 5)]
                worst = max(worst, time.monotonic() - began)
            assert worst < 5, worst
            frames = []
            while not frames or frames[-1].envelope.get("seq") != 240:
                frames.append(slow.next())
            gaps = [frame for frame in frames if frame.type == "gap"]
            assert gaps and all(frame.id is None and frame.data["reason"] == "budget" for frame in gaps), gaps
            assert sum(frame.data["count"] for frame in gaps) + len(frames) - len(gaps) == 240
            assert fast.is_quiet(0.05)


@test
def a_broadcast_reader_that_lags_is_told():
    with Server("--set", "channel-capacity=8") as server:
        server.create("b")
        with stall(server, "b", "?mode=broadcast") as stream:
            for _ in range(60):
                server.publish("b", *[event("alice", 32000)] * 4)
            frames = []
            while not frames or frames[-1].id != 240:
                frames.append(stream.next())
            lost = sum(frame.data["count"] for frame in frames if frame.type == "gap")
            ids = [frame.id for frame in frames if frame.type != "gap"]
            assert lost > 0 and len(ids) + lost == 240 and ids == sorted(ids), (lost, len(ids))
            for before, frame in zip(frames, frames[1:]):
                if frame.type == "gap":
                    assert frame.data["reason"] == "lagged" and frame.data["firstId"] == before.id + 1, (before, frame)


@test
def scopes():
    with Server() as server:
        server.create("b")
        queries = {"alice": "?mode=routed&scope=alice", "": "?mode=routed&scope=", "all": "?mode=routed&eviction=fair"}
        streams = {name: server.stream("b", query) for name, query in queries.items()}
        server.publish("b", event("alice"), event("bob"), event(""), event("alice"))
        assert seqs(streams["alice"].take(2)) == [1, 4]
        assert seqs(streams[""].take(1)) == [3]
        assert seqs(streams["all"].take(4)) == [1, 2, 3, 4]
        for stream in streams.values():
            assert stream.is_quiet(0.05)
            stream.close()


@test
def fair_eviction_over_http():
    with Server() as server:
        server.create("b", ringSize=100000)
        with stall(server, "b", "?mode=routed&eviction=fair") as fair, stall(server, "b", "?mode=routed&eviction=oldest") as oldest:
            pin(server, "b", fair)
            quiet = server.publish("b", event("quiet", 100))["firstId"]
            for _ in range(60):
                server.publish("b", *[event("flood", 32000)] * 4)
            last = server.info("b")["lastEventId"]
            found = []
            for stream in (fair, oldest):
                got = []
                while last not in got:
                    frame = stream.next()
                    got.append(frame.envelope.get("seq"))
                found.append(quiet in got)
            assert found == [True, False], found


@test
def a_random_run_with_reconnects_loses_nothing():
    """Whatever is cut wherever: over all connections every event came or was told as lost."""
    seed = random.randrange(2 ** 32)
    chance = random.Random(seed)
    with Server("--set", "principal-bytes-per-second=0") as server:
        server.create("b", ringSize=100000, ringMaxBytes=1 << 30)
        seen, last, published = set(), 0, 0
        stream = stall(server, "b", "?mode=routed", headers=[("Last-Event-ID", 0)])
        for step in range(40):
            batch = [event(chance.choice(["alice", "bob", "carol"]), chance.choice([10, 100, 5000, 20000])) for _ in range(chance.randrange(1, 20))]
            server.publish("b", *batch)
            published += len(batch)
            for _ in range(chance.randrange(0, 15)):
                if not stream.pending and stream.is_quiet(0.01):
                    break
                frame = stream.next()
                assert frame.type != "gap", (seed, frame)
                if "seq" in frame.envelope:
                    seen.add(frame.envelope["seq"])
                if frame.id is not None:
                    assert frame.id >= last, (seed, last, frame)
                    last = frame.id
            if chance.random() < 0.3:
                stream.close()
                stream = stall(server, "b", "?mode=routed", headers=[("Last-Event-ID", last)])
        while last < published:
            frame = stream.next()
            if "seq" in frame.envelope:
                seen.add(frame.envelope["seq"])
            last = frame.id or last
        stream.close()
        assert seen == set(range(1, published + 1)), (seed, set(range(1, published + 1)) - seen)


@test
def a_bus_that_closes_ends_routed_streams():
    with Server() as server:
        server.create("b")
        with server.stream("b", "?mode=routed&scope=alice") as routed, server.stream("b", "?mode=broadcast") as broadcast:
            server.publish("b", event("alice"))
            assert server.request("DELETE", "/session/b").status == 204
            for stream in (routed, broadcast):
                assert [frame.type for frame in stream.rest()] == ["message", "session_closed"]
                stream.expect_closed()


@test
def an_idle_routed_reader_is_evicted():
    with Server("--writer-idle-timeout-ms", "400", "--heartbeat-ms", "0") as server:
        server.create("b")
        with stall(server, "b", "?mode=routed") as stream:
            pin(server, "b", stream)
            server.wait_for(lambda: server.info("b")["subscribers"] == 0, "the eviction")
            frames = stream.rest()
            assert frames[-1].type == "client_evicted" and frames[-1].data["reason"] == "writer_idle_timeout", frames[-1]
            assert frames[-1].data["lastDeliveredId"] >= max(frame.id or 0 for frame in frames), frames[-1]


sys.exit(main())
