"""What the cache's bookkeeping costs; run by ``make bench``. Nothing here moves keys and values.

A cycle is: ask the rule (and compact), append gamma + 1 tokens a row, roll back to what is kept, truncate.
Kept tokens are drawn (synthetic: each draft accepted with probability .7, given all before were).
"""

from __future__ import annotations

import numpy as np
import pytest

from simspec.speculation.slots import Slots
from simspec.streams import stream

GAMMA, ACCEPTANCE, FLOOR = 4, 0.7, 16
CYCLES = 100


def kept_tokens(batch: int, cycles: int) -> np.ndarray:
    """Tokens kept of each row in each cycle, 1 .. gamma + 1, shape (cycles, batch)."""
    accepted = stream(0, "acceptance", batch).random((cycles, batch, GAMMA)) < ACCEPTANCE
    return 1 + np.cumprod(accepted, axis=2).sum(axis=2)


def filled(batch: int, context: int) -> Slots:
    """A cache whose rows hold ``context`` tokens, packed."""
    slots = Slots(batch)
    slots.append(np.full(batch, context))
    return slots


def run(slots: Slots, kept: np.ndarray, slack: float | None) -> int:
    """Go through the cycles; returns slots copied in each row by compactions. Slack None: no rule."""
    widths, copied = np.full(slots.rows, GAMMA + 1), 0
    for row in kept:
        if slack is not None and slots.should_compact(slack, FLOOR):
            slots.compact()
            copied += slots.slots
        before = slots.lengths
        slots.append(widths)
        slots.roll_back(before + row)
        slots.truncate()
    return copied


@pytest.mark.parametrize("context", [128, 2048])
@pytest.mark.parametrize("batch", [1, 8, 64])
@pytest.mark.parametrize("slack", [None, 0.25, 0.0], ids=["no rule", "slack 0.25", "slack 0"])
def test_cycles(benchmark, slack, batch, context):
    """100 cycles from ``context`` tokens a row; says the time of a cycle and what the rule had moved."""
    kept = kept_tokens(batch, CYCLES)

    def setup():
        return (filled(batch, context), kept, slack), {}

    copied = benchmark.pedantic(run, setup=setup, rounds=5)
    tokens = int(kept.sum())
    benchmark.extra_info["microseconds_per_cycle"] = round(benchmark.stats["median"] / CYCLES * 1e6, 1)
    benchmark.extra_info["copies_per_token"] = round(copied * batch / tokens, 2)


@pytest.mark.parametrize("batch", [1, 8, 64])
def test_compact_once(benchmark, batch):
    """One compaction after 400 cycles without any: the source indices of every row."""
    slots = filled(batch, 1)
    run(slots, kept_tokens(batch, 400), None)
    valid = slots.valid

    def once():
        slots.valid = valid
        return slots.compact()

    source = benchmark(once)
    assert source.shape == (batch, slots.needed)
