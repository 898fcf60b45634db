#!/usr/bin/env node
// SPDX-License-Identifier: LGPL-2.1-or-later
// Drives the npm package `eventsource` against one URL.
// usage: node probe.mjs URL [--token T] [--types a,b,...]
// Output: one JSON object a line on stdout. kind = request | response | open | event | error
// It ends when the EventSource is closed for good, which leaves node nothing to do: then exit 0. Or by a signal.
import { EventSource } from 'eventsource';

const [url, ...rest] = process.argv.slice(2);
const options = { types: '' };
for (let i = 0; i < rest.length; i += 2)
  options[rest[i].replace(/^--/, '')] = rest[i + 1];
const say = (line) => process.stdout.write(JSON.stringify(line) + '\n');

const source = new EventSource(url, {
  fetch: async (input, init) => {
    const headers = { ...init.headers, ...(options.token ? { Authorization: `Bearer ${options.token}` } : {}) };
    say({ kind: 'request', lastEventId: init.headers['Last-Event-ID'] ?? null });
    const response = await fetch(input, { ...init, headers });
    say({ kind: 'response', status: response.status, epoch: response.headers.get('x-qwen-event-epoch') });
    return response;
  },
});

source.onopen = () => say({ kind: 'open' });
source.onerror = (error) => say({ kind: 'error', status: error.code ?? null, readyState: source.readyState });
const onEvent = (event) =>
  say({ kind: 'event', type: event.type, id: event.lastEventId, origin: event.origin, envelope: JSON.parse(event.data) });
for (const type of new Set(['message', ...options.types.split(',').filter((type) => type !== '')]))
  source.addEventListener(type, onEvent);
