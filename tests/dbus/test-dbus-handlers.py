#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Handlers over D-Bus: registration, order, chains, what is lost, and how they end (routing.md 1.9, 1.10, 3.7)."""
import json
import signal

from gi.repository import GLib

from handlers import REGISTRATION, Handler, Program, verdict
from harness import MANAGER, ROOT, Suite, expect, same, settle, wait_until

suite = Suite()


def metric(client, name, **labels):
    found = [value for key, has, value in client.call(ROOT, MANAGER, 'ListMetrics')[0]
             if key == name and all(has.get(label) == wanted for label, wanted in labels.items())]
    return sum(found)


def publish_for(bus, principals, topic='t', each=1):
    bus.publish_many([(topic, str(number), {'principal': principal}) for number in range(each) for principal in principals])


@suite.test
def a_matching_handler_is_called(server, name):  # case 120
    bus = server.client().bus(name)
    handler = Handler(bus, ['a.*'], verdict(), name='watcher')
    other = Handler(bus, ['b.*'], verdict())
    bus.publish('a.b', '{"n":1}', principal='alice', type='kind', client='me', meta='{"k":1}')
    call, = handler.wait(1)
    same(call.event[:4] + call.event[5:6], (1, 'a.b', 'kind', 'alice', '{"n":1}'))
    same(call.event[6]['client'], 'me')
    same(json.loads(call.event[6]['meta'])['k'], 1)
    same(call.context, {'bus': bus.path, 'registration': handler.registration, 'phase': 'post'})
    wait_until(lambda: handler.get('Handled') == 1)
    same([handler.get(key) for key in ('Patterns', 'Priority', 'Phase', 'Pending', 'Dropped', 'ActivePrincipals')],
         [['a.*'], 100, 'post', 0, 0, 0])
    same(other.calls, [])
    same(handler.client.get_all(handler.registration, REGISTRATION)['Handled'], 1)


@suite.test
def a_slow_principal_delays_nobody(server, name):  # case 121
    bus = server.client().bus(name)
    handler = Handler(bus, answer=lambda call: call.answer() if call.principal != 'alice' else None)
    publish_for(bus, ['alice', 'bob'], each=20)
    wait_until(lambda: len([call for call in handler.calls if call.principal == 'bob']) == 20)
    same([call.data for call in handler.calls if call.principal == 'alice'], ['0'])
    same(handler.get('ActivePrincipals'), 1)
    same(handler.get('Pending'), 19)
    bus.client.leave()


@suite.test
def a_thousand_principals_in_order(server, name):  # case 122
    bus = server.client().bus(name)
    handler = Handler(bus, answer=verdict())
    principals = [f'p{number}' for number in range(1000)]
    publish_for(bus, principals, each=3)
    handler.wait(3000)
    seen = {}
    for call in handler.calls:
        seen.setdefault(call.principal, []).append(call.data)
    same(seen, {principal: ['0', '1', '2'] for principal in principals})
    publish_for(bus, ['one'], each=50)
    handler.wait(3050)
    same(handler.data()[3000:], [str(number) for number in range(50)])


@suite.test
def a_full_queue_tells_what_it_lost(server, name):  # case 123
    bus = server.client().bus(name)
    handler = Handler(bus)
    publish_for(bus, ['alice'])
    handler.wait(1)
    publish_for(bus, ['alice'], each=69)
    publish_for(bus, ['bob'])
    handler.wait(2)
    same([handler.get('Pending'), handler.get('Dropped')], [64, 5])
    handler.reply = verdict()
    for call in handler.calls[:2]:
        call.answer()
    handler.wait(66)
    same([call.id for call in handler.calls if call.principal == 'alice'], list(range(1, 66)))
    publish_for(bus, ['alice'])
    handler.wait(67)
    told = [json.loads(call.context['lost']) for call in handler.calls if 'lost' in call.context]
    same([(gap['reason'], gap['principal'], gap['count'], gap['firstId'], gap['lastId']) for gap in told], [('full', 'alice', 5, 66, 70)])
    # With the next call.
    assert 'lost' in handler.calls[2].context, handler.calls[2].context


@suite.test
def a_chain_goes_by_priority_and_name(server, name):  # cases 133, 134, 141
    bus = server.client().bus(name)
    seen = []

    def note(word):
        def reply(call):
            seen.append((word, call.data))
            call.answer()
        return reply

    for word, priority in (('z', 20), ('last', 100), ('a', 20), ('guard', 10)):
        Handler(bus, answer=note(word), name=word, priority=priority)
    publish_for(bus, ['alice'], each=2)
    wait_until(lambda: len(seen) == 8)
    same(seen, [(word, data) for data in '01' for word in ('guard', 'a', 'z', 'last')])


