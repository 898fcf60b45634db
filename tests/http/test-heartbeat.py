# SPDX-License-Identifier: LGPL-2.1-or-later
"""Heartbeats as the contract has them, in real time: sse-contract.md 1.4, case 81."""

import sys
import time

from http_case import Server, main, test


@test
def case_81_heartbeats_at_15_30_and_45_seconds():
    with Server() as server:
        server.create("b")
        with server.stream("b") as stream, server.stream("b", version="1.0") as old:
            for beat in (15, 30, 45):
                for one in (stream, old):
                    one.peer.settimeout(beat + 5)
                    frame = one.next(heartbeats=True)
                    waited = time.monotonic() - one.opened
                    assert frame.kind == "heartbeat" and frame.raw == b": heartbeat\n\n", frame
                    assert beat - 0.1 < waited < beat + 1, waited
            assert stream.is_quiet(1)


sys.exit(main())
