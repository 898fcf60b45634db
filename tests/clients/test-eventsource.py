#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The npm package `eventsource` reads session streams of a real headwayd and comes back to it after restarts."""
import signal
import sys

sys.dont_write_bytecode = True
import harness  # noqa: E402

SCRIPT = 'eventsource/probe.mjs'
CONNECTING, CLOSED = 0, 2


class Source(harness.Node):
    """The driver of the package."""

    def __init__(self, test, daemon, path, *arguments, types='foo', token=None):
        super().__init__(test, SCRIPT, daemon.url + path, '--types', f'{types},state_resync_required,replay_complete,session_closed,client_evicted',
                         '--token', token or daemon.token, *arguments)

    def wait_open(self, count=1):
        self.wait_lines('open', count)

    def sequenced(self):
        """Events with an id."""
        return [line for line in self.of('event') if 'id' in line['envelope']]

    def wait_sequenced(self, count):
        self.wait(lambda: sum(line['kind'] == 'event' and 'id' in line['envelope'] for line in self.lines) >= count, f'{count} events')

    def data(self):
        return [line['envelope']['data'] for line in self.sequenced()]

    def ids(self):
        return [line['envelope']['id'] for line in self.sequenced()]

    def requests(self):
        """The cursors of all requests."""
        return [line['lastEventId'] for line in self.of('request')]


class EventSources(harness.SharedCase):
    def setUp(self):
        self.name = self.id().rpartition('.test_')[2]
        self.path = f'/session/{self.name}/events'

    def source(self, query='', **options):
        return Source(self, self.shared, self.path + query, **options)

    def test_receives_with_a_token_header(self):
        self.shared.bus(self.name)
        source = self.source()
        source.wait_open()
        ids = self.shared.publish_many(self.name, range(300)) + [self.shared.post(self.name, 300), self.shared.publish(self.name, data=301)]
        source.wait_sequenced(302)
        self.assertEqual(ids, list(range(1, 303)))
        self.assertEqual(source.ids(), ids)
        self.assertEqual(source.data(), list(range(302)))
        self.assertEqual([line['id'] for line in source.sequenced()], [str(number) for number in ids])
        self.assertEqual({line['origin'] for line in source.sequenced()}, {self.shared.url})
        self.assertEqual(source.of('response'), [{'kind': 'response', 'status': 200, 'epoch': self.shared.get(self.name, 'Epoch')}])
        self.assertEqual(source.requests(), [None])

    def test_types_become_event_types(self):
        self.shared.bus(self.name)
        source = self.source(types='foo,org.example:done/1')
        source.wait_open()
        self.shared.publish(self.name, type='message', data={'text': 'a\r\nb \u2028 \U0001f600'})
        self.shared.publish(self.name, type='nobody.listens', data=2)
        self.shared.publish(self.name, type='org.example:done/1', data=3)
        self.shared.publish(self.name, type='foo', data=None)
        source.wait_sequenced(3)
        self.assertEqual([(line['type'], line['id'], line['envelope']['data']) for line in source.sequenced()],
                         [('message', '1', {'text': 'a\r\nb \u2028 \U0001f600'}), ('org.example:done/1', '3', 3), ('foo', '4', None)])

    def test_filter_of_topics(self):
        self.shared.bus(self.name)
        source = self.source('?topic=build.*&types=foo')
        source.wait_open()
        for topic in ('test.a', 'build.a', 'build', 'build.b.c'):
            self.shared.publish(self.name, topic=topic, data=topic)
        self.shared.publish(self.name, topic='build.d', type='bar')
        self.shared.publish(self.name, topic='build.e', data='build.e')
        source.wait_sequenced(3)
        self.assertEqual(source.data(), ['build.a', 'build.b.c', 'build.e'])

    def check_final(self, source, status):
        """One request, an error with the status, and node has nothing left to do: no second request can ever come."""
        self.assertEqual(source.wait_exit(), 0)
        self.assertEqual(source.of('response')[-1]['status'], status)
        self.assertEqual(source.of('error')[-1], {'kind': 'error', 'status': status, 'readyState': CLOSED})

    def test_unknown_bus_is_final(self):
        source = self.source()
        self.check_final(source, 404)
        self.assertEqual(source.requests(), [None])

    def test_wrong_token_is_final(self):
        self.shared.bus(self.name)
        source = self.source(token='wrong')
        self.check_final(source, 401)
        self.assertEqual(source.requests(), [None])

    def test_bad_parameter_is_final(self):
        self.shared.bus(self.name)
        source = self.source('?maxQueued=15')
        self.check_final(source, 400)
        self.assertEqual(source.requests(), [None])

    def test_full_bus_is_final(self):
        self.shared.bus(self.name, max_subscribers=1)
        stream = self.shared.open_stream(self.name)
        self.addCleanup(stream.close)
        source = self.source()
        self.check_final(source, 429)
        self.assertEqual(source.requests(), [None])

    def test_closed_bus_is_final(self):
        """The stream ends cleanly, so the client comes back once, and is told that the bus is gone."""
        self.shared.bus(self.name)
        source = self.source()
        source.wait_open()
        self.shared.publish(self.name)
        self.assertEqual(self.shared.http('DELETE', f'/session/{self.name}').status, 204)
        self.check_final(source, 404)
        self.assertEqual(source.requests(), [None, '2'])
        self.assertEqual([line['type'] for line in source.sequenced()], ['foo', 'session_closed'])


