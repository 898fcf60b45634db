#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Handlers of phase `pre` over D-Bus: they change and deny before an event has an id (routing.md 3.7, decisions.md 35)."""
import json
import signal
import time

from handlers import Handler, Program, verdict
from harness import Suite, expect, ids, same, settle, wait_until
from raw import is_sanitized, memory

suite = Suite()


def by_topic(call):
    """What a test's topic asks for."""
    word = call.topic.rpartition('.')[2]
    if word == 'deny':
        call.answer('deny', 'because of ' + call.data)
    elif word == 'change':
        call.answer('continue', '{"was":' + call.data + '}')
    elif word == 'fail':
        call.fail()
    elif word != 'hold':
        call.answer()


@suite.test
def a_veto_leaves_no_trace(server, name):  # case 145
    bus = server.client().bus(name)
    subscription = bus.subscribe()
    handler = Handler(bus, ['g.*'], by_topic, phase='pre')
    same(bus.publish('g.fine', '1')[0], 1)
    expect('Denied', bus.publish, 'g.deny', '2', says='because of 2')
    same(bus.publish('g.change', '3')[0], 2)
    same(bus.publish('free', '4')[0], 3)
    same([(event[0], event[5]) for event in subscription.receive()], [(1, '1'), (2, '{"was":3}'), (3, '4')])
    same(handler.ids(), [0, 0, 0])
    same(handler.calls[0].context['phase'], 'pre')
    same(bus.get('LastEventId'), 3)


@suite.test
def errors_go_by_on_error(server, name):
    bus = server.client().bus(name)
    Handler(bus, ['open.*'], by_topic, phase='pre', timeout_ms=100)
    Handler(bus, ['shut.*'], by_topic, phase='pre', timeout_ms=100, on_error='deny')
    same(bus.publish('open.fail', '1')[0], 1)
    expect('Denied', bus.publish, 'shut.fail', '1')
    start = time.monotonic()
    same(bus.publish('open.hold', '1')[0], 2)
    expect('Denied', bus.publish, 'shut.hold', '1')
    assert 0.09 < time.monotonic() - start < 10


@suite.test
def unregister_decides_what_waits_first(server, name):
    bus = server.client().bus(name)
    publisher = bus.of(server.client())
    handler = Handler(bus, ['g.*'], phase='pre', on_error='deny')
    published = [publisher.start('Publish', '(ssa{sv})', 'g.x', str(number), {}) for number in range(3)]
    first = handler.wait(1)[0]
    done = handler.start_unregister()
    settle()
    first.answer()
    for number in (1, 2):
        handler.wait(number + 1)[number].answer('deny', 'the last word')
    done.wait()
    same([handler.data(), published[0].wait()[0]], [['0', '1', '2'], 1])
    for call in published[1:]:
        expect('Denied', call.wait, says='the last word')
    same(publisher.publish('g.x', '3')[0], 2)


@suite.test
def a_batch_is_all_or_nothing(server, name):
    bus = server.client().bus(name)
    subscription = bus.subscribe()
    handler = Handler(bus, ['g.*'], by_topic, phase='pre')
    error = expect('Denied', bus.publish_many, [('g.fine', '0'), ('g.change', '1'), ('g.deny', '2'), ('free', '3')], says='because of 2')
    assert 'event 2' in error.message, error.message
    same(bus.get('LastEventId'), 0)
    same(bus.publish_many([('g.fine', '0'), ('g.change', '1'), ('free', '3')])[:2], (1, 3))
    same([event[5] for event in subscription.receive()], ['0', '{"was":1}', '3'])
    same(len(handler.calls), 5)


@suite.test
def a_slow_interceptor_stalls_its_principal_alone(server, name):
    bus = server.client().bus(name)
    handler = Handler(bus.of(server.client()), ['t'], phase='pre', timeout_ms=60000, answer=lambda call: call.principal != 'alice' and call.answer())
    held = [bus.start('Publish', '(ssa{sv})', 't', str(number), {'principal': variant('alice')}) for number in range(3)]
    handler.wait(1)
    same([bus.publish('t', '1', principal='bob')[0] for _ in range(50)], list(range(1, 51)))
    same(len(handler.calls), 51)
    for number in range(3):
        wait_until(lambda wanted=number: len([call for call in handler.calls if call.principal == 'alice']) > wanted)
        [call for call in handler.calls if call.principal == 'alice'][number].answer()
    same([one.wait()[0] for one in held], [51, 52, 53])


def variant(text):
    from gi.repository import GLib  # pylint: disable=import-outside-toplevel
    return GLib.Variant('s', text)


