#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""OpenStream(): events of a subscription on a socket pair, in both formats and all three modes."""
import array
import fcntl
import json
import os
import socket
import termios
import threading

from harness import GLib, Server, Suite, complete, expect, resync, same, wait_until

suite = Suite()
UNKNOWN = 'org.freedesktop.DBus.Error.UnknownMethod'
MODES = ('stream', 'routed', 'broadcast')
RETRY = b'retry: 3000\n\n'


# --- Reading

class Reader(threading.Thread):
    """Reads an end to its end, beside what the test does."""

    def __init__(self, end):
        super().__init__(daemon=True)
        self.end = end
        self.bytes = b''
        self.error = None
        self.start()

    def run(self):
        pieces = []
        try:
            while piece := self.end.recv(65536):
                pieces.append(piece)
        except OSError as error:
            self.error = error
        self.bytes = b''.join(pieces)

    def finish(self):
        """What came until the end, which must be a clean one."""
        wait_until(lambda: not self.is_alive())
        if self.error is not None:
            raise self.error
        self.end.close()
        return self.bytes


def read_more(end, data):
    piece = end.recv(65536)
    assert piece, f'the end after {data[-200:]}'
    return data + piece


def lines_of(data):
    assert data == b'' or data.endswith(b'\n'), data[-100:]
    return data.split(b'\n')[:-1]


def frames_of(data):
    """(id line or None, event line, data line) of each frame; heartbeats are left out."""
    assert data.startswith(RETRY) and data.endswith(b'\n\n'), (data[:100], data[-100:])
    frames = []
    for text in data[len(RETRY):].split(b'\n\n')[:-1]:
        if text == b': heartbeat':
            continue
        parts = text.split(b'\n')
        assert len(parts) in (2, 3), text
        head = parts[0].removeprefix(b'id: ') if len(parts) == 3 else None
        frames.append((head, parts[-2].removeprefix(b'event: '), parts[-1].removeprefix(b'data: ')))
    return frames


def read_lines(end, count):
    """Reads @count lines of NDJSON, and no more."""
    data = b''
    while data.count(b'\n') < count:
        data = read_more(end, data)
    return lines_of(data)


def read_frames(end, count):
    """Reads `retry:` and @count frames, heartbeats among them."""
    data = b''
    while data.count(b'\n\n') < count + 1:
        data = read_more(end, data)
    return frames_of(data)


def short(lines):
    """As the cases write them: ids of real events, (type, data) of synthetic ones."""
    events = [json.loads(line) for line in lines]
    return [event['id'] if 'id' in event else (event['type'], event['data']) for event in events]


def waiting(end):
    count = array.array('i', [0])
    fcntl.ioctl(end, termios.FIONREAD, count)
    return count[0]


def is_gone(subscription):
    try:
        subscription.get('State')
    except Exception as error:  # pylint: disable=broad-except
        return 'UnknownMethod' in str(error) or 'UnknownObject' in str(error) or 'No such' in str(error)
    return False


def sink_of(bus, subscription):
    entries = bus.call('ListSubscriptions')[0]
    return [entry['sink'] for entry in entries if entry['number'] == subscription.number()]


# --- What comes

@suite.test
def live_events_in_every_mode_and_format(server, name):
    client = server.client()
    for mode in MODES:
        bus = client.bus(f'{name}-{mode}')
        ends = {form: bus.subscribe(mode=mode).open_stream(form) for form in ('ndjson', 'sse')}
        bus.publish('a.b', '{"x":1}', type='foo', principal='alice', client='me')
        bus.publish('a.b', '[2]')
        lines = read_lines(ends['ndjson'], 2)
        frames = read_frames(ends['sse'], 2)
        same([frame[2] for frame in frames], lines)
        same([frame[0] for frame in frames], [b'1', b'2'])
        same([frame[1] for frame in frames], [b'foo', b'message'])
        first = json.loads(lines[0])
        same((first['type'], first['data'], first['topic'], first['principal'], first['originatorClientId']),
             ('foo', {'x': 1}, 'a.b', 'alice', 'me'))
        same(first.get('seq'), 1 if mode == 'routed' else None)