class Restarts(harness.Case):
    def frames(self, source):
        return [line['type'] if 'id' not in line['envelope'] else line['envelope']['id'] for line in source.of('event')]

    def test_comes_back_after_a_clean_stop(self):
        daemon = self.daemon()
        daemon.bus('b')
        epoch = daemon.get('b', 'Epoch')
        sources = [Source(self, daemon, '/session/b/events') for _ in range(3)]
        for source in sources:
            source.wait_open()
        # The stop finds these on the way.
        daemon.publish_many('b', range(200))
        daemon.restart()
        self.assertNotEqual(daemon.get('b', 'Epoch'), epoch)
        daemon.publish_many('b', range(200, 230))
        for source in sources:
            source.wait_open(2)
        daemon.post('b', 230)
        for source in sources:
            source.wait_sequenced(231)
            self.assertEqual(source.data(), list(range(231)))
            self.assertEqual(source.ids(), list(range(1, 232)))
            self.assertEqual(source.requests()[-1], '200')
            # A cursor at the mark that the stop has kept misses nothing.
            self.assertNotIn('state_resync_required', self.frames(source))
            replay = source.of('event', type='replay_complete')
            self.assertEqual([line['envelope']['data']['replayedCount'] for line in replay], [30])
            self.assertEqual([line['readyState'] for line in source.of('error')], [CONNECTING] * len(source.of('error')))

    def test_comes_back_after_a_kill(self):
        daemon = self.daemon()
        daemon.bus('b')
        source = Source(self, daemon, '/session/b/events')
        source.wait_open()
        daemon.publish_many('b', range(200))
        source.wait_sequenced(200)
        daemon.restart(signal.SIGKILL)
        ids = daemon.publish_many('b', range(200, 230))
        source.wait_open(2)
        ids.append(daemon.publish('b', data=230))
        source.wait_sequenced(231)
        self.assertEqual(source.data(), list(range(231)))
        self.assertGreater(ids[0], 200)
        self.assertEqual(source.ids(), list(range(1, 201)) + list(range(ids[0], ids[0] + 31)))
        self.assertEqual(source.requests()[-1], '200')
        resync, = source.of('event', type='state_resync_required')
        self.assertEqual(resync['envelope']['data'], {'reason': 'ring_evicted', 'lastDeliveredId': 200, 'earliestAvailableId': ids[0]})
        self.assertEqual(resync['id'], '')

    def test_comes_back_time_and_again(self):
        daemon = self.daemon()
        daemon.bus('b')
        source = Source(self, daemon, '/session/b/events')
        source.wait_open()
        count = 0
        for number, stop in enumerate((signal.SIGTERM, signal.SIGKILL, signal.SIGTERM)):
            daemon.publish_many('b', range(count, count + 10))
            count += 10
            source.wait_sequenced(count)
            daemon.restart(stop)
            source.wait_open(number + 2)
        daemon.publish('b', data=count)
        source.wait_sequenced(count + 1)
        self.assertEqual(source.data(), list(range(count + 1)))
        self.assertEqual(source.ids(), sorted(set(source.ids())))

    def evict(self, daemon, is_late):
        """Evicts a reader that stands still, then lets it go on, in time or @is_late; returns it."""
        daemon.bus('b')
        source = Source(self, daemon, '/session/b/events?maxQueued=16')
        source.wait_open()
        source.pause()
        count = 0
        while daemon.subscribers('b') == 1:
            self.assertLess(count, 400)
            daemon.publish('b', data=[count, 'x' * 60000])
            count += 1
        if is_late:
            harness.wait_for(lambda: '01' not in daemon.connections(), 'the reset')
        source.resume()
        source.wait_open(2)
        daemon.publish('b', data=[count, ''])
        source.wait_sequenced(count + 1)
        self.assertEqual([number for number, _ in source.data()], list(range(count + 1)))
        self.assertEqual(source.ids(), list(range(1, count + 2)))
        return source

    def test_comes_back_after_an_eviction(self):
        source = self.evict(self.daemon('principal-bytes-per-second=0\n'), False)
        eviction, = source.of('event', type='client_evicted')
        self.assertEqual(source.requests()[1], str(eviction['envelope']['data']['lastDeliveredId']))

    def test_comes_back_after_a_reset(self):
        """It missed the time to read its last frame: the connection is torn, and nothing is lost all the same."""
        source = self.evict(self.daemon('principal-bytes-per-second=0\ndrain-window-ms=300\n'), True)
        self.assertEqual(source.of('event', type='client_evicted'), [])


if __name__ == '__main__':
    harness.main(harness.missing(('node', 'nodejs'), has_packages=True))
