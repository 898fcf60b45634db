#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Routed and broadcast subscriptions over D-Bus: options, properties, gaps, resume ids, metrics; cases of routing.md."""
import json

from harness import GLib, MAX_ID, SUBSCRIPTION, Suite, complete, expect, ids, resync, same, settle, short, wait_until

suite = Suite()
ROUTE = (4096, 16384, 65536, 10000)  # quantum, events of a principal, events, principals


def data(cost):
    """Data that costs so much on topic `t`."""
    return json.dumps('x' * (cost - 3))


def publish(bus, principal, *costs):
    """Publishes in the name of @principal; returns the outcomes."""
    return [bus.publish('t', data(cost), principal=principal)[1] for cost in costs]


def gap(reason, count, size, first, last, **more):
    return 'gap', {'reason': reason, 'count': count, 'bytes': size, 'firstId': first, 'lastId': last, **more}


def resume_ids(events):
    return [event[6].get('resume-id', 0) for event in events]


def metrics(client):
    return {(name, *(value for _, value in sorted(labels.items()))): value for name, labels, value in client.manager('ListMetrics')[0]}


def outcome(subscriptions, refused=0, evicted=0):
    return {'subscriptions': subscriptions, 'refused': refused, 'evicted': evicted}


# --- Subscribe

@suite.test
def the_limits_of_the_mode_are_told(server, name):
    bus = server.client().bus(name, channel_capacity=5, replay_budget_bytes=7)
    shared = {'epoch': bus.get('Epoch'), 'last-id': 0, 'replay-budget-bytes': 7}
    caps = {'route-quantum-bytes': 4096, 'route-principal-messages': 16384, 'route-messages': 65536, 'route-principals': 10000}
    same(bus.subscribe(mode='routed').info,
         {**shared, **caps, 'mode': 'routed', 'budget-bytes': 1048576, 'eviction': 'oldest'})
    same(bus.subscribe(mode='routed', budget_bytes=1, eviction='fair').info,
         {**shared, **caps, 'mode': 'routed', 'budget-bytes': 1, 'eviction': 'fair'})
    same(bus.subscribe(mode='routed', budget_bytes=MAX_ID, eviction='oldest').info['budget-bytes'], MAX_ID)
    same(bus.subscribe(mode='broadcast').info, {**shared, 'mode': 'broadcast', 'channel-capacity': 5})


@suite.test
def misuse_is_refused_by_name(server, name):
    bus = server.client().bus(name)
    for options, says in (({'budget_bytes': 0}, 'budget-bytes'), ({'budget_bytes': MAX_ID + 1}, str(MAX_ID)),
                          ({'eviction': 'random'}, 'oldest, fair'), ({'scope_system': True}, 'scope'),
                          ({'scope': 'x' * 129}, '128'), ({'max_queued': 16}, 'max-queued')):
        expect('InvalidOption', bus.subscribe, mode='routed', says=says, **options)
    for scope in ('a b', 'ä', 'x#'):
        expect('InvalidPrincipal', bus.subscribe, mode='routed', scope=scope)
    bus.subscribe(mode='routed', scope_system=False).call('Close')
    bus.subscribe(mode='routed', scope='x' * 128).call('Close')
    same(bus.get('SubscriberCount'), 0)


@suite.test
def scopes_choose_whose_events(server, name):
    bus = server.client().bus(name)
    everything = bus.subscribe(mode='routed')
    alice = bus.subscribe(mode='routed', scope='alice', budget_bytes=100)
    both = bus.subscribe(mode='routed', scope='alice', scope_system=True)
    system = bus.subscribe(mode='routed', scope='')
    publish(bus, 'bob', 90, 90)
    publish(bus, 'alice', 10)
    publish(bus, '', 10)
    # What is out of scope takes nothing from the budget.
    same((alice.get('Queued'), alice.get('QueuedBytes'), alice.get('Dropped')), (1, 10, 0))
    same(sorted(ids(everything.receive())), [1, 2, 3, 4])
    same([sorted(ids(one.receive())) for one in (alice, both, system)], [[3], [3, 4], [4]])
    # A replay keeps to the scope too, and says that it has left something out.
    replay = bus.subscribe(mode='routed', scope='alice', last_event_id=0)
    same(short(replay.receive()), [3, complete(1, 3, filtered=True)])
    # session_closed passes every scope.
    bus.call('Close')
    same([event[2] for event in system.receive(1024, 20000)], ['session_closed'])


# --- Properties

