# SPDX-License-Identifier: LGPL-2.1-or-later
"""A parser of Headway's session streams that forgives nothing.

It takes the bytes of one HTTP answer as they come from the socket, checks every one of them against
sse-contract.md 1.3 to 1.5, and yields frames. Whoever reads a stream in a test reads it through this:
a byte that is out of place is an error wherever it shows up.
"""

import json
import re

SYNTHETIC = {
    "state_resync_required": ["reason", "?detail", "lastDeliveredId", "earliestAvailableId"],
    "replay_complete": ["?lastReplayedEventId", "?lastEventId", "replayedCount", "?filtered"],
    "slow_client_warning": ["queueSize", "maxQueued", "lastEventId", "queuedBytes", "maxQueuedBytes", "threshold"],
    "client_evicted": ["reason", "?errorKind", "?idleForMs", "?timeoutMs", "?droppedAfter", "?queueSize",
                       "?maxQueued", "?queuedBytes", "?maxQueuedBytes", "?eventBytes", "lastDeliveredId"],
    "stream_error": ["error", "?errorKind"],
    "session_snapshot": None,
    "gap": ["reason", "?principal", "count", "bytes", "firstId", "lastId", "?filtered"],
}

ENVELOPE_ORDER = ["id", "seq", "v", "type", "data", "topic", "principal", "promptId", "originatorClientId", "_meta"]

HEADERS = [
    ("Content-Type", r"text/event-stream"),
    ("Cache-Control", r"no-cache, no-transform"),
    ("Connection", r"keep-alive|close"),
    ("X-Accel-Buffering", r"no"),
    ("X-Qwen-Event-Epoch", r"[A-Za-z0-9_-]{1,64}"),
    ("X-Qwen-SSE-Stream-Id", r"[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"),
]
CORS_HEADERS = ["Vary", "Access-Control-Allow-Origin", "Access-Control-Expose-Headers"]

RETRY = b"retry: 3000\n\n"
HEARTBEAT = b": heartbeat\n\n"
FRAME = re.compile(rb"(?:id: ([1-9][0-9]*)\n)?event: ([A-Za-z0-9._:/-]{1,128})\ndata: ([^\r\n]*)\n\n")


class StrictError(AssertionError):
    """A byte that is not as the contract says."""


def check(condition, what, detail=None):
    if not condition:
        raise StrictError(what if detail is None else "%s: %r" % (what, detail))


class Frame:
    """One frame. `kind` is "retry", "heartbeat" or "event"; the rest is of events."""

    def __init__(self, kind, raw, id=None, type=None, envelope=None, text=None):
        self.kind = kind
        self.raw = raw
        self.id = id
        self.type = type
        self.envelope = envelope
        self.text = text
        self.data = envelope["data"] if envelope is not None else None

    def __repr__(self):
        if self.kind != "event":
            return "<%s>" % self.kind
        return "<#%s %s %s>" % (self.id, self.type, json.dumps(self.data)[:120])


def ordered_keys(pairs, order):
    """Whether the keys are among `order`, in that order, those without `?` all there."""
    keys = [key for key, _ in pairs]
    left = list(keys)
    for want in order:
        optional = want.startswith("?")
        name = want.lstrip("?")
        if left and left[0] == name:
            left.pop(0)
        elif not optional:
            return False
    return not left


class Pairs(dict):
    """A JSON object that remembers the order and the doubles of its members."""

    def __init__(self, pairs):
        super().__init__(pairs)
        self.pairs = pairs


def parse_envelope(text):
    return json.loads(text, object_pairs_hook=Pairs)


def check_envelope(envelope, id, type, text, is_routed=False):
    check(isinstance(envelope, Pairs), "the envelope is no object", text)
    order = [key if key in ("v", "type", "data", "_meta") else "?" + key for key in ENVELOPE_ORDER]
    check(ordered_keys(envelope.pairs, order), "members of the envelope", [key for key, _ in envelope.pairs])
    check(("id" in envelope) == (id is not None), "id in the envelope and id line", text[:80])
    if id is not None:
        check(envelope["id"] == id and 1 <= id <= 2 ** 53 - 1, "the two ids", (envelope["id"], id))
    check(("seq" in envelope) == (is_routed and type not in SYNTHETIC), "seq", text[:80])
    check(envelope["v"] == 1 and type == envelope["type"], "v or type", text[:80])
    check(envelope.get("topic") != type, "a topic that says what the type says", text[:80])
    check(envelope.get("principal") != "", "a system principal that is spelled out", text[:80])
    stamp = envelope["_meta"].get("serverTimestamp")
    check(isinstance(stamp, (int, float)), "serverTimestamp", stamp)
    if type in SYNTHETIC:
        check(id is None, "a synthetic event with an id", text[:80])
        fields = SYNTHETIC[type]
        if fields is not None:
            check(ordered_keys(envelope["data"].pairs, fields), "fields of " + type, envelope["data"].pairs)
    else:
        check(id is not None or is_routed, "an event without an id", text[:80])


