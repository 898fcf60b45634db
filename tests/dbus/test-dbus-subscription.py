#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Subscriptions: options, owner, Receive, Drain, and the cases of sse-contract.md section 6 over D-Bus."""
import json
import time

from harness import (MAX_ID, PROPERTIES, ROOT, SUBSCRIPTION, GLib, Server, Suite, complete, evict,
                     expect, ids, resync, same, short, wait_until, warn)

suite = Suite()
UNKNOWN = 'org.freedesktop.DBus.Error.UnknownMethod'


# --- Subscribe

@suite.test
def subscribe_answers_with_what_holds(server, name):
    client = server.client()
    bus = client.bus(name, max_queued_bytes=5000)
    bus.publish()
    subscription = bus.subscribe(['a.*'], max_queued=7)
    assert subscription.path.startswith(ROOT + '/subscription/'), subscription.path
    same(subscription.info, {'epoch': bus.get('Epoch'), 'last-id': 1, 'mode': 'stream', 'max-queued': 7,
                             'max-queued-bytes': 5000, 'replay-budget-bytes': 0})
    second = bus.subscribe()
    same(second.info['max-queued'], 256)
    same(second.number(), subscription.number() + 1)


@suite.test
def every_option_has_its_limits(server, name):
    bus = server.client().bus(name)
    expect('InvalidOption', bus.subscribe, colour=GLib.Variant('s', ''), says=('"colour"', 'last-event-id'))
    expect('InvalidOption', bus.subscribe, snapshot=GLib.Variant('b', True), says='"snapshot"')
    for key, kind, bad, says in (
            ('mode', 's', 'fast', 'stream, routed, broadcast'), ('mode', 's', '', 'stream'), ('mode', 'u', 1, '"u"'),
            ('last-event-id', 't', MAX_ID + 1, str(MAX_ID)), ('last-event-id', 'u', 1, '"t"'), ('last-event-id', 's', '1', '"t"'),
            ('epoch', 's', '', '64'), ('epoch', 's', 'x' * 65, '64'), ('epoch', 's', 'a b', 'a b'), ('epoch', 't', 1, '"s"'),
            ('types', 's', 'x', '"as"'), ('types', 'as', ['x'] * 65, '64'),
            ('max-queued', 'u', 0, '65536'), ('max-queued', 'u', 65537, '65536'), ('max-queued', 't', 1, '"u"'),
            ('max-queued', 'i', 1, '"u"'), ('budget-bytes', 't', 0, '1'), ('budget-bytes', 'u', 1, '"t"'),
            ('eviction', 's', 'newest', 'oldest, fair'), ('eviction', 'b', True, '"s"'),
            ('scope', 's', 'x' * 129, '128'), ('scope', 'as', [], '"s"'), ('scope-system', 's', 'x', '"b"'),
            ('gate', 's', '', '1'), ('gate', 'u', 1, '"s"')):
        expect('InvalidOption', bus.subscribe, says=(key, says), **{key: GLib.Variant(kind, bad)})
    expect('InvalidType', bus.subscribe, types=['a b'], says='a b')
    for bad in ('', 'a..b', '.', 'x' * 257, '.'.join('a' * 21)):
        expect('InvalidPattern', bus.subscribe, ['fine', bad])
    expect('InvalidOption', bus.subscribe, ['a'] * 65, says=('65', '64'))
    for subscription in (bus.subscribe(['a'] * 64, types=['x'] * 64), bus.subscribe(max_queued=65536, last_event_id=MAX_ID),
                         bus.subscribe(epoch='x' * 64)):
        subscription.call('Close')
    same(bus.get('SubscriberCount'), 0)


@suite.test
def options_of_other_modes_mean_nothing(server, name):
    bus = server.client().bus(name)
    for more in ({'budget_bytes': 1}, {'eviction': 'fair'}, {'scope': ''}, {'scope_system': True}):
        key = list(more)[0].replace('_', '-')
        expect('InvalidOption', bus.subscribe, says=(key, 'stream'), **more)
        for mode in ('stream', 'broadcast'):
            expect('InvalidOption', bus.subscribe, mode=mode, says=(key, mode), **more)
    for mode in ('routed', 'broadcast'):
        expect('InvalidOption', bus.subscribe, mode=mode, max_queued=1, says=('max-queued', mode))
    same(bus.get('SubscriberCount'), 0)


