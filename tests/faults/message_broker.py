# SPDX-License-Identifier: LGPL-2.1-or-later
"""Message buses with the limits they are delivered with: dbus-daemon, and dbus-broker without systemd."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess

import gi

gi.require_version("Gio", "2.0")
from gi.repository import Gio, GLib  # noqa: E402

PATIENCE_MS = 10000
# What dbus-broker's launcher sends of a configuration: here whoever may connect may do everything.
BATCH = "bta(btbs)a(btssssuutt)a(btssssuutt)"
POLICY = f"(a(u({BATCH}))a(buu({BATCH}))a(ss){{}}s)"
EVERYBODY = 2**32 - 1
MAX_FDS = 2**64 - 1


class StockDaemon:
    """dbus-daemon as a session has it."""
    name = "dbus-daemon"

    def __init__(self, folder: str):
        path = os.path.join(folder, "stock-bus")
        # As root it complains about a limit that it cannot raise.
        self.process = subprocess.Popen(
            ["dbus-daemon", "--nofork", "--nosyslog", "--print-address", "--session", f"--address=unix:path={path}"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().strip()

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()


def policy(has_apparmor: bool) -> GLib.Variant:
    anything = [(True, 1, "", "", "", "", 0, 0, 0, MAX_FDS)]
    batch = (True, 1, [(True, 1, True, "")], anything, anything)
    apparmor = (False,) if has_apparmor else ()
    return GLib.Variant(POLICY.format("b" if has_apparmor else ""), ([(EVERYBODY, batch)], [], [], *apparmor, "session"))


class Broker:
    """dbus-broker. Its controller, elsewhere a part of systemd, is this process."""
    name = "dbus-broker"

    def __init__(self, folder: str):
        self.path = os.path.join(folder, "broker-bus")
        self.address = f"unix:path={self.path}"
        # Which of the two its version understands only an attempt shows.
        if not self.start(True) and not self.start(False):
            raise RuntimeError("dbus-broker takes no listener")

    @staticmethod
    def is_installed() -> bool:
        return shutil.which("dbus-broker") is not None

    def start(self, has_apparmor: bool) -> bool:
        ours, its = socket.socketpair()
        with its:
            self.process = subprocess.Popen(
                ["dbus-broker", "--controller", str(its.fileno()), "--machine-id", "0123456789abcdef0123456789abcdef"],
                pass_fds=[its.fileno()], stderr=subprocess.DEVNULL)
        stream = Gio.Socket.new_from_fd(ours.detach()).connection_factory_create_connection()
        try:
            self.controller = Gio.DBusConnection.new_sync(stream, None, Gio.DBusConnectionFlags.AUTHENTICATION_CLIENT, None, None)
            self.controller.set_exit_on_close(False)
            self.listen(has_apparmor)
        except GLib.Error:
            self.stop()
            return False
        return True

    def listen(self, has_apparmor: bool) -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK) as listener:
            if os.path.exists(self.path):
                os.unlink(self.path)
            listener.bind(self.path)
            listener.listen(128)
            fds = Gio.UnixFDList.new()
            index = fds.append(listener.fileno())
            arguments = GLib.Variant.new_tuple(GLib.Variant("o", "/org/bus1/DBus/Listener/0"), GLib.Variant("h", index),
                                               GLib.Variant("v", policy(has_apparmor)))
            self.controller.call_with_unix_fd_list_sync(
                None, "/org/bus1/DBus/Broker", "org.bus1.DBus.Broker", "AddListener", arguments, None,
                Gio.DBusCallFlags.NONE, PATIENCE_MS, fds, None)

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()
