# SPDX-License-Identifier: LGPL-2.1-or-later
"""What headwayd keeps for a subscription, for the queue of a principal, for an event in the ring: resident memory of a running
daemon before and after, by so many that pages do not matter."""
import gi

gi.require_version('Gio', '2.0')
from gi.repository import Gio, GLib  # noqa: E402

from contenders import Headway  # noqa: E402

NAME = 'org.headway.Headway1'
BUS = '/org/headway/Headway1/bus/bench'
GIB = 2**30


def connect(contender):
    flags = Gio.DBusConnectionFlags.AUTHENTICATION_CLIENT | Gio.DBusConnectionFlags.MESSAGE_BUS_CONNECTION
    return Gio.DBusConnection.new_for_address_sync(contender.address, flags, None, None)


def call(connection, method, signature, *values):
    return connection.call_sync(NAME, BUS, f'{NAME}.Bus', method, GLib.Variant(signature, values), None, Gio.DBusCallFlags.NONE, 60000, None).unpack()


def lines(count, principal='p0'):
    """@count events of 100 bytes; a `%d` in @principal becomes the number of the event."""
    for i in range(count):
        name = principal % i if '%' in principal else principal
        yield f'{{"type":"t","principal":"{name}","data":"{"x" * 98}"}}\n'.encode()


def of_subscription(_scale):
    per_connection, count = 200, 4000
    with Headway() as contender:
        connections = [connect(contender) for _ in range(count // per_connection)]

        def subscribe(some):
            for connection in some:
                for _ in range(per_connection):
                    call(connection, 'Subscribe', '(asa{sv})', ['site.*.temperature'], {})

        subscribe(connections[:2])
        before = contender.resident()
        subscribe(connections[2:])
        return {'bytes': (contender.resident() - before) / (count - 2 * per_connection)}


def of_principal_queue(_scale):
    count = 10000

    def resident_after(principal):
        with Headway(route_budget_bytes=GIB, route_messages=10**6, route_principal_messages=10**6) as contender:
            connection = connect(contender)
            call(connection, 'Subscribe', '(asa{sv})', [], {'mode': GLib.Variant('s', 'routed')})
            before = contender.resident()
            contender.publish_lines(lines(count, principal))
            return contender.resident() - before

    return {'bytes': (resident_after('principal%d') - resident_after('principal0')) / count}


def of_ring_event(_scale):
    count = 300000
    with Headway(options={'ringSize': 1000000, 'ringMaxBytes': GIB}) as contender:
        contender.publish_lines(lines(count // 10))
        before, ring_before = contender.resident(), contender.ask('GET', '/session/bench')[1]['ringBytes']
        contender.publish_lines(lines(count))
        envelopes = contender.ask('GET', '/session/bench')[1]['ringBytes'] - ring_before
        return {'bytes': (contender.resident() - before - envelopes) / count, 'envelope_bytes': envelopes / count}
