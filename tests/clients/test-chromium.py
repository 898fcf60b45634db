#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Chromium's own EventSource and fetch read session streams of a real headwayd from a page of another origin."""
import json
import signal
import sys

sys.dont_write_bytecode = True
import chromium  # noqa: E402
import harness  # noqa: E402

CONNECTING, CLOSED = 0, 2
# An EventSource keeps what it hears in `heard`; `until` waits for a condition on it.
PAGE = '''<!doctype html><title>Headway</title><script>
const heard = [];
let source;
let wake = () => {};
function keep(line) { heard.push(line); wake(); }
function listen(url, types) {
  source = new EventSource(url);
  source.onopen = () => keep({ kind: 'open' });
  source.onerror = () => keep({ kind: 'error', readyState: source.readyState });
  for (const type of types)
    source.addEventListener(type, (event) => keep({ kind: 'event', type: event.type, id: event.lastEventId, origin: event.origin,
                                                    envelope: JSON.parse(event.data) }));
}
function until(condition) {
  return new Promise((resolve) => { wake = () => { if (condition()) resolve(true); }; wake(); });
}
const sequenced = () => heard.filter((line) => line.kind === 'event' && 'id' in line.envelope);
const count = (kind) => heard.filter((line) => line.kind === kind).length;
</script>'''


class Tab:
    """A page with an EventSource."""

    def __init__(self, browser, url):
        self.page = browser.open(url)

    def listen(self, url, types=('foo', 'state_resync_required', 'replay_complete', 'session_closed')):
        self.page.run(f'listen({json.dumps(url)}, {json.dumps(types)})')

    def wait(self, condition):
        self.page.run(f'until(() => {condition})')

    def wait_open(self, count=1):
        self.wait(f'count("open") >= {count}')

    def wait_sequenced(self, count):
        self.wait(f'sequenced().length >= {count}')

    def of(self, kind):
        return [line for line in self.page.run('heard') if line['kind'] == kind]

    def sequenced(self):
        return [line for line in self.of('event') if 'id' in line['envelope']]

    def data(self):
        return [line['envelope']['data'] for line in self.sequenced()]

    def ids(self):
        return [line['envelope']['id'] for line in self.sequenced()]

    def cursors(self):
        """The cursors of all requests that went out; Chromium tells of them in its own time."""
        return [headers.get('last-event-id') for headers in self.page.requests('/events')]

    def wait_cursor(self, cursor):
        harness.wait_for(lambda: self.cursors()[-1:] == [cursor], f'a request with the cursor {cursor}')


