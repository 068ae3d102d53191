"""This project's engine. Timed: drawing the arrivals, serving, both tables in memory.

Variant ``steps``: without strides, so that every step is planned, priced and waited for by itself.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from protocol import BLOCK_TOKENS, BLOCKS, OUTPUT, PROMPT, SLOTS, TOKEN_BUDGET, Done, Prepare, main
from simpy import Environment

sys.path.append(str(Path(__file__).parents[1]))
import bench_serving

from simspec.serving.simulate import simulate

environments: list[Environment] = []


def remembered(begin: Callable[..., None]) -> Callable[..., None]:
    """Keep the environments that are made: each has numbered its events."""

    def begins(self: Environment, *given: float) -> None:
        begin(self, *given)
        environments[:] = [self]

    return begins


def prepare(variant: str) -> Prepare:
    """The engine of ``bench_serving.py``."""
    serving = replace(bench_serving.PLAIN, stride=variant != "steps")
    assert (bench_serving.PROMPT, bench_serving.OUTPUT) == (PROMPT, OUTPUT)
    assert (serving.slots, serving.token_budget) == (SLOTS, TOKEN_BUDGET)
    assert (serving.memory.block_tokens, serving.memory.target_blocks) == (BLOCK_TOKENS, BLOCKS)

    def set_up(requests: int, rate: float | None) -> Callable[[], Done]:
        def run() -> Done:
            records = simulate(serving, bench_serving.load(requests, rate), 0)
            tokens = records.requests["produced_tokens"].combine_chunks().to_numpy().sum()
            events = next(environments[0]._eid)  # how many were scheduled
            counts = {"steps": records.steps.num_rows, "events": events}
            return Done(int(tokens), records.ended_at / 1e9, counts)

        return run

    return set_up


if __name__ == "__main__":
    Environment.__init__ = remembered(Environment.__init__)
    main(prepare)
