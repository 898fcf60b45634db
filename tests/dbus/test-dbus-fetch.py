#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Fetch: reading the ring without a subscription."""
import time

from harness import MAX_ID, GLib, Suite, complete, expect, ids, resync, same, settle, short, wait_until

suite = Suite()


@suite.test
def arguments_have_limits(server, name):
    bus = server.client().bus(name)
    expect('InvalidOption', bus.fetch, MAX_ID + 1, says=('after_id', str(MAX_ID)))
    expect('InvalidOption', bus.fetch, 2 ** 64 - 1, says='after_id')
    expect('InvalidOption', bus.fetch, 0, 0, says=('max_events', '1024'))
    for key, kind, bad, says in (
            ('timeout-ms', 'u', 20001, '20000'), ('timeout-ms', 'i', 1, '"u"'), ('timeout-ms', 't', 1, '"u"'),
            ('patterns', 's', 'a', '"as"'), ('patterns', 'as', ['a'] * 65, '64'), ('types', 's', 'a', '"as"'),
            ('types', 'as', ['a'] * 65, '64'), ('epoch', 's', '', '64'), ('epoch', 's', 'a b', 'a b'),
            ('epoch', 's', 'x' * 65, '64'), ('epoch', 'u', 1, '"s"')):
        expect('InvalidOption', bus.fetch, says=(key, says), **{key: GLib.Variant(kind, bad)})
    expect('InvalidOption', bus.fetch, mode='stream', says=('"mode"', 'patterns, types, timeout-ms, epoch'))
    expect('InvalidOption', bus.fetch, last_event_id=1, says='last-event-id')
    expect('InvalidPattern', bus.fetch, patterns=['a..b'])
    expect('InvalidType', bus.fetch, types=['a b'])
    same(bus.fetch(2 ** 40, patterns=[], types=[], timeout_ms=20000)[0][2], 'state_resync_required')


@suite.test
def what_a_stream_would_open_with(server, name):
    bus = server.client().bus(name, ring_size=3)
    bus.publish_count(5)
    epoch = bus.get('Epoch')
    for cursor, options, wanted in (
            (0, {}, [resync('ring_evicted', 0, 3), 3, 4, 5]), (1, {}, [resync('ring_evicted', 1, 3), 3, 4, 5]),
            (2, {}, [3, 4, 5]), (3, {}, [4, 5]), (5, {}, []), (6, {}, [resync('epoch_reset', 6, 3), 3, 4, 5]),
            (MAX_ID, {}, [resync('epoch_reset', MAX_ID, 3), 3, 4, 5]), (3, {'epoch': epoch}, [4, 5]),
            (3, {'epoch': 'dead'}, [resync('epoch_reset', 3, 3, detail='epoch_mismatch'), 3, 4, 5])):
        same(short(bus.fetch(cursor, **options)), wanted)
    bus.publish_many([('a', '1')], seed=True)
    same(short(bus.fetch(1)), [resync('seeded_replay_not_in_ring', 1, 7)])
    same(short(bus.fetch(6)), [])


@suite.test
def an_empty_bus(server, name):
    bus = server.client().bus(name)
    same(bus.fetch(), [])
    same(short(bus.fetch(1, timeout_ms=20000)), [resync('epoch_reset', 1, 1)])


@suite.test
def so_many_events(server, name):
    bus = server.client().bus(name)
    bus.publish_many([('a', '1')] * 3000)
    same(ids(bus.fetch(0, 1)), [1])
    same(ids(bus.fetch(7, 3)), [8, 9, 10])
    same(ids(bus.fetch(0, 5000)), list(range(1, 1025)))
    same(ids(bus.fetch(1024, 2 ** 32 - 1)), list(range(1025, 2049)))
    same(ids(bus.fetch(2048)), list(range(2049, 3001)))
    # A synthetic event counts.
    bus = server.client().bus(name + 'x', ring_size=3)
    bus.publish_count(5)
    same(short(bus.fetch(0, 1)), [resync('ring_evicted', 0, 3)])
    same(short(bus.fetch(0, 2)), [resync('ring_evicted', 0, 3), 3])


@suite.test
def so_many_bytes(server, name):
    bus = server.client().bus(name)
    bus.publish_many([('a', '"' + 'x' * 400000 + '"')] * 5)
    same(ids(bus.fetch()), [1, 2])
    same(ids(bus.fetch(2)), [3, 4])
    same(ids(bus.fetch(4)), [5])


