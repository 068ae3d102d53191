"""How a simulator is run for ``bench_peers.py``: in its own interpreter, by an adapter of its own.

An adapter says how to set its simulator up; this module times it and prints one line of JSON, the last
of the output. It needs the standard library only: the interpreter is the peer's.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

PROMPT, OUTPUT, SLOTS = 512, 128, 128
BLOCK_TOKENS, BLOCKS, TOKEN_BUDGET = 16, 28_000, 8192


@dataclass(frozen=True)
class Done:
    """What a run did, as the simulator counted it.

    Attributes:
        simulated_seconds: at which the last request ended.
        counts: whatever else it counted: steps, events.
    """

    output_tokens: int
    simulated_seconds: float
    counts: dict[str, int]


# From a number of requests and a rate in requests per second (None: all at once) to what is timed.
Prepare = Callable[[int, float | None], Callable[[], Done]]


def main(prepare: Callable[[str], Prepare]) -> None:
    """Read the work from the command line, do it, print what it took.

    Args:
        prepare: from the variant (one word, or nothing) to the set-up, which is not timed.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--requests", type=int, required=True)
    parser.add_argument("--rate", type=float)
    parser.add_argument("--calls", type=int, default=1)
    parser.add_argument("--variant", default="")
    wanted = parser.parse_args()
    set_up = prepare(wanted.variant)
    set_up(min(wanted.requests, 200), wanted.rate)()  # what is loaded at the first use is loaded now
    calls = []
    for _ in range(wanted.calls):
        run = set_up(wanted.requests, wanted.rate)
        begin = time.perf_counter(), time.process_time()
        done = run()
        seconds = time.perf_counter() - begin[0], time.process_time() - begin[1]
        calls.append({"wall_seconds": seconds[0], "cpu_seconds": seconds[1], **vars(done)})
    sys.stdout.write("\n" + json.dumps({"calls": calls}) + "\n")
