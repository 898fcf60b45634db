#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""OpenPublisher: lines of NDJSON on a socket, answered one by one."""
import json
import os
import socket
import subprocess
import sys
import threading

from handlers import Handler, verdict
from harness import BUS, DEADLINE, NAME, Gio, GLib, Server, Suite, expect, ids, refused_from, same, settle, variants, wait_until

suite = Suite()
MIB = 1024 * 1024
EVENT_MAX = MIB
LINE_MAX = EVENT_MAX + 64 * 1024
ANSWERS_MAX = 64 * 1024
SOCKET_MAX = 1024 * 1024  # more than both directions of a socket pair hold


class Publisher:
    """A publisher as its client sees it: a socket with a deadline."""

    def __init__(self, bus, format='ndjson', **options):
        self.bus = bus  # its connection must not go before
        options = {key: GLib.Variant('s', value) if isinstance(value, str) else value for key, value in options.items()}
        try:
            reply, fds = bus.client.connection.call_with_unix_fd_list_sync(
                NAME, bus.path, BUS, 'OpenPublisher', GLib.Variant('(sa{sv})', (format, variants(options))), None,
                Gio.DBusCallFlags.NONE, DEADLINE * 1000, None, None)
        except GLib.Error as error:
            raise refused_from(error) from None
        self.socket = socket.socket(fileno=fds.get(reply.unpack()[0]))
        self.socket.settimeout(DEADLINE)
        self.file = self.socket.makefile('rb')

    def send(self, *lines):
        """Objects and, as they are, bytes."""
        self.socket.sendall(b''.join(line if isinstance(line, bytes) else json.dumps(line).encode() + b'\n' for line in lines))

    def answer(self):
        line = self.file.readline()
        return json.loads(line) if line else None

    def answers(self, count):
        return [self.answer() for _ in range(count)]

    def finish(self):
        """Writes no more, reads what is left."""
        self.socket.shutdown(socket.SHUT_WR)
        return [json.loads(line) for line in self.file]

    def refusal(self, *lines, at=1):
        """Of the one bad line among them: its code."""
        self.send(*lines)
        answer = self.answer()
        assert sorted(answer)[0] == 'code' and answer['error'] and answer['line'] == at, answer
        return answer['code']

    def close(self):
        self.file.close()
        self.socket.close()


def event(topic='a.b', data=1, **more):
    return {'topic': topic, 'data': data, **more}


def ok(first, count=1):
    return [{'id': id} for id in range(first, first + count)]


def published(bus):
    return bus.fetch()


def rates(server, bytes_per_second=0, events_per_second=0):
    server.client().test('SetRates', '(tt)', bytes_per_second, events_per_second)


# -- Lines -----------------------------------------------------------------------------------------

@suite.test
def a_line_is_an_event(server, name):
    bus = server.client().bus(name)
    publisher = Publisher(bus)
    publisher.send({'topic': 'a.b', 'type': 't', 'data': {'x': [1, 2.50]}, 'principal': 'p', 'originatorClientId': 'c',
                    'final': True, '_meta': {'k': 1, 'serverTimestamp': 5}})
    same(publisher.answer(), {'id': 1})
    publisher.send({'type': 'only', 'data': None}, event('a', principal=None))
    same(publisher.answers(2), ok(2, 2))
    first, second, third = published(bus)
    same(first[:4], (1, 'a.b', 't', 'p'))
    same((first[5], first[6]), ('{"x": [1, 2.5]}', {'client': 'c', 'meta': '{"k": 1, "serverTimestamp": 5}'}))
    same(second[:4], (2, 'only', 'only', f'uid:{os.getuid()}'))
    same(third[:4], (3, 'a', 'message', ''))


@suite.test
def many_lines_are_answered_in_order(server, name):
    bus = server.client().bus(name, ring_size=8000)
    publisher = Publisher(bus)
    count = 100000
    lines = b''.join(b'{"topic":"a.b","data":%d}\n' % i for i in range(count))
    writer = threading.Thread(target=publisher.send, args=(lines,))
    writer.start()
    expected = 0
    for line in publisher.file:
        expected += 1
        assert line == b'{"id":%d}\n' % expected, (line, expected)
        if expected == count:
            break
    writer.join()
    same(bus.get('LastEventId'), count)
    same([event[5] for event in bus.fetch(count - 3)], [str(i) for i in range(count - 3, count)])


