#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Peers that ask for much and read nothing, or late, or one by one."""
import statistics
import threading
import time

from harness import (BUS, MANAGER, NAME, OBJECT_MANAGER, PROPERTIES, ROOT, SUBSCRIPTION, Gio, GLib, Server, Suite, ids, same,
                     settle, wait_until)
from raw import MIB, Raw, is_sanitized, memory

suite = Suite()
INTROSPECTABLE = 'org.freedesktop.DBus.Introspectable'
PAYLOAD = '"' + 'x' * 1000000 + '"'
NO_STATS = '<policy context="mandatory"><deny send_interface="org.freedesktop.DBus.Debug.Stats"/></policy>'


def p99(bus, seconds):
    """Of a publish and a fetch of what it published."""
    times = []
    end = time.monotonic() + seconds
    while time.monotonic() < end or len(times) < 100:
        start = time.monotonic()
        published = bus.publish()[0]
        same(ids(bus.fetch(published - 1)), [published])
        times.append(time.monotonic() - start)
    # Whoever is starved waits for ever; a busy machine is none of our business.
    assert max(times) < 10, max(times)
    return statistics.quantiles(times, n=100)[98]


def check_dead_reader(own, name):
    client = own.client()
    big, small = client.bus(name), client.bus(name + 'small')
    big.publish(data=PAYLOAD)
    big.fetch()
    unhindered = p99(small, 1)
    before = memory(own.process, 'VmRSS')
    daemon_before = memory(own.daemon, 'VmRSS')
    dead = Raw(own)
    dead.fetch(big.path, times=1000)
    hindered = p99(small, 3)
    same(len(big.fetch()), 1)
    if not is_sanitized(own.process):
        assert hindered < max(3 * unhindered, 0.25), (hindered, unhindered)
        grown = memory(own.process, 'VmHWM') - before
        assert grown < 24 * MIB, grown
    grown = memory(own.daemon, 'VmRSS') - daemon_before
    assert grown < 32 * MIB, grown
    same(client.test('IsIdle')[0], False)
    dead.leave()
    wait_until(lambda: client.test('IsIdle')[0])
    same(client.test('PeerCount')[0], 1)


@suite.test
def who_never_reads_costs_little(server, name):
    own = Server(is_stock=True)
    check_dead_reader(own, name)
    same(own.stop(), 0)


@suite.test
def who_never_reads_costs_little_without_statistics(server, name):
    own = Server(policy=NO_STATS)
    check_dead_reader(own, name)
    same(own.stop(), 0)


def check_pipelining(own, name):
    client = own.client()
    bus = client.bus(name)
    bus.publish(data=PAYLOAD)
    order = []

    def on_reply(connection, result, number):
        same(len(connection.call_finish(result).get_child_value(0).get_child_value(0).get_child_value(5).get_string()),
             len(PAYLOAD))
        order.append(number)

    for number in range(200):
        client.connection.call(NAME, bus.path, BUS, 'Fetch', GLib.Variant('(tua{sv})', (0, 1024, {})), None,
                               Gio.DBusCallFlags.NONE, 60000, None, on_reply, number)
    wait_until(lambda: len(order) == 200)
    same(order, list(range(200)))


@suite.test
def who_pipelines_and_reads_gets_all_in_order(server, name):
    own = Server(is_stock=True)
    check_pipelining(own, name)
    same(own.stop(), 0)


@suite.test
def who_pipelines_and_reads_gets_all_in_order_without_statistics(server, name):
    own = Server(policy=NO_STATS)
    check_pipelining(own, name)
    same(own.stop(), 0)


@suite.test
def who_reads_one_by_one_needs_no_main_loop(server, name):
    own = Server(is_stock=True)
    bus = own.client().bus(name)
    bus.publish(data=PAYLOAD)
    raw = Raw(own)
    for _ in range(64):
        events = raw.call(NAME, bus.path, BUS, 'Fetch', '(tua{sv})', 0, 1024, {})[0]
        same(len(events[0][5]), len(PAYLOAD))
    raw.leave()
    same(own.stop(), 0)


