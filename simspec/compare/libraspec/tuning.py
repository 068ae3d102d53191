"""Parameters tuned on some prompts and carried out on others, by rules that do not weigh what cycles cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simspec.compare.batches import Draws, batch_requests, draw_prompts
from simspec.cost.models import CostModel
from simspec.replay.lockstep import price
from simspec.replay.trajectories import Trajectories
from simspec.traces.index import Ints, Trace

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Priced:
    """What batches of requests of one drafter take at a batch size."""

    trace: Trace
    drafter: str
    cost: CostModel
    batch: int
    seed: int

    def seconds_per_token(self, runs: Trajectories, among: Ints) -> float:
        """On prompts in their shuffled order.

        Args:
            runs: of the requests that :func:`~simspec.compare.batches.request_starts` gives.
        """
        seconds, tokens = self._totals(runs, draw_prompts(self.trace, 0, self.seed, among))
        return float(seconds[0] / tokens[0])

    def by_halves(self, runs: Trajectories, draws: int) -> Floats:
        """Seconds a token for all prompts, and for bootstrap draws of them, (draws + 1,).

        Even and odd prompts run in batches of their own and are drawn by themselves: what was tuned on either
        half does not meet in a batch what was tuned on the other.
        """
        number = np.arange(len(self.trace.prompts))
        seconds, tokens = np.zeros(draws + 1), np.zeros(draws + 1)
        for half in (0, 1):
            mine = number[number % 2 == half]
            if len(mine):
                drawn = draw_prompts(self.trace, draws, 2 * self.seed + half, mine)
                of_half = self._totals(runs, drawn)
                seconds, tokens = seconds + of_half[0], tokens + of_half[1]
        return seconds / tokens

    def _totals(self, runs: Trajectories, drawn: Draws) -> tuple[Floats, Floats]:
        lookup = self.trace.is_lookup(self.drafter)
        if self.batch == 1:
            alone = np.arange(drawn.total)[:, None]
            times = price(runs, alone, [self.cost], lookup=lookup)[0]
            counts = drawn.counts()
            return counts @ times.seconds, counts @ times.tokens
        requests, owner = batch_requests(drawn, self.batch)
        times = price(runs, requests, [self.cost], lookup=lookup)[0]
        seconds, tokens = (np.bincount(owner, weights=each) for each in (times.seconds, times.tokens))
        return seconds.astype(np.float64), tokens.astype(np.float64)


def learning_parts(trace: Trace) -> dict[tuple[int, str | None], Ints]:
    """Prompts to tune on: by the half that is left out (even 0, odd 1) and by task, None for all tasks.

    A half without a prompt of a task, or a trace of one prompt, falls back on all that there are.
    """
    number, category = np.arange(len(trace.prompts)), trace.prompts["category"].to_numpy()
    found = {}
    for half in (0, 1):
        for task in (None, *dict.fromkeys(category)):
            alike = (category == task) if task is not None else np.ones(len(number), dtype=bool)
            others = number[alike & (number % 2 != half)]
            found[half, task] = others if len(others) else number[alike]
    return found


def best_on(
    priced: Priced, runs: Sequence[Trajectories], parts: Mapping[tuple[int, str | None], Ints]
) -> dict[tuple[int, str | None], int]:
    """Which of ``runs`` takes least on batches of each part's prompts alone; the first of equals."""
    return {
        part: int(np.argmin([priced.seconds_per_token(r, prompts) for r in runs]))
        for part, prompts in parts.items()
    }


def held_out(
    trace: Trace,
    runs: Sequence[Trajectories],
    best: Mapping[tuple[int, str | None], int],
    *,
    by_task: bool,
) -> Trajectories:
    """Every prompt with what was best for the other half, of its own task if ``by_task``."""
    category = trace.prompts["category"].to_numpy()
    choice = np.array(
        [best[p % 2, category[p] if by_task else None] for p in range(len(category))], dtype=np.int64
    )
    return mixed(runs, np.concatenate([choice, choice]))


def mixed(runs: Sequence[Trajectories], choice: Ints) -> Trajectories:
    """Request r as ``runs[choice[r]]`` has it; all are of the same requests and chain, shape (Q,)."""
    used = np.unique(choice)
    widest = max(runs[k].flat.shape[1] for k in used)
    arrays: dict[str, Any] = {}
    for name in (f.name for f in fields(Trajectories) if f.name not in KEPT):
        first = getattr(runs[used[0]], name)
        out = np.full((len(choice), widest), -1 if name == "flat" else 0, dtype=first.dtype)
        for k in used:
            mine, values = choice == k, getattr(runs[k], name)
            out[mine, : values.shape[1]] = values[mine]
        arrays[name] = out
    whole: Trajectories = replace(runs[used[0]], **arrays)
    return whole


# Fields of trajectories that are no array of cycles.
KEPT = ("chain", "start", "middle", "tokens_a_forward")
