#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A connection that speaks D-Bus by itself, so that it need not read; memory of processes."""
import os
import socket
import sys

from harness import BUS, NAME, Gio, GLib

MIB = 1024 * 1024
DRIVER = 'org.freedesktop.DBus'


class Raw:
    """A connection that answers nothing, and reads only when it is told to."""

    def __init__(self, server):
        self.serial = 0
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(server.socket)
        self.socket.sendall(b'\0AUTH EXTERNAL ' + str(os.getuid()).encode().hex().encode() + b'\r\n')
        self.socket.recv(100)
        self.socket.sendall(b'BEGIN\r\n')
        self.buffer = b''
        self.name = self.call(DRIVER, '/org/freedesktop/DBus', DRIVER, 'Hello')[0]

    def send(self, destination, path, interface, method, signature='()', *values, times=1):
        blobs = []
        for _ in range(times):
            self.serial += 1
            message = Gio.DBusMessage.new_method_call(destination, path, interface, method)
            message.set_serial(self.serial)
            if values:
                message.set_body(GLib.Variant(signature, values))
            blobs.append(bytes(message.to_blob(Gio.DBusCapabilityFlags.NONE)))
        self.socket.sendall(b''.join(blobs))
        return self.serial

    def flood(self, path, interface, method, signature, *values, times):
        """As send(), of so many that are alike, each with a serial of its own."""
        message = Gio.DBusMessage.new_method_call(NAME, path, interface, method)
        message.set_serial(1)
        if values:
            message.set_body(GLib.Variant(signature, values))
        blob = bytes(message.to_blob(Gio.DBusCapabilityFlags.NONE))
        for first in range(0, times, 1000):
            serials = range(self.serial + 1, self.serial + 1 + min(1000, times - first))
            self.socket.sendall(b''.join(blob[:8] + serial.to_bytes(4, sys.byteorder) + blob[12:] for serial in serials))
            self.serial = serials[-1]

    def fetch(self, path, times=1):
        return self.send(NAME, path, BUS, 'Fetch', '(tua{sv})', 0, 1024, {}, times=times)

    def read(self):
        while len(self.buffer) < 16 or len(self.buffer) < Gio.DBusMessage.bytes_needed(self.buffer[:16]):
            more = self.socket.recv(MIB)
            assert more, 'the message bus has closed the connection'
            self.buffer += more
        size = Gio.DBusMessage.bytes_needed(self.buffer[:16])
        blob, self.buffer = self.buffer[:size], self.buffer[size:]
        return Gio.DBusMessage.new_from_blob(blob, Gio.DBusCapabilityFlags.NONE)

    def answer(self, serial):
        while True:
            message = self.read()
            if message.get_reply_serial() == serial:
                return message

    def call(self, *arguments):
        return self.answer(self.send(*arguments)).get_body().unpack()

    def leave(self):
        self.socket.close()


def memory(process, what):
    with open(f'/proc/{process.pid}/status', encoding='ascii') as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(what + ':'))


def is_sanitized(process):
    with open(f'/proc/{process.pid}/maps', encoding='utf-8') as file:
        return 'asan' in file.read()