@suite.test
def a_chain_heeds_its_verdicts(server, name):  # cases 135, 138, 139
    bus = server.client().bus(name)
    subscription = bus.subscribe()
    first = Handler(bus, ['new', 'same', 'skip'], priority=10, answer=lambda call: {
        'new': lambda: call.answer('continue', '{"x":1}'),
        'same': lambda: call.answer('continue', ''),
        'skip': lambda: call.fail('org.headway.Headway1.Error.NotSupported'),
    }[call.topic]())
    Handler(bus, ['final'], verdict('final'), priority=20)
    Handler(bus, ['deny'], verdict('deny', 'because'), priority=20)
    strict = Handler(bus, ['skip'], lambda call: call.fail('org.freedesktop.DBus.Error.NotSupported'), priority=20, on_error='deny')
    Handler(bus, ['broken'], lambda call: call.fail(), priority=30)
    Handler(bus, ['refused'], lambda call: call.fail(), priority=30, on_error='deny')
    Handler(bus, ['unknown'], verdict('perhaps'), priority=30, on_error='deny')
    Handler(bus, ['no-json'], verdict('continue', '{'), priority=30, on_error='deny')
    last = Handler(bus, answer=verdict(), priority=200)
    before = metric(bus.client, 'headway_verdicts_total', verdict='error')
    topics = ['new', 'same', 'skip', 'final', 'deny', 'broken', 'refused', 'unknown', 'no-json', 'end']
    for topic in topics:
        bus.publish(topic, '"old"', principal='alice')
    wait_until(lambda: [call.topic for call in last.calls][-1:] == ['end'])
    same([(call.topic, call.data) for call in last.calls],
         [('new', '{"x":1}'), ('same', '"old"'), ('skip', '"old"'), ('broken', '"old"'), ('end', '"old"')])
    same(metric(bus.client, 'headway_verdicts_total', verdict='error') - before, 4)
    same([len(first.calls), len(strict.calls)], [3, 1])
    # What was published stays as it was.
    same([event[5] for event in subscription.receive()], ['"old"'] * len(topics))


@suite.test
def same_priority_is_called_at_the_same_time(server, name):  # case 136
    bus = server.client().bus(name)
    handlers = [Handler(bus) for _ in range(4)]
    bus.publish(principal='alice')
    for handler in handlers:
        handler.wait(1)
    handlers[0].calls[0].answer('deny', 'no')
    for handler in handlers[1:]:
        handler.calls[0].answer()
    for handler in handlers:
        wait_until(lambda one=handler: one.get('Handled') == 1)


@suite.test
def a_late_answer_is_ignored(server, name):  # case 146
    bus = server.client().bus(name)
    first = Handler(bus.of(server.client()), priority=10, timeout_ms=100)
    last = Handler(bus, priority=20, answer=verdict())
    for number in range(1, 5):
        bus.publish('t', str(number), principal='alice')
        last.wait(number)
    same([first.data(), last.data()], [list('1234'), list('1234')])
    first.reply = lambda call: call.answer('deny')
    first.calls[0].answer('continue', '"late"')
    settle()
    bus.publish('t', '7', principal='alice')
    first.wait(5)
    settle()
    same([first.data(), last.data()], [list('12347'), list('1234')])
    for call in first.calls[1:4]:
        call.answer()


@suite.test
def parallel_bounds_the_calls(server, name):
    bus = server.client().bus(name)
    handler = Handler(bus, parallel=2)
    publish_for(bus, ['a', 'b', 'c', 'd'])
    handler.wait(2)
    settle()
    same([len(handler.calls), handler.get('Pending')], [2, 2])
    handler.calls[0].answer()
    handler.wait(3)
    handler.calls[1].answer()
    handler.wait(4)
    bus.client.leave()


@suite.test
def one_connection_is_not_called_without_bound(server, name):
    bus = server.client().bus(name)
    handler = Handler(bus)
    publish_for(bus, [f'p{number}' for number in range(200)])
    handler.wait(32)
    settle()
    same([len(handler.calls), handler.get('Pending')], [32, 168])
    others = Handler(bus.of(server.client()), ['other'], verdict())
    publish_for(bus, ['p0'], 'other')
    others.wait(1)
    handler.reply = verdict()
    for call in handler.calls[:32]:
        call.answer()
    handler.wait(201)


@suite.test
def calls_without_an_answer_mute_nobody_for_ever(server, name):
    """Whoever answers nothing but reads, as a Ping shows, is called again."""
    bus = server.client().bus(name)
    handler = Handler(bus, answer=lambda call: call.topic != 'hold' and call.answer(), timeout_ms=50)
    publish_for(bus, [f'p{number}' for number in range(6)], topic='hold')
    handler.wait(4)
    bus.publish('fine', '"again"')
    wait_until(lambda: '"again"' in handler.data())
    same(handler.get('Dropped'), 0)


@suite.test
def what_waits_for_a_frozen_connection_is_lost_in_time(server, name):
    bus = server.client().bus(name)
    program = Program(server, bus, 't', phase='post', timeout_ms=100)
    lost = metric(bus.client, 'headway_dispatch_drops_total', reason='timeout')
    program.signal(signal.SIGSTOP)
    publish_for(bus, [f'p{number}' for number in range(50)], each=2)
    # Those that were called have had their deadline there; not all are, and none waits for ever.
    wait_until(lambda: metric(bus.client, 'headway_dispatch_drops_total', reason='timeout') - lost >= 100 - 32)
    program.stop()


