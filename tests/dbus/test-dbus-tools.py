#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Plain gdbus and busctl: each call is a connection of its own."""
import json
import shutil
import subprocess

from harness import BUS, MANAGER, NAME, ROOT, SUBSCRIPTION, Suite, same

suite = Suite()


def gdbus(server, path, member, *arguments):
    return server.run('gdbus', 'call', '--session', '--dest', NAME, '--object-path', path, '--method', member, *arguments).strip()


@suite.test
def gdbus_creates_publishes_and_fetches(server, name):
    path = f'{ROOT}/bus/{name}'
    same(gdbus(server, ROOT, MANAGER + '.GetBus', name), f"(objectpath '{path}',)")
    same(gdbus(server, path, BUS + '.Publish', 'a.b', '{"x": 1}', '{}'),
         "(uint64 1, {'subscriptions': <uint32 0>, 'refused': <uint32 0>, 'evicted': <uint32 0>})")
    same(gdbus(server, path, BUS + '.PublishMany', "[('a', '2', {}), ('b', '3', {'type': <'t'>})]", '{}'),
         "(uint64 2, uint32 2, {'subscriptions': <uint32 0>, 'refused': <uint32 0>, 'evicted': <uint32 0>})")
    text = gdbus(server, path, BUS + '.Fetch', '0', '10', "{'patterns': <['a.*', 'b']>}")
    assert "'{\"x\": 1}'" in text and "'t'" in text and text.count('int64') >= 2, text
    same(gdbus(server, path, BUS + '.Fetch', '3', '10', "{'timeout-ms': <uint32 50>}"), '(@a(tsssxsa{sv}) [],)')


@suite.test
def gdbus_waits_for_an_event(server, name):
    client = server.client()
    bus = client.bus(name)
    process = subprocess.Popen(['gdbus', 'call', '--session', '--dest', NAME, '--object-path', bus.path, '--method', BUS + '.Fetch',
                                '0', '1', "{'timeout-ms': <uint32 20000>}"],
                               env=server.environment, stdout=subprocess.PIPE, text=True)
    while client.test('IsIdle')[0]:
        pass
    bus.publish(data='"here"')
    output = process.communicate()[0]
    assert '"here"' in output, output
    same(process.returncode, 0)


@suite.test
def errors_have_names_in_gdbus(server, name):
    done = subprocess.run(['gdbus', 'call', '--session', '--dest', NAME, '--object-path', ROOT, '--method', MANAGER + '.GetBus', 'a b'],
                          env=server.environment, capture_output=True, text=True, check=False)
    assert done.returncode != 0 and NAME + '.Error.InvalidName' in done.stderr, done


@suite.test
def what_gdbus_introspects(server, name):
    client = server.client()
    bus = client.bus(name)
    subscription = bus.subscribe()

    def introspect(path):
        return server.run('gdbus', 'introspect', '--session', '--xml', '--dest', NAME, '--object-path', path)

    root = introspect(ROOT)
    assert f'interface name="{MANAGER}"' in root and 'interface name="org.freedesktop.DBus.ObjectManager"' in root, root
    assert f'interface name="{BUS}"' in introspect(bus.path)
    assert f'interface name="{SUBSCRIPTION}"' in introspect(subscription.path)
    for path in (bus.path, ROOT):
        assert 'access="write"' not in introspect(path) and 'access="readwrite"' not in introspect(path)


@suite.test
def busctl_reads_it_too(server, name):
    if shutil.which('busctl') is None:
        return 'busctl is missing'
    bus = server.client().bus(name)

    def busctl(*arguments):
        return server.run('busctl', '--address=' + server.address, *arguments)

    same(busctl('call', NAME, bus.path, BUS, 'Publish', 'ssa{sv}', 'a', '1', '1', 'type', 's', 't'),
         'ta{sv} 1 3 "subscriptions" u 0 "refused" u 0 "evicted" u 0\n')
    same(busctl('get-property', NAME, bus.path, BUS, 'LastEventId'), 't 1\n')
    reply = json.loads(busctl('--json=short', 'call', NAME, bus.path, BUS, 'Fetch', 'tua{sv}', '0', '10', '0'))
    same(reply['type'], 'a(tsssxsa{sv})')
    same(reply['data'][0][0][:3], [1, 'a', 't'])
    tree = busctl('tree', '--list', NAME)
    assert bus.path in tree.split('\n'), tree
    return None


suite.main()
