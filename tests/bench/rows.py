# SPDX-License-Identifier: LGPL-2.1-or-later
"""What is measured, row by row, and what is wanted of it.

A row has runs, by the name of a contender; a run is a function of a Scale that returns numbers by name. The runs of a row
take turns, so that their ratios mean something. A goal compares what ran in the same round.
"""
import dataclasses
import re
import subprocess
from collections.abc import Callable

import flood
import memory
from contenders import BareHttp, BareService, Failed, Headway, Nats, Nchan, RawSse, Redis, SERVER_CORE, generate, pinned, tool

MIB = 2**20
# Of numbers that do not depend on how busy the machine is.
UNTIMED = {'foreign_share': 0}


@dataclasses.dataclass
class Scale:
    """How long: --quick makes it short."""
    seconds: float = 1.0
    warm: float = 0.3
    repetitions: int = 3
    goal_repetitions: int = 5  # of rows that have goals


@dataclasses.dataclass
class Goal:
    """@value: of a function from (contender, number) to what it was in one round; @limit: `>= 0.9` and the like."""
    work: str
    value: Callable[[Callable[[str, str], float]], float]
    limit: str
    unit: str = ''

    def is_met(self, value):
        sign, number = self.limit.split()
        return value >= float(number) if sign == '>=' else value > float(number) if sign == '>' else value <= float(number)


@dataclasses.dataclass
class Row:
    name: str
    group: str
    title: str
    runs: dict[str, Callable[[Scale], dict]]
    columns: tuple[str, ...]  # the numbers that the table shows
    goals: list[Goal] = dataclasses.field(default_factory=list)
    is_quick: bool = False
    repetitions: int = 0  # 0: as the scale says


def fan(server, *arguments):
    """A run of fan-load against what @server makes."""
    def run(scale):
        with server() as contender:
            return generate('fan-load', *contender.fan_arguments(), f'--seconds={scale.seconds}', f'--warm={scale.warm}', *arguments)
    return run


def dbus(server, target, *arguments):
    """A run of dbus-load; @target: headway or bare."""
    def run(scale):
        with server() as contender:
            return generate('dbus-load', f'--address={contender.address}', f'--target={target}', '--pids=' + ','.join(map(str, contender.pids)),
                            f'--seconds={scale.seconds}', f'--warm={scale.warm}', *arguments)
    return run


def ratio(number, over, under):
    """One contender's number over another's."""
    return lambda of: of(over, number) / max(of(under, number), 1e-9)


def engine(name, patterns, *arguments):
    """A run of a benchmark that prints text; @patterns: number → what stands around it."""
    def run(scale):
        done = subprocess.run(pinned(SERVER_CORE, tool(name), *arguments), capture_output=True, text=True, timeout=300, check=False)
        values = {}
        for key, pattern in patterns.items():
            found = re.search(pattern, done.stdout)
            if found is None:
                raise Failed(f'{name} does not print {key}: {done.stdout[-300:]}{done.stderr[-300:]}')
            values[key] = float(found.group(1))
        return values
    return run


# --- SSE ------------------------------------------------------------------------------------------

POST = Headway
LINES = lambda: Headway('event-lines')  # noqa: E731
RATE = ('deliveries_per_s', 'p50_us', 'p99_us', 'server_cpu_per_million_s')


