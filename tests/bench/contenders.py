# SPDX-License-Identifier: LGPL-2.1-or-later
"""The servers that are measured: Headway, its peers, and the least that a server must do.

Each runs on the first core, in a folder of its own, and is gone when its `with` block ends, or when this process does. Where a
peer is not installed, Missing says so.
"""
import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time

PATIENCE = 20.0
SERVER_CORE = '0'
GENERATOR_CORE = str(min(1, (os.cpu_count() or 1) - 1))
BIG = 2**40
BUS_LIMITS = ('max_incoming_bytes', 'max_outgoing_bytes', 'max_replies_per_connection', 'max_connections_per_user', 'max_completed_connections')

HEADWAY_CONFIG = {
    'max-subscribers': 6000, 'http-max-connections': 7000, 'ring-size': 8000,
    # Metered, but with room: what is measured is the way, not the limit.
    'principal-bytes-per-second': BIG, 'principal-events-per-second': BIG, 'uid-bytes-per-second': BIG, 'uid-events-per-second': BIG,
}

NCHAN_CONFIG = """
load_module {module};
{user}daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/errors warn; worker_rlimit_nofile 20000;
events {{ worker_connections 12000; }}
http {{
  access_log off; keepalive_requests 1000000000; keepalive_timeout 3600;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  client_body_in_single_buffer on; client_body_buffer_size 64k; tcp_nodelay on; nchan_shared_memory_size 256M;
  server {{ listen 127.0.0.1:{port} backlog=4096;
    location = /pub {{ nchan_publisher http; nchan_channel_id t; nchan_message_buffer_length 8192; nchan_message_timeout 60s; }}
    location = /sub {{ nchan_subscriber eventsource; nchan_channel_id t; nchan_subscriber_first_message newest; }}
  }}
}}
"""
NATS_CONFIG = 'listen: 127.0.0.1:{port}\nmax_pending: 256MB\nwrite_deadline: "10s"\n'
REDIS_CONFIG = 'bind 127.0.0.1\nport {port}\nsave ""\nappendonly no\ndaemonize no\nmaxclients 6000\nclient-output-buffer-limit pubsub 256mb 256mb 60\n'


class Missing(Exception):
    """A peer is not installed."""


class Failed(Exception):
    """A server did not start, or a generator failed."""


def program(name):
    found = shutil.which(name, path=os.environ['PATH'] + ':/usr/sbin:/usr/local/sbin')
    if found is None:
        raise Missing(f'{name} is not installed')
    return found


def tool(name):
    """A program of this folder, which Meson has built."""
    path = os.path.join(os.environ['HEADWAY_BENCH_TOOLS'], name)
    if not os.path.exists(path):
        raise Missing(f'{name} is not built')
    return path


def free_port():
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]


def pinned(core, *command):
    """@command on one core; it is killed when this process ends, however that ends."""
    return ['setpriv', '--pdeathsig', 'KILL', 'taskset', '-c', core, *command]


class Contender:
    """A `with` block around a server. Afterwards it has `port` or `address`, and `pids`."""

    protocol = 'plain-post'

    def __init__(self):
        self.processes = []
        self.port = 0

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix='headway-bench-')
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for process in reversed(self.processes):
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if process.stdout is not None:
                process.stdout.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self):
        raise NotImplementedError

    def run(self, *command, core=SERVER_CORE):
        with open(os.path.join(self.folder, f'log{len(self.processes)}'), 'wb') as log:
            process = subprocess.Popen(pinned(core, *command), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log)
        self.processes.append(process)
        return process

    def first_line(self, process):
        line = process.stdout.readline().decode()
        if not line:
            raise Failed(f'{type(self).__name__} did not start: {self.errors()}')
        return line.strip()

    def errors(self):
        texts = []
        for number in range(len(self.processes)):
            with open(os.path.join(self.folder, f'log{number}'), encoding='utf-8', errors='replace') as log:
                texts.append(log.read()[-1000:])
        return ' '.join(texts)

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, 'w', encoding='utf-8') as file:
            file.write(text)
        return path

    def wait_for_port(self, process):
        deadline = time.monotonic() + PATIENCE
        while process.poll() is None and time.monotonic() < deadline:
            with contextlib.suppress(OSError), socket.create_connection(('127.0.0.1', self.port), 1):
                return
            time.sleep(0.01)
        raise Failed(f'{type(self).__name__} does not listen: {self.errors()}')

    @property
    def pids(self):
        """All of them, and their children."""
        found = []
        for process in self.processes:
            found.append(process.pid)
            with contextlib.suppress(OSError), open(f'/proc/{process.pid}/task/{process.pid}/children', encoding='ascii') as file:
                found += [int(word) for word in file.read().split()]
        return found

    def fan_arguments(self):
        """What fan-load needs to know of this server."""
        return [f'--protocol={self.protocol}', f'--port={self.port}', '--pids=' + ','.join(map(str, self.pids))]


class RawSse(Contender):
    """The physical limit."""

    def __init__(self, way):
        super().__init__()
        self.way = way

    def start(self):
        self.port = int(self.first_line(self.run(tool('raw-sse'), self.way)))


class BareHttp(Contender):
    protocol = 'event-post'

    def start(self):
        self.port = int(self.first_line(self.run(tool('bare-http'))))


class Nchan(Contender):
    def start(self):
        module = '/usr/lib/nginx/modules/ngx_nchan_module.so'
        nginx = program('nginx')
        if not os.path.exists(module):
            raise Missing('nginx has no nchan')
        self.port = free_port()
        config = self.write('config', NCHAN_CONFIG.format(module=module, folder=self.folder, port=self.port, user='user root; ' if os.getuid() == 0 else ''))
        self.wait_for_port(self.run(nginx, '-p', self.folder, '-e', os.path.join(self.folder, 'errors'), '-c', config))
        # The master listens, the worker works.
        deadline = time.monotonic() + PATIENCE
        while len(self.pids) < 2:
            if time.monotonic() > deadline:
                raise Failed(f'nginx has no worker: {self.errors()}')
            time.sleep(0.01)


