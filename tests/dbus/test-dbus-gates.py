#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Gates over D-Bus: subscriptions that are staged, opened, retired and swapped (routing.md 1.6, decisions.md 24)."""
from harness import Suite, complete, expect, ids, same, short

suite = Suite()
MODES = ('stream', 'routed', 'broadcast')


def gate(bus, method, *names):
    return bus.call(method, '(' + 's' * len(names) + ')', *names)


@suite.test
def a_gate_is_staged_opened_and_retired(server, name):
    bus = server.client().bus(name)
    subscriptions = [bus.subscribe(mode=mode, gate='g') for mode in MODES]
    same(bus.publish()[1]['subscriptions'], 0)
    gate(bus, 'OpenGate', 'g')
    gate(bus, 'OpenGate', 'g')
    same(bus.publish()[1]['subscriptions'], 3)
    gate(bus, 'RetireGate', 'g')
    same(bus.publish()[1]['subscriptions'], 0)
    # What waits stays readable.
    same([ids(one.receive()) for one in subscriptions], [[2]] * 3)
    same([one.receive() for one in subscriptions], [[]] * 3)
    gate(bus, 'RetireGate', 'g')
    expect('InvalidOption', gate, bus, 'OpenGate', 'g', says=('"g"', 'retired'))
    expect('InvalidOption', bus.subscribe, mode='routed', gate='g', says=('"g"', 'retired'))


@suite.test
def a_swap_loses_nothing_and_doubles_nothing(server, name):
    client, publisher = server.client(), server.client()
    bus = client.bus(name)
    old = [bus.subscribe([f't.{n}'], mode='routed', gate='old') for n in range(3)]
    gate(bus, 'OpenGate', 'old')
    calls = []
    for number in range(60):
        calls.append(bus.of(publisher).start('Publish', '(ssa{sv})', f't.{number % 3}', '1', {}))
        if number == 30:
            new = [bus.subscribe([f't.{n}'], mode='routed', gate='new') for n in range(3)]
            calls.append(bus.start('SwapGates', '(ss)', 'old', 'new'))
    for call in calls:
        call.wait()
    before = sorted(i for one in old for i in ids(one.receive()))
    after = sorted(i for one in new for i in ids(one.receive()))
    same(before + after, list(range(1, 61)))
    assert before and after, (before, after)


@suite.test
def a_replay_does_not_heed_the_gate(server, name):
    bus = server.client().bus(name)
    bus.publish()
    routed = bus.subscribe(mode='routed', last_event_id=0, gate='g')
    bus.publish()
    same(short(routed.receive()), [1, complete(1, 1)])
    gate(bus, 'OpenGate', 'g')
    bus.publish()
    same(ids(routed.receive()), [3])


@suite.test
def gates_are_private(server, name):
    client, other = server.client(), server.client()
    bus = client.bus(name)
    mine = bus.subscribe(mode='routed', gate='g')
    for method, names in (('OpenGate', ('g',)), ('RetireGate', ('g',)), ('SwapGates', ('g', 'g'))):
        expect('InvalidOption', gate, bus.of(other), method, *names, says='"g"')
    theirs = bus.of(other).subscribe(mode='routed', gate='g')
    gate(bus.of(other), 'OpenGate', 'g')
    same(bus.publish()[1]['subscriptions'], 1)
    same((mine.receive(), ids(theirs.receive())), ([], [1]))
    # Those of another bus are others too.
    second = client.bus(name + 'b')
    expect('InvalidOption', gate, second, 'OpenGate', 'g', says='"g"')


@suite.test
def a_gate_goes_with_its_last_subscription_and_its_owner(server, name):
    client, other = server.client(), server.client()
    bus = client.bus(name)
    first, second = bus.subscribe(gate='g'), bus.subscribe(gate='g')
    first.call('Close')
    gate(bus, 'RetireGate', 'g')
    second.call('Close')
    expect('InvalidOption', gate, bus, 'RetireGate', 'g', says='"g"')
    # A new one of that name starts over.
    third = bus.subscribe(gate='g')
    same(bus.publish()[1]['subscriptions'], 0)
    gate(bus, 'OpenGate', 'g')
    same(bus.publish()[1]['subscriptions'], 1)
    same(ids(third.receive()), [2])
    bus.of(other).subscribe(gate='g')
    other.leave()
    gate(bus, 'RetireGate', 'g')


@suite.test
def swaps_are_refused_by_name_and_change_nothing(server, name):
    bus = server.client().bus(name)
    old, new, gone = (bus.subscribe(gate=one) for one in ('old', 'new', 'gone'))
    gate(bus, 'OpenGate', 'old')
    gate(bus, 'RetireGate', 'gone')
    for retire, opened, says in (('old', 'gone', 'retired'), ('old', 'old', 'itself'), ('old', 'none', '"none"'),
                                 ('none', 'new', '"none"')):
        expect('InvalidOption', gate, bus, 'SwapGates', retire, opened, says=says)
        bus.publish()
    same([ids(one.receive()) for one in (old, new, gone)], [[1, 2, 3, 4], [], []])
    for bad in ('', 'x' * 129, 'a b', 'a/b'):
        expect('InvalidOption', bus.subscribe, gate=bad, says='gate')
        expect('InvalidOption', gate, bus, 'OpenGate', bad)
    bus.subscribe(gate='x' * 128)
    gate(bus, 'OpenGate', 'x' * 128)


@suite.test
def a_closed_bus_has_no_gates(server, name):
    bus = server.client().bus(name)
    routed = bus.subscribe(mode='routed', gate='g')
    _unread = bus.subscribe()
    bus.publish()
    bus.call('Close')
    # A gate holds back events, not the end.
    expect('Closed', gate, bus, 'OpenGate', 'g')
    expect('Closed', routed.receive, 1024, 20000)


if __name__ == '__main__':
    suite.main()
