#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A bus on the message bus: publishing, closing, listing. Numbers are those of sse-contract.md, section 6."""
import json
import os
import re
import subprocess
import sys
import time

from harness import BUS, ROOT, Bus, GLib, Server, Suite, complete, expect, ids, resync, same, short, wait_until

suite = Suite()


@suite.test
def publish_answers_with_the_id_and_the_outcome(server, name):
    bus = server.client().bus(name)
    same(bus.publish(), (1, {'subscriptions': 0, 'refused': 0, 'evicted': 0}))
    bus.subscribe()
    bus.subscribe(['a.*'])
    bus.subscribe(['other'])
    same(bus.publish('a.b', '2'), (2, {'subscriptions': 2, 'refused': 0, 'evicted': 0}))


@suite.test
def an_eviction_is_a_refusal(server, name):
    bus = server.client().bus(name)
    bus.subscribe(max_queued=1)
    bus.publish()
    same(bus.publish(), (2, {'subscriptions': 0, 'refused': 1, 'evicted': 0}))


@suite.test
def every_option_arrives(server, name):
    bus = server.client().bus(name)
    before = time.time() * 1e6
    bus.publish('a.b', ' {"x":\r\n1.50} ', type='T/1', principal='agent:7', client='c:1', final=True,
                meta='{"serverTimestamp":1,"k":"v"}')
    event = bus.fetch()[0]
    after = time.time() * 1e6
    same(event[0:4], (1, 'a.b', 'T/1', 'agent:7'))
    assert before <= event[4] <= after, event
    same(event[5], '{"x":  1.50}')
    same(event[6]['client'], 'c:1')
    same(json.loads(event[6]['meta']), {'serverTimestamp': 1, 'k': 'v'})
    same(sorted(event[6]), ['client', 'meta'])


@suite.test
def without_options_defaults_hold(server, name):
    bus = server.client().bus(name)
    bus.publish()
    event = bus.fetch()[0]
    same((event[2], event[3], event[6]), ('message', f'uid:{os.getuid()}', {}))
    bus.publish(principal='')
    same(bus.fetch(1)[0][3], '')


@suite.test
def data_comes_back_byte_for_byte(server, name):
    bus = server.client().bus(name)
    texts = ['null', '1e400', '"\\ud800"', '{"a":1,"a":2}', '123456789012345678901234567890',
             '"\u2028\u2029 \U0001f600 \x7f"', '-0.0', '[' * 128 + ']' * 128, '"' + 'ä' * 1000 + '"']
    for text in texts:
        bus.publish(data=text)
    same([event[5] for event in bus.fetch()], texts)


@suite.test
def bad_publishes_use_no_id(server, name):
    bus = server.client().bus(name)
    for error, says, change in (
            ('InvalidTopic', 'topic', {'topic': ''}), ('InvalidTopic', 'a..b', {'topic': 'a..b'}),
            ('InvalidTopic', '256', {'topic': 'x' * 257}), ('InvalidTopic', '20', {'topic': '.'.join('a' * 21)}),
            ('InvalidTopic', 'headway.', {'topic': 'headway.x'}), ('InvalidTopic', 'a.*', {'topic': 'a.*'}),
            ('InvalidType', 'type', {'type': ''}), ('InvalidType', '128', {'type': 'x' * 129}),
            ('InvalidType', 'a b', {'type': 'a b'}), ('InvalidType', 'gap', {'type': 'gap'}),
            ('InvalidType', 'client_evicted', {'type': 'client_evicted'}),
            ('InvalidType', 'session_closed', {'type': 'session_closed'}),
            ('InvalidType', 'headway.x', {'type': 'headway.x'}),
            ('InvalidPrincipal', 'a b', {'principal': 'a b'}), ('InvalidPrincipal', '128', {'principal': 'x' * 129}),
            ('InvalidOption', 'client', {'client': ''}), ('InvalidOption', '129 bytes', {'client': 'x' * 129}),
            ('InvalidOption', 'a/b', {'client': 'a/b'}), ('InvalidOption', 'meta', {'meta': '[]'}),
            ('InvalidOption', '4096', {'meta': '{"a":"' + 'x' * 4096 + '"}'}),
            ('InvalidOption', 'meta', {'meta': ''}),
            ('InvalidOption', 'seed', {'seed': True}), ('InvalidOption', ('final', '"s"', '"b"'), {'final': GLib.Variant('s', 'x')}),
            ('InvalidOption', ('type', '"u"'), {'type': GLib.Variant('u', 1)}),
            ('InvalidOption', ('principal', '"as"'), {'principal': GLib.Variant('as', [])}),
            ('InvalidOption', 'client', {'client': GLib.Variant('t', 1)}),
            ('InvalidOption', 'meta', {'meta': GLib.Variant('a{sv}', {})}),
            ('InvalidOption', '"Type"', {'Type': GLib.Variant('s', 'x')}),
            ('InvalidOption', 'unknown', {'x' * 100000: GLib.Variant('s', 'x')})):
        expect(error, bus.publish, **change, says=says)
    same(bus.publish()[0], 1)


