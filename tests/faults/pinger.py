#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""pinger.py ADDRESS: pings through a message bus, one after the other.

Each quarter of a second it tells, as a line of JSON, the milliseconds that each ping took: {"peer": [...], "headwayd": [...]}; `peer` is another
connection, to which headwayd is nothing. Standard input holds it.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time

import gi

gi.require_version("Gio", "2.0")
from gi.repository import Gio, GLib  # noqa: E402

INTERVAL = 0.002
REPORT = 0.25
FLAGS = Gio.DBusConnectionFlags.AUTHENTICATION_CLIENT | Gio.DBusConnectionFlags.MESSAGE_BUS_CONNECTION


def leave_with_parent() -> None:
    sys.stdin.read()
    os._exit(0)


def main() -> None:
    caller, peer = (Gio.DBusConnection.new_for_address_sync(sys.argv[1], FLAGS, None, None) for _ in range(2))
    threading.Thread(target=leave_with_parent, daemon=True).start()
    names = {"peer": peer.get_unique_name(), "headwayd": "org.headway.Headway1"}
    print(json.dumps({"ready": [caller.get_unique_name(), peer.get_unique_name()]}), flush=True)
    while True:
        took: dict[str, list[float]] = {key: [] for key in names}
        until = time.monotonic() + REPORT
        while time.monotonic() < until:
            for key, name in names.items():
                start = time.monotonic()
                caller.call_sync(name, "/", "org.freedesktop.DBus.Peer", "Ping", None, None, Gio.DBusCallFlags.NONE, GLib.MAXINT, None)
                took[key].append((time.monotonic() - start) * 1000)
                time.sleep(INTERVAL)
        print(json.dumps(took), flush=True)


if __name__ == "__main__":
    main()