@suite.test
def properties_of_a_routed_subscription(server, name):
    client, other = server.client(), server.client()
    bus = client.bus(name)
    routed = bus.subscribe(['t'], mode='routed', budget_bytes=1000)
    publish(bus, 'alice', 300, 300)
    publish(bus, 'bob', 350, 50)
    same(client.get_all(routed.path, SUBSCRIPTION), {
        'Bus': bus.path, 'Patterns': ['t'], 'Mode': 'routed', 'State': 'live', 'Queued': 4, 'QueuedBytes': 1000,
        'Dropped': 0, 'ActivePrincipals': 2})
    same(routed.call('ListPrincipals')[0], [('alice', 2, 600, 0, 1), ('bob', 2, 400, 0, 3)])
    expect('NotOwner', routed.of(other).call, 'ListPrincipals')
    same(publish(bus, 'bob', 10), [outcome(1, evicted=1)])
    same(routed.call('ListPrincipals')[0], [('bob', 3, 410, 0, 3), ('alice', 1, 300, 1, 2)])
    same((routed.get('Queued'), routed.get('QueuedBytes'), routed.get('Dropped')), (4, 710, 1))
    same([routed.call('DrainLagged')[0], routed.call('DrainLagged')[0], routed.get('Dropped')], [1, 0, 1])
    routed.receive()
    same(routed.call('ListPrincipals')[0], [])
    same([routed.get(key) for key in ('Queued', 'QueuedBytes', 'ActivePrincipals')], [0, 0, 0])


@suite.test
def properties_of_a_broadcast_subscription(server, name):
    bus = server.client().bus(name, channel_capacity=4)
    broadcast = bus.subscribe(mode='broadcast')
    publish(bus, 'alice', *[10] * 4)
    same([broadcast.get(key) for key in ('Mode', 'State', 'Queued', 'QueuedBytes', 'Dropped', 'ActivePrincipals')],
         ['broadcast', 'live', 4, 0, 0, 0])
    same(broadcast.call('ListPrincipals')[0], [])
    # Exactly so many are kept; one more is one lost, told in its place.
    publish(bus, 'alice', 10)
    events = broadcast.receive()
    same(short(events), [gap('lagged', 1, 0, 1, 1), 2, 3, 4, 5])
    same(resume_ids(events), [0] * 5)
    same((broadcast.get('Queued'), broadcast.get('Dropped'), broadcast.call('DrainLagged')[0]), (0, 1, 1))
    publish(bus, 'alice', *[10] * 4)
    same(ids(broadcast.receive()), [6, 7, 8, 9])


@suite.test
def a_filtered_lag_is_an_upper_bound(server, name):
    bus = server.client().bus(name, channel_capacity=2)
    broadcast = bus.subscribe(['yes'], mode='broadcast')
    bus.publish_many([('yes', '1'), ('no', '1'), ('yes', '1'), ('yes', '1')])
    same(short(broadcast.receive()), [gap('lagged', 2, 0, 1, 2, filtered=True), 3, 4])


@suite.test
def replays_come_first(server, name):
    for mode in ('routed', 'broadcast'):
        bus = server.client().bus(name + mode, ring_size=3)
        publish(bus, 'alice', *[10] * 5)
        subscription = bus.subscribe(mode=mode, last_event_id=0)
        same(subscription.get('State'), 'replaying')
        events = subscription.receive()
        same(short(events), [resync('ring_evicted', 0, 3), 3, 4, 5, complete(3, 5)])
        # During a replay the resume id is the id just sent.
        same(resume_ids(events), [0, 3, 4, 5, 0] if mode == 'routed' else [0] * 5)
        same(subscription.get('State'), 'live')
        publish(bus, 'bob', 10)
        same(len(subscription.receive()), 1)
        subscription.call('Close')
        expect('org.freedesktop.DBus.Error.UnknownMethod', subscription.receive)


# --- Reading

@suite.test
def case_154_one_at_a_time(server, name):
    bus = server.client().bus(name)
    routed = bus.subscribe(mode='routed')
    publish(bus, 'alice', 10)
    publish(bus, 'bob', 10)
    first, second = routed.receive(1), routed.receive(1)
    same(([event[3] for event in first], [event[3] for event in second], routed.receive(1)), (['alice'], ['bob'], []))


@suite.test
def case_159_resume_ids(server, name):
    bus = server.client().bus(name)
    routed = bus.subscribe(mode='routed')
    publish(bus, 'alice', 5000, 5000)
    publish(bus, 'bob', 100)
    first = routed.receive(1)
    same((ids(first), resume_ids(first)), ([3], [0]))
    # The reader is gone; the next one goes on where that id says, and recognises 3 by its own.
    again = bus.subscribe(mode='routed', last_event_id=0)
    same(short(again.receive()), [1, 2, 3, complete(3, 3)])
    rest = routed.receive()
    same((ids(rest), resume_ids(rest)), ([1, 2], [1, 3]))