class Pages(harness.Case):
    @classmethod
    def setUpClass(cls):
        cls.browser = chromium.Chromium()
        cls.addClassCleanup(cls.browser.tear_down)
        cls.origin = chromium.Origin(PAGE)
        cls.addClassCleanup(cls.origin.tear_down)
        cls.allowed = f'http://127.0.0.1:{cls.origin.port}'
        # The same server under its other name is another origin.
        cls.foreign = f'http://localhost:{cls.origin.port}'

    def setUp(self):
        self.events = None

    def start(self, *arguments):
        """A daemon with a bus that pages of the allowed origin may read. EventSource cannot send a token."""
        daemon = self.daemon(f"http-allowed-origins=['{self.allowed}']\n", arguments=arguments or ['--http-auth=none'])
        daemon.bus('b')
        self.events = f'{daemon.url}/session/b/events'
        return daemon

    def tab(self, origin=None):
        return Tab(self.browser, (origin or self.allowed) + '/')

    def test_receives_named_events(self):
        daemon = self.start()
        tab = self.tab()
        tab.listen(self.events, ('foo', 'message', 'org.example:done/1'))
        tab.wait_open()
        daemon.publish('b', data={'text': 'a\r\nb \u2028 \U0001f600'})
        daemon.post('b', 2, type='org.example:done/1')
        daemon.publish('b', type='message', data=3)
        daemon.publish('b', type='nobody.listens', data=4)
        daemon.publish('b', data=5)
        tab.wait_sequenced(4)
        self.assertEqual([(line['type'], line['id'], line['envelope']['data']) for line in tab.sequenced()],
                         [('foo', '1', {'text': 'a\r\nb \u2028 \U0001f600'}), ('org.example:done/1', '2', 2), ('message', '3', 3), ('foo', '5', 5)])
        self.assertEqual({line['origin'] for line in tab.sequenced()}, {daemon.url})
        daemon.publish_many('b', range(6, 400))
        tab.wait_sequenced(398)
        self.assertEqual(tab.data()[4:], list(range(6, 400)))
        tab.wait_cursor(None)
        self.assertEqual(tab.cursors(), [None])

    def check_come_back(self, tab, daemon, count):
        """Everything exactly once, whatever the daemon did; and the last connection began behind the last event before."""
        daemon.publish('b', data=count)
        tab.wait_sequenced(count + 1)
        self.assertEqual(tab.data(), list(range(count + 1)))
        self.assertEqual(tab.ids(), sorted(set(tab.ids())))
        self.assertEqual({line['readyState'] for line in tab.of('error')}, {CONNECTING})

    def test_comes_back_after_a_clean_stop(self):
        daemon = self.start()
        tab = self.tab()
        tab.listen(self.events)
        tab.wait_open()
        # The stop finds these on the way.
        daemon.publish_many('b', range(200))
        daemon.restart()
        daemon.publish_many('b', range(200, 230))
        tab.wait_open(2)
        self.check_come_back(tab, daemon, 230)
        self.assertEqual(tab.ids(), list(range(1, 232)))
        tab.wait_cursor('200')
        self.assertNotIn('state_resync_required', [line['type'] for line in tab.of('event')])

    def test_comes_back_after_a_kill_and_again(self):
        daemon = self.start()
        tab = self.tab()
        tab.listen(self.events)
        tab.wait_open()
        daemon.publish_many('b', range(200))
        tab.wait_sequenced(200)
        daemon.restart(signal.SIGKILL)
        ids = daemon.publish_many('b', range(200, 230))
        tab.wait_open(2)
        tab.wait_sequenced(230)
        tab.wait_cursor('200')
        resync = [line for line in tab.of('event') if line['type'] == 'state_resync_required']
        self.assertEqual([line['envelope']['data'] for line in resync],
                         [{'reason': 'ring_evicted', 'lastDeliveredId': 200, 'earliestAvailableId': ids[0]}])
        daemon.restart(signal.SIGKILL)
        tab.wait_open(3)
        tab.wait_cursor(str(ids[-1]))
        self.check_come_back(tab, daemon, 230)

    def test_does_not_come_back_to_a_closed_bus(self):
        daemon = self.start()
        tab = self.tab()
        tab.listen(self.events)
        tab.wait_open()
        self.assertEqual(daemon.http('DELETE', '/session/b').status, 204)
        tab.wait(f'source.readyState === {CLOSED}')
        self.assertEqual([line['type'] for line in tab.sequenced()], ['session_closed'])
        tab.wait_cursor('1')
        self.assertEqual(tab.cursors(), [None, '1'])

    def check_refused(self, daemon, tab):
        tab.listen(self.events)
        tab.wait(f'source.readyState === {CLOSED}')
        self.assertEqual(tab.of('open') + tab.of('event'), [])
        self.assertEqual(tab.page.run(f'fetch({json.dumps(self.events)}).then(() => "read", (error) => error.name)'), 'TypeError')
        self.assertEqual(daemon.subscribers('b'), 0)

    def test_foreign_origin_is_refused(self):
        daemon = self.start()
        self.check_refused(daemon, self.tab(self.foreign))
        tab = self.tab()
        tab.listen(self.events)
        tab.wait_open()

    def test_origin_null_is_refused(self):
        daemon = self.start()
        tab = Tab(self.browser, 'data:text/html,' + PAGE.replace('%', '%25').replace('\n', '%0A').replace('#', '%23'))
        self.assertEqual(tab.page.run('self.origin'), 'null')
        self.check_refused(daemon, tab)

    def test_fetch_with_a_token_passes_the_preflight(self):
        daemon = self.start('--http-auth=token')
        tab = self.tab()
        found = tab.page.run('''(async () => {
            const url = %s;
            const headers = { Authorization: 'Bearer ' + %s, 'Content-Type': 'application/json' };
            const published = await fetch(url, { method: 'POST', headers, body: '{"data":"from a page","type":"foo"}' });
            const stream = await fetch(url, { headers: { Authorization: headers.Authorization, 'Last-Event-ID': '0' } });
            const reader = stream.body.pipeThrough(new TextDecoderStream()).getReader();
            let text = '';
            while (!text.includes('replay_complete'))
              text += (await reader.read()).value;
            await reader.cancel();
            const refused = await fetch(url, { headers: { Authorization: 'Bearer wrong' } });
            return { id: (await published.json()).id, epoch: stream.headers.get('X-Qwen-Event-Epoch'),
                     streamId: stream.headers.get('X-Qwen-SSE-Stream-Id'), text, status: refused.status };
          })()''' % (json.dumps(self.events), json.dumps(daemon.token)))
        self.assertEqual((found['id'], found['epoch'], found['status']), (1, daemon.get('b', 'Epoch'), 401))
        self.assertEqual(len(found['streamId']), 36)
        self.assertTrue(found['text'].startswith('retry: 3000\n\nid: 1\nevent: foo\ndata: {"id":1,"v":1,"type":"foo","data":"from a page"'))
        daemon.wait_subscribers('b', 0)

    def test_event_source_without_a_token_is_refused(self):
        daemon = self.start('--http-auth=token')
        tab = self.tab()
        tab.listen(self.events)
        tab.wait(f'source.readyState === {CLOSED}')
        self.assertEqual(tab.of('open') + tab.of('event'), [])
        tab.wait_cursor(None)
        self.assertEqual(tab.cursors(), [None])
        self.assertEqual(daemon.subscribers('b'), 0)


if __name__ == '__main__':
    if chromium.find() is None:
        harness.main('no Chromium: scripts/install-packages.sh clients (package chromium)')
    harness.main('')