def sse_goals(readers, size, window):
    deliveries = 'deliveries_per_s'
    work = f'SSE, W={window}, {readers} readers'
    if window == 1 and size == 100 and readers >= 1000:
        return [Goal(f'{work}: of raw-each', ratio(deliveries, 'headway', 'raw-each'), '>= 0.90'),
                Goal(f'{work}: of nchan', ratio(deliveries, 'headway', 'nchan'), '>= 1.5')]
    if window == 16 and (readers, size) == (1000, 100):
        return [Goal(f'{work}: of raw-batch', ratio(deliveries, 'headway', 'raw-batch'), '>= 0.80'),
                Goal('the same, published by lines: of raw-batch', ratio(deliveries, 'headway-lines', 'raw-batch'), '>= 0.80'),
                Goal(f'{work}: of nchan', ratio(deliveries, 'headway', 'nchan'), '>= 5')]
    if window == 16 and (readers, size) == (5000, 1024):
        return [Goal(f'{work}, 1 KiB: of raw-batch', ratio(deliveries, 'headway', 'raw-batch'), '>= 0.90'),
                Goal(f'{work}, 1 KiB: of nchan', ratio(deliveries, 'headway', 'nchan'), '>= 15')]
    return []


def sse_rows():
    for readers in (100, 1000, 5000):
        for size in (100, 1024):
            for window in (1, 16, 256):
                load = (f'--readers={readers}', f'--bytes={size}', f'--window={window}')
                runs = {'headway': fan(POST, *load)}
                if window > 1:
                    runs['headway-lines'] = fan(LINES, *load)
                    runs['raw-batch'] = fan(lambda: RawSse('batch'), *load)
                runs |= {'raw-each': fan(lambda: RawSse('each'), *load), 'nchan': fan(Nchan, *load)}
                goals = sse_goals(readers, size, window)
                yield Row(f'sse-{readers}-{size}-w{window}', 'sse', f'SSE, {readers} readers, {size} B, W={window}', runs, RATE, goals,
                          is_quick=bool(goals) or (readers, size, window) == (100, 100, 256))
        load = (f'--readers={readers}', '--rate=30', '--window=1000')
        yield Row(f'sse-{readers}-30hz', 'sse', f'SSE, {readers} readers, 100 B, 30 events a second, open loop',
                  {'headway': fan(POST, *load), 'raw-each': fan(lambda: RawSse('each'), *load), 'nchan': fan(Nchan, *load)},
                  ('p50_us', 'p99_us', 'server_cpu_per_million_s'))


# --- Publishing -----------------------------------------------------------------------------------

def publish_rows():
    load = ('--readers=100', '--window=256')
    yield Row('publish-streamed', 'publish', 'streamed publish to 100 readers, 100 B, W=256',
              {'headway-lines': fan(LINES, *load), 'redis': fan(Redis, *load), 'nats': fan(Nats, *load),
               'raw-batch': fan(lambda: RawSse('batch'), *load), 'nchan': fan(Nchan, *load)},
              ('events_per_s', *RATE),
              [Goal('SSE, 100 readers, window 256, NDJSON publish: of Redis', ratio('deliveries_per_s', 'headway-lines', 'redis'), '>= 0.7'),
               Goal('SSE, 100 readers, window 256, NDJSON publish: of NATS', ratio('deliveries_per_s', 'headway-lines', 'nats'), '> 1')],
              is_quick=True)
    load = ('--readers=0', '--window=16')
    yield Row('publish-http', 'publish', 'publish by HTTP to nobody, 100 B',
              {'post': fan(POST, *load), 'bare-http': fan(BareHttp, *load), 'lines': fan(LINES, '--readers=0', '--window=1000000000')},
              ('events_per_s', 'server_cpu_per_million_s'),
              [Goal('POST: of a bare SoupServer', ratio('events_per_s', 'post', 'bare-http'), '>= 0.9'),
               Goal('NDJSON over HTTP: of POST per event', ratio('events_per_s', 'lines', 'post'), '>= 20')],
              is_quick=True)


