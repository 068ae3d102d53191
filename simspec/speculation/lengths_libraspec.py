"""What LibraSpec's Algorithm 1 (arXiv 2608.08721) might have been: three repairs, each of one fault."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from simspec.speculation.lengths import (
    Count,
    Decision,
    Factor,
    Floats,
    Ints,
    LibraSpec,
    Positive,
    Stateless,
    View,
    expected_tokens,
)


@dataclass(frozen=True)
class ClampedLibraSpec(LibraSpec):
    """Algorithm 1, but never beyond ``longest``, nor drafting for it (claim L10)."""

    def decide(self, view: View, state: Floats) -> Decision:
        found = super().decide(view, state)
        most = -(-self.longest // self.block) * self.block
        # One block is drafted before anything is weighed.
        return Decision(
            np.minimum(found.drafted, max(most, self.block)), np.minimum(found.submitted, self.longest)
        )


@dataclass(frozen=True)
class TheoremLibraSpec(Stateless):
    """Algorithm 1's loop, with eps_i as Theorems 3.3 and 3.4 have it (claim L7), and clamped.

    eps_i = max{d' : d' < alpha sum_{j=i..d'} prod_{k=i..j} q_k + i}, the sum going to d' itself
    (``theory.libraspec.theorem_limit``). What is not drafted yet has q = 0, so the sum ends with the drafted
    blocks. From d = ``block`` on, while d < ``longest``: e = min over i = 1..d of eps_i; if e <= d, submit
    e; otherwise go on from d = e, drafting whole blocks.

    Since a sum goes to d' itself, whether place d' is submitted hangs on the confidences up to it alone:
    unlike Algorithm 1 it is safe under rejection sampling, given top-1 confidences.
    """

    alpha: Factor = 2.2
    block: Positive = 16
    longest: Count = 24

    def decide(self, view: View, state: Floats) -> Decision:
        rows = len(view.confidence)
        d = np.full(rows, min(self.block, self.longest), dtype=np.int64)
        drafted = np.full(rows, self.block, dtype=np.int64)
        going = np.arange(rows if self.block < self.longest else 0)
        while len(going):
            before = d[going]
            least = self._least(view.confidence[going], before, drafted[going])
            d[going] = np.minimum(least, self.longest)
            drafted[going] = np.maximum(drafted[going], -(-d[going] // self.block) * self.block)
            going = going[(d[going] > before) & (d[going] < self.longest)]
        return Decision(drafted, d)

    def _least(self, q: Floats, d: Ints, drafted: Ints) -> Ints:
        """min over i = 1..d of eps_i, from the first ``drafted`` confidences."""
        q = np.where(np.arange(q.shape[1]) < drafted[:, None], q, 0.0)[:, : int(drafted.max())]
        depth = q.shape[1]
        least = np.full(len(d), np.iinfo(np.int64).max)
        for i in range(1, int(d.max()) + 1):
            eps = np.full(len(d), i - 1)
            if i <= depth:
                worth = self.alpha * np.cumsum(np.cumprod(q[:, i - 1 :], axis=1), axis=1)
                repaid = np.arange(depth - i + 1) < worth
                # Gain less cost is concave in d', so what is repaid is so up to a last d'. Past the end of
                # what is drafted the gain stays and the cost goes on by 1 a place.
                beyond = np.ceil(worth[:, -1]).astype(np.int64) - 1
                eps = i + np.where(repaid.all(axis=1), beyond, repaid.sum(axis=1) - 1)
            least = np.where(i <= d, np.minimum(least, eps), least)
        return least


@dataclass(frozen=True)
class RepairedLibraSpec(Stateless):
    """The same with repaired gains (claims L3, L5): products from place 1, the bonus, a cycle's own cost.

    eps_i is the last length whose expected tokens per second are at least those of i
    (``theory.lengths.eps_repaired``), and the least of eps_0 .. eps_d is the last of the best lengths:
    every eps up to it is at least it, and its own is itself. No further token can pay by what is drafted
    alone, so another block is drafted for as long as all that is drafted is worth submitting.
    """

    block: Positive = 16
    longest: Count = 24

    sampling_safe: ClassVar[bool] = False

    def decide(self, view: View, state: Floats) -> Decision:
        rate = expected_tokens(view.confidence) / view.seconds
        reach = np.minimum(view.limit, min(self.longest, view.confidence.shape[1]))
        rate[np.arange(rate.shape[1]) > reach[:, None]] = -1.0
        drafted = np.full(len(rate), self.block, dtype=np.int64)
        submitted = np.zeros(len(rate), dtype=np.int64)
        going = np.arange(len(rate))
        while len(going):
            known = np.arange(rate.shape[1]) <= drafted[going, None]
            seen = np.where(known, rate[going], -1.0)
            submitted[going] = seen.shape[1] - 1 - seen[:, ::-1].argmax(axis=1)
            going = going[(submitted[going] == drafted[going]) & (drafted[going] < reach[going])]
            drafted[going] += self.block
        return Decision(drafted, submitted)
