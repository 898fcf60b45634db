#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The published client @qwen-code/sdk reads session streams of a real headwayd. Numbers are those of the cases in the contract."""
import itertools
import json
import re
import signal
import sys
import time

sys.dont_write_bytecode = True
import harness  # noqa: E402

SCRIPT = 'qwen-sdk/probe.mjs'
EVENT_CEILING = 5242880
STREAM_ID = re.compile(r'[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}')


class Probe(harness.Node):
    """The driver of the SDK, and what it says about a stream."""

    def __init__(self, test, daemon, bus, *arguments):
        super().__init__(test, SCRIPT, daemon.url, bus, '--token', daemon.token, '--timeout', harness.PATIENCE * 1000, *arguments)

    def wait_open(self, count=1):
        """An accepted stream: the subscription is there. Each is told twice, with the epoch and with the stream id."""
        return self.wait_lines('open', count)

    def events(self, **members):
        return [line['event'] for line in self.of('event', **members)]

    def ids(self, **members):
        return [event['id'] for event in self.events(**members) if 'id' in event]

    def frames(self, **members):
        """Ids of events, types of frames without one, in their order."""
        return [event.get('id', event['type']) for event in self.events(**members)]

    def lines_of_type(self, kind):
        return [line for line in self.of('event') if line['event']['type'] == kind]

    def wait_ids(self, count):
        self.wait(lambda: sum('id' in line['event'] for line in self.lines if line['kind'] == 'event') >= count, f'{count} ids')

    def end(self):
        return self.of('end')[-1]


