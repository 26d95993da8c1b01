# SPDX-License-Identifier: MIT OR Apache-2.0
"""A worker process of a sweep. It is a program of its own, so that it does not import the caller's
script, as processes of ``multiprocessing`` do.

It reads calls from its input and writes their results to its output, both pickled.
"""

from __future__ import annotations

import os
import pickle
import sys


def main() -> None:
    """Answer calls until the input ends."""
    answers = os.fdopen(os.dup(1), "wb")
    # What a call prints is no answer.
    os.dup2(2, 1)
    calls = sys.stdin.buffer
    sys.path[:] = pickle.load(calls)
    while True:
        try:
            function, args = pickle.load(calls)
        except EOFError:
            return
        try:
            answer = True, function(*args)
        except Exception as error:
            answer = False, error
        pickle.dump(answer, answers)
        answers.flush()


if __name__ == "__main__":
    main()
