#!/usr/bin/env node
// SPDX-License-Identifier: LGPL-2.1-or-later
// Drives the REAL published client (@qwen-code/sdk >= 0.1.8, subpath /daemon) against a base URL.
// usage: node probe.mjs BASE SESSION [--token T] [--last N] [--epoch E] [--max-queued N] [--client-id C]
//        [--count N] [--timeout MS] [--connect-timeout MS] [--rounds N] [--break-after N] [--mode client|session]
// Output: one JSON object per line on stdout. kind = open | event | state | error | end
//  client  : DaemonClient.subscribeEvents          (stateless: cursor/epoch only from flags)
//  session : DaemonSessionClient.events()          (stateful: tracks cursor + epoch between --rounds)
// exit: 0 ended or --count reached, 2 --timeout reached, 3 client threw (HTTP error, framing error, network)
import { DaemonClient, DaemonSessionClient, asKnownDaemonEvent, reduceDaemonSessionEvent,
  createDaemonSessionViewState } from '@qwen-code/sdk/daemon';
const [base, sid, ...rest] = process.argv.slice(2);
const o = { mode: 'client', rounds: 1, timeout: 10000 };
for (let i = 0; i < rest.length; i += 2) o[rest[i].replace(/^--/, '')] = rest[i + 1];
const num = (k) => (o[k] === undefined ? undefined : Number(o[k]));
const say = (x) => process.stdout.write(JSON.stringify(x) + '\n');
const seen = [];   // every request the SDK really sent (headers as the server sees them)
const fetchSpy = async (url, init) => {
  const h = Object.fromEntries(new Headers(init?.headers).entries()); delete h.authorization;
  seen.push({ url: String(url).replace(base, ''), headers: h });
  return globalThis.fetch(url, init);
};
const client = new DaemonClient({ baseUrl: base, token: o.token, fetch: fetchSpy });
const session = new DaemonSessionClient({ client, session: { sessionId: sid, workspaceCwd: '/', attached: true,
  ...(o['client-id'] ? { clientId: o['client-id'] } : {}) }, lastEventId: num('last'), eventEpoch: o.epoch });
let view = createDaemonSessionViewState(), n = 0, code = 0;
const ac = new AbortController();
const timer = setTimeout(() => { code = 2; ac.abort(); }, num('timeout'));
outer: for (let r = 0; r < num('rounds'); r++) {
  let k = 0;
  const opts = { signal: ac.signal, ...(num('max-queued') !== undefined ? { maxQueued: num('max-queued') } : {}),
    ...(num('connect-timeout') ? { connectTimeoutMs: num('connect-timeout') } : {}),
    onEpoch: (e) => say({ kind: 'open', round: r, epoch: e }) };
  const it = o.mode === 'session' ? session.events(opts) : client.subscribeEvents(sid, { ...opts,
    ...(num('last') !== undefined ? { lastEventId: num('last') } : {}), ...(o.epoch ? { epoch: o.epoch } : {}),
    ...(o['client-id'] ? { clientId: o['client-id'] } : {}),
    onSseStreamAccepted: (s) => say({ kind: 'open', round: r, streamId: s ?? null }) });
  try {
    for await (const ev of it) {
      view = reduceDaemonSessionEvent(view, ev);
      say({ kind: 'event', round: r, known: asKnownDaemonEvent(ev) !== undefined, awaitingResync: view.awaitingResync,
        alive: view.alive, event: ev });
      n++; k++;
      if (o.count !== undefined && n >= num('count')) break outer;
      if (o['break-after'] !== undefined && k >= num('break-after')) break;
    }
  } catch (e) { code = 3; say({ kind: 'error', round: r, name: e.name, message: e.message, status: e.status, body: e.body }); }
  say({ kind: 'state', round: r, sent: seen.at(-1), cursor: session.lastEventId ?? null, epoch: session.eventEpoch ?? null });
  if (ac.signal.aborted) break;
}
clearTimeout(timer);
say({ kind: 'end', code, events: n, requests: seen.length, view: { lastEventId: view.lastEventId, alive: view.alive,
  awaitingResync: view.awaitingResync, resync: view.resyncRequiredCount, slow: view.slowClientWarningCount,
  unrecognizedKnown: view.unrecognizedKnownEventCount, terminal: view.terminalEvent?.type } });
process.stdout.write('', () => setTimeout(() => process.exit(code), 50).unref()); process.exitCode = code; ac.abort();
