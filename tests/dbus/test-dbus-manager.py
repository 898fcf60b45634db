#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The Manager, the ObjectManager, the paths of buses."""
from harness import (BUS, MANAGER, NAME, OBJECT_MANAGER, PROPERTIES, ROOT, SUBSCRIPTION, Gio, GLib, Server, Suite, expect,
                     same, wait_until)

suite = Suite()
INTROSPECTABLE = 'org.freedesktop.DBus.Introspectable'
PEER = 'org.freedesktop.DBus.Peer'


@suite.test
def properties_are_there(server, name):
    client = server.client()
    same(client.get_all(ROOT, MANAGER), {
        'Version': '0.1.0', 'Capabilities': ['health', 'session_events'],
        'HttpUris': ['http://127.0.0.1:1'], 'HttpTokenFile': '/run/token',
    })


@suite.test
def http_uris_change(server, name):
    client = server.client()
    client.test('SetHttpUris', '(as)', ['unix:/x'])
    same(client.get(ROOT, MANAGER, 'HttpUris'), ['unix:/x'])
    client.test('SetHttpUris', '(as)', [])
    same(client.get(ROOT, MANAGER, 'HttpUris'), [])


@suite.test
def no_property_can_be_set(server, name):
    client = server.client()
    bus = client.bus(name)
    for path, interface, key in ((ROOT, MANAGER, 'Version'), (bus.path, BUS, 'Name')):
        expect('org.freedesktop.DBus.Error.InvalidArgs', client.call, path, PROPERTIES, 'Set', '(ssv)', interface, key,
               GLib.Variant('s', 'x'))


@suite.test
def a_bus_gets_the_path_of_sd_bus(server, name):
    client = server.client()
    for bus, label in (('plain', 'plain'), ('1x1', '_31x1'), ('a-b_c.d~e', 'a_2db_5fc_2ed_7ee'), ('A', 'A'),
                       ('...', '_2e_2e_2e'), ('x' * 255, 'x' * 255)):
        same(client.manager('CreateBus', '(sa{sv})', bus, {})[0], f'{ROOT}/bus/{label}')
        same(client.get(f'{ROOT}/bus/{label}', BUS, 'Name'), bus)


@suite.test
def bad_names_are_refused(server, name):
    client = server.client()
    for bad in ('', '.', '..', 'a b', 'ä', 'a/b', 'x' * 256, 'a\n'):
        expect('InvalidName', client.manager, 'CreateBus', '(sa{sv})', bad, {})
        expect('InvalidName', client.manager, 'GetBus', '(s)', bad)
    expect('InvalidName', client.manager, 'GetBus', '(s)', 'x' * 300, says='255')


@suite.test
def create_takes_every_option(server, name):
    bus = server.client().bus(name, ring_size=5, ring_max_bytes=1000, max_subscribers=1, max_queued_bytes=7,
                              channel_capacity=3, replay_budget_bytes=9)
    same(bus.get('RingSize'), 5)
    info = bus.subscribe().info
    same((info['max-queued-bytes'], info['replay-budget-bytes']), (7, 9))
    expect('SubscriberLimit', bus.subscribe, says='1')


@suite.test
def create_refuses_other_options(server, name):
    client = server.client()

    def create(**options):
        return client.bus(name, **options)

    expect('InvalidOption', create, colour=GLib.Variant('s', 'red'), says=('"colour"', 'ring-size'))
    for key, kind, bad, limit in (
            ('ring_size', 'u', 0, '1000000'), ('ring_size', 'u', 1000001, '1000000'), ('max_subscribers', 'u', 0, '1'),
            ('max_queued_bytes', 't', 0, '1'), ('max_queued_bytes', 't', 2 ** 53, str(2 ** 53 - 1)),
            ('channel_capacity', 'u', 0, '1'), ('ring_max_bytes', 't', 0, '1'),
            ('replay_budget_bytes', 't', 2 ** 53, str(2 ** 53 - 1))):
        expect('InvalidOption', create, **{key: GLib.Variant(kind, bad)}, says=(key.replace('_', '-'), str(bad), limit))
    for key in ('ring_size', 'ring_max_bytes', 'max_subscribers', 'max_queued_bytes', 'channel_capacity',
                'replay_budget_bytes'):
        expect('InvalidOption', create, **{key: GLib.Variant('s', '1')}, says=(key.replace('_', '-'), '"s"'))
    expect('InvalidOption', create, ring_size=GLib.Variant('t', 10), says=('"t"', '"u"'))
    # Nothing of all this made a bus.
    create()


@suite.test
def a_bus_exists_once(server, name):
    client = server.client()
    path = client.manager('GetBus', '(s)', name)[0]
    expect('BusExists', client.manager, 'CreateBus', '(sa{sv})', name, {}, says=name)
    same(client.manager('GetBus', '(s)', name)[0], path)


