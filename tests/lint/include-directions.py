#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""include-directions.py SOURCE-ROOT: who may include whom under src/."""
import os
import re
import sys

import tap

BASE = {'engine', 'wire', 'access'}
MAY_INCLUDE = {
    'program': {'program'},
    'engine': {'engine'},
    'wire': {'engine', 'wire'},
    'access': BASE,
    # One epoll source and one set of frames for all streams, whichever side opened them.
    'http': BASE | {'http', 'stream'},
    'stream': BASE | {'stream'},
    'handler': BASE | {'handler'},
    'dbus': BASE | {'dbus', 'stream', 'handler'},
    'daemon': BASE | {'http', 'stream', 'handler', 'dbus', 'daemon', 'program'},
    'cli': {'cli', 'program'},
}
# The one strict validator, and how deep it goes.
MAY_INCLUDE_HEADERS = {'cli': {'engine/headway-json.h', 'engine/headway-limits.h'}}
GENERATED = 'headway-dbus-generated.h'
MAY_INCLUDE_GENERATED = {'dbus', 'handler', 'cli'}

# Headers in angle brackets that a folder may not use; of all others anything goes.
NOT_IN_ENGINE = re.compile(
    r'gio/|libsoup/|json-glib/|systemd/|glib-unix\.h|glib/gstdio\.h|netinet/|arpa/|netdb\.h|poll\.h|signal\.h|unistd\.h|'
    r'fcntl\.h|time\.h|pthread\.h|sys/(socket|un|epoll|poll|stat|time|mman|file|eventfd|uio)\.h')
NOT_ALLOWED = {
    'program': re.compile(r'gio/|libsoup/|systemd/'),
    'engine': NOT_IN_ENGINE,
    'wire': re.compile(r'libsoup/|systemd/'),
    'access': re.compile(r'libsoup/|systemd/'),
    'dbus': re.compile(r'libsoup/|systemd/'),
    'stream': re.compile(r'libsoup/|systemd/'),
    'handler': re.compile(r'libsoup/|systemd/'),
    'http': re.compile(r'systemd/'),
    'daemon': re.compile(r'^$'),
    'cli': re.compile(r'systemd/'),
}
# What stands for sockets, files, the clock and the main loop in calls.
ENGINE_CALLS = re.compile(
    r'\b(g_get_monotonic_time|g_get_real_time|g_date_time_new_now\w*|g_timeout_add\w*|g_idle_add\w*|g_source_attach|'
    r'g_main_context_\w+|g_main_loop_\w+|g_file_\w+|g_socket_\w+|g_thread_\w+|g_usleep|g_getenv|fopen|socket|'
    r'clock_gettime|gettimeofday|time) \(')


def includes(source):
    for number, line in enumerate(source.split('\n'), 1):
        match = re.match(r'\s*#\s*(?:include|import)\s*([<"])([^>"]+)[>"]', line)
        if match:
            yield number, match.group(1), match.group(2)


def judge_quoted(root, folder, name):
    if name == 'config.h':
        return None
    if name == GENERATED:
        return None if folder in MAY_INCLUDE_GENERATED else f'{folder} may not use the generated D-Bus code'
    target, slash, _ = name.partition('/')
    if slash == '':
        return f'"{name}": name the folder, as in "{folder}/{name}"'
    if target not in MAY_INCLUDE:
        return f'"{name}": no folder of src'
    if not os.path.exists(os.path.join(root, 'src', name)):
        return f'"{name}": no such file under src'
    if target not in MAY_INCLUDE[folder] and name not in MAY_INCLUDE_HEADERS.get(folder, ()):
        return f'"{name}": {folder} may not include {target}'
    return None


def problems(root, wanted):
    for path in tap.files_under(root, 'src'):
        if not path.endswith(('.c', '.h')):
            continue
        parts = path.split(os.sep)
        folder = parts[1]
        if len(parts) != 3 or folder not in MAY_INCLUDE:
            if wanted == 'folders':
                yield f'{path}: not in one of the folders of docs/events-way.md: {", ".join(sorted(MAY_INCLUDE))}'
            continue
        source = tap.read(root, path)
        for number, kind, name in includes(source):
            if kind == '"' and wanted == 'project':
                problem = judge_quoted(root, folder, name)
                if problem:
                    yield f'{path}:{number}: {problem}'
            if kind == '<' and wanted == 'system' and NOT_ALLOWED[folder].match(name):
                yield f'{path}:{number}: {folder} may not use <{name}>'
        if wanted == 'calls' and folder == 'engine':
            code = tap.without_comments(source)
            for match in ENGINE_CALLS.finditer(code):
                yield f'{path}:{tap.line_of(code, match.start())}: the engine may not call {match.group(1)} ()'


def main(root):
    out = tap.Tap()
    out.check('every source file is in a known folder', problems(root, 'folders'))
    out.check('includes follow the arrows', problems(root, 'project'))
    out.check('no folder uses a library below it', problems(root, 'system'))
    out.check('the engine has no clock, sockets, files or main loop', problems(root, 'calls'))
    return out.finish()


if __name__ == '__main__':
    sys.exit(main(sys.argv[1]))