@suite.test
def a_replay_comes_first(server, name):
    client = server.client()
    for mode in MODES:
        bus = client.bus(f'{name}-{mode}')
        bus.publish_many([('t', '1')] * 5)
        subscription = bus.subscribe(mode=mode, last_event_id=2)
        end = subscription.open_stream()
        bus.publish('t', '2')
        same(short(read_lines(end, 5)), [3, 4, 5, complete(3, 5), 6])


@suite.test
def what_is_missing_is_told(server, name):
    bus = server.client().bus(name, ring_size=3)
    bus.publish_many([('t', '1')] * 10)
    end = bus.subscribe(last_event_id=2).open_stream('sse')
    frames = read_frames(end, 5)
    same([frame[0] for frame in frames], [None, b'8', b'9', b'10', None])
    same(short([frames[0][2]]), [resync('ring_evicted', 2, 8)])


@suite.test
def routed_ids_are_to_resume_from(server, name):
    """decisions.md 32: what waits of another principal holds the id back."""
    bus = server.client().bus(name)
    subscription = bus.subscribe(mode='routed')
    for principal in ('a', 'a', 'b'):
        bus.publish('t', '1', principal=principal)
    events = [json.loads(line) for line in read_lines(subscription.open_stream(), 3)]
    same([event['seq'] for event in events], [1, 2, 3])
    same(events[-1]['id'], 3)
    assert all(event.get('id', 0) <= event['seq'] for event in events), events


@suite.test
def a_flood_is_byte_exact_in_both_formats(server, name):
    """10 000 events, and the end of the bus behind them."""
    client = server.client()
    for mode in MODES:
        # The reader has time: it is as slow as the machine is busy.
        bus = client.bus(f'{name}-{mode}', ring_size=20000, channel_capacity=20000, max_queued_bytes=2 ** 26)
        room = {'stream': {'max_queued': 20000}, 'routed': {'budget_bytes': 2 ** 26}, 'broadcast': {}}[mode]
        readers = {form: Reader(bus.subscribe(mode=mode, **room).open_stream(form)) for form in ('ndjson', 'sse')}
        for batch in range(10):
            bus.publish_many([('a.b', json.dumps({'n': batch * 1000 + i, 'text': 'ä' * (i % 50)}, ensure_ascii=False),
                               {'principal': f'p{i % 7}'}) for i in range(1000)])
        wait_until(lambda: bus.get('LastEventId') == 10000)
        bus.call('Close')
        lines = lines_of(readers['ndjson'].finish())
        frames = frames_of(readers['sse'].finish())
        numbers = [json.loads(line).get('seq', json.loads(line).get('id')) for line in lines]
        if mode == 'routed':
            # The order of two routed readers may differ, what they get may not.
            same(sorted(number for number in numbers if number), list(range(1, 10002)))
            same(sorted(frame[2].partition(b'"seq":')[2] for frame in frames),
                 sorted(line.partition(b'"seq":')[2] for line in lines))
        else:
            same([number for number in numbers if number], list(range(1, 10002)))
            same([frame[2] for frame in frames], lines)
        same(json.loads(lines[-1])['type'], 'session_closed')
        for head, kind, data in frames:
            event = json.loads(data)
            same((head, kind.decode()), (str(event['id']).encode() if 'id' in event else None, event['type']))


@suite.test
def sse_has_heartbeats_and_ndjson_none(server, name):
    client = server.client()
    bus = client.bus(name)
    client.test('SetStreamTimes', '(uuu)', 30, 60000, 5000)
    try:
        lines = bus.subscribe().open_stream('ndjson')
        frames = bus.subscribe().open_stream('sse')
        same(read_frames(frames, 2), [])
        bus.publish()
        same(short(read_lines(lines, 1)), [1])
    finally:
        client.test('SetStreamTimes', '(uuu)', 15000, 60000, 5000)