@suite.test
def a_bus_has_so_many_subscribers(server, name):
    bus = server.client().bus(name, max_subscribers=2)
    first, _second = bus.subscribe(), bus.subscribe()
    expect('SubscriberLimit', bus.subscribe, says=('2', name))
    same(bus.get('SubscriberCount'), 2)
    first.call('Close')
    bus.subscribe()


@suite.test
def patterns_and_types_choose(server, name):
    bus = server.client().bus(name)
    by_topic = bus.subscribe(['a.*.c', 'b.*'])
    by_type = bus.subscribe(types=['x', 'y'])
    by_both = bus.subscribe(['b.*'], types=['x'])
    for topic, kind in (('a.b.c', 'x'), ('a.b', 'y'), ('b.c', 'z'), ('b.c.d', 'x'), ('a.b.c', 'message')):
        bus.publish(topic, type=kind)
    same(ids(by_topic.receive()), [1, 3, 4, 5])
    same(ids(by_type.receive()), [1, 2, 4])
    same(ids(by_both.receive()), [4])


# --- Owner

@suite.test
def properties_are_for_the_owner(server, name):
    client, other = server.client(), server.client()
    bus = client.bus(name)
    subscription = bus.subscribe(['a.b', 'c'])
    bus.publish()
    bus.publish()
    size = subscription.get('QueuedBytes')
    assert size > 100, size
    same(client.get_all(subscription.path, SUBSCRIPTION), {
        'Bus': bus.path, 'Patterns': ['a.b', 'c'], 'Mode': 'stream', 'State': 'live', 'Queued': 2, 'QueuedBytes': size,
        'Dropped': 0, 'ActivePrincipals': 0})
    same(other.get_all(subscription.path, SUBSCRIPTION), {})
    for key in ('Bus', 'Patterns', 'Mode', 'State', 'Queued', 'QueuedBytes', 'Dropped', 'ActivePrincipals'):
        expect('NotOwner', other.get, subscription.path, SUBSCRIPTION, key, says=other.name)
    subscription.receive()
    same((subscription.get('Queued'), subscription.get('QueuedBytes')), (0, 0))


@suite.test
def methods_are_for_the_owner(server, name):
    client, other = server.client(), server.client()
    subscription = client.bus(name).subscribe()
    stranger = subscription.of(other)
    for member, signature, arguments in (
            ('Receive', '(ui)', (1, 0)), ('Receive', '(ui)', (0, -5)), ('Drain', '(t)', (1,)), ('Close', '()', ()),
            ('DrainLagged', '()', ()), ('ListPrincipals', '()', ()), ('OpenStream', '(sa{sv})', ('sse', {})),
            ('StartSignals', '(u)', (1,)), ('StopSignals', '()', ()), ('Acknowledge', '(t)', (1,))):
        expect('NotOwner', stranger.call, member, signature, *arguments, says=(other.name, str(subscription.number())))
    expect('org.freedesktop.DBus.Error.InvalidArgs', client.call, subscription.path, PROPERTIES, 'Set', '(ssv)',
           SUBSCRIPTION, 'Mode', GLib.Variant('s', 'routed'))
    same(subscription.receive(), [])


@suite.test
def closing_frees_the_slot_and_the_object(server, name):
    client = server.client()
    bus = client.bus(name)
    subscription = bus.subscribe()
    bus.publish()
    waiting = bus.subscribe()
    pending = waiting.start_receive()
    subscription.call('Close')
    waiting.call('Close')
    expect('Closed', pending.wait)
    same(bus.get('SubscriberCount'), 0)
    for closed in (subscription, waiting):
        expect(UNKNOWN, closed.receive)
        expect(UNKNOWN, closed.call, 'Close')


# --- Receive

@suite.test
def receive_checks_its_arguments(server, name):
    subscription = server.client().bus(name).subscribe()
    expect('InvalidOption', subscription.receive, 0, 0, says=('max_events', '1024'))
    expect('InvalidOption', subscription.receive, 1, -2, says=('timeout_ms', '-2'))
    expect('InvalidOption', subscription.receive, 1, -2 ** 31)
    same(subscription.receive(2 ** 32 - 1, 0), [])