@suite.test
def a_chain_changes_in_turn(server, name):
    bus = server.client().bus(name)
    subscription = bus.subscribe()
    for priority, word in ((30, 'c'), (10, 'a'), (20, 'b')):
        Handler(bus, priority=priority, phase='pre', answer=lambda call, word=word: call.answer('continue', json.dumps(json.loads(call.data) + word)))
    post = Handler(bus, answer=verdict())
    same(bus.publish('t', '""')[0], 1)
    same(subscription.receive()[0][5], '"abc"')
    post.wait(1)
    same(post.data(), ['"abc"'])


@suite.test
def a_handler_may_publish_while_it_decides(server, name):
    bus = server.client().bus(name)
    subscription = bus.subscribe()
    inner = []

    def reply(call):
        # Of the connection whose call is in flight: skips its own handlers, and takes the earlier id.
        pending = bus.start('Publish', '(ssa{sv})', 'log', '"inner"', {})
        inner.append((call, pending))

    handler = Handler(bus, answer=reply, phase='pre')
    publisher = bus.of(server.client()).start('Publish', '(ssa{sv})', 't', '"outer"', {})
    handler.wait(1)
    same(inner[0][1].wait()[0], 1)
    inner[0][0].answer()
    same(publisher.wait()[0], 2)
    same([event[5] for event in subscription.receive()], ['"inner"', '"outer"'])
    same(len(handler.calls), 1)


@suite.test
def one_that_leaves_decides_nothing(server, name):
    owner = server.client()
    bus = server.client().bus(name)
    for on_error in ('continue', 'deny'):
        Handler(bus.of(owner), [on_error], phase='pre', on_error=on_error, timeout_ms=60000)
    handlers = [bus.start('Publish', '(ssa{sv})', topic, '1', {'principal': variant(topic)}) for topic in ('continue', 'deny')]
    settle()
    owner.leave()
    same(handlers[0].wait()[0], 1)
    expect('Denied', handlers[1].wait)
    same(bus.publish('deny')[0], 2)


def start_guarded(bus, count):
    return [bus.start('Publish', '(ssa{sv})', 'guarded.a', str(number), {'principal': variant(f'p{number}')}) for number in range(count)]


@suite.test
def a_frozen_interceptor_stalls_nobody_else(server, name):
    bus = server.client().bus(name)
    program = Program(server, bus, 'guarded.*', timeout_ms=60000)
    program.signal(signal.SIGSTOP)
    guarded = start_guarded(bus, 200)
    free = [bus.start('Publish', '(ssa{sv})', 'free', '1', {'principal': variant('free')}) for _ in range(300)]
    same([one.wait()[0] for one in free], list(range(1, 301)))
    same([one.is_done for one in guarded], [False] * 200)
    program.stop()
    same(sorted(one.wait()[0] for one in guarded), list(range(301, 501)))


@suite.test
def a_frozen_interceptor_costs_its_deadline(server, name):
    client = server.client()
    bus = client.bus(name)
    program = Program(server, bus, 'guarded.*', timeout_ms=1000)
    same(bus.publish('guarded.a', '1')[0], 1)
    same(bus.fetch()[0][5], '"seen"')
    program.signal(signal.SIGSTOP)
    start = time.monotonic()
    guarded = start_guarded(bus, 200)
    same(sorted(one.wait()[0] for one in guarded), list(range(2, 202)))
    assert 0.9 < time.monotonic() - start < 30, time.monotonic() - start
    # The whole time that it is frozen nothing piles up, here or in the message bus.
    before = memory(server.process, 'VmRSS'), memory(server.daemon, 'VmRSS')
    data = json.dumps('x' * 50000)
    for _ in range(2):
        bus.publish_many([('guarded.a', data, {'principal': f'p{number}'}) for number in range(200)])
    grown = memory(server.process, 'VmRSS') - before[0], memory(server.daemon, 'VmRSS') - before[1]
    # The ring takes up to 32 MiB of it, and one batch of 10 MB is on its way. Sanitizers keep what was freed.
    assert is_sanitized(server.process) or grown[0] < 80 * 1024 * 1024 and grown[1] < 40 * 1024 * 1024, grown
    program.signal(signal.SIGCONT)
    wait_until(lambda: bus.fetch(bus.publish('guarded.a', '7')[0] - 1)[0][5] == '"seen"')
    program.signal(signal.SIGSTOP)
    held = bus.start('Publish', '(ssa{sv})', 'guarded.a', '8', {})
    settle()
    program.signal(signal.SIGKILL)
    same(ids(bus.fetch(held.wait()[0] - 1)), [held.value[0]])
    program.stop()


suite.main()