# --- Slow readers

@suite.test
def a_slow_reader_is_warned_and_cut_off_with_a_last_word(server, name):
    bus = server.client().bus(name)
    subscription = bus.subscribe(max_queued=100)
    end = subscription.open_stream()
    text = json.dumps('x' * 4000)
    bus.publish_many([('t', text)] * 1000)
    same(subscription.get('State'), 'evicted')
    assert 0 < waiting(end) <= 192 * 1024, waiting(end)
    events = [json.loads(line) for line in lines_of(Reader(end).finish())]
    kinds = [event['type'] for event in events if 'id' not in event]
    same(kinds, ['slow_client_warning', 'client_evicted'])
    same(events[-1]['type'], 'client_evicted')
    same(events[-1]['data']['reason'], 'queue_overflow')
    ids = [event['id'] for event in events if 'id' in event]
    same(ids, list(range(1, len(ids) + 1)))
    same(events[-1]['data']['lastDeliveredId'], ids[-1])
    wait_until(lambda: is_gone(subscription))


@suite.test
def one_that_never_reads_ends_between_frames(server, name):
    client = server.client()
    bus = client.bus(name)
    client.test('SetStreamTimes', '(uuu)', 15000, 60000, 200)
    try:
        for form in ('ndjson', 'sse'):
            subscription = bus.subscribe()
            end = subscription.open_stream(form)
            bus.publish_many([('t', json.dumps('x' * (i * 131 % 9000))) for i in range(1000)])
            wait_until(lambda subscription=subscription: is_gone(subscription))
            data = Reader(end).finish()
            assert data.endswith(b'}\n\n' if form == 'sse' else b'}\n'), data[-100:]
    finally:
        client.test('SetStreamTimes', '(uuu)', 15000, 60000, 5000)


@suite.test
def slow_routed_and_broadcast_readers_are_told_their_loss(server, name):
    client = server.client()
    for mode, reason in (('routed', 'budget'), ('broadcast', 'lagged')):
        bus = client.bus(f'{name}-{mode}')
        subscription = bus.subscribe(mode=mode)
        end = subscription.open_stream()
        bus.publish_many([('t', json.dumps('x' * 2000))] * 3000)
        same(subscription.get('State'), 'live')
        reader = Reader(end)
        bus.call('Close')
        events = [json.loads(line) for line in lines_of(reader.finish())]
        gaps = [event['data'] for event in events if event['type'] == 'gap']
        same({gap['reason'] for gap in gaps}, {reason})
        delivered = len([event for event in events if 'id' in event and event['type'] == 'message'])
        same(delivered + sum(gap['count'] for gap in gaps), 3000)


# --- A frame that is begun when the drain window is over

def descriptors(server):
    return set(os.listdir(f'/proc/{server.process.pid}/fd'))


def begin(bus, form='ndjson', size=300 * 1024, **options):
    """A stream of which 1 KiB is read, in the middle of a large event; a small one stands behind it."""
    subscription = bus.subscribe(**options)
    end = subscription.open_stream(form)
    bus.publish('t', json.dumps('x' * size))
    bus.publish('t', '"behind"')
    start = b''
    while len(start) < 1024:
        start += end.recv(1024 - len(start))
    assert b'"xxx' in start, start
    return subscription, end, start


def only_the_begun(form, data):
    """@data is the whole of that large event and nothing else."""
    texts = lines_of(data) if form == 'ndjson' else [frame[2] for frame in frames_of(data)]
    same([json.loads(text)['data'] for text in texts], ['x' * 300 * 1024])


def pass_window(client, lingering):
    """The windows of @lingering streams are over, and no others are there."""
    wait_until(lambda: client.test('LingeringCount')[0] == lingering)
    same(client.test('StreamCount'), (lingering,))


def with_window(client, milliseconds, func):
    wait_until(lambda: client.test('StreamCount')[0] == 0)
    client.test('SetStreamTimes', '(uuu)', 15000, 60000, milliseconds)
    try:
        func()
    finally:
        client.test('SetStreamTimes', '(uuu)', 15000, 60000, 5000)