@suite.test
def blank_lines_count_and_have_no_answer(server, name):
    publisher = Publisher(server.client().bus(name))
    publisher.send(b'\n  \n\t\r\n', event(), b'\r\n', b'oops\n')
    same(publisher.answer(), {'id': 1})
    same(publisher.answer()['line'], 6)


@suite.test
def crlf_and_a_last_line_without_an_end(server, name):
    bus = server.client().bus(name)
    publisher = Publisher(bus)
    publisher.send(b'{"topic":"a","data":1}\r\n{"topic":"a","data":2}')
    same(publisher.finish(), ok(1, 2))
    same([event[5] for event in published(bus)], ['1', '2'])


@suite.test
def half_a_line_at_the_end_is_refused(server, name):
    bus = server.client().bus(name)
    publisher = Publisher(bus)
    publisher.send(event(), b'{"topic":"a","da')
    good, bad = publisher.finish()
    same((good, bad['code'], bad['line'], bad['position']), ({'id': 1}, 'invalid_json', 2, 16))
    same(len(published(bus)), 1)


@suite.test
def a_line_may_come_in_pieces(server, name):
    publisher = Publisher(server.client().bus(name))
    text = json.dumps(event(data='x' * 200000)).encode() + b'\n'
    for at in range(0, len(text), 30011):
        publisher.send(text[at:at + 30011])
    same(publisher.answer(), {'id': 1})


# -- Refusals --------------------------------------------------------------------------------------

@suite.test
def a_bad_line_does_not_end_the_stream(server, name):
    bus = server.client().bus(name)
    publisher = Publisher(bus)
    bad = (
        (b'{"topic":"a","data":01}\n', 'invalid_json'),
        (b'[1]\n', 'invalid_request'),
        ({'topic': 'a'}, 'invalid_request'),
        ({'data': 1}, 'invalid_request'),
        (event(more=1), 'invalid_request'),
        (event(topic=7), 'invalid_request'),
        (event('a..b'), 'invalid_topic'),
        (event('headway.x'), 'invalid_topic'),
        (event(type='gap'), 'invalid_type'),
        (event(type='session_closed'), 'invalid_type'),
        (event(type=''), 'invalid_type'),
        (event(principal='p p'), 'invalid_principal'),
        (event(originatorClientId='c/c'), 'invalid_option'),
        (event(_meta=1), 'invalid_request'),
        (event(data='x' * EVENT_MAX), 'too_large'),
        (b'{"topic":"a","data":' + b'[' * 129 + b']' * 129 + b'}\n', 'invalid_json'),
    )
    for number, (line, code) in enumerate(bad):
        same(publisher.refusal(line, at=2 * number + 1), code)
        publisher.send(event())
        same(publisher.answer(), {'id': number + 1})
    same(bus.get('LastEventId'), len(bad))


@suite.test
def refusals_stand_among_the_answers(server, name):
    bus = server.client().bus(name)
    publisher = Publisher(bus)
    lines = [event() if i % 3 else event('..') for i in range(3000)]
    writer = threading.Thread(target=publisher.send, args=lines)
    writer.start()
    answers = publisher.answers(len(lines))
    writer.join()
    same([answer['id'] for answer in answers if 'id' in answer], list(range(1, 2001)))
    same([answer['line'] for answer in answers if 'line' in answer], list(range(1, 3001, 3)))
    same(['line' in answer for answer in answers], [i % 3 == 0 for i in range(3000)])


@suite.test
def the_longest_line(server, name):
    bus = server.client().bus(name)
    publisher = Publisher(bus)
    fits = json.dumps(event('a', data='')).encode()
    fits += b' ' * (LINE_MAX - len(fits)) + b'\n'
    publisher.send(fits)
    same(publisher.answer(), {'id': 1})
    same(publisher.refusal(b' ' + fits, at=2), 'too_large')
    publisher.send(event())
    same(publisher.answer(), {'id': 2})


