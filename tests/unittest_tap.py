# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs the unittest cases of a script and prints TAP, with how long each took."""

from __future__ import annotations

import sys
import time
import traceback
import unittest
from typing import Any


class TapResult(unittest.TestResult):
    def __init__(self) -> None:
        super().__init__()
        self.number = 0
        self.failed_subtests = 0
        self.began = 0.0

    def startTest(self, test: unittest.TestCase) -> None:
        super().startTest(test)
        self.failed_subtests = 0
        self.began = time.monotonic()

    def say(self, word: str, test: unittest.TestCase, rest: str = "") -> None:
        self.number += 1
        print(f"{word} {self.number} - {test.id().split('.', 1)[1]}{rest}", flush=True)

    def explain(self, err: Any) -> None:
        diagnose("".join(traceback.format_exception(*err)))

    def addSuccess(self, test: unittest.TestCase) -> None:
        super().addSuccess(test)
        self.say("ok", test, f" ({time.monotonic() - self.began:.2f} s)")

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:
        super().addSkip(test, reason)
        self.say("ok", test, f" # SKIP {reason}")

    def addFailure(self, test: unittest.TestCase, err: Any) -> None:
        super().addFailure(test, err)
        self.say("not ok", test)
        self.explain(err)

    def addError(self, test: unittest.TestCase, err: Any) -> None:
        super().addError(test, err)
        self.say("not ok", test)
        self.explain(err)

    def addSubTest(self, test: unittest.TestCase, subtest: unittest.TestCase, err: Any) -> None:
        super().addSubTest(test, subtest, err)
        if err is None:
            return
        self.failed_subtests += 1
        if self.failed_subtests == 1:
            self.say("not ok", test)
        diagnose(" ".join(str(subtest).split()))
        self.explain(err)


def diagnose(text: str) -> None:
    for line in text.splitlines():
        print(f"# {line}", flush=True)


def main(lack: str = "") -> None:
    """Runs the tests of the program, or those named in its arguments. @lack: why they must all be skipped."""
    module = sys.modules["__main__"]
    if lack:
        for value in list(vars(module).values()):
            if isinstance(value, type) and issubclass(value, unittest.TestCase):
                unittest.skip(lack)(value)
    if len(sys.argv) > 1:
        suite = unittest.defaultTestLoader.loadTestsFromNames(sys.argv[1:], module)
    else:
        suite = unittest.defaultTestLoader.loadTestsFromModule(module)
    print(f"1..{suite.countTestCases()}", flush=True)
    result = TapResult()
    suite.run(result)
    sys.exit(0 if result.wasSuccessful() else 1)