@suite.test
def what_waits_too_long_is_refused(server, name):
    own = Server(policy=NO_STATS)
    bus = own.client().bus(name)
    bus.publish(data=PAYLOAD)
    raw = Raw(own)
    done = 0
    while True:
        message = raw.answer(raw.fetch(bus.path))
        if message.get_error_name() is not None:
            break
        done += 1
    same(message.get_error_name(), NAME + '.Error.QuotaExceeded')
    text = message.get_body().unpack()[0]
    for word in (raw.name, 'bytes', 'Peer.Ping'):
        assert word in text, text
    assert 6 <= done <= 9, done
    raw.leave()
    same(own.stop(), 0)


@suite.test
def events_stay_in_the_subscription_of_who_never_reads(server, name):
    own = Server(is_stock=True)
    client = own.client()
    bus = client.bus(name)
    bus.publish(data=PAYLOAD)
    dead = Raw(own)
    path = dead.call(NAME, bus.path, BUS, 'Subscribe', '(asa{sv})', [], {})[0]
    dead.send(NAME, path, SUBSCRIPTION, 'Receive', '(ui)', 1024, 20000)
    dead.fetch(bus.path, times=50)
    wait_until(lambda: not client.test('IsIdle')[0])
    settle(300)
    for _ in range(3):
        bus.publish()
    settle(300)
    listed = bus.call('ListSubscriptions')[0][0]
    same((listed['queued'], listed['dropped']), (3, 0))
    # Once it reads it gets them all.
    while dead.read().get_reply_serial() != dead.serial:
        pass
    same(ids(dead.call(NAME, path, SUBSCRIPTION, 'Receive', '(ui)', 1024, 0)[0]), [])
    same(bus.call('ListSubscriptions')[0][0]['queued'], 0)
    dead.leave()
    same(own.stop(), 0)


@suite.test
def so_many_dead_readers_leave_room_for_others(server, name):
    own = Server(is_stock=True)
    client = own.client()
    bus = client.bus(name)
    bus.publish(data=PAYLOAD)
    before = memory(own.daemon, 'VmRSS')
    dead = [Raw(own) for _ in range(100)]
    for raw in dead:
        raw.fetch(bus.path, times=20)
    settle(1000)
    small = bus.publish()[0]
    same(ids(bus.fetch(small - 1)), [small])
    grown = memory(own.daemon, 'VmRSS') - before
    assert grown < 100 * MIB, grown
    for raw in dead:
        raw.leave()
    wait_until(lambda: client.test('PeerCount')[0] == 1)
    same(len(bus.fetch()), 2)
    same(own.stop(), 0)


def check_flood(own, name, call, times):
    """@call is sent so often by one that reads nothing: it costs little, and nobody else waits long."""
    client, other = own.client(), own.client()
    bus = client.bus(name)
    bus.of(other).publish()
    before = memory(own.process, 'VmRSS')
    daemon_before = memory(own.daemon, 'VmRSS')
    dead = Raw(own)
    sender = threading.Thread(target=dead.flood, args=call, kwargs={'times': times})
    sender.start()
    longest = 0
    rounds = 0
    while sender.is_alive() or rounds < 20:
        start = time.monotonic()
        assert bus.path in other.call(ROOT, OBJECT_MANAGER, 'GetManagedObjects')[0]
        published = bus.publish()[0]
        same(ids(bus.fetch(published - 1)), [published])
        longest = max(longest, time.monotonic() - start)
        rounds += 1
    sender.join()
    if not is_sanitized(own.process):
        assert longest < 10, longest
        # 13 MiB where nothing else runs, 17 beside another test; without a meter it is hundreds.
        grown = memory(own.process, 'VmHWM') - before
        assert grown < 32 * MIB, grown
    # Beside the answers it holds each of the calls that have none.
    grown = memory(own.daemon, 'VmRSS') - daemon_before
    assert grown < 48 * MIB, grown
    dead.leave()
    wait_until(lambda: client.test('PeerCount')[0] == 2)
    bus.call('Close')
    client.leave()
    other.leave()