def dbus_rows():
    events = 'events_per_s'
    yield Row('dbus-publish', 'dbus', 'Publish calls with nobody reading, 64 under way',
              {'headway': dbus(Headway, 'headway'), 'bare': dbus(BareService, 'bare'),
               'many-64': dbus(Headway, 'headway', '--publish=many', '--window=512'),
               'publisher': dbus(Headway, 'headway', '--publish=publisher', '--window=4096')},
              (events, 'server_cpu_per_million_s'),
              [Goal('one Publish call: of a bare GDBus service', ratio(events, 'headway', 'bare'), '>= 0.9'),
               Goal('PublishMany(64): of one call per event', ratio(events, 'many-64', 'headway'), '>= 12'),
               Goal('publisher\'s fd: of one call per event', ratio(events, 'publisher', 'headway'), '>= 40')],
              is_quick=True)
    for readers in (1, 10, 100):
        load = (f'--readers={readers}',)
        goals = {1: [], 10: [Goal('stream fd, 10 readers: of unicast signals', ratio('deliveries_per_s', 'stream', 'signals'), '>= 4'),
                             Goal('the same, published by lines: of unicast signals', ratio('deliveries_per_s', 'stream-lines', 'signals'), '>= 4')],
                 100: [Goal('stream fd, 100 readers: of unicast signals', ratio('deliveries_per_s', 'stream', 'signals'), '>= 10'),
                       Goal('stream fd, 100 readers: CPU of unicast signals', ratio('total_cpu_per_million_s', 'stream', 'signals'), '<= 0.125')]}
        yield Row(f'dbus-stream-{readers}', 'dbus', f'one Publish call per event (or lines), {readers} readers on the message bus',
                  {'stream': dbus(Headway, 'headway', *load),
                   'stream-lines': dbus(Headway, 'headway', '--publish=publisher', '--window=256', *load),
                   'headway-signals': dbus(Headway, 'headway', '--sink=signals', *load),
                   'signals': dbus(BareService, 'bare', '--sink=signals', *load)},
                  ('deliveries_per_s', 'p50_us', 'p99_us', 'total_cpu_per_million_s'), goals[readers], is_quick=readers == 100)
    load = ('--readers=100', '--window=256')
    yield Row('dbus-publisher-100', 'dbus', 'publisher\'s fd to 100 readers by fd, W=256, against Redis',
              {'publisher': dbus(Headway, 'headway', '--publish=publisher', *load), 'redis': fan(Redis, *load)}, RATE,
              [Goal('publisher\'s fd, 100 readers by fd: of Redis', ratio('deliveries_per_s', 'publisher', 'redis'), '> 1')], is_quick=True)
    for principals in (1, 10, 100):
        load = (f'--principals={principals}',)
        yield Row(f'dbus-handler-{principals}', 'dbus', f'a trivial handler, {principals} principals',
                  {'headway': dbus(Headway, 'headway', *load), 'bare': dbus(BareService, 'bare', *load)},
                  ('handled_per_s', 'server_cpu_per_million_s'),
                  [Goal(f'handler, {principals} principals: of bare calls', ratio('handled_per_s', 'headway', 'bare'), '>= 0.8')] if principals == 1 else [],
                  is_quick=principals == 1)


# --- Fairness, stalls, memory ---------------------------------------------------------------------

def fairness_rows():
    for principals in (1, 100, 10000):
        load = ('--readers=100', '--window=256', f'--principals={principals}', '--any-order')
        yield Row(f'fairness-{principals}', 'fairness', f'routed against stream, 100 readers, {principals} principals, W=256',
                  {'routed': fan(lambda: Headway('event-lines', 'mode=routed'), *load), 'stream': fan(LINES, *load)}, RATE,
                  [Goal(f'routed, {principals} principals: of stream', ratio('deliveries_per_s', 'routed', 'stream'), '>= 0.7')],
                  is_quick=principals == 100)
    yield Row('fairness-flood', 'fairness', 'a quiet principal, alone and while another floods tenfold what the reader takes',
              {'alone': lambda scale: flood.run(scale, is_flooded=False), 'flooded': lambda scale: flood.run(scale, is_flooded=True)},
              ('p50_us', 'p99_us', 'quiet_sent', 'quiet_lost', 'flood_read', 'flood_lost'), is_quick=True)