@suite.test
def what_is_no_json_is_refused_with_the_position(server, name):
    bus = server.client().bus(name)
    for text, position in (('', '0'), ('{', '1'), ('[1,]', '3'), ('01', '1'), ('{"a":nul}', '8'), ('1 2', '2'),
                           ('// x', '0'), ('[' * 129 + ']' * 129, '128'), ('NaN', '0'), ("'x'", '0')):
        error = expect('InvalidData', bus.publish, data=text)
        assert position in error.message, f'{text}: {error}'
    expect('InvalidData', bus.publish, data='"\x01"')
    same(bus.publish()[0], 1)


@suite.test
def an_event_has_a_limit(server, name):
    bus = server.client().bus(name)
    limit = 1024 * 1024
    expect('TooLarge', bus.publish, topic='t', data='"' + 'x' * (limit - 2) + '"', says=str(limit))
    same(bus.publish('t', '"' + 'x' * (limit - 3) + '"')[0], 1)
    expect('TooLarge', bus.publish, topic='t', data='"' + 'x' * (6 * limit) + '"')
    same(bus.publish()[0], 2)


@suite.test
def a_large_event_is_one_reply(server, name):
    bus = server.client().bus(name)
    data = '"' + 'x' * (1024 * 1024 - 3) + '"'
    bus.publish('t', data)
    bus.publish()
    subscription = bus.subscribe(last_event_id=0)
    same(bus.fetch()[0][5], data)
    same(ids(bus.fetch()), [1])
    same(ids(subscription.receive()), [1])
    same(short(subscription.receive()), [2, ('replay_complete', {'lastReplayedEventId': 2, 'lastEventId': 2, 'replayedCount': 2})])


@suite.test
def many_take_consecutive_ids(server, name):
    bus = server.client().bus(name)
    subscription = bus.subscribe()
    same(bus.publish_many([('a', '1'), ('b', '2', {'type': 'x', 'principal': 'me'}), ('c', '3')]),
         (1, 3, {'subscriptions': 3, 'refused': 0, 'evicted': 0}))
    same([event[:4] for event in subscription.receive()],
         [(1, 'a', 'message', f'uid:{os.getuid()}'), (2, 'b', 'x', 'me'), (3, 'c', 'message', f'uid:{os.getuid()}')])
    same(bus.publish_many([('a', '1')])[:2], (4, 1))