@suite.test
def a_begun_frame_is_finished_after_close(server, name):
    client = server.client()
    before = []

    def check():
        for mode in MODES:
            for form in ('ndjson', 'sse'):
                bus = client.bus(f'{name}-{mode}-{form}')
                before.append(descriptors(server))
                subscription, end, start = begin(bus, form, mode=mode)
                subscription.call('Close')
                pass_window(client, 1)
                same(bus.get('SubscriberCount'), 0)
                only_the_begun(form, start + Reader(end).finish())
                wait_until(lambda: client.test('StreamCount')[0] == 0)
                same(descriptors(server), before.pop())
    with_window(client, 100, check)


@suite.test
def a_begun_frame_is_finished_after_an_eviction(server, name):
    client = server.client()

    def check():
        for form in ('ndjson', 'sse'):
            bus = client.bus(f'{name}-{form}')
            subscription, end, start = begin(bus, form, max_queued=10)
            bus.publish_many([('t', '1')] * 20)
            same(subscription.get('State'), 'evicted')
            pass_window(client, 1)
            # Its object is there for as long as it is.
            assert subscription.get('State') in ('evicted', 'ended'), subscription.get('State')
            only_the_begun(form, start + Reader(end).finish())
            wait_until(lambda subscription=subscription: is_gone(subscription))
    with_window(client, 100, check)


@suite.test
def a_begun_frame_goes_with_its_reader(server, name):
    client = server.client()

    def check():
        bus = client.bus(name)
        before = descriptors(server)
        subscription, end, _ = begin(bus)
        subscription.call('Close')
        pass_window(client, 1)
        end.close()
        wait_until(lambda: client.test('StreamCount')[0] == 0)
        same(descriptors(server), before)
    with_window(client, 100, check)


@suite.test
def a_begun_frame_goes_with_its_owner(server, name):
    """Closed before it leaves, evicted before, and within the window: whoever holds the descriptor."""
    client = server.client()

    def check():
        bus = client.bus(name)
        before = descriptors(server)
        owner = server.client()
        streams = [begin(bus.of(owner), max_queued=10) for _ in range(2)]
        streams[0][0].call('Close')
        bus.publish_many([('t', '1')] * 20)
        pass_window(client, 2)
        owner.leave()
        wait_until(lambda: client.test('StreamCount')[0] == 0)
        same(descriptors(server), before)

        owner = server.client()
        streams.append(begin(bus.of(owner)))
        owner.leave()
        wait_until(lambda: client.test('StreamCount')[0] == 0)
        same(descriptors(server), before)
        for _, end, start in streams:
            data = start + Reader(end).finish()
            assert b'behind' not in data, data[-100:]
    with_window(client, 100, check)


@suite.test
def begun_frames_are_charged_until_they_are_read(server, name):
    """decisions.md 6: nobody collects them by closing what he does not read."""
    client = server.client()

    def check():
        bus = client.bus(name, max_subscribers=1000)
        owned = [bus.subscribe() for _ in range(256)]
        ends = [subscription.open_stream() for subscription in owned]
        bus.publish('t', json.dumps('x' * 300 * 1024))
        for subscription in owned:
            subscription.call('Close')
        pass_window(client, 256)
        expect('QuotaExceeded', bus.subscribe, says=['256'])
        same([json.loads(line)['id'] for line in lines_of(Reader(ends[0]).finish())], [1])
        wait_until(lambda: client.test('StreamCount')[0] == 255)
        bus.subscribe().call('Close')
        for end in ends[1:]:
            end.close()
    with_window(client, 100, check)


# --- Its end

@suite.test
def the_reader_closes_its_end(server, name):
    client = server.client()
    bus = client.bus(name)
    subscription = bus.subscribe()
    end = subscription.open_stream()
    same(bus.get('SubscriberCount'), 1)
    end.close()
    wait_until(lambda: bus.get('SubscriberCount') == 0)
    wait_until(lambda: is_gone(subscription))
    expect(UNKNOWN, subscription.call, 'DrainLagged')