def stalled_rows():
    load = ('--readers=100', '--window=16')
    bound = 2 * MIB
    yield Row('stalled', 'fairness', '100 readers, W=16, without and with one more that never reads',
              {'without': fan(LINES, *load), 'with': fan(LINES, '--stalled=1', *load)}, ('deliveries_per_s', 'p99_us', 'grown_bytes'),
              [Goal('a stalled reader present: rate of the others', ratio('deliveries_per_s', 'with', 'without'), '>= 0.95'),
               Goal('a stalled reader present: growth beyond its bound', lambda of: (of('with', 'grown_bytes') - of('without', 'grown_bytes') - bound) / MIB,
                    '<= 1', 'MiB')], is_quick=True)


def memory_rows():
    load = ('--readers=5000', '--rate=30', '--window=1000')
    yield Row('memory-readers', 'memory', 'an idle SSE reader, of 5000', {'headway': fan(POST, *load), 'nchan': fan(Nchan, *load)},
              ('idle_bytes_per_reader',),
              [Goal('memory per idle SSE reader at 5000', lambda of: of('headway', 'idle_bytes_per_reader') / 1024, '<= 3', 'KiB'),
               Goal('memory per idle SSE reader at 5000: of nchan', ratio('idle_bytes_per_reader', 'headway', 'nchan'), '<= 0.2')], is_quick=True)
    for name, title, run, goals in (
            ('subscription', 'a subscription on D-Bus', memory.of_subscription, []),
            ('principal-queue', 'the queue of a principal in a routed subscription, beyond its event', memory.of_principal_queue, []),
            ('ring-event', 'an event kept in the ring, beyond its envelope', memory.of_ring_event,
             [Goal('an event in the ring, beyond its envelope', lambda of: of('headway', 'bytes'), '<= 64', 'bytes')])):
        yield Row(f'memory-{name}', 'memory', title, {'headway': lambda scale, run=run: {**UNTIMED, **run(scale)}}, ('bytes',), goals, is_quick=True, repetitions=1)


def traced(window):
    """System calls of headwayd for each delivery. strace makes it slow, so nothing else is told."""
    def run(scale):
        with Headway('event-lines', is_traced=True) as contender:
            load = generate('fan-load', *contender.fan_arguments(), '--readers=100', f'--window={window}', f'--seconds={scale.seconds}', '--warm=0')
            calls = contender.stop_traced()
        # Each stream begins with a write of its own.
        writes = sum(calls.get(name, 0) for name in ('sendto', 'sendmsg', 'writev')) - 100
        return {**UNTIMED, 'writes_per_delivery': writes / load['delivered'], 'calls_per_delivery': sum(calls.values()) / load['delivered']}
    return run


def syscall_rows():
    for window in (1, 16):
        yield Row(f'syscalls-w{window}', 'engine', f'system calls of headwayd, 100 readers, W={window}', {'headway': traced(window)},
                  ('writes_per_delivery', 'calls_per_delivery'),
                  [Goal(f'writes per delivery, W={window}', lambda of: of('headway', 'writes_per_delivery'), '<= 1.01')], is_quick=True, repetitions=1)


# --- The engine, and growth -----------------------------------------------------------------------

