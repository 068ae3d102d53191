"""Published ways of sharing a verifying forward out among the blocks of a batch, joint rivals of ours.

Both draft blocks of one fixed length, take confidences as they are and order all tokens of the batch by
survival. They are told what a cycle takes with the widest row and the tokens of all rows; engines' tables
know the tokens alone, which is the same for a packed forward and less for a padded one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
from msgspec import Meta

from simspec.speculation.joint import by_survival
from simspec.speculation.lengths import Decision, Floats, Ints, Positive
from simspec.speculation.planning import Happened, State, Waiting

Share = Annotated[float, Meta(gt=0, le=1)]


class _FixedBlocks:
    """Nothing is remembered; every row drafts what it can of ``longest`` tokens."""

    # What is submitted is settled after all drafted confidences were seen.
    sampling_safe: ClassVar[bool] = False

    def begin(self, streams: int, batch: int, depth: int) -> State:
        return {}

    def observe(self, state: State, happened: Happened) -> State:
        return state


def _offered(waiting: Waiting, longest: int) -> tuple[Ints, Floats, Floats]:
    """Tokens drafted (G, B), their survivals (G, B, ``longest``), and seconds before the forward (G, 1)."""
    drafted: Ints = np.minimum(waiting.limit, longest)
    confidence = waiting.confidence[..., :longest]
    kept = np.arange(confidence.shape[2]) < drafted[..., None]
    survival = np.where(kept, np.cumprod(confidence, axis=2), 0.0)
    paid = waiting.draft(drafted.max(axis=1)[:, None]) + waiting.overhead
    return drafted, np.asarray(survival, dtype=np.float64), paid


@dataclass(frozen=True)
class DSpark(_FixedBlocks):
    """Admit tokens by falling survival while expected tokens a second rise (arXiv 2607.05147).

    tau is one token for every row and the survivals of what is admitted; steps a second are those of the
    whole cycle. ``scan`` is ``first-fall`` as in the paper, which stops at the first token that does not
    raise tau x SPS, or ``all``: the best of all budgets, as SGLang's planner (its code) has it, since costs
    rise in stairs. Neither its smoothing of confidences nor its running some steps behind is here.
    """

    longest: Positive = 7
    scan: Literal["first-fall", "all"] = "first-fall"

    def decide(self, waiting: Waiting, state: State) -> Decision:
        drafted, survival, paid = _offered(waiting, self.longest)
        order = by_survival(survival)
        tokens = waiting.running.sum(axis=1)[:, None] + order.gain
        rate = tokens / (paid + waiting.verify(order.widest, order.budgets))
        rate = np.where(order.budgets <= order.most[:, None], rate, -np.inf)
        if self.scan == "all":
            taken = rate.argmax(axis=1)
        else:
            stops = np.concatenate([rate[:, 1:] <= rate[:, :-1], np.ones((len(rate), 1), bool)], axis=1)
            taken = stops.argmax(axis=1)
        return Decision(drafted, order.of_rows(taken))


@dataclass(frozen=True)
class DCut(_FixedBlocks):
    """Keep the share of the drafted tokens with most expected accepted ones a second (arXiv 2607.14647).

    Of ``shares``, the one that maximises the sum of the survivals that it keeps over the seconds of its
    cycle; without the token that every row emits anyhow, as the paper has it. A share is rounded up.
    """

    longest: Positive = 15
    shares: Annotated[tuple[Share, ...], Meta(min_length=1)] = (0.25, 0.5, 0.75, 1.0)

    def decide(self, waiting: Waiting, state: State) -> Decision:
        drafted, survival, paid = _offered(waiting, self.longest)
        order = by_survival(survival)
        kept = np.ceil(np.multiply.outer(order.most, self.shares)).astype(np.int64)
        gain = np.take_along_axis(order.gain, kept, axis=1)
        widest = np.take_along_axis(order.widest, kept, axis=1)
        best = (gain / (paid + waiting.verify(widest, kept))).argmax(axis=1)
        return Decision(drafted, order.of_rows(np.take_along_axis(kept, best[:, None], axis=1)[:, 0]))