@suite.test
def a_line_without_end_is_skipped(server, name):
    bus = server.client().bus(name)
    publisher = Publisher(bus)
    before = resident(server)
    publisher.send(event(), b'{"topic":"a","data":"' + b'x' * LINE_MAX)
    same(publisher.answer(), {'id': 1})
    # Before its end is there.
    answer = publisher.answer()
    same((answer['code'], answer['line'], answer['limit']), ('too_large', 2, LINE_MAX))
    for _ in range(64):
        publisher.send(b'y' * MIB)
    publisher.send(b'"}\n', event())
    same(publisher.answer(), {'id': 2})
    assert resident(server) - before < 16 * MIB, (before, resident(server))


@suite.test
def open_checks_its_arguments(server, name):
    bus = server.client().bus(name)
    expect('InvalidOption', Publisher, bus, 'sse', says=['"sse"', 'ndjson'])
    expect('InvalidOption', Publisher, bus, bogus='x', says=['"bogus"', 'principal, client, on-limit, on-error'])
    expect('InvalidOption', Publisher, bus, on_limit='drop', says=['on-limit', '"drop"', 'wait, refuse'])
    expect('InvalidOption', Publisher, bus, on_error='die', says=['on-error', '"die"', 'continue, stop'])
    expect('InvalidOption', Publisher, bus, client='a/b', says='client')
    expect('InvalidOption', Publisher, bus, client='', says='client')
    expect('InvalidOption', Publisher, bus, client=GLib.Variant('u', 1), says='client')
    expect('InvalidPrincipal', Publisher, bus, principal='p p', says='p p')
    # None of them is left behind.
    for publisher in [Publisher(bus) for _ in range(64)]:
        publisher.close()


@suite.test
def a_refused_line_can_end_it(server, name):
    bus = server.client().bus(name)
    for bad, code in ((event('a..b'), 'invalid_topic'), (b'{"topic":"a","data":1,}\n', 'invalid_json'), (b'x' * LINE_MAX + b'y\n', 'too_large')):
        before = len(published(bus))
        publisher = Publisher(bus, on_error='stop')
        publisher.send(event(), event())
        same(publisher.answers(2), ok(before + 1, 2))
        try:
            publisher.send(event(), bad, *[event()] * 1000)
        except OSError:
            pass  # it has closed already
        same(publisher.answer(), {'id': before + 3})
        answer = publisher.answer()
        same((answer['code'], answer['line']), (code, 4))
        same(publisher.answer(), None)
        same(len(published(bus)), before + 3)


@suite.test
def a_line_over_the_rates_ends_it_too(server, name):
    """Once the lines before it, which wait for the rates, are published."""
    rates(server, bytes_per_second=2000)
    bus = server.client().bus(name)
    publisher = Publisher(bus, on_error='stop')
    publisher.send(event(data='x' * 1500), event(data='y' * 1000), event('a..b'), event())
    same(publisher.answers(2), ok(1, 2))
    same(publisher.answer()['line'], 3)
    same(publisher.answer(), None)
    publisher = Publisher(bus, on_error='stop')
    publisher.send(event(data='x' * 5000), event())
    same(publisher.answer()['code'], 'quota_exceeded')
    same(publisher.answer(), None)
    same(len(published(bus)), 2)
    rates(server)


@suite.test
def options_are_defaults(server, name):
    bus = server.client().bus(name)
    publisher = Publisher(bus, principal='agent.1', client='c1')
    publisher.send(event(), event(principal='other', originatorClientId='c2'), event(principal=None))
    same(publisher.answers(3), ok(1, 3))
    same([(event[3], event[6]['client']) for event in published(bus)], [('agent.1', 'c1'), ('other', 'c2'), ('', 'c1')])
    publisher = Publisher(bus, principal='')
    publisher.send(event())
    publisher.answer()
    same(published(bus)[3][3], '')


STRANGER = '''
import importlib.util, os, sys
sys.path.insert(0, os.path.dirname(sys.argv[1]))
address, path = sys.argv[2:4]
if os.getuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
spec = importlib.util.spec_from_file_location('publisher', sys.argv[1])
publisher = importlib.util.module_from_spec(spec)
spec.loader.exec_module(publisher)
from harness import *
class At:
    pass
at = At()
at.address = address
bus = Bus(Client(at), path)
own = f'uid:{os.getuid()}'
expect('NotAuthorized', publisher.Publisher, bus, principal='p', says=['"p"', str(os.getuid())])
expect('NotAuthorized', publisher.Publisher, bus, principal='')
found = publisher.Publisher(bus, principal=own)
same(found.refusal(publisher.event(principal='p')), 'not_authorized')
same(found.refusal(publisher.event(principal=None), at=2), 'not_authorized')
found.send(publisher.event(), publisher.event(principal=own))
same(found.answers(2), publisher.ok(1, 2))
same([event[3] for event in bus.fetch()], [own] * 2)
'''


