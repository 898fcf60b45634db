#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Who calls: order of the first calls, quotas, leaving."""
from harness import BUS, MANAGER, ROOT, Server, Suite, expect, ids, same, wait_until

suite = Suite()


@suite.test
def the_first_calls_stay_in_order(server, name):
    server.client().bus(name)
    for count in (2, 33, 64, 300, 1000):
        client = server.client()
        bus = f'{ROOT}/bus/{name}'
        before = client.get(bus, BUS, 'LastEventId')
        calls = [client.start(bus, BUS, 'Publish', '(ssa{sv})', 'a', str(n), {}) for n in range(count)]
        same([call.wait()[0] for call in calls], list(range(before + 1, before + count + 1)))
        events = client.call(bus, BUS, 'Fetch', '(tua{sv})', before, 1024, {})[0]
        same([event[5] for event in events], [str(n) for n in range(count)])


@suite.test
def first_calls_of_different_kinds_stay_in_order(server, name):
    client = server.client()
    bus = f'{ROOT}/bus/{name}'
    # Each needs what the one before has made.
    calls = [client.start(ROOT, MANAGER, 'CreateBus', '(sa{sv})', name, {})]
    wait_until(lambda: calls[0].is_done)
    client = server.client()
    calls = [client.start(bus, BUS, 'Subscribe', '(asa{sv})', [], {}),
             client.start(bus, BUS, 'Publish', '(ssa{sv})', 'a', '1', {}),
             client.start(bus, BUS, 'Subscribe', '(asa{sv})', [], {}),
             client.start(bus, BUS, 'Publish', '(ssa{sv})', 'a', '2', {})]
    same([call.wait()[1]['subscriptions'] for call in calls[1::2]], [1, 2])


@suite.test
def a_peer_in_its_first_calls_blocks_no_other(server, name):
    server.client().bus(name)
    bus = f'{ROOT}/bus/{name}'
    clients = [server.client() for _ in range(20)]
    calls = [client.start(bus, BUS, 'Publish', '(ssa{sv})', 'a', '1', {}) for client in clients for _ in range(10)]
    same(sorted(call.wait()[0] for call in calls), list(range(1, 201)))


@suite.test
def too_many_first_calls_are_refused(server, name):
    server.client().bus(name)
    bus = f'{ROOT}/bus/{name}'
    client = server.client()
    calls = [client.start(bus, BUS, 'Publish', '(ssa{sv})', 'a', '1', {}) for _ in range(1500)]
    wait_until(lambda: all(call.is_done for call in calls))
    done = [call.value[0] for call in calls if call.error is None]
    same({call.error.name for call in calls if call.error is not None} - {'QuotaExceeded'}, set())
    assert len(done) >= 1024, len(done)
    same(done, list(range(1, len(done) + 1)))


@suite.test
def a_connection_has_256_subscriptions(server, name):
    client, other = server.client(), server.client()
    bus = client.bus(name, max_subscribers=1000)
    subscriptions = [bus.subscribe() for _ in range(256)]
    expect('QuotaExceeded', bus.subscribe, says=('256', client.name))
    bus.of(other).subscribe()
    # Which quota is hit first is told first; nothing of it counts on the bus.
    same(bus.get('SubscriberCount'), 257)
    subscriptions[100].call('Close')
    bus.subscribe()
    expect('QuotaExceeded', bus.subscribe)
    # A refused one gives its place back.
    subscriptions[101].call('Close')
    expect('InvalidPattern', bus.subscribe, [''])
    bus.subscribe()


@suite.test
def a_connection_has_64_pending_calls(server, name):
    client = server.client()
    bus = client.bus(name, max_subscribers=100)
    subscriptions = [bus.subscribe() for _ in range(66)]
    waiting = [subscription.start_receive() for subscription in subscriptions[:64]]
    expect('QuotaExceeded', subscriptions[64].receive, 1, 20000, says=('64', client.name))
    # What need not wait is no pending call.
    same(subscriptions[65].receive(1, 0), [])
    subscriptions[3].call('Close')
    expect('Closed', waiting[3].wait)
    more = subscriptions[64].start_receive()
    bus.publish()
    same(ids(more.wait()[0]), [1])
    same([ids(call.wait()[0]) for number, call in enumerate(waiting) if number != 3], [[1]] * 63)
    same(ids(subscriptions[65].receive(1, 20000)), [1])


@suite.test
def a_caller_that_leaves_frees_its_slots_at_once(server, name):
    own = Server()
    client, leaver = own.client(), own.client()
    bus = client.bus(name, max_subscribers=3)
    before = client.test('PeerCount')[0]
    mine = bus.of(leaver)
    waiting = mine.subscribe()
    waiting.start_receive()
    mine.subscribe(last_event_id=0)
    unread = mine.subscribe()
    bus.publish()
    waiting.start_receive()
    expect('SubscriberLimit', bus.subscribe)
    same(client.test('PeerCount')[0], before + 1)
    leaver.leave()
    wait_until(lambda: bus.get('SubscriberCount') == 0)
    same(client.test('PeerCount')[0], before)
    expect('org.freedesktop.DBus.Error.UnknownMethod', unread.of(client).receive)
    for _ in range(3):
        bus.subscribe()
    bus.publish()
    same(own.stop(), 0)


@suite.test
def who_leaves_before_it_is_known_leaves_nothing(server, name):
    own = Server()
    client = own.client()
    bus = client.bus(name)
    for _ in range(50):
        leaver = own.client()
        for _ in range(5):
            bus.of(leaver).start('Subscribe', '(asa{sv})', [], {})
        leaver.connection.flush_sync(None)
        leaver.leave()
    wait_until(lambda: client.test('PeerCount')[0] == 1)
    wait_until(lambda: bus.get('SubscriberCount') == 0)
    wait_until(lambda: client.test('IsIdle')[0])
    same(own.stop(), 0)


@suite.test
def who_only_reads_properties_is_forgotten_when_it_leaves(server, name):
    own = Server()
    client, reader = own.client(), own.client()
    bus = client.bus(name)
    same(bus.of(reader).get('Name'), name)
    same(client.test('PeerCount')[0], 2)
    reader.leave()
    wait_until(lambda: client.test('PeerCount')[0] == 1)
    same(own.stop(), 0)


@suite.test
def publishes_of_who_left_are_published(server, name):
    client, leaver = server.client(), server.client()
    bus = client.bus(name)
    bus.of(leaver).publish()
    bus.of(leaver).start('PublishMany', '(a(ssa{sv})a{sv})', [('a', '1', {})] * 4000, {})
    leaver.connection.flush_sync(None)
    leaver.leave()
    wait_until(lambda: bus.get('LastEventId') == 4001)


@suite.test
def a_service_with_nobody_is_idle(server, name):
    client = server.client()
    wait_until(lambda: client.test('IsIdle')[0])
    subscription = client.bus(name).subscribe()
    assert not client.test('IsIdle')[0]
    subscription.call('Close')
    assert client.test('IsIdle')[0]
    pending = client.bus(name + 'x').start_fetch(timeout_ms=200)
    assert not client.test('IsIdle')[0]
    pending.wait()
    assert client.test('IsIdle')[0]


suite.main()