@suite.test
def two_who_create_at_once_get_one(server, name):
    first, second = server.client(), server.client()
    pending = [client.start(ROOT, MANAGER, 'CreateBus', '(sa{sv})', name, {}) for client in (first, second)]
    wait_until(lambda: all(call.is_done for call in pending))
    same(sorted(call.error.name if call.error else 'made' for call in pending), ['BusExists', 'made'])
    path = first.manager('GetBus', '(s)', name)[0]
    same(second.get(path, BUS, 'Name'), name)


@suite.test
def creating_waits_for_ids_and_says_when_there_are_none(server, name):
    client = server.client()
    client.test('StallIds', '(b)', True)
    waiting = client.start(ROOT, MANAGER, 'GetBus', '(s)', name)
    same(client.get(ROOT, MANAGER, 'Version'), '0.1.0')
    assert not waiting.is_done
    assert not client.test('IsIdle')[0]
    client.test('RefuseIds')
    expect('Unavailable', waiting.wait, says='the test says so')
    waiting = client.start(ROOT, MANAGER, 'GetBus', '(s)', name)
    client.test('StallIds', '(b)', False)
    same(waiting.wait()[0], f'{ROOT}/bus/{name}')


def metric(client, wanted, **labels):
    return [value for name, found, value in client.manager('ListMetrics')[0] if name == wanted and found == labels]


@suite.test
def metrics_are_all_there(server, name):
    client = server.client()
    metrics = client.manager('ListMetrics')[0]
    assert len(metrics) == len({(name, tuple(sorted(labels.items()))) for name, labels, _ in metrics}) > 100
    bus = client.bus(name)
    before = metric(client, 'headway_events_published_total', kind='event')[0]
    bus.publish()
    expect('InvalidTopic', bus.publish, '')
    same(metric(client, 'headway_events_published_total', kind='event'), [before + 1])
    assert metric(client, 'headway_publish_rejected_total', reason='invalid')[0] >= 1
    assert metric(client, 'headway_buses')[0] >= 1
    assert metric(client, 'headway_connections', transport='dbus')[0] >= 1
    same(metric(client, 'headway_receiver_lagged_total', subscriber='sse'), [0])
    # Case 156: what peers choose is nowhere.
    assert name not in str(client.manager('ListMetrics'))


@suite.test
def a_large_call_is_refused(server, name):
    expect('TooLarge', server.client().manager, 'GetBus', '(s)', 'x' * (1024 * 1024), says='1048576')


@suite.test
def wrong_arguments_are_the_business_of_d_bus(server, name):
    client = server.client()
    expect('org.freedesktop.DBus.Error.InvalidArgs', client.manager, 'GetBus', '(u)', 1)
    expect('org.freedesktop.DBus.Error.UnknownMethod', client.manager, 'Destroy')


@suite.test
def buses_are_managed_objects(server, name):
    client = server.client()
    signals = []
    for signal in ('InterfacesAdded', 'InterfacesRemoved'):
        client.connection.signal_subscribe(
            NAME, OBJECT_MANAGER, signal, ROOT, None, Gio.DBusSignalFlags.NONE,
            lambda _c, _s, _p, _i, member, parameters: signals.append((member, *parameters.unpack())))
    bus = client.bus(name, ring_size=4)
    bus.publish()
    wait_until(lambda: any(s[0] == 'InterfacesAdded' and s[1] == bus.path for s in signals))
    added = [s for s in signals if s[1] == bus.path][0]
    same(list(added[2]), [BUS])
    same(added[2][BUS]['RingSize'], 4)
    managed = client.call(ROOT, OBJECT_MANAGER, 'GetManagedObjects')[0]
    assert all(path.startswith(ROOT + '/bus/') for path in managed), managed
    found = managed[bus.path][BUS]
    same({key: found[key] for key in ('Name', 'RingSize', 'LastEventId', 'FirstEventId', 'SubscriberCount')},
         {'Name': name, 'RingSize': 4, 'LastEventId': 1, 'FirstEventId': 1, 'SubscriberCount': 0})
    assert found['RingBytes'] > 0 and found['Epoch']
    bus.call('Close')
    wait_until(lambda: ('InterfacesRemoved', bus.path, [BUS]) in signals)
    assert bus.path not in client.call(ROOT, OBJECT_MANAGER, 'GetManagedObjects')[0]


@suite.test
def without_auto_create_and_with_few_buses(server, name):
    own = Server('--no-auto-create', '--max-buses=2')
    client = own.client()
    expect('NoSuchBus', client.manager, 'GetBus', '(s)', name, says=name)
    client.bus('one')
    client.bus('two')
    expect('QuotaExceeded', client.bus, 'three', says='2')
    client.manager('GetBus', '(s)', 'one')
    same(own.stop(), 0)


