#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""StartSignals, Acknowledge, StopSignals: the window, its bytes, who gets signals, the three modes, the end."""
import json

from harness import (BUS, NAME, SUBSCRIPTION, Gio, GLib, Server, Suite, complete, evict, expect, ids, same, settle,
                     short, wait_until, warn)
from raw import MIB, Raw, memory

suite = Suite('--linger-ms=1000')
UNKNOWN = 'org.freedesktop.DBus.Error.UnknownMethod'
ROUTE = (4096, 16384, 65536, 10000)  # quantum, events of a principal, events, principals
WINDOW_BYTES = 256 * 1024


class Reader:
    """Gets the signals of a subscription, without a match rule."""

    def __init__(self, subscription, window=None):
        self.subscription = subscription
        self.sequences = []
        self.events = []
        subscription.client.connection.signal_subscribe(NAME, SUBSCRIPTION, 'Event', subscription.path, None,
                                                        Gio.DBusSignalFlags.NO_MATCH_RULE, self.on_event)
        if window is not None:
            self.start(window)

    def on_event(self, _connection, _sender, _path, _interface, _signal, parameters):
        sequence, event = parameters.unpack()
        self.sequences.append(sequence)
        self.events.append(event)

    def start(self, window):
        self.subscription.call('StartSignals', '(u)', window)

    def stop(self):
        self.subscription.call('StopSignals')

    def acknowledge(self, sequence):
        self.subscription.call('Acknowledge', '(t)', sequence)

    def wait(self, count):
        wait_until(lambda: len(self.events) >= count)

    def exactly(self, count):
        """So many have come, and no more do."""
        self.wait(count)
        settle()
        same(self.sequences, list(range(1, count + 1)))

    def read_out(self, count):
        """Acknowledges what has come until so many have come."""
        while len(self.events) < count:
            acknowledged = len(self.events)
            self.acknowledge(acknowledged)
            self.wait(acknowledged + 1)
        self.exactly(count)


def sized(bus, size):
    """Publishes an event whose envelope has about so many bytes, a few less."""
    return bus.publish(data='"' + 'x' * (size - 400) + '"')


# --- The window

@suite.test
def so_many_are_unacknowledged_and_no_more(server, name):
    bus = server.client().bus(name)
    reader = Reader(bus.subscribe(), 3)
    for _ in range(5):
        bus.publish()
    reader.exactly(3)
    same(reader.subscription.get('Queued'), 2)
    reader.acknowledge(1)
    reader.exactly(4)
    same(reader.subscription.get('Queued'), 1)
    # Again, and older, is harmless.
    for sequence in (1, 0, 1):
        reader.acknowledge(sequence)
    reader.exactly(4)
    reader.acknowledge(4)
    reader.exactly(5)
    same(ids(reader.events), [1, 2, 3, 4, 5])
    same((reader.subscription.get('Queued'), reader.subscription.get('Dropped')), (0, 0))


@suite.test
def a_window_is_1_to_1024(server, name):
    bus = server.client().bus(name)
    reader = Reader(bus.subscribe(max_queued=4096))
    for window in (0, 1025, 2 ** 32 - 1):
        expect('InvalidOption', reader.start, window, says=(f'window is {window}', '1 to 1024'))
    same(reader.subscription.receive(), [])
    bus.publish_many([('a', '1')] * 1500)
    reader.start(1024)
    reader.exactly(1024)
    reader.stop()
    other = Reader(bus.subscribe(), 1)
    bus.publish()
    other.exactly(1)
    same(other.subscription.get('Queued'), 0)
    bus.publish()
    same(other.subscription.get('Queued'), 1)


