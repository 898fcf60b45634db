#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""units.py BUILD-ROOT LIBEXECDIR: unit files, activation files and bus policy are valid and fit each other.

The units are verified as they were configured, under their installed names, in a folder of their own. Only the path of
headwayd is replaced, by a program that exists: else the verdict would depend on whether Headway is installed.
"""
import configparser
import os
import re
import subprocess
import sys
import tempfile

import tap

NAME = 'org.headway.Headway1'


def verify(build, libexecdir, scope, folder):
    for kind in ('service', 'socket'):
        text = tap.read(build, f'data/headwayd.{scope}.{kind}')
        if kind == 'service':
            text, replaced = re.subn(rf'(?m)^ExecStart={re.escape(libexecdir)}/headwayd ', 'ExecStart=/bin/true ', text)
            if replaced != 1:
                yield f'headwayd.{scope}.service: ExecStart= is not {libexecdir}/headwayd'
        with open(os.path.join(folder, f'headwayd.{kind}'), 'w', encoding='utf-8') as file:
            file.write(text)
    environment = dict(os.environ, SYSTEMD_UNIT_PATH=f'{folder}:/usr/lib/systemd/{scope}:/lib/systemd/{scope}',
                       XDG_RUNTIME_DIR=folder, SYSTEMD_LOG_LEVEL='warning')
    command = ['systemd-analyze', f'--{scope}', '--man=no', '--recursive-errors=no', 'verify',
               os.path.join(folder, 'headwayd.service'), os.path.join(folder, 'headwayd.socket')]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    # Only what is said about our own units counts.
    said = [line for line in (done.stderr + done.stdout).split('\n') if 'headwayd' in line]
    if done.returncode != 0 or said:
        yield from said or [done.stderr or f'systemd-analyze exits with {done.returncode}']


def ini(text):
    parser = configparser.ConfigParser(strict=False, interpolation=None, delimiters='=')
    parser.optionxform = str
    parser.read_string(text)
    return parser


def activation(build, libexecdir, scope):
    service = ini(tap.read(build, f'data/{NAME}.{scope}.service'))['D-BUS Service']
    unit_scope = 'user' if scope == 'session' else 'system'
    unit = ini(tap.read(build, f'data/headwayd.{unit_scope}.service'))['Service']
    if service.get('Name') != NAME or unit.get('BusName') != NAME:
        yield f'the name is not {NAME} in both'
    if service.get('SystemdService') != 'headwayd.service':
        yield 'SystemdService= is not headwayd.service'
    if service.get('Exec') != unit.get('ExecStart'):
        yield f'Exec={service.get("Exec")} differs from ExecStart={unit.get("ExecStart")}'
    if not service.get('Exec', '').startswith(f'{libexecdir}/headwayd --{scope} '):
        yield f'Exec= does not start {libexecdir}/headwayd --{scope}'
    if scope == 'system' and (service.get('User') != 'headway' or unit.get('User') != 'headway'):
        yield 'the system instance does not run as the user headway'


def sockets(build, scope):
    socket = ini(tap.read(build, f'data/headwayd.{scope}.socket'))['Socket']
    if socket.get('FileDescriptorName') != 'http':
        yield 'FileDescriptorName= is not http'
    if socket.get('SocketMode') != '0600':
        yield 'SocketMode= is not 0600'


def exposure(build, folder):
    """The hardening of the system unit; 10 is none, 0 is the most."""
    done = subprocess.run(['systemd-analyze', 'security', '--offline=true', '--no-pager', '--threshold=17',
                           os.path.join(folder, 'headwayd.service')],
                          capture_output=True, text=True, env=dict(os.environ, XDG_RUNTIME_DIR=folder))
    if done.returncode != 0:
        yield (done.stderr + done.stdout).strip().split('\n')[-1]


def main(build, libexecdir):
    out = tap.Tap()
    for scope in ('user', 'system'):
        with tempfile.TemporaryDirectory() as folder:
            out.check(f'systemd-analyze verify accepts the {scope} units', verify(build, libexecdir, scope, folder))
            if scope == 'system':
                out.check('the system unit is hardened', exposure(build, folder))
        out.check(f'the {scope} socket is passed as http, to its owner only', sockets(build, scope))
    for scope in ('session', 'system'):
        out.check(f'the {scope} activation file and the unit agree', activation(build, libexecdir, scope))
    return out.finish()


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:3]))
