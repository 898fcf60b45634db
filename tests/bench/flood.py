# SPDX-License-Identifier: LGPL-2.1-or-later
"""A quiet principal beside one that floods, on a routed stream whose reader takes only so much a second.

The reader takes what 5 000 events need. The quiet principal sends 200 events a second, the flood ten times what the reader takes.
What of the flood does not fit the reader's budget is lost and told; nothing of the quiet one may be, and what it waits is what
stands before it in the sockets, for which nobody can take turns any more.
"""
import json
import socket
import statistics
import time

from contenders import Failed, Headway

READER_EVENTS = 5000
QUIET_EVENTS = 200
FLOOD_EVENTS = 10 * READER_EVENTS
BYTES = 100
FRAME_BYTES = 260  # of such an event on the wire
TICK = 0.002


class Publisher:
    """Lines over one connection, so many a second; what the socket does not take at once, it takes later."""

    def __init__(self, contender, principal, rate):
        self.principal, self.rate, self.sent, self.pending = principal, rate, 0, b''
        self.socket = socket.create_connection(('127.0.0.1', contender.port))
        self.socket.sendall(head(contender, 'POST', 'Content-Type: application/x-ndjson', 'Transfer-Encoding: chunked'))
        self.socket.setblocking(False)

    def publish(self, elapsed):
        due = int(elapsed * self.rate) - self.sent
        if due > 0 and not self.pending:
            text = f'@{time.monotonic_ns()} '.ljust(BYTES, 'x')
            lines = f'{{"type":"t","principal":"{self.principal}","data":"{text}"}}\n'.encode() * min(due, 500)
            self.pending = b'%x\r\n%s\r\n' % (len(lines), lines)
            self.sent += min(due, 500)
        try:
            self.pending = self.pending[self.socket.send(self.pending):] if self.pending else b''
        except BlockingIOError:
            pass


class Reader:
    def __init__(self, contender):
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.socket.connect(('127.0.0.1', contender.port))
        self.socket.sendall(head(contender, 'GET', path='?mode=routed'))
        if b' 200 ' not in self.socket.recv(4096):
            raise Failed('the stream was refused')
        self.socket.setblocking(False)
        self.rest, self.allowance = b'', 0
        self.read, self.lost, self.waits = {}, {}, []

    def take(self, elapsed_since):
        self.allowance = min(self.allowance + elapsed_since * READER_EVENTS * FRAME_BYTES, 65536)
        while self.allowance >= 1024:
            try:
                data = self.socket.recv(int(self.allowance))
            except BlockingIOError:
                return
            if not data:
                raise Failed('the stream was closed')
            self.allowance -= len(data)
            lines = (self.rest + data).split(b'\n')
            self.rest = lines.pop()
            for line in lines:
                if line.startswith(b'data: '):
                    self.got(json.loads(line[6:]))

    def got(self, event):
        if event['type'] == 'gap':
            principal = event['data'].get('principal', 'several')
            self.lost[principal] = self.lost.get(principal, 0) + event['data']['count']
        elif 'principal' in event:
            self.read[event['principal']] = self.read.get(event['principal'], 0) + 1
            if event['principal'] == 'quiet':
                self.waits.append((time.monotonic_ns() - int(event['data'][1:].split()[0])) / 1000)


def head(contender, method, *lines, path=''):
    text = [f'{method} /session/bench/events{path} HTTP/1.1', f'Host: 127.0.0.1:{contender.port}', f'Authorization: Bearer {contender.token}', *lines]
    return ('\r\n'.join(text) + '\r\n\r\n').encode()


def run(scale, is_flooded):
    with Headway() as contender:
        reader = Reader(contender)
        publishers = [Publisher(contender, 'quiet', QUIET_EVENTS)]
        if is_flooded:
            publishers.append(Publisher(contender, 'flood', FLOOD_EVENTS))
        begin = last = time.monotonic()
        while (now := time.monotonic()) - begin < 1 + 4 * scale.seconds:
            for publisher in publishers:
                publisher.publish(now - begin)
            reader.take(now - last)
            last = now
            time.sleep(TICK)
        for each in (reader, *publishers):
            each.socket.close()
    # The first second fills the sockets.
    waits = sorted(reader.waits[QUIET_EVENTS:])
    if len(waits) < 20:
        raise Failed(f'only {len(reader.waits)} events of the quiet principal arrived')
    return {'p50_us': statistics.median(waits), 'p99_us': waits[int(len(waits) * 0.99)], 'quiet_sent': publishers[0].sent,
            'quiet_lost': reader.lost.get('quiet', 0), 'flood_read': reader.read.get('flood', 0), 'flood_lost': reader.lost.get('flood', 0)}