@suite.test
def so_many_bytes_are_unacknowledged_but_at_least_one_event(server, name):
    for mode in ('stream', 'routed', 'broadcast'):
        bus = server.client().bus(f'{name}{mode}')
        reader = Reader(bus.subscribe(mode=mode), 1024)
        for _ in range(3):
            sized(bus, WINDOW_BYTES // 2)
        reader.exactly(2)
        same(reader.subscription.get('Queued'), 1)
        # Small ones do not overtake it.
        bus.publish()
        reader.acknowledge(1)
        reader.exactly(4)
        # Larger than all of the window: alone.
        sized(bus, 2 * WINDOW_BYTES)
        bus.publish()
        settle()
        reader.acknowledge(3)
        reader.exactly(4)
        reader.acknowledge(4)
        reader.exactly(5)
        reader.acknowledge(5)
        reader.exactly(6)
        same(ids(reader.events), [1, 2, 3, 4, 5, 6])


@suite.test
def bytes_count_events_that_waited_as_well(server, name):
    for mode in ('stream', 'routed', 'broadcast'):
        bus = server.client().bus(f'{name}{mode}')
        reader = Reader(bus.subscribe(mode=mode, last_event_id=0), 100)
        reader.read_out(1)
        reader.stop()
        for _ in range(5):
            sized(bus, WINDOW_BYTES // 2)
        reader.start(100)
        reader.exactly(3)
        # A replay too.
        replay = Reader(bus.subscribe(mode=mode, last_event_id=0), 100)
        replay.exactly(2)
        replay.read_out(6)
        same(short(replay.events), [1, 2, 3, 4, 5, complete(5, 5)])
        reader.read_out(6)


@suite.test
def acknowledging_beyond_the_last_is_refused(server, name):
    bus = server.client().bus(name)
    reader = Reader(bus.subscribe())
    reader.acknowledge(0)
    expect('InvalidOption', reader.acknowledge, 1, says=('sequence is 1', 'is 0'))
    reader.start(2)
    for _ in range(3):
        bus.publish()
    reader.exactly(2)
    expect('InvalidOption', reader.acknowledge, 3, says=('sequence is 3', 'is 2'))
    expect('InvalidOption', reader.acknowledge, 2 ** 64 - 1, says=(str(2 ** 64 - 1), 'is 2'))
    reader.exactly(2)
    reader.acknowledge(2)
    reader.exactly(3)


# --- Start, stop, busy

@suite.test
def the_count_goes_on_over_stop_and_start(server, name):
    bus = server.client().bus(name)
    reader = Reader(bus.subscribe())
    reader.stop()
    reader.start(2)
    for _ in range(4):
        bus.publish()
    reader.exactly(2)
    reader.stop()
    reader.stop()
    # Unacknowledged ones count as delivered: the next reader goes on behind them.
    reader.acknowledge(2)
    expect('InvalidOption', reader.acknowledge, 3, says='is 2')
    same(ids(reader.subscription.receive(1)), [3])
    reader.start(5)
    bus.publish()
    reader.exactly(4)
    same(ids(reader.events), [1, 2, 4, 5])
    reader.acknowledge(3)


@suite.test
def one_reader_at_a_time(server, name):
    bus = server.client().bus(name)
    reader = Reader(bus.subscribe())
    pending = reader.subscription.start_receive()
    expect('Busy', reader.start, 5, says=str(reader.subscription.number()))
    bus.publish()
    same(ids(pending.wait()[0]), [1])
    reader.start(5)
    expect('Busy', reader.start, 5)
    expect('Busy', reader.subscription.receive, says=str(reader.subscription.number()))
    expect('Busy', reader.subscription.drain, 100)
    expect('Busy', reader.subscription.drain, 0)
    bus.publish()
    reader.exactly(1)
    reader.stop()
    same(reader.subscription.receive(), [])


# --- Who gets them

@suite.test
def signals_go_to_the_owner_alone(server, name):
    client, other = server.client(), server.client()
    bus = client.bus(name)
    reader = Reader(bus.subscribe(), 10)
    seen = []
    for rule in ("type='signal'", f"type='signal',interface='{SUBSCRIPTION}',member='Event',path='{reader.subscription.path}'"):
        other.connection.call_sync('org.freedesktop.DBus', '/org/freedesktop/DBus', 'org.freedesktop.DBus', 'AddMatch',
                                   GLib.Variant('(s)', (rule,)), None, Gio.DBusCallFlags.NONE, -1, None)
    other.connection.signal_subscribe(None, SUBSCRIPTION, None, None, None, Gio.DBusSignalFlags.NO_MATCH_RULE,
                                      lambda *signal: seen.append(signal))
    for _ in range(3):
        bus.publish()
    reader.exactly(3)
    other.bus(name + 'behind')
    same(seen, [])


@suite.test
def others_may_not(server, name):
    client, other = server.client(), server.client()
    reader = Reader(client.bus(name).subscribe(), 10)
    stranger = Reader(reader.subscription.of(other))
    expect('NotOwner', stranger.start, 1)
    expect('NotOwner', stranger.stop)
    expect('NotOwner', stranger.acknowledge, 0)


@suite.test
def an_owner_that_leaves_takes_it_along(server, name):
    client, other = server.client(), server.client()
    bus = other.bus(name)
    reader = Reader(bus.of(client).subscribe(), 1)
    for _ in range(3):
        bus.publish()
    reader.wait(1)
    client.leave()
    wait_until(lambda: bus.get('SubscriberCount') == 0)
    bus.publish()


# --- Modes

@suite.test
def a_routed_loss_is_told_in_its_place(server, name):
    client = server.client()
    client.test('SetRoute', '(uuuu)', 4096, 2, 65536, 10000)
    bus = client.bus(name)
    reader = Reader(bus.subscribe(mode='routed'), 1)
    client.test('SetRoute', '(uuuu)', *ROUTE)
    for principal in ('alice', 'alice', 'alice', 'alice', 'bob'):
        bus.publish('t', '1', principal=principal)
    reader.read_out(5)
    # Of alice's three that waited the oldest, 2, had to go.
    seen = short(reader.events)
    same(seen[0], 1)
    same(seen[1], ('gap', {'reason': 'count_cap', 'count': 1, 'bytes': 2, 'firstId': 2, 'lastId': 2, 'principal': 'alice'}))
    same(sorted(seen[2:]), [3, 4, 5])
    assert seen.index(3) < seen.index(4), seen
    same([event[6].get('resume-id', 0) > 0 for event in reader.events], [event[0] > 0 for event in reader.events])
    same(reader.events[0][1:4], ('t', 'message', 'alice'))


@suite.test
def a_broadcast_reader_skips_ahead(server, name):
    bus = server.client().bus(name, channel_capacity=4)
    reader = Reader(bus.subscribe(mode='broadcast'), 2)
    for _ in range(10):
        bus.publish()
    reader.exactly(2)
    reader.read_out(7)
    same(short(reader.events), [1, 2, ('gap', {'reason': 'lagged', 'count': 4, 'bytes': 0, 'firstId': 3, 'lastId': 6}), 7, 8, 9, 10])
    same(reader.subscription.call('DrainLagged')[0], 4)


# --- The end

@suite.test
def who_never_acknowledges_is_evicted_alone(server, name):
    bus = server.client().bus(name)
    dead, alive, late = Reader(bus.subscribe(max_queued=8), 1), Reader(bus.subscribe(max_queued=8), 1), bus.subscribe(max_queued=50)
    for number in range(1, 20):
        bus.publish('foo', '1', type='foo', meta='{"serverTimestamp":1}', principal='')
        alive.wait(number)
        alive.acknowledge(number)
    alive.exactly(19)
    same(ids(late.receive()), list(range(1, 20)))
    same((dead.subscription.get('State'), dead.subscription.get('Queued')), ('evicted', 8))
    # The warning and the last word wait for whoever acknowledges after all.
    dead.exactly(1)
    dead.read_out(11)
    seen = short(dead.events)
    same(seen[:8], [1, 2, 3, 4, 5, 6, 7, warn(6, 8, 7, 396)])
    same(seen[8:10], [8, 9])
    same(seen[10], evict('queue_overflow', 10, 8, 8, 528, 9))
    # With its last word acknowledged it goes.
    dead.acknowledge(11)
    expect(UNKNOWN, dead.subscription.receive)


@suite.test
def an_ended_one_that_nobody_acknowledges_goes(server, name):
    bus = server.client().bus(name)
    reader = Reader(bus.subscribe(max_queued=2), 1)
    for _ in range(5):
        bus.publish()
    same(reader.subscription.get('State'), 'evicted')
    seen = []

    def is_gone():
        pending = reader.subscription.start('DrainLagged')
        wait_until(lambda: pending.is_done)
        seen.append(pending.error)
        return pending.error is not None
    wait_until(is_gone)
    same(seen[-1].name, UNKNOWN)
    reader.exactly(1)


@suite.test
def a_closed_bus_says_its_last_word_within_the_window(server, name):
    bus = server.client().bus(name)
    reader = Reader(bus.subscribe(), 2)
    for _ in range(3):
        bus.publish()
    bus.call('Close')
    reader.exactly(2)
    same(reader.subscription.get('State'), 'ended')
    reader.acknowledge(2)
    reader.exactly(4)
    same(reader.events[3][2], 'session_closed')
    same(json.loads(reader.events[3][5])['reason'], 'closed')
    # Not yet acknowledged: it is still there.
    same(reader.subscription.get('Queued'), 0)
    reader.acknowledge(4)
    expect(UNKNOWN, reader.subscription.call, 'DrainLagged')


@suite.test
def signals_of_an_ended_one_may_begin_late(server, name):
    client = server.client()
    bus = client.bus(name)
    full, empty = Reader(bus.subscribe()), Reader(bus.subscribe())
    bus.publish()
    same(ids(empty.subscription.receive()), [1])
    client.test('CloseBus', '(s)', name)
    expect('Closed', empty.start, 1, says='read out')
    expect(UNKNOWN, empty.start, 1)
    full.start(1)
    full.exactly(1)
    full.stop()
    expect('Closed', full.subscription.receive)


@suite.test
def a_stopping_service_begins_no_signals(server, name):
    own = Server()
    client = own.client()
    bus = client.bus(name)
    reader, other = Reader(bus.subscribe(), 1), Reader(bus.subscribe())
    for _ in range(2):
        bus.publish()
    client.test('ShutDown')
    expect('Unavailable', other.start, 1, says='stopping')
    reader.read_out(2)
    same(own.stop(), 0)


# --- The meter

@suite.test
def acknowledging_unread_signals_fills_nothing(server, name):
    own = Server(is_stock=True)
    bus = own.client().bus(name, ring_max_bytes=4000000)
    dead = Raw(own)
    path = dead.call(NAME, bus.path, BUS, 'Subscribe', '(asa{sv})', [], {'mode': GLib.Variant('s', 'broadcast')})[0]
    dead.send(NAME, path, SUBSCRIPTION, 'StartSignals', '(u)', 1024)
    before = memory(own.daemon, 'VmRSS')
    for number in range(1, 101):
        bus.publish(data='"' + 'x' * 1000000 + '"')
        # It has not read that, but knows what to say.
        dead.send(NAME, path, SUBSCRIPTION, 'Acknowledge', '(t)', number)
    grown = memory(own.daemon, 'VmRSS') - before
    assert grown < 32 * MIB, grown
    listed = bus.call('ListSubscriptions')[0][0]
    assert listed['lag'] > 50, listed
    dead.leave()
    same(own.stop(), 0)


suite.main()