class Redis(Contender):
    protocol = 'redis'

    def start(self):
        server = program('redis-server')
        self.port = free_port()
        self.wait_for_port(self.run(server, self.write('config', REDIS_CONFIG.format(port=self.port))))


class Nats(Contender):
    protocol = 'nats'

    def start(self):
        server = program('nats-server')
        self.port = free_port()
        self.wait_for_port(self.run(server, '-c', self.write('config', NATS_CONFIG.format(port=self.port))))


class OnBus(Contender):
    """Something on a private message bus, whose limits are out of the way. The bus is not what is measured: it has the other core."""

    def start_bus(self):
        limits = ''.join(f'<limit name="{name}">1000000000</limit>' for name in BUS_LIMITS)
        config = self.write('bus.conf', f"""<busconfig><type>session</type><listen>unix:path={self.folder}/bus</listen><auth>EXTERNAL</auth>
<policy context="default"><allow send_destination="*"/><allow receive_sender="*"/><allow own="*"/></policy>{limits}</busconfig>""")
        daemon = self.run(program('dbus-daemon'), '--nofork', '--nosyslog', '--print-address', f'--config-file={config}', core=GENERATOR_CORE)
        self.address = self.first_line(daemon)


class BareService(OnBus):
    def start(self):
        self.start_bus()
        self.first_line(self.run(tool('bare-service'), self.address))


class Headway(OnBus):
    """headwayd with authentication on, as it comes, but for limits that are beyond what is measured."""

    def __init__(self, protocol='event-post', query='maxQueued=2048', options=None, is_traced=False, **config):
        super().__init__()
        self.protocol = protocol
        self.query = query
        self.options = options or {}
        self.is_traced = is_traced
        self.config = {**HEADWAY_CONFIG, **{key.replace('_', '-'): value for key, value in config.items()}}

    def start(self):
        self.start_bus()
        config = self.write('config', '[headway]\n' + ''.join(f'{key}={value}\n' for key, value in self.config.items()))
        self.runtime = os.path.join(self.folder, 'run')
        # The tracer keeps aside, so that the process is headwayd all the same.
        self.trace = os.path.join(self.folder, 'trace')
        tracer = [program('strace'), '-D', '-f', '-c', '-o', self.trace] if self.is_traced else []
        self.daemon = self.run(*tracer, os.environ['HEADWAYD'], f'--bus-address={self.address}', f'--config={config}',
                               f'--state-dir={self.folder}/state', f'--runtime-dir={self.runtime}', '--http-address=127.0.0.1:0')
        ready = json.loads(self.first_line(self.daemon))
        self.port = int(next(uri for uri in ready['http'] if uri.startswith('http://')).rstrip('/').rpartition(':')[2])
        with open(os.path.join(self.runtime, 'token'), encoding='ascii') as file:
            self.token = file.read().strip()
        status, text = self.ask('PUT', '/session/bench', self.options)
        if status != 201:
            raise Failed(f'PUT /session/bench: {status} {text}')

    def ask(self, method, path, body=None):
        connection = http.client.HTTPConnection('127.0.0.1', self.port, timeout=PATIENCE)
        with contextlib.closing(connection):
            connection.request(method, path, None if body is None else json.dumps(body),
                               {'Authorization': f'Bearer {self.token}', 'Content-Type': 'application/json'})
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read() or b'null')

    def publish_lines(self, lines):
        """In one request; waits for its answer."""
        connection = http.client.HTTPConnection('127.0.0.1', self.port, timeout=60)
        with contextlib.closing(connection):
            connection.request('POST', '/session/bench/events', b''.join(lines),
                               {'Authorization': f'Bearer {self.token}', 'Content-Type': 'application/x-ndjson'})
            answer = connection.getresponse()
            text = answer.read().decode()
            if answer.status != 200:
                raise Failed(f'{answer.status}: {text}')

    def resident(self):
        """Bytes of headwayd alone."""
        with open(f'/proc/{self.daemon.pid}/smaps_rollup', encoding='ascii') as file:
            return next(int(line.split()[1]) for line in file if line.startswith('Rss:')) * 1024

    def stop_traced(self):
        """System call → how often it was made, until the end."""
        self.daemon.terminate()
        self.daemon.wait(PATIENCE)
        deadline = time.monotonic() + PATIENCE
        while True:
            with contextlib.suppress(FileNotFoundError), open(self.trace, encoding='ascii') as file:
                rows = re.findall(r'^\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+)\s+(?:\d+\s+)?(\w+)$', file.read(), re.M)
                if rows and rows[-1][1] == 'total':
                    return {name: int(count) for count, name in rows[:-1]}
            if time.monotonic() > deadline:
                raise Failed('strace wrote no summary')
            time.sleep(0.02)

    def fan_arguments(self):
        return [*super().fan_arguments(), '--publish-path=/session/bench/events', f'--subscribe-path=/session/bench/events?{self.query}',
                f'--header=Authorization: Bearer {self.token}']


def generate(name, *arguments, timeout=120):
    """Runs a generator on the second core; the numbers that it prints."""
    try:
        done = subprocess.run(pinned(GENERATOR_CORE, tool(name), *arguments), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        raise Failed(f'{name} did not end within {timeout} s') from None
    if done.returncode == 3:
        raise Missing(' '.join(done.stderr.split()))
    if done.returncode != 0:
        raise Failed(' '.join(done.stderr.split()) or f'{name} ended with {done.returncode}')
    return json.loads(done.stdout)