class Streams(harness.SharedCase):
    settings = 'principal-bytes-per-second=0\nuid-bytes-per-second=0\n'

    def setUp(self):
        self.name = 'case-' + self.id().rpartition('.test_')[2]

    def probe(self, *arguments):
        return Probe(self, self.shared, self.name, *arguments)

    def check_resync(self, probe, reason, last, earliest, detail=None):
        """96: the SDK knows the one resync frame, whose numbers are all there. Returns what follows it."""
        frames = probe.of('event')
        self.assertEqual(frames[0]['event']['type'], 'state_resync_required')
        wanted = {'reason': reason, 'lastDeliveredId': last, 'earliestAvailableId': earliest}
        if detail is not None:
            wanted['detail'] = detail
        self.assertEqual(frames[0]['event']['data'], wanted)
        self.assertNotIn('id', frames[0]['event'])
        self.assertTrue(frames[0]['known'])
        self.assertTrue(frames[0]['awaitingResync'])
        self.assertEqual(len(probe.lines_of_type('state_resync_required')), 1)
        return probe.frames()[1:]

    def test_91_three_live_events(self):
        self.shared.bus(self.name)
        probe = self.probe('--count', 3)
        opened = probe.wait_open(2)
        self.assertEqual([line['epoch'] for line in opened if 'epoch' in line], [self.shared.get(self.name, 'Epoch')])
        self.assertEqual(len([line for line in opened if STREAM_ID.fullmatch(line.get('streamId') or '')]), 1)
        self.assertEqual(self.shared.publish(self.name, data={'text': 'a \u2028 "line" \U0001f600'}), 1)
        self.assertEqual(self.shared.post(self.name, [1, None, 'x\r\ny']), 2)
        self.assertEqual(self.shared.publish(self.name, meta='{"serverTimestamp":1,"source":"t"}'), 3)
        self.assertEqual(probe.wait_exit(), 0)
        events = probe.events()
        self.assertEqual([event['data'] for event in events], [{'text': 'a \u2028 "line" \U0001f600'}, [1, None, 'x\r\ny'], 1])
        self.assertEqual([(event['id'], event['v'], event['type']) for event in events], [(1, 1, 'foo'), (2, 1, 'foo'), (3, 1, 'foo')])
        self.assertEqual(events[2]['_meta'], {'serverTimestamp': 1, 'source': 't'})
        self.assertEqual(probe.end()['view']['unrecognizedKnown'], 0)
        self.shared.wait_subscribers(self.name, 0)

    def test_92_max_queued_out_of_range(self):
        self.shared.bus(self.name)
        for number in (15, 2049):
            probe = self.probe('--max-queued', number)
            self.assertEqual(probe.wait_exit(), 3)
            error = probe.of('error')[0]
            self.assertEqual((error['status'], error['body']['code']), (400, 'invalid_max_queued'))
            self.assertIsInstance(error['body']['error'], str)
        for number in (16, 2048):
            probe = self.probe('--max-queued', number, '--count', 1)
            probe.wait_open()
            self.shared.publish(self.name)
            self.assertEqual(probe.wait_exit(), 0)

    def test_92_full_bus(self):
        self.shared.bus(self.name)
        streams = [self.shared.open_stream(self.name) for _ in range(64)]
        try:
            self.assertEqual(self.shared.subscribers(self.name), 64)
            probe = self.probe('--count', 1)
            self.assertEqual(probe.wait_exit(), 3)
            error = probe.of('error')[0]
            self.assertEqual((error['status'], error['body']['code'], error['body']['limit']), (429, 'subscriber_limit_exceeded', 64))
            streams.pop().close()
            self.shared.wait_subscribers(self.name, 63)
            probe = self.probe('--count', 1)
            probe.wait_open()
            self.shared.publish(self.name)
            self.assertEqual(probe.wait_exit(), 0)
        finally:
            for stream in streams:
                stream.close()

    def test_92_unknown_bus(self):
        probe = self.probe('--count', 1)
        self.assertEqual(probe.wait_exit(), 3)
        error = probe.of('error')[0]
        self.assertEqual((error['status'], error['body']['code'], error['body']['sessionId']), (404, 'session_not_found', self.name))

    def test_92_wrong_token(self):
        self.shared.bus(self.name)
        probe = self.probe('--token', 'wrong')
        self.assertEqual(probe.wait_exit(), 3)
        self.assertEqual(probe.of('error')[0]['status'], 401)

    def test_93_session_mode_resumes(self):
        self.shared.bus(self.name)
        self.shared.publish_many(self.name, range(4))
        probe = self.probe('--mode', 'session', '--last', 1, '--rounds', 2, '--break-after', 3)
        probe.wait_lines('event', 2, round=1)
        # The third event of the second round lets it end.
        self.shared.publish(self.name)
        self.assertEqual(probe.wait_exit(), 0)
        self.assertEqual(probe.frames(round=0), [2, 3, 4])
        self.assertEqual(probe.frames(round=1), [4, 'replay_complete', 5])
        self.assertEqual(probe.events(round=1)[1]['data'], {'replayedCount': 1, 'lastReplayedEventId': 4, 'lastEventId': 4})
        epoch = self.shared.get(self.name, 'Epoch')
        first, second = (line['sent'] for line in probe.of('state'))
        self.assertEqual(first['headers']['last-event-id'], '1')
        self.assertEqual(second['headers']['last-event-id'], '3')
        self.assertEqual(second['headers']['x-qwen-event-epoch'], epoch)
        self.assertEqual([line['epoch'] for line in probe.of('open')], [epoch, epoch])

    def test_94_ring_loss_latches_the_view(self):
        self.shared.bus(self.name, ring_size=3)
        self.shared.publish_many(self.name, range(5))
        probe = self.probe('--last', 0, '--count', 5)
        self.assertEqual(probe.wait_exit(), 0)
        self.assertEqual(self.check_resync(probe, 'ring_evicted', 0, 3), [3, 4, 5, 'replay_complete'])
        self.assertTrue(all(line['awaitingResync'] for line in probe.of('event')))
        self.assertEqual(probe.events()[4]['data'], {'replayedCount': 3, 'lastReplayedEventId': 5, 'lastEventId': 5})
        self.assertEqual(probe.end()['view']['resync'], 1)

    def test_96_resync_of_an_epoch_without_token(self):
        self.shared.bus(self.name)
        self.shared.publish_many(self.name, range(3))
        probe = self.probe('--last', 2**53 - 1, '--count', 5)
        self.assertEqual(probe.wait_exit(), 0)
        self.assertEqual(self.check_resync(probe, 'epoch_reset', 2**53 - 1, 1), [1, 2, 3, 'replay_complete'])

    def test_96_resync_of_an_epoch_with_token(self):
        self.shared.bus(self.name)
        self.shared.publish_many(self.name, range(3))
        probe = self.probe('--last', 2, '--epoch', 'of-another-life', '--count', 5)
        self.assertEqual(probe.wait_exit(), 0)
        self.assertEqual(self.check_resync(probe, 'epoch_reset', 2, 1, 'epoch_mismatch'), [1, 2, 3, 'replay_complete'])

    def test_96_resync_behind_seeded_ids(self):
        self.shared.bus(self.name)
        self.shared.publish_many(self.name, range(2), seed=True)
        probe = self.probe('--last', 0, '--count', 3)
        probe.wait_lines('event', 2)
        self.shared.publish(self.name)
        self.assertEqual(probe.wait_exit(), 0)
        self.assertEqual(self.check_resync(probe, 'seeded_replay_not_in_ring', 0, 3), ['replay_complete', 3])

    def test_96_resync_of_a_replay_budget(self):
        self.shared.bus(self.name, replay_budget_bytes=400)
        self.shared.publish_many(self.name, ['x' * 100] * 5)
        probe = self.probe('--last', 0, '--count', 4)
        self.assertEqual(probe.wait_exit(), 0)
        self.assertEqual(probe.frames(), [1, 2, 'state_resync_required', 'replay_complete'])
        line = probe.of('event')[2]
        self.assertEqual(line['event']['data'], {'reason': 'replay_budget_exceeded', 'lastDeliveredId': 2, 'earliestAvailableId': 3})
        self.assertTrue(line['known'])

    def test_96_no_resync_where_nothing_is_missing(self):
        self.shared.bus(self.name)
        self.shared.publish_many(self.name, range(3))
        for last, wanted in ((0, [1, 2, 3]), (2, [3]), (3, [])):
            probe = self.probe('--last', last, '--epoch', self.shared.get(self.name, 'Epoch'), '--count', len(wanted) + 1)
            self.assertEqual(probe.wait_exit(), 0)
            self.assertEqual(probe.frames(), wanted + ['replay_complete'])
            self.assertEqual(probe.end()['view']['resync'], 0)

    def test_97_eviction_while_the_client_stands_still(self):
        self.shared.bus(self.name)
        probe = self.probe('--max-queued', 16)
        probe.wait_open()
        probe.pause()
        last = self.publish_until_evicted()
        probe.resume()
        self.assertEqual(probe.wait_exit(), 0)
        view = probe.end()['view']
        self.assertEqual((view['terminal'], view['alive'], view['unrecognizedKnown']), ('client_evicted', False, 0))
        frames = probe.frames()
        ids = probe.ids()
        self.assertEqual(ids, list(range(1, len(ids) + 1)))
        self.assertEqual(frames[-1], 'client_evicted')
        warning = probe.lines_of_type('slow_client_warning')[-1]
        eviction, = probe.lines_of_type('client_evicted')
        self.assertTrue(warning['known'] and eviction['known'])
        data = eviction['event']['data']
        self.assertIn(data['reason'], ('queue_overflow', 'queue_bytes_overflow'))
        self.assertEqual((data['maxQueued'], data['lastDeliveredId'], data['droppedAfter']), (16, ids[-1], ids[-1] + 1))
        self.assertLess(ids[-1], last)
        self.assertEqual(warning['event']['data']['maxQueued'], 16)

    def publish_until_evicted(self):
        for number in itertools.count():
            last = self.shared.publish(self.name, data='x' * 60000)
            if self.shared.subscribers(self.name) == 0:
                return last
            self.assertLess(number, 2000)

    def test_98_types_of_our_own(self):
        self.shared.bus(self.name)
        probe = self.probe('--mode', 'session')
        probe.wait_open()
        self.shared.publish(self.name, topic='org.example.build.done', type='org.example:done/1')
        self.shared.post(self.name, {'ok': True}, topic='org.example.build.done', type='a.b')
        self.shared.publish(self.name, topic='room.1', type='message', principal='agent.7')
        self.assertEqual(self.shared.http('DELETE', f'/session/{self.name}').status, 204)
        self.assertEqual(probe.wait_exit(), 0)
        self.assertEqual([line['known'] for line in probe.of('event')], [False, False, False, True])
        events = probe.events()
        self.assertEqual([(event['id'], event['type']) for event in events],
                         [(1, 'org.example:done/1'), (2, 'a.b'), (3, 'message'), (4, 'session_closed')])
        self.assertEqual((events[0]['topic'], events[2]['principal']), ('org.example.build.done', 'agent.7'))
        self.assertEqual(events[3]['data'], {'sessionId': self.name, 'reason': 'closed'})
        self.assertEqual(probe.of('state')[0]['cursor'], 4)
        self.assertEqual(probe.end()['view']['lastEventId'], 4)
        self.assertEqual(self.probe().wait_exit(), 3)