@suite.test
def close_writes_what_waits_and_ends(server, name):
    bus = server.client().bus(name)
    subscription = bus.subscribe()
    end = subscription.open_stream()
    bus.publish_many([('t', json.dumps('x' * 3000))] * 150)
    subscription.call('Close')
    same(bus.get('SubscriberCount'), 0)
    expect(UNKNOWN, subscription.call, 'DrainLagged')
    bus.publish()
    events = [json.loads(line) for line in lines_of(Reader(end).finish())]
    same([event['id'] for event in events if 'id' in event], list(range(1, 151)))


@suite.test
def a_closed_stream_is_charged_until_it_is_read(server, name):
    """decisions.md 6: 256 subscriptions a connection, those that still wait for their reader among them."""
    client = server.client()
    bus = client.bus(name, max_subscribers=1000)
    client.test('SetStreamTimes', '(uuu)', 15000, 60000, 3600000)
    try:
        ends = []
        for _ in range(256):
            subscription = bus.subscribe()
            ends.append(subscription.open_stream())
            bus.publish_many([('t', json.dumps('x' * 60000))] * 6)
            subscription.call('Close')
        expect('QuotaExceeded', bus.subscribe, says=['256'])
        for end in ends:
            end.close()
        wait_until(lambda: client.test('StreamCount')[0] == 0)
        bus.subscribe().call('Close')
    finally:
        client.test('SetStreamTimes', '(uuu)', 15000, 60000, 5000)


@suite.test
def the_owner_leaves(server, name):
    client = server.client()
    bus = client.bus(name)
    owner = server.client()
    end = bus.of(owner).subscribe().open_stream()
    bus.publish_many([('t', json.dumps('x' * 3000))] * 150)
    owner.leave()
    wait_until(lambda: bus.get('SubscriberCount') == 0)
    bus.publish()
    events = [json.loads(line) for line in lines_of(Reader(end).finish())]
    same([event['id'] for event in events if 'id' in event], list(range(1, 151)))


@suite.test
def the_bus_is_closed(server, name):
    bus = server.client().bus(name)
    subscription = bus.subscribe()
    reader = Reader(subscription.open_stream())
    bus.publish()
    bus.call('Close')
    events = [json.loads(line) for line in lines_of(reader.finish())]
    same([event['type'] for event in events], ['message', 'session_closed'])
    wait_until(lambda: is_gone(subscription))


@suite.test
def an_ended_subscription_is_read_out(server, name):
    bus = server.client().bus(name)
    subscription = bus.subscribe()
    read_out = bus.subscribe()
    bus.publish()
    bus.call('Close')
    read_out.receive()
    events = [json.loads(line) for line in lines_of(Reader(subscription.open_stream()).finish())]
    same([event['type'] for event in events], ['message', 'session_closed'])
    expect('Closed', read_out.open_stream, says=['read out'])
    expect(UNKNOWN, read_out.open_stream)


# --- One reader

@suite.test
def one_reader_at_a_time(server, name):
    client = server.client()
    bus = client.bus(name)
    subscription = bus.subscribe()
    pending = subscription.start_receive()
    expect('Busy', subscription.open_stream, says=[str(subscription.number())])
    bus.publish()
    same(len(pending.wait()[0]), 1)
    end = subscription.open_stream()
    expect('Busy', subscription.open_stream, says=[str(subscription.number())])
    expect('Busy', subscription.receive)
    expect('Busy', subscription.drain, 1000)
    bus.publish()
    same(short(read_lines(end, 1)), [2])
    same(subscription.call('DrainLagged'), (0,))
    same(sink_of(bus, subscription), ['stream'])
    end.close()