@suite.test
def one_bad_event_refuses_all_and_is_named(server, name):
    bus = server.client().bus(name)
    good = ('a', '1')
    for error, bad in (('InvalidTopic', ('', '1')), ('InvalidData', ('a', '{')), ('InvalidType', ('a', '1', {'type': 'gap'})),
                       ('InvalidPrincipal', ('a', '1', {'principal': ' '})),
                       ('TooLarge', ('a', '"' + 'x' * 2 ** 20 + '"')),
                       ('InvalidOption', ('a', '1', {'what': GLib.Variant('s', '')}))):
        expect(error, bus.publish_many, [good, good, good, bad, good], says='event 3: ')
    expect('InvalidOption', bus.publish_many, [good], what=GLib.Variant('b', True), says=('"what"', 'seed'))
    expect('InvalidOption', bus.publish_many, [good], seed=GLib.Variant('u', 1), says='seed')
    expect('InvalidOption', bus.publish_many, [], says='4096')
    same(bus.publish()[0], 1)


@suite.test
def many_have_limits(server, name):
    bus = server.client().bus(name, ring_size=10000)
    expect('TooLarge', bus.publish_many, [('a', '1')] * 4097, says=('4097', '4096'))
    same(bus.publish_many([('a', '1')] * 4096)[:2], (1, 4096))
    big = ('t', '"' + 'x' * (1024 * 1024 - 3) + '"')
    expect('TooLarge', bus.publish_many, [big] * 16 + [('t', '1')], says=('event 16: ', str(16 * 1024 * 1024)))
    same(bus.publish_many([big] * 16)[:2], (4097, 16))
    expect('TooLarge', bus.publish_many, [big] * 24, says=str(16 * 1024 * 1024 + 4096 * 1024))
    same(bus.get('LastEventId'), 4112)


@suite.test
def over_the_rate_is_refused(server, name):
    client = server.client()
    bus = client.bus(name)
    data = '"' + 'x' * 497 + '"'  # costs 500 with its topic
    client.test('SetRates', '(tt)', 1000, 0)
    try:
        # Case 14: what is malformed or forbidden charges nothing.
        for _ in range(20):
            expect('InvalidData', bus.publish, 't', '[' + data)
            expect('InvalidTopic', bus.publish, '..', data)
        expect('QuotaExceeded', bus.publish_many, [('t', data)] * 3, says=('1500', 'principal-bytes-per-second'))
        same(bus.publish_many([('t', data), ('t', data)])[:2], (1, 2))
        # All at once: two a second pass.
        calls = [bus.start('Publish', '(ssa{sv})', 't', data, {}) for _ in range(100)]
        wait_until(lambda: all(call.is_done for call in calls))
        refused = [call.error for call in calls if call.error is not None]
        same({error.name for error in refused}, {'RateLimited'})
        assert all(re.search('retry-after-ms=[0-9]+$', str(error)) for error in refused), refused[0]
        same([call.value[0] for call in calls if call.error is None], list(range(3, 103 - len(refused))))
        same(bus.publish('t', data, principal='other')[0], 103 - len(refused))
        client.test('SetRates', '(tt)', 0, 2)
        expect('QuotaExceeded', bus.publish_many, [('t', '1')] * 3, says='principal-events-per-second')
    finally:
        client.test('SetRates', '(tt)', 0, 0)
    same(bus.publish()[0], 104 - len(refused))


@suite.test
def sixteen_mebibytes_at_once_never_fit_the_default_rate(server, name):
    client = server.client()
    bus = client.bus(name)
    big = ('t', '"' + 'x' * (1024 * 1024 - 3) + '"')
    client.test('SetRates', '(tt)', 10485760, 20000)
    try:
        expect('QuotaExceeded', bus.publish_many, [big] * 16, says=('16777216', '10485760', 'principal-bytes-per-second'))
        # Both sides of the limit, and nothing was charged by asking for too much.
        expect('QuotaExceeded', bus.publish_many, [big] * 10 + [('t', '1')])
        same(bus.publish_many([big] * 10)[:2], (1, 10))
        expect('RateLimited', bus.publish_many, [big], says='retry-after-ms=')
    finally:
        client.test('SetRates', '(tt)', 0, 0)
    same(bus.publish_many([big] * 16)[:2], (11, 16))