class Daemons(harness.Case):
    """Cases that need a daemon of a certain kind, or stop it."""

    def test_52_every_id_of_the_new_epoch_after_a_crash(self):
        daemon = self.daemon(is_activated=True)
        daemon.bus('b')
        epoch = daemon.get('b', 'Epoch')
        self.assertEqual(daemon.publish_many('b', range(50))[-1], 50)
        daemon.restart(signal.SIGKILL)
        ids = [daemon.publish('b', data=number) for number in range(6)]
        self.assertGreater(ids[0], 50)
        self.assertNotEqual(daemon.get('b', 'Epoch'), epoch)
        probe = Probe(self, daemon, 'b', '--mode', 'session', '--last', 50, '--epoch', epoch, '--rounds', 3, '--break-after', 4)
        # One event comes twice at each seam: the resync and 3, then 4, then 1, the end of the replay and 2 live ones.
        probe.wait_lines('event', 2, round=2)
        ids += [daemon.publish('b', data=6), daemon.post('b', 7)]
        self.assertEqual(probe.wait_exit(), 0)
        self.check_ids(probe, ids)
        self.assertEqual(probe.events()[0]['data'],
                         {'reason': 'epoch_reset', 'detail': 'epoch_mismatch', 'lastDeliveredId': 50, 'earliestAvailableId': ids[0]})

    def test_52_every_id_over_restarts_in_mid_stream(self):
        """Each round of the session ends with the life of a daemon; the next finds the same socket."""
        daemon = self.daemon(is_activated=True)
        daemon.bus('b')
        probe = Probe(self, daemon, 'b', '--mode', 'session', '--rounds', 4)
        probe.wait_open()
        ids = []
        for number, stop in enumerate((signal.SIGTERM, signal.SIGKILL, signal.SIGTERM)):
            ids += daemon.publish_many('b', range(50))
            ids += [daemon.post('b', value) for value in range(5)]
            if stop == signal.SIGKILL:
                # What nobody has yet dies with the daemon; what a stop finds on the way is drained.
                probe.wait(lambda: ids[-1] in [line['event'].get('id') for line in probe.lines if line['kind'] == 'event'], 'the last id')
            daemon.restart(stop)
            ids += daemon.publish_many('b', range(20))
            probe.wait_open(number + 2)
        ids += [daemon.post('b', 'last')]
        daemon.http('DELETE', '/session/b')
        probe.wait_exit()
        self.assertEqual(probe.events()[-1]['type'], 'session_closed')
        self.check_ids(probe, ids + [ids[-1] + 1])
        self.assertEqual([line['round'] for line in probe.of('error')], [1])
        cursors = [int(line['sent']['headers'].get('last-event-id', 0)) for line in probe.of('state')]
        self.assertEqual(cursors, sorted(cursors))

    def check_ids(self, probe, ids):
        """Every id once or twice, none missing, none unknown; ids have gone up all the time."""
        self.assertEqual(ids, sorted(set(ids)))
        seen = probe.ids()
        self.assertEqual(sorted(set(seen)), ids)
        self.assertLessEqual(max(map(seen.count, ids)), 2)
        self.assertEqual([line for line in probe.lines_of_type('state_resync_required') if not line['known']], [])

    def test_95_event_at_the_ceiling(self):
        daemon = self.daemon(f'event-max-bytes={EVENT_CEILING}\nprincipal-bytes-per-second=0\nuid-bytes-per-second=0\n')
        daemon.bus('b')
        probe = Probe(self, daemon, 'b')
        probe.wait_open()
        text = 'x' * (EVENT_CEILING - len('foo') - 2)
        self.assertEqual(daemon.publish('b', data=text), 1)
        probe.wait_ids(1)
        with self.assertRaises(harness.Refused) as refused:
            daemon.publish('b', data=text + 'x')
        self.assertEqual(refused.exception.name, 'TooLarge')
        answer = daemon.http('POST', '/session/b/events', {'data': text + 'x', 'type': 'foo'})
        self.assertEqual((answer.status, answer.json()['code']), (413, 'too_large'))
        self.assertEqual(daemon.post('b', text), 2)
        probe.wait_ids(2)
        self.assertEqual(daemon.http('DELETE', '/session/b').status, 204)
        self.assertEqual(probe.wait_exit(), 0)
        self.assertEqual(probe.ids(), [1, 2, 3])
        self.assertEqual([len(event['data']) for event in probe.events() if event['type'] == 'foo'], [len(text)] * 2)

    def test_95_more_than_the_ceiling_cannot_be_set(self):
        """The setting is out of range: either the daemon does not start, or the ceiling holds all the same."""
        try:
            daemon = self.daemon(f'event-max-bytes={EVENT_CEILING + 1000}\nprincipal-bytes-per-second=0\nuid-bytes-per-second=0\n')
        except AssertionError as error:
            self.assertIn('exit status 1', str(error))
            return
        daemon.bus('b')
        with self.assertRaises(harness.Refused) as refused:
            daemon.publish('b', data='x' * (EVENT_CEILING - len('foo') - 1))
        self.assertEqual(refused.exception.name, 'TooLarge')

    def test_99_daemon_that_answers_a_second_late(self):
        daemon = self.daemon()
        daemon.bus('b')
        daemon.publish_many('b', range(2))
        daemon.process.send_signal(signal.SIGSTOP)
        probe = Probe(self, daemon, 'b', '--last', 0, '--count', 4, '--connect-timeout', 20000)
        harness.wait_for(lambda: '01' in daemon.connections(), 'the connection')
        time.sleep(1)
        self.assertEqual(probe.lines, [])
        daemon.process.send_signal(signal.SIGCONT)
        probe.wait_lines('event', 3)
        daemon.publish('b')
        self.assertEqual(probe.wait_exit(), 0)
        self.assertEqual(probe.frames(), [1, 2, 'replay_complete', 3])

    def test_100_killed_in_the_middle_of_a_frame(self):
        daemon = self.daemon('principal-bytes-per-second=0\n')
        daemon.bus('b', max_queued_bytes=2**26)
        probe = Probe(self, daemon, 'b')
        probe.wait_open()
        daemon.publish('b')
        probe.wait_ids(1)
        probe.pause()
        self.publish_more_than_buffers(daemon)
        daemon.stop(signal.SIGKILL)
        probe.resume()
        self.check_torn(probe)

    def test_100_reader_that_misses_the_drain_window(self):
        daemon = self.daemon('drain-window-ms=300\nprincipal-bytes-per-second=0\n')
        daemon.bus('b')
        probe = Probe(self, daemon, 'b', '--max-queued', 16)
        probe.wait_open()
        daemon.publish('b')
        probe.wait_ids(1)
        probe.pause()
        for _ in range(100):
            daemon.publish('b', data='x' * 300000)
            if daemon.subscribers('b') == 0:
                break
        self.assertEqual(daemon.subscribers('b'), 0)
        harness.wait_for(lambda: '01' not in daemon.connections(), 'the reset')
        probe.resume()
        self.check_torn(probe)

    def test_100_clean_stop_while_the_reader_stands_still(self):
        daemon = self.daemon('drain-window-ms=300\nprincipal-bytes-per-second=0\n')
        daemon.bus('b', max_queued_bytes=2**26)
        probe = Probe(self, daemon, 'b')
        probe.wait_open()
        daemon.publish('b')
        probe.wait_ids(1)
        probe.pause()
        self.publish_more_than_buffers(daemon)
        daemon.stop()
        probe.resume()
        self.check_torn(probe)

    def publish_more_than_buffers(self, daemon):
        """The kernel takes some megabytes for a reader that stands still."""
        for _ in range(16):
            daemon.publish('b', data='x' * 1000000)
        self.assertEqual(daemon.subscribers('b'), 1)

    def check_torn(self, probe):
        """The SDK throws; what it got before are whole events in order."""
        self.assertEqual(probe.wait_exit(), 3, json.dumps(probe.frames()))
        self.assertEqual(probe.of('error')[0]['name'], 'TypeError')
        ids = probe.ids()
        self.assertEqual(ids, list(range(1, len(ids) + 1)))
        self.assertIsNone(probe.end()['view'].get('terminal'))


if __name__ == '__main__':
    harness.main(harness.missing(('node', 'nodejs'), has_packages=True))