@suite.test
def case_160_a_loss_is_told_once_over_a_reconnect(server, name):
    bus = server.client().bus(name)
    routed = bus.subscribe(mode='routed', budget_bytes=100)
    publish(bus, 'alice', 60)
    publish(bus, 'bob', 60)
    events = routed.receive()
    same(short(events), [gap('budget', 1, 60, 1, 1, principal='alice'), 2])
    same(resume_ids(events), [0, 2])
    same(short(bus.subscribe(mode='routed', last_event_id=2).receive()), [complete(0)])


@suite.test
def a_loss_wakes_a_reader(server, name):
    bus = server.client().bus(name)
    routed = bus.subscribe(mode='routed', budget_bytes=100)
    waiting = routed.start_receive()
    settle()
    assert not waiting.is_done
    same(publish(bus, 'alice', 101), [outcome(0, refused=1)])
    same(short(waiting.wait()[0]), [gap('oversize', 1, 101, 1, 1, principal='alice')])
    # Equality fits, and is handed over at once.
    waiting = routed.start_receive()
    same(bus.publish('t', data(100))[1], outcome(1))
    events = waiting.wait()[0]
    same((ids(events), resume_ids(events)), ([2], [2]))
    broadcast = bus.subscribe(mode='broadcast')
    waiting = broadcast.start_receive()
    bus.publish()
    same(ids(waiting.wait()[0]), [3])


@suite.test
def a_drain_keeps_its_budget_and_is_fair(server, name):
    bus = server.client().bus(name)
    routed = bus.subscribe(mode='routed')
    publish(bus, 'alice', 600, 600, 600)
    publish(bus, 'bob', 600, 600, 600)
    same(routed.drain(0), [])
    # One that is larger than the budget comes all the same, and each principal has its turn.
    same([ids(routed.drain(budget)) for budget in (1, 599, 1200, 100000)], [[1], [2], [3, 4], [5, 6]])
    same(routed.drain(1), [])
    # A gap costs nothing, and an event always comes with it.
    small = bus.subscribe(mode='routed', budget_bytes=700)
    publish(bus, 'alice', 600, 600)
    same(short(small.drain(1)), [gap('budget', 1, 600, 7, 7, principal='alice'), 8])
    publish(bus, 'alice', 600, 600)
    same(short(small.receive(1)), [gap('budget', 1, 600, 9, 9, principal='alice')])
    same(ids(small.receive(1)), [10])
    # In the other modes it counts cost too.
    broadcast = bus.subscribe(mode='broadcast')
    publish(bus, 'alice', 50, 50, 50)
    same([ids(broadcast.drain(100)), ids(broadcast.drain(100))], [[11, 12], [13]])


@suite.test
def fair_eviction_spares_the_quiet(server, name):
    bus = server.client().bus(name)
    oldest = bus.subscribe(mode='routed', budget_bytes=1000)
    fair = bus.subscribe(mode='routed', budget_bytes=1000, eviction='fair')
    publish(bus, 'quiet', 100)
    same(publish(bus, 'flood', *[100] * 10)[-1], outcome(2, evicted=2))
    same([sorted(event[3] for event in one.receive() if event[0]).count('quiet') for one in (oldest, fair)], [0, 1])


@suite.test
def what_is_final_stays_longest(server, name):
    bus = server.client().bus(name)
    routed = bus.subscribe(mode='routed', budget_bytes=1000)
    bus.publish('t', data(100), final=True)
    publish(bus, 'flood', *[100] * 20)
    assert 1 in ids(routed.receive())


@suite.test
def an_ended_subscription_is_read_out(server, name):
    client = server.client()
    for mode in ('routed', 'broadcast'):
        bus = client.bus(name + mode)
        subscription = bus.subscribe(mode=mode)
        bus.publish()
        bus.call('Close')
        wait_until(lambda s=subscription: s.get('State') == 'ended')
        same([event[2] for event in subscription.receive()], ['message', 'session_closed'])
        expect('Closed', subscription.receive)


# --- ListSubscriptions

@suite.test
def the_listing_shows_principals_and_lag(server, name):
    bus = server.client().bus(name, ring_size=100)
    publish(bus, 'alice', *[10] * 7)
    for options in ({'mode': 'routed'}, {'mode': 'broadcast'}, {}):
        bus.subscribe(['t'], **options)
    publish(bus, 'alice', 100, 100)
    publish(bus, 'bob', 150)
    routed, broadcast, stream = bus.call('ListSubscriptions')[0]
    same([entry['mode'] for entry in (routed, broadcast, stream)], ['routed', 'broadcast', 'stream'])
    same([entry['queued'] for entry in (routed, broadcast, stream)], [3, 3, 3])
    same([entry['lag'] for entry in (routed, broadcast, stream)], [3, 3, 3])
    same([entry['principals'] for entry in (routed, broadcast, stream)],
         [[('alice', 2, 200, 0, 8), ('bob', 1, 150, 0, 10)], [], []])
    same(routed['queued-bytes'], 350)