@suite.test
def others_queue_behind_many(server, name):
    first, second = server.client(), server.client()
    bus = first.bus(name)
    many = bus.start('PublishMany', '(a(ssa{sv})a{sv})', [('a', '1', {})] * 4096, {})
    behind = bus.start('Publish', '(ssa{sv})', 'a', '1', {})
    other = bus.of(second).start('Publish', '(ssa{sv})', 'a', '1', {})
    first_id, count = many.wait()[:2]
    same(count, 4096)
    assert behind.wait()[0] >= first_id + count
    # Before or behind, but not in between.
    assert other.wait()[0] not in range(first_id, first_id + count)
    same(bus.get('LastEventId'), 4098)


@suite.test
def publishes_wait_for_ids_in_order(server, name):
    client = server.client()
    bus = client.bus(name)
    client.test('StallIds', '(b)', True)
    while bus.get('LastEventId') < 9999:
        bus.publish_many([('a', '1')] * min(4096, 9999 - bus.get('LastEventId')))
    waiting = [bus.start('PublishMany', '(a(ssa{sv})a{sv})', [('a', '1', {})] * 2, {})]
    waiting += [bus.start('Publish', '(ssa{sv})', 'a', '1', {}) for _ in range(200)]
    # A caller whose publishes wait can still read.
    same(bus.get('LastEventId'), 9999)
    same(ids(bus.fetch(9998)), [9999])
    assert not any(call.is_done for call in waiting)
    client.test('StallIds', '(b)', False)
    same([call.wait()[0] for call in waiting], [10000] + list(range(10002, 10202)))


@suite.test
def no_ids_at_all_are_unavailable(server, name):
    client = server.client()
    bus = client.bus(name)
    client.test('StallIds', '(b)', True)
    bus.publish_many([('a', '1')] * 4096)
    bus.publish_many([('a', '1')] * 4096)
    waiting = bus.start('PublishMany', '(a(ssa{sv})a{sv})', [('a', '1', {})] * 4096, {})
    bus.get('LastEventId')
    client.test('RefuseIds')
    expect('Unavailable', waiting.wait, says='the test says so')
    client.test('StallIds', '(b)', False)
    same(bus.publish()[0], 8193)


@suite.test
def cases_53_to_55_seeding(server, name):
    client = server.client()

    def rest(bus, cursor):
        return short(bus.subscribe(last_event_id=cursor).receive())

    bus = client.bus(name + '-53')
    listener = bus.subscribe()
    same(bus.publish_many([('a', '1')] * 2, seed=True), (1, 2, {'subscriptions': 0, 'refused': 0, 'evicted': 0}))
    same(listener.receive(), [])
    same((bus.get('LastEventId'), bus.get('FirstEventId')), (2, 0))
    same(rest(bus, 0), [resync('seeded_replay_not_in_ring', 0, 3), complete(0)])
    same(rest(bus, 1), [resync('seeded_replay_not_in_ring', 1, 3), complete(0)])
    same(rest(bus, 2), [complete(0)])
    same(rest(bus, 3), [resync('epoch_reset', 3, 3), complete(0)])
    bus.publish()
    same(rest(bus, 0), [resync('ring_evicted', 0, 3), 3, complete(1, 3)])
    same(rest(bus, 2), [3, complete(1, 3)])
    same(rest(bus, 3), [complete(0)])
    bus = client.bus(name + '-55')
    bus.publish()
    bus.publish()
    bus.publish_many([('a', '1')], seed=True)
    same(rest(bus, 1), [resync('seeded_replay_not_in_ring', 1, 4), complete(0)])


@suite.test
def properties_are_live(server, name):
    bus = server.client().bus(name, ring_size=2)
    same([bus.get(key) for key in ('Name', 'RingSize', 'LastEventId', 'FirstEventId', 'RingBytes', 'SubscriberCount')],
         [name, 2, 0, 0, 0, 0])
    bus.publish_count(3)
    subscription = bus.subscribe()
    same([bus.get(key) for key in ('LastEventId', 'FirstEventId', 'RingBytes', 'SubscriberCount')], [3, 2, 132, 1])
    subscription.call('Close')
    same(bus.get('SubscriberCount'), 0)
    same(bus.get('Epoch'), bus.subscribe().info['epoch'])