@suite.test
def what_is_refused_changes_nothing(server, name):
    client = server.client()
    bus = client.bus(name)
    subscription = bus.subscribe()
    expect('InvalidOption', subscription.open_stream, 'xml', says=['format "xml" is not known, it takes: sse, ndjson'])
    expect('InvalidOption', subscription.open_stream, '', says=['""', 'sse', 'ndjson'])
    expect('InvalidOption', subscription.open_stream, 'x\n' * 1000, says=['x\\n', 'sse'])
    expect('InvalidOption', subscription.open_stream, 'sse', {'colour': GLib.Variant('s', 'red')}, says=['colour'])
    expect('NotOwner', subscription.of(server.client()).open_stream)
    bus.publish()
    same(len(subscription.receive()), 1)
    same(sink_of(bus, subscription), ['dbus'])


@suite.test
def a_service_that_stops_opens_none(server, name):
    own = Server()
    client = own.client()
    bus = client.bus(name)
    subscription = bus.subscribe()
    reader = Reader(bus.subscribe().open_stream())
    bus.publish()
    client.test('ShutDown')
    expect('Unavailable', subscription.open_stream)
    client.test('ShutDownTable')
    same(len(lines_of(reader.finish())), 1)
    same(client.test('StreamCount'), (0,))
    same(own.stop(), 0)


# --- The socket

@suite.test
def what_the_reader_writes_is_ignored(server, name):
    bus = server.client().bus(name)
    subscription = bus.subscribe()
    end = subscription.open_stream()
    end.setblocking(False)
    for _ in range(20):
        try:
            end.send(b'x' * 65536)
        except BlockingIOError:
            break
    end.settimeout(60)
    bus.publish()
    same(short(read_lines(end, 1)), [1])
    subscription.call('Close')
    same(end.recv(100), b'')


@suite.test
def a_reader_may_close_its_side_to_write(server, name):
    bus = server.client().bus(name)
    end = bus.subscribe().open_stream()
    end.shutdown(socket.SHUT_WR)
    bus.publish()
    same(short(read_lines(end, 1)), [1])
    same(bus.get('SubscriberCount'), 1)


@suite.test
def descriptors_are_close_on_exec_and_none_is_left(server, name):
    client = server.client()
    bus = client.bus(name)
    folder = f'/proc/{server.process.pid}/fd'
    wait_until(lambda: client.test('StreamCount')[0] == 0)
    before = set(os.listdir(folder))
    subscription = bus.subscribe()
    end = subscription.open_stream()
    same(fcntl.fcntl(end, fcntl.F_GETFD) & fcntl.FD_CLOEXEC, fcntl.FD_CLOEXEC)
    bus.publish()
    read_lines(end, 1)

    # The reader's end goes as soon as the message bus has it.
    wait_until(lambda: len(set(os.listdir(folder)) - before) == 1)
    number = (set(os.listdir(folder)) - before).pop()
    with open(f'/proc/{server.process.pid}/fdinfo/{number}', encoding='utf-8') as file:
        flags = [line.split()[1] for line in file if line.startswith('flags:')][0]
    assert int(flags, 8) & os.O_CLOEXEC, flags
    end.close()
    wait_until(lambda: set(os.listdir(folder)) == before)


@suite.test
def metrics_count_it(server, name):
    client = server.client()
    bus = client.bus(name)

    def metric(wanted, **labels):
        values = [value for metric_name, own, value in client.manager('ListMetrics')[0] if (metric_name, own) == (wanted, labels)]
        assert len(values) == 1, (wanted, labels, values)
        return values[0]

    opened = metric('headway_sse_opened_total')
    wait_until(lambda: client.test('StreamCount')[0] == 0)
    same(metric('headway_connections', transport='stream'), 0)
    end = bus.subscribe().open_stream()
    bus.publish()
    read_lines(end, 1)
    same(metric('headway_connections', transport='stream'), 1)
    same(metric('headway_sse_opened_total'), opened + 1)
    assert metric('headway_events_delivered_total', subscriber='stream') >= 1
    end.close()
    wait_until(lambda: metric('headway_connections', transport='stream') == 0)


if __name__ == '__main__':
    suite.main()