# --- Metrics

@suite.test
def case_157_each_reason_has_its_series(server, name):
    client = server.client()
    bus = client.bus(name)
    before = metrics(client)
    client.test('SetRoute', '(uuuu)', 4096, 2, 65536, 10000)
    routed = bus.subscribe(mode='routed', budget_bytes=100)
    client.test('SetRoute', '(uuuu)', *ROUTE)

    def change(*series):
        return metrics(client)[series] - before[series]

    publish(bus, 'agent.a', 101)          # oversize
    publish(bus, 'bob', 60, 60)           # budget: the first of them
    publish(bus, 'bob', 5, 5)             # over two of one principal
    drops = {key[1:3]: value - before[key] for key, value in metrics(client).items()
             if key[0] == 'headway_route_drops_total' and key[3] == 'dbus' and value != before[key]}
    same(drops, {('agent', 'oversize'): 1, ('user', 'budget'): 1, ('user', 'count_cap'): 1})
    same(change('headway_route_active_principals', 'dbus'), 1)
    same(change('headway_route_bytes', 'dbus'), routed.get('QueuedBytes'))
    same(change('headway_gaps_delivered_total', 'dbus'), 0)
    gaps = [event for event in routed.receive() if not event[0]]
    same(change('headway_gaps_delivered_total', 'dbus'), len(gaps))
    same([change('headway_route_active_principals', 'dbus'), change('headway_route_bytes', 'dbus')], [0, 0])
    assert change('headway_security_events_total', 'events_lost') == 3


@suite.test
def more_principals_than_queues_share_one(server, name):
    client = server.client()
    bus = client.bus(name)
    before = metrics(client)
    client.test('SetRoute', '(uuuu)', 4096, 2, 65536, 1)
    routed = bus.subscribe(mode='routed')
    client.test('SetRoute', '(uuuu)', *ROUTE)
    for principal in ('a', 'b', 'c', 'd'):
        publish(bus, principal, 10)
    key = 'headway_route_drops_total', 'user', 'bucket_cap', 'dbus'
    same(metrics(client)[key] - before[key], 1)
    same((routed.get('ActivePrincipals'), routed.get('Dropped')), (2, 1))


@suite.test
def other_counters_of_reading(server, name):
    client = server.client()
    bus = client.bus(name, channel_capacity=2, ring_size=3)
    before = metrics(client)

    def change(*series):
        return metrics(client)[series] - before[series]

    broadcast, routed = bus.subscribe(mode='broadcast'), bus.subscribe(mode='routed')
    publish(bus, 'alice', *[10] * 4)
    publish(bus, 'agent:a', 5000)
    broadcast.receive()
    same(change('headway_receiver_lagged_total', 'dbus'), 3)
    same(len(routed.receive()), 5)
    same(change('headway_route_starved_total', 'agent', 'dbus'), 1)
    for mode in ('stream', 'routed', 'broadcast'):
        bus.subscribe(mode=mode, last_event_id=0).receive()
        bus.subscribe(mode=mode, last_event_id=9).receive()
    same([change('headway_resyncs_total', 'ring_evicted'), change('headway_resyncs_total', 'epoch_reset')], [3, 3])


@suite.test
def strangers_are_seen(server, name):
    client, other = server.client(), server.client()
    routed = client.bus(name).subscribe(mode='routed')
    key = 'headway_security_events_total', 'not_owner'
    before = metrics(client)[key]
    expect('NotOwner', routed.of(other).receive)
    expect('NotOwner', routed.of(other).get, 'Queued')
    same(metrics(client)[key] - before, 2)


@suite.test
def case_156_nothing_that_peers_choose_is_in_metrics(server, name):
    client = server.client()
    hostile = f'{name}-evil'
    bus = client.bus(hostile)
    for mode in ('stream', 'routed', 'broadcast'):
        bus.subscribe([f'{hostile}.*'], mode=mode, types=[f'{hostile}'], gate=hostile)
    bus.subscribe(mode='routed', scope=hostile, budget_bytes=10)
    bus.publish(f'{hostile}.x', '"evil"', type=hostile, principal=hostile, client=hostile)
    expect('InvalidTopic', bus.publish, f'{hostile}..x')
    assert 'evil' not in str(client.manager('ListMetrics'))


if __name__ == '__main__':
    suite.main()