@suite.test
def list_subscriptions(server, name):
    client = server.client()
    bus = client.bus(name)
    first = bus.subscribe(['a.*', 'b'], max_queued=3)
    second = bus.subscribe()
    same([sorted(entry) for entry in bus.call('ListSubscriptions')[0]],
         [['dropped', 'lag', 'mode', 'number', 'owner', 'patterns', 'principals', 'queued', 'queued-bytes', 'sink']] * 2)
    bus.publish_many([('a.x', '1')] * 2)
    second.receive()
    entries = bus.call('ListSubscriptions')[0]
    size = entries[0].pop('queued-bytes')
    assert size > 100, size
    same(entries[0], {'number': first.number(), 'owner': client.name, 'mode': 'stream', 'sink': 'dbus', 'patterns': ['a.*', 'b'],
                      'queued': 2, 'dropped': 0, 'lag': 2, 'principals': []})
    same((entries[1]['number'], entries[1]['queued'], entries[1]['lag'], entries[1]['patterns']), (second.number(), 0, 0, []))


@suite.test
def a_listing_is_bounded(server, name):
    client, other = server.client(), server.client()
    bus = client.bus(name, max_subscribers=400)
    patterns = ['x' * 250 + f'.{n}' for n in range(64)]
    for n in range(200):
        (bus if n % 2 else bus.of(other)).subscribe(patterns)
    entries = bus.call('ListSubscriptions')[0]
    assert 10 < len(entries) < 100, len(entries)


@suite.test
def a_snapshot_is_an_object(server, name):
    bus = server.client().bus(name)
    bus.call('SetSnapshot', '(s)', ' {"currentModelId":"m"} ')
    for bad in ('[]', '1', '{', ''):
        expect('InvalidData', bus.call, 'SetSnapshot', '(s)', bad)
    expect('TooLarge', bus.call, 'SetSnapshot', '(s)', '{"a":"' + 'x' * 2 ** 20 + '"}', says='1048576')
    expect('TooLarge', bus.call, 'SetSnapshot', '(s)', '{"a":"' + 'x' * 2 ** 23 + '"}')


@suite.test
def closing_tells_drains_and_goes(server, name):
    client = server.client()
    bus = client.bus(name)
    epoch = bus.get('Epoch')
    subscription = bus.subscribe(['nothing'], types=['none'])
    reader = bus.subscribe()
    bus.publish()
    bus.call('Close')
    expect('Closed', bus.publish, says=name)
    expect('Closed', bus.publish_many, [('a', '1')])
    expect('Closed', bus.subscribe)
    expect('Closed', bus.call, 'Close')
    expect('Closed', bus.call, 'SetSnapshot', '(s)', '{}')
    expect('Closed', client.bus, name)
    expect('Closed', client.manager, 'GetBus', '(s)', name)
    same(ids(bus.fetch()), [1, 2])
    same(subscription.get('State'), 'ended')
    event = subscription.receive()[0]
    same((event[0], event[1], event[2], event[3]), (2, 'session_closed', 'session_closed', ''))
    same(json.loads(event[5]), {'sessionId': name, 'reason': 'closed'})
    expect('Closed', subscription.receive)
    same(ids(reader.receive(timeout_ms=20000)), [1, 2])
    expect('Closed', reader.drain, 100)

    def is_gone():
        try:
            bus.get('Name')
        except Exception:  # pylint: disable=broad-except
            return True
        return False

    wait_until(is_gone)
    expect('NoSuchBus', bus.publish, says=f'there is no bus "{name}"')
    again = client.bus(name)
    assert again.get('Epoch') != epoch