@suite.test
def a_service_that_stops_begins_nothing(server, name):
    own = Server()
    client = own.client()
    bus = client.bus(name)
    subscription = bus.subscribe()
    waiting = bus.subscribe().start_receive()
    fetching = bus.start_fetch(timeout_ms=20000)
    bus.publish(data='5')
    same(waiting.wait()[0][0][5], '5')
    same(fetching.wait()[0][0][5], '5')
    waiting = bus.subscribe().start_receive()
    fetching = bus.start_fetch(1, timeout_ms=20000)
    client.test('ShutDown')
    expect('Closed', waiting.wait)
    expect('Closed', fetching.wait)
    for refused in (lambda: client.bus('other'), lambda: client.manager('GetBus', '(s)', name), bus.publish,
                    lambda: bus.publish_many([('a', '1')]), bus.subscribe, bus.fetch, lambda: bus.call('Close'),
                    lambda: bus.call('SetSnapshot', '(s)', '{}')):
        expect('Unavailable', refused)
    # What waits can be read out, and nothing waits any more.
    assert not client.test('IsIdle')[0]
    same(subscription.receive(timeout_ms=20000)[0][5], '5')
    client.test('ShutDownTable')
    expect('Closed', subscription.receive, timeout_ms=20000)
    same(bus.get('Name'), name)
    wait_until(lambda: client.test('IsIdle')[0] or not subscription_left(client, bus))
    same(own.stop(), 0)


def subscription_left(client, bus):
    return client.get(bus.path, BUS, 'SubscriberCount') > 0


@suite.test
def an_object_manager_client_sees_buses_come_and_go(server, name):
    client = server.client()
    first = client.bus(name)
    manager = Gio.DBusObjectManagerClient.new_sync(client.connection, Gio.DBusObjectManagerClientFlags.NONE, NAME, ROOT,
                                                   None, None, None)
    same(manager.get_interface(first.path, BUS).get_cached_property('Name').unpack(), name)
    seen = []
    manager.connect('object-added', lambda _manager, added: seen.append(added.get_object_path()))
    manager.connect('object-removed', lambda _manager, removed: seen.append(removed.get_object_path()))
    second = client.bus(name + 'x')
    wait_until(lambda: seen == [second.path])
    same(manager.get_interface(second.path, BUS).get_cached_property('LastEventId').unpack(), 0)
    second.call('Close')
    wait_until(lambda: seen == [second.path] * 2)


@suite.test
def what_is_not_there_is_refused_by_name(server, name):
    client = server.client()
    bus = client.bus(name)
    unknown, invalid = ('org.freedesktop.DBus.Error.' + error for error in ('UnknownMethod', 'InvalidArgs'))
    for error, says, *call in (
            (invalid, '"x.y"', ROOT, PROPERTIES, 'Get', '(ss)', 'x.y', 'z'),
            (invalid, '"z"', ROOT, PROPERTIES, 'Get', '(ss)', MANAGER, 'z'),
            (invalid, '"(ss)"', ROOT, PROPERTIES, 'Get', '(s)', MANAGER),
            (invalid, '"(s)"', ROOT, PROPERTIES, 'GetAll', '()'),
            (invalid, '""', ROOT, PROPERTIES, 'GetAll', '(s)', ''),
            (invalid, '"z"', ROOT, PROPERTIES, 'Set', '(ssv)', MANAGER, 'z', GLib.Variant('u', 1)),
            (invalid, '"()"', bus.path, INTROSPECTABLE, 'Introspect', '(s)', 'x'),
            (invalid, 'GetBus', ROOT, MANAGER, 'GetBus', '(ss)', 'x', 'y'),
            (unknown, '"/no"', '/no', PROPERTIES, 'GetAll', '(s)', MANAGER),
            (unknown, '"/no"', '/no', MANAGER, 'GetBus', '(s)', 'x'),
            (unknown, '/subscription/4000000000', ROOT + '/subscription/4000000000', SUBSCRIPTION, 'Close'),
            (unknown, '/handler/4000000000', ROOT + '/handler/4000000000', NAME + '.HandlerRegistration', 'Unregister'),
            (unknown, 'Nope', ROOT, MANAGER, 'Nope'),
            (unknown, 'Nope', ROOT, PROPERTIES, 'Nope'),
            (unknown, BUS, ROOT, BUS, 'Close'),
            (unknown, OBJECT_MANAGER, bus.path, OBJECT_MANAGER, 'GetManagedObjects'),
            (unknown, '/diverted', ROOT + '/diverted', NAME + '.Diverted', 'Get', '(sssv)', ROOT, '', 'Get', GLib.Variant('u', 1))):
        expect(error, client.call, *call, says=says)
    same(client.get_all(ROOT, OBJECT_MANAGER), {})
    same(client.call('/no', PEER, 'Ping'), ())
    same(len(client.call(ROOT, PEER, 'GetMachineId')[0]), 32)
    same(client.call('/no', INTROSPECTABLE, 'Introspect')[0].count('node name'), 0)
    assert '<node name="headway"/>' in client.call('/org', INTROSPECTABLE, 'Introspect')[0]
    assert '"diverted"' not in client.call(ROOT, INTROSPECTABLE, 'Introspect')[0]


suite.main()