@suite.test
def a_stranger_is_only_himself(server, name):
    system = Server('--system')
    bus = system.client().bus(name)
    done = subprocess.run([sys.executable, '-B', '-c', STRANGER, os.path.abspath(__file__), system.address, bus.path],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    same(system.stop(), 0)


@suite.test
def a_connection_has_so_many(server, name):
    client = server.client()
    bus = client.bus(name)
    publishers = [Publisher(bus) for _ in range(64)]
    expect('QuotaExceeded', Publisher, bus, says=['64 publishers'])
    Publisher(bus.of(server.client())).close()
    publishers.pop().finish()
    # The end is seen once its place is free.
    publishers.append(Publisher(bus))
    expect('QuotaExceeded', Publisher, bus)


# -- Rates -----------------------------------------------------------------------------------------

@suite.test
def over_the_rate_it_waits(server, name):
    bus = server.client().bus(name)
    publisher = Publisher(bus)
    rates(server, events_per_second=200)
    try:
        began = GLib.get_monotonic_time()
        publisher.send(*[event()] * 300)
        same(publisher.answers(300), ok(1, 300))
        took = (GLib.get_monotonic_time() - began) / 1e6
        # 200 at once, the others take half a second.
        assert took > 0.45, took
        publisher.send(*[event(principal='other')] * 200)
        same(publisher.answers(200), ok(301, 200))
    finally:
        rates(server)


@suite.test
def over_the_rate_it_refuses(server, name):
    bus = server.client().bus(name)
    publisher = Publisher(bus, on_limit='refuse')
    rates(server, events_per_second=40)
    try:
        publisher.send(*[event()] * 200)
        answers = publisher.answers(200)
        good = [answer for answer in answers if 'id' in answer]
        bad = [answer for answer in answers if 'id' not in answer]
        # What fits is published, whatever stands beside it.
        assert 40 <= len(good) < 200, len(good)
        same(good, ok(1, len(good)))
        same(answers[:40], good[:40])
        same({answer['code'] for answer in bad}, {'rate_limited'})
        assert all(1 <= answer['retryAfterMs'] <= 1000 and answer['limit'] == 40 for answer in bad), bad[0]
        same([answers[answer['line'] - 1] for answer in bad], bad)
        # Others are not touched.
        publisher.send(event(principal='other'))
        same(publisher.answer(), {'id': len(good) + 1})
    finally:
        rates(server)


@suite.test
def what_never_fits_is_refused(server, name):
    bus = server.client().bus(name)
    publisher = Publisher(bus)
    rates(server, bytes_per_second=1000)
    try:
        publisher.send(event(data='x' * 1000), event())
        answer = publisher.answer()
        same((answer['code'], answer['limit'], answer['line']), ('quota_exceeded', 1000, 1))
        same(publisher.answer(), {'id': 1})
    finally:
        rates(server)


# -- Back-pressure ---------------------------------------------------------------------------------

def resident(server):
    with open(f'/proc/{server.process.pid}/statm', encoding='ascii') as file:
        return int(file.read().split()[1]) * os.sysconf('SC_PAGESIZE')


def send_until_stuck(publisher, lines):
    """Returns how many bytes were taken until nothing was for a while."""
    sent = 0
    publisher.socket.setblocking(False)
    for _ in range(5):
        try:
            while True:
                at = sent % len(lines)
                sent += publisher.socket.send(lines[at:at + 65536])
        except BlockingIOError:
            settle()
    publisher.socket.settimeout(DEADLINE)
    return sent


@suite.test
def who_reads_no_answers_hurts_himself(server, name):
    bus = server.client().bus(name)
    deaf, other = Publisher(bus), Publisher(bus)
    line = b'{"topic":"..","data":1}\n'
    before = resident(server)
    sent = send_until_stuck(deaf, line * 4096)
    assert sent < 2 * SOCKET_MAX, sent
    assert resident(server) - before < 8 * MIB, (before, resident(server))
    other.send(*[event()] * 1000)
    same(other.answers(1000), ok(1, 1000))
    # It has only been held: all that it sent is answered once it reads.
    numbers = [json.loads(deaf.file.readline())['line'] for _ in range(sent // len(line))]
    same(numbers, list(range(1, len(numbers) + 1)))


@suite.test
def what_waits_for_ids_is_bounded(server, name):
    client = server.client()
    bus = client.bus(name)
    publisher, long = Publisher(bus), Publisher(bus)
    client.test('StallIds', '(b)', True)
    try:
        bus.publish_many([('a', '1')] * 4096)
        bus.publish_many([('a', '1')] * 4096)
        # These need the second block.
        pending = bus.start('PublishMany', '(a(ssa{sv})a{sv})', [('a', '1', {})] * 4096, {})
        settle()
        before = resident(server)
        sent = send_until_stuck(long, json.dumps(event(data='x' * 500000)).encode() + b'\n')
        assert sent < 8 * MIB, sent
        sent = send_until_stuck(publisher, b'{"topic":"a","data":1}\n' * 4096)
        assert sent < 2 * SOCKET_MAX, sent
        assert resident(server) - before < 16 * MIB, (before, resident(server))
    finally:
        client.test('StallIds', '(b)', False)
    pending.wait()
    same(set(publisher.answer()), {'id'})
    same(set(long.answer()), {'id'})


# -- Ends ------------------------------------------------------------------------------------------

@suite.test
def who_closes_without_reading_has_published(server, name):
    bus = server.client().bus(name)
    publisher = Publisher(bus)
    publisher.send(*[event()] * 2000, b'{"topic":"a","da')
    publisher.close()
    wait_until(lambda: bus.get('LastEventId') == 2000)
    wait_until(lambda: is_free(bus))


def is_free(bus):
    """Whether the connection has no publisher: 64 may be opened."""
    opened = []
    try:
        for _ in range(64):
            opened.append(Publisher(bus))
        return True
    except Exception:  # pylint: disable=broad-except
        return False
    finally:
        for publisher in opened:
            publisher.finish()
            publisher.close()


@suite.test
def what_was_sent_before_leaving_is_published(server, name):
    client = server.client()
    bus = server.client().bus(name)
    publisher = Publisher(bus.of(client))
    publisher.send(*[event()] * 2000, b'{"topic":"a","data":1}')
    client.leave()
    wait_until(lambda: bus.get('LastEventId') == 2000)
    # Half a line may be whole by chance: it is not published.
    answers = [json.loads(line) for line in publisher.file]
    same(answers, ok(1, 2000))


@suite.test
def who_leaves_waits_for_no_rate(server, name):
    client = server.client()
    bus = server.client().bus(name)
    publisher = Publisher(bus.of(client))
    rates(server, events_per_second=10)
    try:
        publisher.send(*[event()] * 100)
        same(publisher.answers(10), ok(1, 10))
        client.leave()
        answers = [json.loads(line) for line in publisher.file]
        same(len(answers), 90)
        same(answers[-1]['code'], 'rate_limited')
        assert bus.get('LastEventId') < 30, bus.get('LastEventId')
    finally:
        rates(server)


@suite.test
def a_closed_bus_ends_it_with_the_next_line(server, name):
    bus = server.client().bus(name)
    publisher = Publisher(bus)
    publisher.send(event())
    same(publisher.answer(), {'id': 1})
    bus.call('Close')
    publisher.send(b'\n', event(), event())
    answers = [json.loads(line) for line in publisher.file]
    same([(answer['code'], answer['line']) for answer in answers], [('closed', 3)])
    assert name in answers[0]['error'], answers


@suite.test
def it_is_of_one_life_of_its_bus(server, name):
    client = server.client()
    bus = client.bus(name)
    publisher = Publisher(bus)
    bus.call('Close')
    wait_until(lambda: name not in [path.rsplit('/', 1)[1] for path in buses(client)])
    client.bus(name)
    publisher.send(event())
    same(publisher.answer()['code'], 'closed')
    same(publisher.answer(), None)


def buses(client):
    return client.call('/org/headway/Headway1', 'org.freedesktop.DBus.ObjectManager', 'GetManagedObjects')[0]


@suite.test
def a_closed_bus_opens_none(server, name):
    client = server.client()
    bus = client.bus(name)
    # A reader that is slow keeps it there.
    bus.subscribe()
    bus.publish()
    bus.call('Close')
    expect('Closed', Publisher, bus, says=name)


@suite.test
def a_stop_answers_what_was_read(server, name):
    server = Server()
    client = server.client()
    bus = client.bus(name)
    idle, busy = Publisher(bus), Publisher(bus)
    writer = threading.Thread(target=flood, args=(busy,))
    writer.start()
    same(busy.answers(1000), ok(1, 1000))
    client.test('ShutDown')
    client.test('ShutDownTable')
    expect('Unavailable', Publisher, bus, says='stopping')
    same(idle.answer(), None)
    answers = [json.loads(line) for line in busy.file]
    writer.join()
    good = [answer for answer in answers if 'id' in answer]
    same(good, ok(1001, len(good)))
    assert len(answers) - len(good) <= 1, answers[len(good):]
    assert all(answer['code'] == 'unavailable' for answer in answers[len(good):]), answers[-1]
    same(server.stop(), 0)


@suite.test
def a_stop_answers_the_first_that_waits_for_an_interceptor(server, name):
    server = Server()
    client = server.client()
    bus = client.bus(name)
    handler = Handler(bus.of(server.client()), ['t.*'], phase='pre', timeout_ms=60000)
    publisher = Publisher(bus)
    publisher.send(event(topic='free'), *[event(topic='t.x')] * 3)
    handler.wait(1)
    client.test('ShutDown')
    client.test('ShutDownTable')
    same(publisher.answer(), {'id': 1})
    answer = publisher.answer()
    same((answer['code'], answer['line']), ('unavailable', 2))
    same(publisher.answer(), None)
    same(server.stop(), 0)


def flood(publisher):
    try:
        while True:
            publisher.send(*[event()] * 1000)
    except OSError:
        pass


@suite.test
def several_publish_side_by_side(server, name):
    bus = server.client().bus(name)
    reader = bus.subscribe(mode='broadcast')
    publishers = [Publisher(bus, principal=f'agent.{i}') for i in range(8)]
    for publisher in publishers:
        publisher.send(*[event(data=i) for i in range(50)])
    found = [answer['id'] for publisher in publishers for answer in publisher.answers(50)]
    same(sorted(found), list(range(1, 401)))
    events = reader.receive(1024)
    same(ids(events), list(range(1, 401)))
    for i in range(8):
        same([int(event[5]) for event in events if event[3] == f'agent.{i}'], list(range(50)))


@suite.test
def many_lines_wait_for_an_interceptor(server, name):
    """Where 64 publishes of a principal wait already, a stream waits for room: nothing is refused, nothing out of order."""
    bus = server.client().bus(name)
    Handler(bus, ['t.*'], verdict(), phase='pre', timeout_ms=60000)
    answers = {}

    def write(publisher, word, count):
        reader = threading.Thread(target=lambda: answers.update({word: publisher.answers(count)}))
        reader.start()
        publisher.send(*(event(topic='t.x' if number % 3 else 'free', data=f'{word}{number}') for number in range(count)))
        reader.join()

    def run(count, words, **options):
        before = bus.get('LastEventId')
        writers = [threading.Thread(target=write, args=(Publisher(bus.of(server.client()), **options), word, count)) for word in words]
        for writer in writers:
            writer.start()
        wait_until(lambda: not any(writer.is_alive() for writer in writers))
        return [json.loads(one[5]) for one in bus.fetch(before)]

    data = run(500, 'ab')
    same(len(data), 1000)
    for word in 'ab':
        same([answer for answer in answers[word] if 'id' not in answer], [])
        same([text for text in data if text.startswith(word)], [f'{word}{number}' for number in range(500)])
    data = run(500, 'c', **{'on-limit': 'refuse'})
    codes = [answer.get('code') for answer in answers['c']]
    same({None, 'unavailable'}, set(codes))
    same([text for text in data if text.startswith('c')], [f'c{number}' for number in range(500) if codes[number] is None])


if __name__ == '__main__':
    suite.main()