@suite.test
def a_path_without_a_bus_says_so(server, name):
    client = server.client()
    there = client.bus(name)
    for label, told in ((name + 'x', f'"{name}x"'), ('a_2eb', '"a.b"'), ('9x', '/9x'), ('_zz', '/_zz'), ('a_2Eb', '/a_2Eb')):
        bus = Bus(client, f'{ROOT}/bus/{label}')
        for call in (bus.publish, bus.subscribe, bus.fetch, lambda bus=bus: bus.get('Name'),
                     lambda bus=bus: client.get_all(bus.path, BUS)):
            expect('NoSuchBus', call, says=told)
            xml = client.call(bus.path, 'org.freedesktop.DBus.Introspectable', 'Introspect')[0]
            assert BUS not in xml, xml
    xml = client.call(ROOT + '/bus', 'org.freedesktop.DBus.Introspectable', 'Introspect')[0]
    assert f'"{name}"' in xml and '"9x"' not in xml, xml
    assert BUS in client.call(there.path, 'org.freedesktop.DBus.Introspectable', 'Introspect')[0]
    same(there.publish()[0], 1)


@suite.test
def what_waits_when_a_bus_closes(server, name):
    client = server.client()
    bus = client.bus(name)
    waiting = bus.subscribe().start_receive()
    fetching = bus.start_fetch(timeout_ms=20000)
    bus.get('Name')
    bus.call('Close')
    same(ids(waiting.wait()[0]), [1])
    same(ids(fetching.wait()[0]), [1])
    # Without a last event: what remains, else Closed.
    bus = client.bus(name + 'x')
    waiting = bus.subscribe().start_receive()
    fetching = bus.start_fetch(timeout_ms=20000)
    client.test('CloseBus', '(s)', name + 'x')
    expect('Closed', waiting.wait)
    expect('Closed', fetching.wait)


STRANGER = '''
import os, sys
sys.path.insert(0, sys.argv[1])
address, path, own = sys.argv[2:5]
os.setgid(65534)
os.setuid(65534)
from harness import *
class At:
    pass
at = At()
at.address = address
client = Client(at)
bus = Bus(client, path)
expect('NotAuthorized', bus.call, 'ListSubscriptions', says='65534')
expect('NotAuthorized', bus.call, 'Close', says='65534')
expect('NotAuthorized', bus.publish_many, [('a', '1')], seed=True, says='65534')
expect('NotAuthorized', bus.call, 'RegisterHandler', '(asoa{sv})', ['*'], '/h', {'phase': GLib.Variant('s', 'pre')}, says='65534')
bus.call('RegisterHandler', '(asoa{sv})', ['*'], '/h', {})
expect('NotAuthorized', bus.publish, principal='me', says='"me"')
expect('NotAuthorized', bus.publish, principal='')
same(bus.publish(principal='uid:65534')[0], 1)
same(bus.publish()[0], 2)
same([event[3] for event in bus.fetch()], ['uid:65534'] * 2)
own = client.bus(own)
same(own.publish_many([('a', '1')], seed=True)[:2], (1, 1))
own.call('RegisterHandler', '(asoa{sv})', ['*'], '/h', {'phase': GLib.Variant('s', 'pre')})
own.call('Close')
'''


@suite.test
def case_148_a_stranger_may_less(server, name):
    if os.getuid() != 0:
        return 'only root can be somebody else'
    bus = server.client().bus(name)
    done = subprocess.run([sys.executable, '-B', '-c', STRANGER, os.path.dirname(os.path.abspath(__file__)), server.address,
                           bus.path, name + 'own'], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return None


@suite.test
def system_rules_are_stricter_for_others_only(server, name):
    own = Server('--system')
    bus = own.client().bus(name)
    if os.getuid() == 0:
        bus.publish(principal='x')
    else:
        expect('NotAuthorized', bus.publish, principal='x')
    same(bus.publish(principal=f'uid:{os.getuid()}')[0], bus.get('LastEventId'))
    same(own.stop(), 0)


suite.main()
