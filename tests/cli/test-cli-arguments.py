#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Options, help and exit codes of `headway`, without a daemon."""

import os
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(1, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from unittest_tap import main  # noqa: E402

HEADWAY = os.environ["HEADWAY"]


def run(*arguments, stdin=b"", **environment):
    env = dict(os.environ, LC_ALL="C.UTF-8", DBUS_SESSION_BUS_ADDRESS="unix:path=/nonexistent", **environment)
    return subprocess.run([HEADWAY, *arguments], input=stdin, capture_output=True, env=env, check=False)


class Arguments(unittest.TestCase):
    def check(self, status, *arguments, says=None, **more):
        done = run(*arguments, **more)
        self.assertEqual(done.returncode, status, done)
        if status != 0:
            self.assertEqual(done.stdout, b"")
            self.assertRegex(done.stderr.decode(), r"\Aheadway: ")
        if says is not None:
            self.assertIn(says, done.stderr.decode())
        return done

    def test_help_names_every_command(self):
        text = self.check(0, "--help").stdout.decode()
        for command in ("pub", "sub", "buses", "create", "info", "close", "top", "metrics", "token"):
            self.assertIn(f"\n  {command} ", text)

    def test_every_command_has_help(self):
        for command in ("pub", "sub", "buses", "create", "info", "close", "top", "metrics", "token"):
            text = self.check(0, command, "--help").stdout.decode()
            self.assertIn(f"headway {command} [OPTION", text)

    def test_version(self):
        self.assertRegex(self.check(0, "--version").stdout.decode(), r"\Aheadway \d+\.\d+\.\d+\n\Z")

    def test_usage_errors(self):
        for arguments in (
            [], ["nope"], ["--nope"], ["pub"], ["pub", "b"], ["pub", "b", "t", "1", "2"], ["pub", "b", "t", "-5"],
            ["pub", "b", "t", "1", "--nope"], ["pub", "b", "t", "--lines", "--ndjson"], ["pub", "b", "t", "1", "--lines"],
            ["sub"], ["sub", "b", "--count=0"], ["sub", "b", "--count=x"], ["sub", "b", "--after=-1"], ["sub", "b", "--timeout=-1"],
            ["sub", "b", "--epoch=x"], ["sub", "b", "--via=pigeon"], ["buses", "x"], ["create"], ["create", "a", "b"],
            ["create", "a", "--ring-size=4294967296"], ["info"], ["close"], ["token", "x"], ["metrics", "x"], ["top", "x"], ["--http=unix:/x", "top"], ["--session", "--system", "buses"],
            ["--http=unix:/x", "--session", "buses"], ["buses", "--http=ftp://x"], ["--http=unix:/x", "token"],
            ["--http=unix:/x", "sub", "b", "--via=receive"], ["--http=unix:/x", "sub", "b", "--budget=1"],
        ):
            with self.subTest(arguments):
                self.check(2, *arguments)

    def test_ways(self):
        self.check(2, "sub", "b", "--via=pigeon", says="--via=pigeon is none of stream, signals, receive")
        for way in ("stream", "signals", "receive"):
            self.check(1, "sub", "b", f"--via={way}", says="message bus")

    def test_retry(self):
        self.check(2, "pub", "b", "t", "1", "--retry=1", says="--retry goes with --lines")
        self.check(2, "--http=unix:/x", "pub", "b", "t", "--lines", "--retry=1", says="not with --http")
        for seconds in ("-1", "86401", "x", ""):
            self.check(2, "pub", "b", "t", "--lines", f"--retry={seconds}", says="no number from 0 to 86400")
        for seconds in ("0", "86400"):
            self.check(1, "pub", "b", "t", "--lines", f"--retry={seconds}", says="message bus")

    def test_data_must_be_json(self):
        self.check(2, "pub", "b", "t", "hello world", says="--string")
        self.check(2, "pub", "b", "t", "hello world", says="byte 6")
        self.check(2, "pub", "b", "t", '1,"topic":"x"', says="byte 1")
        self.check(2, "pub", "b", "t", stdin=b"", says="byte 0")
        self.check(2, "pub", "b", "t", stdin=b"\"a\xff\"", says="byte 2")

    def test_no_message_bus(self):
        for arguments in (["buses"], ["info", "b"], ["sub", "b"], ["pub", "b", "t", "1"], ["metrics"], ["top"], ["top", "--once"], ["token"]):
            self.check(1, *arguments, says="message bus")
        self.check(1, "--bus-address=unix:path=/nonexistent", "buses", says="message bus")

    def test_no_http(self):
        for arguments in (["buses"], ["info", "b"], ["sub", "b"], ["pub", "b", "t", "1"], ["create", "b"], ["close", "b"], ["metrics"]):
            self.check(1, "--http=unix:/nonexistent.sock", *arguments, says="no answer over HTTP")

    def test_missing_token_file(self):
        self.check(1, "--http=unix:/nonexistent.sock", "--token-file=/nonexistent", "buses", says="cannot read the token")
        with tempfile.NamedTemporaryFile() as file:
            file.write(b"a\nb\n")
            file.flush()
            self.check(1, "--http=unix:/nonexistent.sock", f"--token-file={file.name}", "buses", says="more than one line")

    def test_messages_cannot_control_the_terminal(self):
        done = self.check(2, "\033]0;x\007")
        self.assertNotIn(b"\033", done.stderr)

    def test_words_must_be_utf8(self):
        self.check(2, "sub", b"\xff", says="UTF-8")


if __name__ == "__main__":
    main()