class StrictStream:
    """Feed it bytes; it answers with frames. `is_finished` after a clean end."""

    def __init__(self, version="1.1", chunk_per_frame=True, is_routed=False):
        self.is_routed = is_routed
        self.version = version
        self.is_chunked = version == "1.1"
        self.chunk_per_frame = chunk_per_frame
        self.buffer = b""
        self.body = b""
        self.headers = None
        self.status = None
        self.is_finished = False
        self.has_retry = False
        self.last_id = 0
        self.terminal = None
        self.frames = []

    # -- The header block ------------------------------------------------------------------------

    def _parse_head(self):
        end = self.buffer.find(b"\r\n\r\n")
        if end < 0:
            check(b"\n\n" not in self.buffer, "a header block that ends in LF LF")
            return False
        lines = self.buffer[:end].decode("ascii").split("\r\n")
        self.buffer = self.buffer[end + 4:]
        status = re.fullmatch(r"HTTP/%s (\d{3}) [ -~]+" % re.escape(self.version), lines[0])
        check(status, "status line", lines[0])
        self.status = int(status.group(1))
        pairs = [tuple(line.split(": ", 1)) for line in lines[1:]]
        self.headers = dict(pairs)
        check(len(self.headers) == len(pairs), "a header that comes twice", lines)
        if self.status == 200:
            self._check_headers(pairs)
        return True

    def _check_headers(self, pairs):
        names = [name for name, _ in pairs]
        for i, (name, pattern) in enumerate(HEADERS):
            check(names[i] == name, "order of headers", names)
            check(re.fullmatch(pattern, pairs[i][1]), "value of " + name, pairs[i][1])
        rest = [name for name in names[len(HEADERS):] if name not in CORS_HEADERS]
        check(rest == ["Date"] + (["Transfer-Encoding"] if self.is_chunked else []), "further headers", rest)
        check(re.fullmatch(r"[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT", self.headers["Date"]),
              "Date", self.headers["Date"])
        check(self.headers["Connection"] == ("keep-alive" if self.is_chunked else "close"), "Connection")
        if self.is_chunked:
            check(self.headers["Transfer-Encoding"] == "chunked", "Transfer-Encoding")

    # -- Chunks ----------------------------------------------------------------------------------

    def _take_chunk(self):
        """The inner bytes of the next whole chunk, b"" for the final one, None if it is not there."""
        end = self.buffer.find(b"\r\n")
        if end < 0:
            check(re.fullmatch(rb"(?:0|[1-9a-f][0-9a-f]{0,7})?\r?", self.buffer), "chunk size", self.buffer[:32])
            return None
        size_text = self.buffer[:end]
        check(re.fullmatch(rb"0|[1-9a-f][0-9a-f]{0,7}", size_text), "chunk size", size_text[:32])
        size = int(size_text, 16)
        if len(self.buffer) < end + 2 + size + 2:
            return None
        chunk = self.buffer[end + 2:end + 2 + size]
        check(self.buffer[end + 2 + size:end + 4 + size] == b"\r\n", "end of a chunk",
              self.buffer[end + 2 + size:end + 4 + size])
        self.buffer = self.buffer[end + 4 + size:]
        return chunk

    # -- Frames ----------------------------------------------------------------------------------

    def _parse_frame(self, raw):
        if not self.has_retry:
            check(raw == RETRY, "the first frame", raw[:80])
            self.has_retry = True
            return Frame("retry", raw)
        check(self.terminal is None, "something behind the last frame", raw[:80])
        if raw == HEARTBEAT:
            return Frame("heartbeat", raw)
        match = FRAME.fullmatch(raw)
        check(match, "frame", raw[:200])
        id = int(match.group(1)) if match.group(1) else None
        type = match.group(2).decode("ascii")
        text = match.group(3).decode("utf-8")
        envelope = parse_envelope(text)
        check_envelope(envelope, id, type, text, self.is_routed)
        if id is not None:
            # On a routed stream they are ids to resume from: they may stand still.
            check(id > self.last_id or (self.is_routed and id == self.last_id), "ids go backwards", (self.last_id, id))
            self.last_id = id
        if type == "state_resync_required" and envelope["data"]["reason"] == "epoch_reset":
            self.last_id = 0
        if type in ("client_evicted", "stream_error", "session_closed"):
            self.terminal = type
        return Frame("event", raw, id, type, envelope, text)

    def _take_frames(self, chunk):
        if self.chunk_per_frame and self.is_chunked:
            check(chunk.count(b"\n\n") == 1 and chunk.endswith(b"\n\n"), "a chunk that is not one frame", chunk[:200])
        self.body += chunk
        while True:
            end = self.body.find(b"\n\n")
            if end < 0:
                return
            raw, self.body = self.body[:end + 2], self.body[end + 2:]
            self.frames.append(self._parse_frame(raw))

    def feed(self, data):
        """Takes bytes, returns the frames that they complete."""
        before = len(self.frames)
        check(not (data and self.is_finished), "bytes behind the final chunk", data[:80])
        self.buffer += data
        if self.headers is None and not self._parse_head():
            return []
        if self.status != 200:
            return []
        if not self.is_chunked:
            self._take_frames(self.buffer)
            self.buffer = b""
        while self.is_chunked and not self.is_finished:
            chunk = self._take_chunk()
            if chunk is None:
                break
            if chunk == b"":
                self.is_finished = True
                check(self.buffer == b"", "bytes behind the final chunk", self.buffer[:80])
                check(self.body == b"", "a stream that ends in the middle of a frame", self.body[:80])
            else:
                self._take_frames(chunk)
        return self.frames[before:]

    def end(self):
        """The peer has closed: only good behind the final chunk."""
        if self.status == 200 and self.is_chunked:
            check(self.is_finished, "the connection ended without a final chunk", self.buffer[-80:])
        check(self.body == b"", "the stream ended in the middle of a frame", self.body[:80])
        self.is_finished = True
