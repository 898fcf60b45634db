#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""headwayd seen by whoever watches it: metrics on both sides, security events and storms in its log, budgets.

Environment: HEADWAYD: the program.
"""

from __future__ import annotations

import json
import re
import sys
import time

sys.dont_write_bytecode = True
from daemon_harness import BUS, ROOT, Case, Daemon, GLib, Refused, ask, main, path_of_bus, wait_until  # noqa: E402


def scrape(daemon: Daemon) -> tuple[dict[tuple[str, ...], float], str]:
    connection = daemon.http()
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    connection.close()
    values = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            series, value = line.rsplit(" ", 1)
            name, _, labels = series.partition("{")
            values[(name, *re.findall(r'(\w+)="(.*?)"', labels))] = float(value)
    return values, text


class WatchTest(Case):
    def test_metrics_are_the_same_on_both_sides(self) -> None:
        daemon = self.run_daemon()
        client = self.client()
        client.create("b")
        client.call(path_of_bus("b"), BUS, "Subscribe", "(asa{sv})", [], {"mode": GLib.Variant("s", "routed"), "budget-bytes": GLib.Variant("t", 100)})
        client.publish_many("b", 20, '"' + "x" * 50 + '"')
        http, text = scrape(daemon)
        dbus = client.metrics()
        # What the question itself changes.
        own = {key for key in http if key[0] == "headway_connections"}
        self.assertEqual({(key[0], *sorted(key[1:])): value for key, value in http.items() if key not in own},
                         {key: value for key, value in dbus.items() if key[0] != "headway_connections"})
        self.assertEqual(http[("headway_route_drops_total", ("subscriber", "dbus"), ("principal_class", "user"), ("reason", "budget"))], 19)
        self.assertEqual(http[("headway_route_active_principals", ("subscriber", "dbus"))], 1)
        self.assertIn("# TYPE headway_route_drops_total counter\n", text)
        self.assert_clean(daemon)

    def test_security_events_are_told_once_and_then_summed(self) -> None:
        daemon = self.run_daemon()
        client, other = self.client(), self.client()
        client.create("b")
        subscription = client.subscribe("b")
        for _ in range(20):
            with self.assertRaises(Refused):
                other.receive(subscription, 0)
        self.assertEqual(daemon.errors().count("security: not_owner"), 1, daemon.errors())
        wait_until(lambda: "security: not_owner 19 times more within" in daemon.errors(), "the summary")
        self.assertIn('on bus "b"', daemon.errors())
        self.assert_clean(daemon)

    def test_case_158_a_storm_names_its_topics(self) -> None:
        daemon = self.run_daemon()
        client = self.client()
        client.create("b")
        client.publish_many("b", 499, topic="quiet.topic")
        time.sleep(6.5)
        self.assertNotIn("storm: ", daemon.errors())
        client.publish_many("b", 400, topic="busy.topic")
        client.publish_many("b", 100, topic="other.topic")
        wait_until(lambda: "storm: " in daemon.errors(), "the report")
        self.assertIn("storm: 500 events in 5 s, most of them on busy.topic (400), other.topic (100)", daemon.errors())
        self.assert_clean(daemon)

    def test_a_budget_under_one_event_is_raised(self) -> None:
        config = self.config("route-budget-bytes=uint64 1000\nevent-max-bytes=uint64 5000\n")
        daemon = self.run_daemon(f"--config={config}")
        client = self.client()
        client.create("b")
        info = client.call(path_of_bus("b"), BUS, "Subscribe", "(asa{sv})", [], {"mode": GLib.Variant("s", "routed")})[1]
        self.assertEqual(info["budget-bytes"], 5000)
        self.assertIn("route-budget-bytes: 1000 is under event-max-bytes, 5000; the latter holds", daemon.errors())
        self.config("route-budget-bytes=uint64 5000\nevent-max-bytes=uint64 5000\nheartbeat-ms=uint32 14000\n")
        wait_until(lambda: "setting heartbeat-ms changed" in daemon.errors(), "the change")
        self.assertEqual(daemon.errors().count("the latter holds"), 1)
        self.assert_clean(daemon)

    def test_refusals_over_both_ways(self) -> None:
        config = self.config("principal-bytes-per-second=uint64 1000\n")
        daemon = self.run_daemon(f"--config={config}")
        client = self.client()
        client.create("b")
        data = '"' + "x" * 700 + '"'
        client.publish("b", data)
        refused = self.assert_refused("RateLimited", client.publish, "b", data)
        self.assertRegex(str(refused), r"retry-after-ms=\d+$")
        self.assert_refused("QuotaExceeded", client.publish_many, "b", 2, data)
        # The same user over HTTP is the same principal.
        status, answer = ask(daemon.http(), "POST", "/session/b/events", {"topic": "t", "data": json.loads(data)})
        self.assertEqual((status, answer["code"]), (429, "rate_limited"))
        self.assertGreater(answer["retryAfterMs"], 0)
        self.assertEqual(client.get(f"{ROOT}/bus/b", BUS, "LastEventId"), 1)
        self.assert_clean(daemon)

    def test_a_handler_that_leaves_was_not_silent(self) -> None:
        daemon = self.run_daemon()
        client, handler = self.client(), self.client()
        client.create("b")
        handler.hold_events("b", "post")
        events = [("t", "1", {"principal": GLib.Variant("s", f"p{number}")}) for number in range(6)]
        client.bus("b", "PublishMany", "(a(ssa{sv})a{sv})", events, {})
        wait_until(lambda: client.metrics()[("headway_handler_calls",)] == 6, "the calls")
        handler.leave()
        wait_until(lambda: client.metrics()[("headway_handler_calls",)] == 0, "their end")
        self.assert_clean(daemon)
        self.assertNotIn("is silent", daemon.errors())


if __name__ == "__main__":
    main()