@suite.test
def receive_returns_at_once_what_waits(server, name):
    bus = server.client().bus(name, max_queued_bytes=2 ** 24)
    subscription = bus.subscribe(max_queued=3000)
    bus.publish_many([('a', '1')] * 2000)
    same(ids(subscription.receive(3, 20000)), [1, 2, 3])
    same(ids(subscription.receive(1, -1)), [4])
    same(ids(subscription.receive(2 ** 32 - 1, 2 ** 31 - 1)), list(range(5, 1029)))
    same(ids(subscription.receive()), list(range(1029, 2001)))


@suite.test
def receive_waits_for_the_first_event(server, name):
    client = server.client()
    bus = client.bus(name)
    subscription = bus.subscribe()
    pending = subscription.start_receive(10, -1)
    # Nothing else is blocked by it.
    same(bus.get('SubscriberCount'), 1)
    same(subscription.get('State'), 'live')
    assert not pending.is_done
    bus.publish(data='"x"')
    same(pending.wait()[0][0][5], '"x"')


@suite.test
def receive_collects_what_one_dispatch_brings(server, name):
    bus = server.client().bus(name)
    subscription, filtered, small = bus.subscribe(), bus.subscribe(['b']), bus.subscribe()
    pending = [subscription.start_receive(), filtered.start_receive(), small.start_receive(5)]
    bus.publish_many([('a', '1'), ('b', '2')] * 10)
    same([ids(call.wait()[0]) for call in pending], [list(range(1, 21)), list(range(2, 21, 2)), [1, 2, 3, 4, 5]])
    same(ids(small.receive()), list(range(6, 21)))


@suite.test
def receive_times_out_empty(server, name):
    subscription = server.client().bus(name).subscribe()
    before = time.monotonic()
    same(subscription.receive(1, 0), [])
    same(subscription.receive(1, 100), [])
    elapsed = time.monotonic() - before
    assert 0.1 <= elapsed < 5, elapsed


@suite.test
def receive_waits_at_most_20_seconds(server, name):
    bus = server.client().bus(name)
    before = time.monotonic()
    pending = [bus.subscribe().start_receive(1, timeout) for timeout in (-1, 20001, 2 ** 31 - 1)]
    same([call.wait()[0] for call in pending], [[], [], []])
    elapsed = time.monotonic() - before
    assert 19.9 <= elapsed < 28, elapsed


@suite.test
def one_reader_at_a_time(server, name):
    bus = server.client().bus(name)
    subscription = bus.subscribe()
    pending = subscription.start_receive()
    expect('Busy', subscription.receive, says=str(subscription.number()))
    expect('Busy', subscription.receive, 1, 100)
    expect('Busy', subscription.drain, 10)
    expect('Busy', subscription.drain, 0)
    same(subscription.call('DrainLagged')[0], 0)
    bus.publish()
    same(ids(pending.wait()[0]), [1])
    same(subscription.receive(), [])


@suite.test
def a_reader_that_always_waits_is_never_evicted(server, name):
    # One connection: its Receive is there before its publish.
    bus = server.client().bus(name)
    subscription = bus.subscribe(max_queued=16)
    seen = []
    for n in range(300):
        pending = subscription.start_receive()
        bus.publish_many([('a', '1')] * (1 + n % 32))
        seen += ids(pending.wait()[0])
    same(seen, list(range(1, len(seen) + 1)))
    same(bus.get('LastEventId'), len(seen))


@suite.test
def a_full_reply_leaves_the_rest(server, name):
    bus = server.client().bus(name)
    data = '"' + 'x' * 300000 + '"'
    subscription = bus.subscribe()
    pending = subscription.start_receive()
    bus.publish_many([('a', data)] * 5)
    same(ids(pending.wait()[0]), [1, 2, 3])
    same(ids(subscription.receive()), [4, 5])