@suite.test
def large_calls_are_bounded_by_bytes(server, name):
    bus = server.client().bus(name)
    handler = Handler(bus)
    data = json.dumps('x' * 100000)
    bus.publish_many([('t', data, {'principal': f'p{number}'}) for number in range(10)])
    handler.wait(2)
    settle()
    same(len(handler.calls), 2)
    handler.reply = verdict()
    for call in handler.calls[:2]:
        call.answer()
    handler.wait(10)
    # One of any size goes alone.
    handler.reply = None
    bus.publish_many([('t', json.dumps('x' * 500000), {'principal': f'p{number}'}) for number in range(2)])
    handler.wait(11)
    settle()
    same(len(handler.calls), 11)
    handler.reply = verdict()
    handler.calls[10].answer()
    handler.wait(12)


@suite.test
def unregister_drains(server, name):
    bus = server.client().bus(name)
    handler = Handler(bus)
    publish_for(bus, ['alice'], each=3)
    handler.wait(1)
    done = [handler.start_unregister(), handler.start_unregister()]
    bus.publish(principal='alice')
    same([handler.get('Pending'), done[0].is_done], [2, False])
    handler.reply = verdict()
    handler.calls[0].answer()
    for call in done:
        call.wait()
    same(handler.ids(), [1, 2, 3])
    expect('org.freedesktop.DBus.Error.UnknownMethod', handler.get, 'Handled')


@suite.test
def an_owner_that_leaves_takes_its_handler_along(server, name):  # case 129
    owner, other = server.client(), server.client()
    bus = other.bus(name)
    first = Handler(bus.of(owner), path='/h')
    publish_for(bus, ['alice'], each=5)
    first.wait(1)
    lost = metric(other, 'headway_dispatch_drops_total', reason='unregistered')
    same(metric(other, 'headway_handlers', phase='post') >= 1, True)
    owner.leave()
    wait_until(lambda: metric(other, 'headway_dispatch_drops_total', reason='unregistered') == lost + 4)
    second = Handler(bus.of(server.client()), path='/h', answer=verdict())
    assert second.registration != first.registration
    publish_for(bus, ['alice'])
    second.wait(1)
    same(second.ids(), [6])
    assert 'lost' not in second.calls[0].context


@suite.test
def a_closed_bus_ends_its_handlers(server, name):
    bus = server.client().bus(name)
    handler = Handler(bus, answer=verdict())
    publish_for(bus, ['alice'], each=3)
    bus.call('Close')
    handler.wait(3)
    wait_until(lambda: not is_there(handler))


def is_there(handler):
    try:
        handler.get('Handled')
    except Exception:  # pylint: disable=broad-except
        return False
    return True


@suite.test
def only_the_owner_may(server, name):
    bus = server.client().bus(name)
    handler = Handler(bus)
    stranger = server.client()
    expect('NotOwner', stranger.get, handler.registration, REGISTRATION, 'Handled', says=stranger.name)
    expect('NotOwner', stranger.call, handler.registration, REGISTRATION, 'Unregister')
    same(stranger.get_all(handler.registration, REGISTRATION), {})
    same(handler.get('Handled'), 0)


@suite.test
def bad_options_are_named(server, name):
    bus = server.client().bus(name)
    for key, value, says in (('priority', GLib.Variant('s', '1'), 'priority'), ('phase', 'during', 'during'), ('on-error', 'panic', 'panic'),
                             ('timeout-ms', 0, '60000'), ('timeout-ms', 60001, '60000'), ('name', '', '128'), ('name', 'x' * 129, '128'),
                             ('name', 'a b', 'name'), ('parallel', 0, '32'), ('parallel', 33, '32'),
                             ('colour', GLib.Variant('s', 'red'), 'colour')):
        expect('InvalidOption', lambda options={key: value}: Handler(bus, **options), says=says)
    expect('InvalidPattern', Handler, bus, ['a..b'])
    for options in ({'timeout_ms': 1}, {'timeout_ms': 60000}, {'name': 'x' * 128}, {'parallel': 32}, {'priority': 2 ** 32 - 1}):
        Handler(bus, ['never'], **options).start_unregister().wait()


@suite.test
def a_connection_has_so_many(server, name):
    bus = server.client().bus(name)
    handlers = [Handler(bus, ['never']) for _ in range(256)]
    expect('QuotaExceeded', Handler, bus, says='256')
    handlers[0].start_unregister().wait()
    Handler(bus, ['never'])
    bus.client.leave()


@suite.test
def a_handler_without_an_object_is_an_error_of_the_step(server, name):
    bus = server.client().bus(name)
    bus.call('RegisterHandler', '(asoa{sv})', [], '/nothing', {'priority': GLib.Variant('u', 1)})
    last = Handler(bus, answer=verdict())
    before = metric(bus.client, 'headway_verdicts_total', verdict='error')
    bus.publish()
    last.wait(1)
    same(metric(bus.client, 'headway_verdicts_total', verdict='error'), before + 1)


suite.main()
