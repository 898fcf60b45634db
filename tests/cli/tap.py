# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs the unittest cases of a script and prints TAP."""

import sys
import unittest


class TapResult(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self.number = 0

    def say(self, word, test, rest=""):
        self.number += 1
        print(f"{word} {self.number} - {test.id().split('.', 1)[1]}{rest}", flush=True)

    def addSuccess(self, test):
        super().addSuccess(test)
        self.say("ok", test)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.say("ok", test, f" # SKIP {reason}")

    def complain(self, test, err):
        self.say("not ok", test)
        for line in self._exc_info_to_string(err, test).splitlines():
            print(f"# {line}", flush=True)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.complain(test, err)

    def addError(self, test, err):
        super().addError(test, err)
        self.complain(test, err)


def main(module="__main__"):
    loader = unittest.defaultTestLoader
    if len(sys.argv) > 1:
        suite = loader.loadTestsFromNames(sys.argv[1:], sys.modules[module])
    else:
        suite = loader.loadTestsFromModule(sys.modules[module])
    print(f"1..{suite.countTestCases()}", flush=True)
    result = TapResult()
    suite.run(result)
    sys.exit(0 if result.wasSuccessful() else 1)