def engine_rows():
    number = r'\s+([\d.]+)'
    rings = {f'ring_{n}_ns': rf'full ring of\s+{n} events:{number} ns' for n in (1000, 10000, 100000, 1000000)}
    yield Row('engine-ring', 'engine', 'a publish, by events in the ring', {'headway': engine('bench-ring', rings)}, tuple(rings),
              [Goal('publish cost as the ring grows 1 000 to 1 000 000', lambda of: of('headway', 'ring_1000000_ns') / of('headway', 'ring_1000_ns'), '<= 1.3')],
              is_quick=True, repetitions=1)
    routed = {f'principals_{n}_ns': rf'push \+ pop, {n} principals, backlog 0, ns{number}' for n in (1, 100, 10000)}
    routed |= {f'match_one_of_{n}_ns': rf'matches one of {text} subscriptions, ns{number}' for n, text in ((10, '10'), (10000, '10 000'))}
    slowest = lambda of: max(of('headway', key) for key in list(routed)[:3])  # noqa: E731
    yield Row('engine-routed', 'engine', 'routed push and pop, by principals; a publish that one of many matches', {'headway': engine('bench-routed', routed)},
              tuple(routed),
              [Goal('routed push and pop with look-up, 1 to 10 000 principals', slowest, '<= 100', 'ns'),
               Goal('routed push and pop: slowest to fastest', lambda of: slowest(of) / min(of('headway', key) for key in list(routed)[:3]), '<= 2')],
              is_quick=True, repetitions=1)
    topics = {f'subscriptions_{n}_ns': rf'\s{n} subscriptions: index{number} ns' for n in (10, 1000, 10000)}
    topics['scan_10000_ns'] = rf'10000 subscriptions: index\s+[\d.]+ ns, scan{number} ns'
    yield Row('engine-topics', 'engine', 'a topic match, by subscriptions', {'headway': engine('bench-topic-index', topics)}, tuple(topics),
              [Goal('topic match, 10 000 subscriptions', lambda of: of('headway', 'subscriptions_10000_ns'), '<= 250', 'ns'),
               Goal('topic match, 10 000 subscriptions: of a naive scan',
                    lambda of: of('headway', 'subscriptions_10000_ns') / of('headway', 'scan_10000_ns'), '<= 0.003334')],
              is_quick=True, repetitions=1)
    json_text = {'headway_gb_per_s': r'prose\s+1024 bytes:\s+([\d.]+) GB/s', 'json_glib_gb_per_s': r'prose\s+1024 bytes:.*json-glib\s+([\d.]+) GB/s'}
    yield Row('engine-json', 'engine', 'JSON validation of 1 KiB', {'headway': engine('bench-json', json_text)}, tuple(json_text),
              [Goal('JSON validation, 1 KiB: GB/s, or a twentieth of its ratio to json-glib',
                    lambda of: max(of('headway', 'headway_gb_per_s'), of('headway', 'headway_gb_per_s') / of('headway', 'json_glib_gb_per_s') / 20),
                    '>= 1')], repetitions=1)
    rates = {f'keys_{n}_ns': rf'\s{n} keys, now\s+\d+: in turn{number} ns' for n in (1, 1000)}
    yield Row('engine-rates', 'engine', 'a charge of the rate limiter, by keys', {'headway': engine('bench-rate-limiter', rates)}, tuple(rates), repetitions=1)


GROWTH_READERS = (10, 100, 1000, 5000)


def growth_rows():
    runs = {f'{readers}': fan(LINES, f'--readers={readers}', '--window=16') for readers in GROWTH_READERS}
    yield Row('growth-readers', 'engine', 'server time of a million deliveries, by readers, W=16', runs, ('server_cpu_per_million_s', 'deliveries_per_s'))


def all_rows():
    return [*sse_rows(), *publish_rows(), *dbus_rows(), *fairness_rows(), *stalled_rows(), *memory_rows(), *engine_rows(), *syscall_rows(), *growth_rows()]


# The pictures: title → (what the points are over, points as (size, row, contender, number)).
GROWTH = {
    'ring': ('events in the ring', [(n, 'engine-ring', 'headway', f'ring_{n}_ns') for n in (1000, 10000, 100000, 1000000)]),
    'principals': ('principals of a routed subscription', [(n, 'engine-routed', 'headway', f'principals_{n}_ns') for n in (1, 100, 10000)]),
    'subscriptions': ('subscriptions a topic is matched with', [(n, 'engine-topics', 'headway', f'subscriptions_{n}_ns') for n in (10, 1000, 10000)]),
    'readers': ('readers, for each delivery', [(n, 'growth-readers', str(n), 'server_cpu_per_million_s') for n in GROWTH_READERS]),
}