@suite.test
def a_filter_may_hold_back_many(server, name):
    bus = server.client().bus(name)
    for n in range(3):
        bus.publish_many([('no', '1')] * 1999 + [('yes.x', '1', {'type': f't{n}'})])
    same(ids(bus.fetch(patterns=['yes.*'])), [2000, 4000, 6000])
    same(ids(bus.fetch(patterns=['yes.*'], types=['t1', 't2'])), [4000, 6000])
    same(ids(bus.fetch(2000, 1, patterns=['yes.*'])), [4000])
    same(bus.fetch(patterns=['none']), [])


@suite.test
def what_is_published_while_it_looks_is_found(server, name):
    client, publisher = server.client(), server.client()
    bus = client.bus(name)
    bus.publish_many([('no', '1')] * 4000)
    bus.publish_many([('no', '1')] * 4000)
    fetching = bus.start_fetch(patterns=['yes'], timeout_ms=20000)
    bus.of(publisher).publish('yes')
    same(ids(fetching.wait()[0]), [8001])


@suite.test
def it_waits_for_the_first_match(server, name):
    client, publisher = server.client(), server.client()
    bus = client.bus(name)
    bus.publish('yes')
    fetching = bus.start_fetch(1, patterns=['yes'], timeout_ms=20000)
    all_of_them = bus.start_fetch(1, timeout_ms=20000)
    few = bus.start_fetch(3, 2, timeout_ms=20000)
    bus.of(publisher).publish('no')
    same(ids(all_of_them.wait()[0]), [2])
    same(bus.get('LastEventId'), 2)
    assert not fetching.is_done
    same(short(few.wait()[0]), [resync('epoch_reset', 3, 1), 1])
    few = bus.start_fetch(2, 2, timeout_ms=20000)
    bus.get('Name')
    # Collects what the dispatch brings.
    bus.of(publisher).publish_many([('yes', '1'), ('no', '1'), ('yes', '1')])
    same(ids(fetching.wait()[0]), [3, 5])
    same(ids(few.wait()[0]), [3, 4])


@suite.test
def it_waits_so_long(server, name):
    bus = server.client().bus(name)
    before = time.monotonic()
    same(bus.fetch(timeout_ms=0), [])
    same(bus.fetch(timeout_ms=150), [])
    elapsed = time.monotonic() - before
    assert 0.15 <= elapsed < 5, elapsed


@suite.test
def seeded_events_are_not_waited_for(server, name):
    bus = server.client().bus(name)
    fetching = bus.start_fetch(timeout_ms=300)
    bus.get('Name')
    bus.publish_many([('a', '1')], seed=True)
    same(fetching.wait()[0], [])


@suite.test
def a_caller_that_leaves_takes_its_calls_along(server, name):
    client, leaver = server.client(), server.client()
    bus = client.bus(name)
    for _ in range(60):
        bus.of(leaver).start_fetch(timeout_ms=20000)
    bus.of(leaver).get('Name')
    assert not client.test('IsIdle')[0]
    leaver.leave()
    wait_until(lambda: client.test('IsIdle')[0])
    bus.publish()


@suite.test
def so_many_calls_wait(server, name):
    client, other = server.client(), server.client()
    bus = client.bus(name)
    waiting = [bus.start_fetch(timeout_ms=20000) for _ in range(64)]
    expect('QuotaExceeded', bus.fetch, timeout_ms=20000, says=('64', client.name))
    waiting.append(bus.of(other).start_fetch(timeout_ms=20000))
    settle()
    same([call.is_done for call in waiting], [False] * 65)
    bus.publish()
    same([ids(call.wait()[0]) for call in waiting], [[1]] * 65)
    same(ids(bus.fetch(timeout_ms=20000)), [1])


@suite.test
def it_needs_no_subscription(server, name):
    bus = server.client().bus(name, max_subscribers=1)
    bus.publish()
    bus.subscribe()
    bus.start_fetch(1, timeout_ms=20000)
    same(ids(bus.fetch()), [1])
    same(bus.get('SubscriberCount'), 1)
    same(complete(0)[0] not in [event[2] for event in bus.fetch()], True)


suite.main()