@suite.test
def what_waits_is_answered_when_it_ends(server, name):
    client = server.client()
    bus = client.bus(name)
    waiting, unread = bus.subscribe(), bus.subscribe(['a.b'])
    pending = waiting.start_receive()
    client.test('CloseBus', '(s)', name)
    expect('Closed', pending.wait, says=str(waiting.number()))
    expect(UNKNOWN, waiting.receive)
    expect('Closed', unread.receive, 1, 20000)
    expect(UNKNOWN, unread.receive)


@suite.test
def what_is_unread_stays_after_the_end(server, name):
    client = server.client()
    bus = client.bus(name)
    subscription = bus.subscribe()
    bus.publish_many([('a', '1')] * 3)
    client.test('CloseBus', '(s)', name)
    same(subscription.get('State'), 'ended')
    same(subscription.get('Queued'), 3)
    same(ids(subscription.receive(2)), [1, 2])
    same(ids(subscription.receive(2, 20000)), [3])
    same(subscription.get('State'), 'ended')
    expect('Closed', subscription.receive)
    expect(UNKNOWN, subscription.receive)


@suite.test
def an_ended_subscription_goes_by_itself(server, name):
    own = Server('--linger-ms=50')
    client = own.client()
    bus = client.bus(name)
    evicted, closed, live = bus.subscribe(max_queued=1), bus.subscribe(), bus.subscribe()
    bus.publish()
    bus.publish()
    wait_until(lambda: is_gone(evicted))
    same(closed.get('State'), 'live')
    same(ids(live.receive()), [1, 2])
    client.test('CloseBus', '(s)', name)
    wait_until(lambda: is_gone(closed) and is_gone(live))
    wait_until(lambda: client.test('IsIdle')[0])
    same(own.stop(), 0)


def is_gone(subscription):
    try:
        subscription.get('State')
    except Exception:  # pylint: disable=broad-except
        return True
    return False


# --- Drain

@suite.test
def drain_counts_cost(server, name):
    bus = server.client().bus(name)
    subscription = bus.subscribe()
    # Topic and data: 10 bytes each.
    bus.publish_many([('topic', '12345')] * 10)
    same(subscription.drain(0), [])
    same(subscription.get('Queued'), 10)
    same(ids(subscription.drain(1)), [1])
    same(ids(subscription.drain(10)), [2])
    same(ids(subscription.drain(29)), [3, 4])
    same(ids(subscription.drain(30)), [5, 6, 7])
    same(ids(subscription.drain(2 ** 64 - 1)), [8, 9, 10])
    same(subscription.drain(1), [])


@suite.test
def drain_is_bounded_and_ends(server, name):
    client = server.client()
    bus = client.bus(name)
    subscription = bus.subscribe(max_queued=3000)
    bus.publish_many([('a', '1')] * 1500)
    same(ids(subscription.drain(2 ** 40)), list(range(1, 1025)))
    client.test('CloseBus', '(s)', name)
    same(ids(subscription.drain(2 ** 40)), list(range(1025, 1501)))
    same(subscription.drain(0), [])
    expect('Closed', subscription.drain, 1)
    expect(UNKNOWN, subscription.drain, 1)


@suite.test
def synthetic_events_cost_nothing(server, name):
    bus = server.client().bus(name)
    bus.publish_count(2)
    subscription = bus.subscribe(last_event_id=9)
    same(short(subscription.drain(31)), [resync('epoch_reset', 9, 1), 1])
    same(short(subscription.drain(1)), [2])
    same(short(subscription.drain(1)), [complete(2, 2)])


@suite.test
def far_behind_a_filter(server, name):
    bus = server.client().bus(name)
    bus.publish_many([('no', '1')] * 4000 + [('yes', '1')] + [('no', '1')] * 90)
    same(ids(bus.subscribe(['yes'], last_event_id=0).receive(1, 0)), [4001])
    same(ids(bus.subscribe(['yes'], last_event_id=0).drain(1)), [4001])
    subscription = bus.subscribe(['yes'], last_event_id=0)
    same(ids(subscription.receive(1, 20000)), [4001])
    same(short(subscription.receive(1, 20000)), [complete(1, 4001, filtered=True)])