PIPELINED = (
    (ROOT, OBJECT_MANAGER, 'GetManagedObjects', '()'),
    (ROOT, INTROSPECTABLE, 'Introspect', '()'),
    (ROOT, PROPERTIES, 'GetAll', '(s)', MANAGER),
)
AND_ALSO = (
    (ROOT, PROPERTIES, 'Get', '(ss)', MANAGER, 'Capabilities'),
    (ROOT, 'org.freedesktop.DBus.Peer', 'Ping', '()'),
    (ROOT, 'org.freedesktop.DBus.Peer', 'GetMachineId', '()'),
    (ROOT + '/nowhere', 'a.b', 'Unknown' + 'x' * 200, '()'),
    (ROOT + '/subscription/77', SUBSCRIPTION, 'Close', '()'),
    (ROOT, MANAGER, 'GetBus', '(u)', 5),
)


@suite.test
def what_gdbus_would_answer_costs_little_too(server, name):
    for number, call in enumerate(PIPELINED):
        own = Server(is_stock=True)
        client = own.client()
        for other in range(50):
            client.bus(f'{name}-{number}-{other}')
        client.leave()
        # The message bus looks at all calls without an answer at each call: more take it minutes.
        check_flood(own, f'{name}-{number}', call, 2000 if is_sanitized(own.process) else 10000)
        same(own.stop(), 0)


@suite.test
def nor_does_any_other_call(server, name):
    own = Server(is_stock=True)
    for number, call in enumerate(AND_ALSO):
        check_flood(own, f'{name}-{number}', call, 500 if is_sanitized(own.process) else 3000)
    same(own.stop(), 0)


@suite.test
def who_pipelines_and_reads_gets_every_answer_in_order(server, name):
    own = Server(is_stock=True)
    client = own.client()
    bus = client.bus(name)
    order = []

    def on_reply(connection, result, number):
        connection.call_finish(result)
        order.append(number)

    calls = ((ROOT, OBJECT_MANAGER, 'GetManagedObjects', None), (bus.path, INTROSPECTABLE, 'Introspect', None),
             (bus.path, PROPERTIES, 'GetAll', GLib.Variant('(s)', (BUS,))), (bus.path, 'org.freedesktop.DBus.Peer', 'Ping', None),
             (bus.path, BUS, 'Publish', GLib.Variant('(ssa{sv})', ('a', '1', {}))))
    for number in range(1000):
        path, interface, method, arguments = calls[number % len(calls)]
        client.connection.call(NAME, path, interface, method, arguments, None, Gio.DBusCallFlags.NONE, 60000, None,
                               on_reply, number)
    wait_until(lambda: len(order) == 1000)
    same(order, list(range(1000)))
    # What is read tells what was published before it.
    pending = [bus.start('Publish', '(ssa{sv})', 'a', '1', {}), client.start(bus.path, PROPERTIES, 'Get', '(ss)', BUS, 'LastEventId')]
    same(pending[0].wait()[0], pending[1].wait()[0])
    same(own.stop(), 0)


@suite.test
def who_reads_late_is_told_of_each_call(server, name):
    own = Server(is_stock=True)
    bus = own.client().bus(name)
    raw = Raw(own)
    raw.flood(bus.path, PROPERTIES, 'GetAll', '(s)', BUS, times=10000)
    seen = {}
    while len(seen) < 10000:
        message = raw.read()
        if message.get_message_type() in (Gio.DBusMessageType.METHOD_RETURN, Gio.DBusMessageType.ERROR):
            seen[message.get_reply_serial()] = message.get_error_name()
    assert set(seen.values()) <= {None, NAME + '.Error.QuotaExceeded'}, set(seen.values())
    assert sum(error is None for error in seen.values()) > 1000, seen
    same(raw.call(NAME, bus.path, PROPERTIES, 'Get', '(ss)', BUS, 'Name'), (name,))
    raw.leave()
    same(own.stop(), 0)


suite.main()
