#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What an idle SSE reader costs headwayd beyond the kernel's memory, at 1000 and at 5000 readers.

The goal of issue 3 is at most 4 KiB a reader; that of performance.md 3 KiB at 5000. Resident memory, after the
readers have come and been quiet for a moment, less what it was before.
"""

import os
import resource
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "daemon"))

import daemon_harness as harness  # noqa: E402

GOAL_KIB = 4.0
READERS = (1000, 5000)
CONFIG = "max-subscribers=6000\nhttp-max-connections=6000\n"


def resident_kib(pid: int) -> int:
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
        for line in file:
            if line.startswith("Pss:"):
                return int(line.split()[1])
    raise RuntimeError("no Pss in smaps_rollup")


class IdleReaders(harness.Case):
    def measure(self, count: int) -> float:
        daemon = self.run_daemon("--config=" + self.config(CONFIG))
        client = self.client()
        name = f"idle{count}"
        client.create(name)
        warm = [self.stream(daemon, name) for _ in range(50)]
        for stream in warm:
            stream.close()
        harness.wait_until(lambda: client.get(harness.path_of_bus(name), harness.BUS, "SubscriberCount") == 0, "0 readers")
        before = resident_kib(daemon.pid)
        streams = [self.stream(daemon, name) for _ in range(count)]
        harness.wait_until(lambda: client.get(harness.path_of_bus(name), harness.BUS, "SubscriberCount") == count, "all readers")
        time.sleep(1)
        after = resident_kib(daemon.pid)
        for stream in streams:
            stream.close()
        self.assert_clean(daemon)
        return (after - before) / count

    def test_idle_readers(self) -> None:
        for count in READERS:
            each = self.measure(count)
            print(f"# {count} idle readers: {each:.2f} KiB each beyond the kernel's (goal: at most {GOAL_KIB})", flush=True)
            self.assertLessEqual(each, GOAL_KIB)


if __name__ == "__main__":
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    harness.main()