@suite.test
def lagged_is_told_once(server, name):
    bus = server.client().bus(name)
    subscription = bus.subscribe(max_queued=1)
    same(subscription.call('DrainLagged')[0], 0)
    bus.publish()
    bus.publish()
    same(subscription.get('Dropped'), 1)
    same(subscription.call('DrainLagged')[0], 1)
    same(subscription.call('DrainLagged')[0], 0)
    same(subscription.get('Dropped'), 1)


# --- The cases

def rest(subscription):
    """All that waits."""
    events = []
    while True:
        try:
            more = subscription.receive(64)
        except Exception as error:  # pylint: disable=broad-except
            assert error.name == 'Closed', error
            return short(events) + ['end']
        if not more:
            return short(events) + ['open']
        events += more


@suite.test
def cases_12_to_16_warning_and_eviction(server, name):
    client = server.client()

    def case(number, count, **options):
        bus = client.bus(f'{name}-{number}')
        subscription = bus.subscribe(**options)
        bus.publish_count(count)
        return bus, rest(subscription)

    bus, events = case(12, 3, max_queued=2)
    same(events, [1, 2, warn(2, 2, 2, 132), evict('queue_overflow', 3, 2, 2, 132, 2), 'end'])
    same(bus.get('SubscriberCount'), 0)
    same(case(13, 7, max_queued=8)[1], [1, 2, 3, 4, 5, 6, warn(6, 8, 6, 396), 7, 'open'])
    same(case(14, 17, max_queued=16)[1], [*range(1, 13), warn(12, 16, 12, 795), *range(13, 17),
                                          evict('queue_overflow', 17, 16, 16, 1063, 16), 'end'])
    same(case(15, 18, max_queued=17)[1], [*range(1, 14), warn(13, 17, 13, 862), *range(14, 18),
                                          evict('queue_overflow', 18, 17, 17, 1130, 17), 'end'])
    same(case(16, 257)[1], [*range(1, 193), warn(192, 256, 192, 12948), *range(193, 257),
                            evict('queue_overflow', 257, 256, 256, 17300, 256), 'end'])


@suite.test
def cases_18_to_22_siblings_and_rearming(server, name):
    client = server.client()
    bus = client.bus(name)
    slow, sibling = bus.subscribe(max_queued=2), bus.subscribe()
    bus.publish_count(3)
    same(bus.get('SubscriberCount'), 1)
    same(slow.get('State'), 'evicted')
    same(ids(sibling.receive()), [1, 2, 3])
    for number, first, read, second, wanted in (
            (19, 6, 4, 5, [5, 6, warn(6, 8, 6, 396), 7, 8, 9, 10, warn(6, 8, 10, 397), 11, 'open']),
            (20, 6, 5, 5, [6, warn(6, 8, 6, 396), 7, 8, 9, 10, 11, warn(6, 8, 11, 398), 'open']),
            (21, 6, 3, 3, [4, 5, 6, warn(6, 8, 6, 396), 7, 8, 9, 'open']),
            (22, 6, 7, 8, [7, 8, 9, 10, 11, 12, warn(6, 8, 12, 399), 13, 14, 'open'])):
        bus = client.bus(f'{name}-{number}')
        subscription = bus.subscribe(max_queued=8)
        bus.publish_count(first)
        same(len(subscription.receive(read)), read)
        bus.publish_count(second)
        same(rest(subscription), wanted)


@suite.test
def cases_24_to_26_bytes(server, name):
    client = server.client()

    def case(number, cap, sizes):
        bus = client.bus(f'{name}-{number}', max_queued_bytes=cap)
        subscription = bus.subscribe(max_queued=100)
        for size in sizes:
            data = '1' if size is None else '"' + 'x' * size + '"'
            bus.publish('foo', data, type='foo', principal='', meta='{"serverTimestamp":1}')
        return rest(subscription)

    same(case(24, 1200, [1000, 1000]), [1, warn(1, 100, 1, 1067, 1200, 'bytes'),
                                        evict('queue_bytes_overflow', 2, 1, 100, 1067, 1, 1200, eventBytes=1067), 'end'])
    same(case(26, 132, [None, None]), [1, 2, warn(2, 100, 2, 132, 132, 'bytes'), 'open'])
    same(case(261, 131, [None, None]), [1, evict('queue_bytes_overflow', 2, 1, 100, 66, 1, 131, eventBytes=66), 'end'])


@suite.test
def cases_30_to_37_replay(server, name):
    bus = server.client().bus(name, ring_size=3)
    bus.publish_count(5)
    same(rest(bus.subscribe()), ['open'])
    for cursor, wanted in (
            (0, [resync('ring_evicted', 0, 3), 3, 4, 5, complete(3, 5)]),
            (1, [resync('ring_evicted', 1, 3), 3, 4, 5, complete(3, 5)]),
            (2, [3, 4, 5, complete(3, 5)]),
            (3, [4, 5, complete(2, 5)]),
            (5, [complete(0)]),
            (6, [resync('epoch_reset', 6, 3), 3, 4, 5, complete(3, 5)]),
            (MAX_ID, [resync('epoch_reset', MAX_ID, 3), 3, 4, 5, complete(3, 5)])):
        same(rest(bus.subscribe(last_event_id=cursor)), wanted + ['open'])
    event = bus.subscribe(last_event_id=MAX_ID).receive()[0]
    assert '9007199254740991' in event[5], event
    same((event[0], event[1], event[3], event[6]), (0, '', '', {}))


@suite.test
def cases_38_and_39_edges(server, name):
    client = server.client()
    bus = client.bus(name + '-38', ring_size=1)
    bus.publish_count(5)
    same(rest(bus.subscribe(last_event_id=4)), [5, complete(1, 5), 'open'])
    same(rest(bus.subscribe(last_event_id=3)), [resync('ring_evicted', 3, 5), 5, complete(1, 5), 'open'])
    bus = client.bus(name + '-39')
    same(rest(bus.subscribe(last_event_id=0)), [complete(0), 'open'])
    subscription = bus.subscribe(last_event_id=1)
    same(rest(subscription), [resync('epoch_reset', 1, 1), complete(0), 'open'])
    bus.publish_count(1)
    same(rest(subscription), [1, 'open'])


@suite.test
def case_40_a_whole_ring(server, name):
    bus = server.client().bus(name)
    bus.publish_many([('a', '1')] * 4000)
    bus.publish_many([('a', '1')] * 4001)
    subscription = bus.subscribe(last_event_id=0)
    same(subscription.get('State'), 'replaying')
    events = []
    while len(events) < 8002:
        events += subscription.receive()
    same(short(events), [resync('ring_evicted', 0, 2), *range(2, 8002), complete(8000, 8001)])
    same(subscription.get('State'), 'live')


@suite.test
def cases_41_to_43_replay_and_caps(server, name):
    client = server.client()
    bus = client.bus(name + '-41')
    bus.publish_count(10)
    subscription = bus.subscribe(last_event_id=0, max_queued=2)
    bus.publish_count(1)
    same(rest(subscription), [*range(1, 11), complete(10, 10), 11, 'open'])
    bus = client.bus(name + '-42')
    bus.publish_count(5)
    subscription = bus.subscribe(last_event_id=0, max_queued=2)
    bus.publish_count(3)
    same(rest(subscription), [1, 2, 3, 4, 5, complete(5, 5), 6, 7, warn(2, 2, 7, 132), evict('queue_overflow', 8, 2, 2, 132, 7), 'end'])
    bus = client.bus(name + '-43', max_queued_bytes=64)
    data = '"' + 'x' * 512 + '"'
    bus.publish_many([('a', data)] * 3)
    subscription = bus.subscribe(last_event_id=0)
    bus.publish('a', data)
    events = rest(subscription)
    same(events[:5], [1, 2, 3, complete(3, 3), 4])
    same(events[-1], 'open')


@suite.test
def case_44_interleaved_with_subscribing(server, name):
    client, publisher = server.client(), server.client()
    bus = client.bus(name)
    for n in range(200):
        published = [bus.of(publisher).start('Publish', '(ssa{sv})', 'a', '1', {}) for _ in range(3)]
        subscription = bus.subscribe(last_event_id=max(0, 3 * n - 2))
        for call in published:
            call.wait()
        seen = [item for item in rest(subscription) if isinstance(item, int)]
        same(seen, list(range(max(0, 3 * n - 2) + 1, 3 * n + 4)))
        subscription.call('Close')


@suite.test
def case_45_overtaken_in_the_middle(server, name):
    bus = server.client().bus(name, ring_size=4)
    bus.publish_count(4)
    subscription = bus.subscribe(last_event_id=0)
    same(ids(subscription.receive(1)), [1])
    bus.publish_count(2)
    same(rest(subscription), [resync('ring_evicted', 1, 3), 3, 4, complete(3, 4), 5, 6, 'open'])


@suite.test
def cases_46_to_50_epoch(server, name):
    client = server.client()
    bus = client.bus(name, ring_size=10)
    other = client.bus(name + 'x')
    assert bus.get('Epoch') != other.get('Epoch')
    bus.publish_count(3)
    epoch = bus.get('Epoch')
    for cursor, token, wanted in (
            (2, 'dead', [resync('epoch_reset', 2, 1, detail='epoch_mismatch'), 1, 2, 3, complete(3, 3)]),
            (9, 'dead', [resync('epoch_reset', 9, 1, detail='epoch_mismatch'), 1, 2, 3, complete(3, 3)]),
            (9, epoch, [resync('epoch_reset', 9, 1), 1, 2, 3, complete(3, 3)]),
            (1, epoch, [2, 3, complete(2, 3)])):
        same(rest(bus.subscribe(last_event_id=cursor, epoch=token)), wanted + ['open'])
    same(rest(bus.subscribe(epoch='dead')), ['open'])


@suite.test
def cases_56_to_58_budget(server, name):
    client = server.client()
    data = '"' + 'x' * 100 + '"'
    event = ('foo', data, {'type': 'foo', 'meta': '{"serverTimestamp":1}', 'principal': ''})
    bus = client.bus(name + '-56', replay_budget_bytes=400)
    bus.publish_many([event] * 5)
    subscription = bus.subscribe(last_event_id=0)
    bus.publish_many([event])
    same(rest(subscription), [1, 2, resync('replay_budget_exceeded', 2, 3), complete(2, 2), 6, 'open'])
    bus = client.bus(name + '-57', replay_budget_bytes=10)
    bus.publish_many([event])
    same(rest(bus.subscribe(last_event_id=0)), [1, complete(1, 1), 'open'])
    bus.publish_many([event])
    same(rest(bus.subscribe(last_event_id=0)), [1, resync('replay_budget_exceeded', 1, 2), complete(1, 1), 'open'])
    bus = client.bus(name + '-58', ring_size=3, replay_budget_bytes=140)
    bus.publish_count(5)
    same(rest(bus.subscribe(last_event_id=0)),
         [resync('ring_evicted', 0, 3), 3, 4, resync('replay_budget_exceeded', 4, 5), complete(2, 4), 'open'])


@suite.test
def cases_61_and_63_abort_and_close(server, name):
    client = server.client()
    bus = client.bus(name)
    aborted, drained = bus.subscribe(), bus.subscribe()
    bus.publish_count(2)
    aborted.call('Close')
    same(bus.get('SubscriberCount'), 1)
    client.test('CloseBus', '(s)', name)
    same(rest(drained), [1, 2, 'end'])


@suite.test
def case_65_many_cycles(server, name):
    bus = server.client().bus(name)
    numbers = []
    for _ in range(1000):
        subscription = bus.subscribe(last_event_id=0)
        numbers.append(subscription.number())
        subscription.call('Close')
    same(numbers, list(range(numbers[0], numbers[0] + 1000)))
    same(bus.get('SubscriberCount'), 0)


@suite.test
def events_look_the_same_in_every_way(server, name):
    bus = server.client().bus(name)
    received, drained = bus.subscribe(), bus.subscribe()
    waited = bus.subscribe().start_receive()
    bus.publish('a.b', '{"ä": [1, "\\n"]}', type='t', principal='agent.x', client='c', meta='{"k":1}')
    events = [received.receive()[0], drained.drain(1)[0], waited.wait()[0][0], bus.fetch()[0],
              bus.subscribe(last_event_id=0).receive()[0]]
    for event in events:
        same(event, events[0])
    same(json.loads(events[0][6]['meta'])['k'], 1)


suite.main()
