"""Policies that choose a draft length for each row, from what its drafter thinks of its own drafts.

They work on all slots at once. What a policy sees of a row is the drafter's confidence in each token of
the block that it would draft there, and what steps cost; nothing of what the target will say, nor of where
the text or the answer ends. Decisions are cut to what can be drafted afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from simspec.errors import BadInput
from simspec.speculation import lengths as rules
from simspec.speculation.lengths import G4, Decision, ExactMarginal, LengthRule, LibraSpec, Static

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class RowView(NamedTuple):
    """What a policy may see of C slots before a step, blocks of at most D tokens.

    Attributes:
        decoding: 1 for a row that will decode, else 0, (C,). The other slots hold anything.
        confidence: the drafter's probability of each token it would draft, (C, D), 0 past the block's end.
            All 0 where the source of verdicts has none, for policies that do not weigh it.
        length: tokens in that block, (C,).
        seconds: what a step of these rows costs when all draft 0..n, n + 1 numbers, when asked with n.
        verifying: what a step costs in which every row drafts n and so many drafts are submitted: asked with
            n, drafts of the widest row (m,) and of all rows (m,); shape (m,).
        weighed: what the policy makes of these blocks, where that is known already, (C, K).
    """

    decoding: Ints
    confidence: Floats
    length: Ints
    seconds: Callable[[int], Sequence[float]]
    verifying: Callable[[int, Ints, Ints], Floats]
    weighed: Floats | None = None


@runtime_checkable
class RowPolicy(Protocol):
    """Chooses how many tokens each row drafts and submits; its state is one number a slot.

    Attributes:
        rows_only: never; see :class:`simspec.serving.policies.Policy`.
        weighs_confidence: whether it looks at confidences: it then needs a source that has them.
    """

    rows_only: ClassVar[bool]

    @property
    def longest(self) -> int:
        """The greatest length that is carried out: what lookahead slots are reserved for."""

    @property
    def weighs_confidence(self) -> bool: ...

    def begin(self, slots: int) -> Floats:
        """State of slots whose request has just been given its place, (slots,)."""

    def weigh(self, confidence: Floats, length: Ints) -> Floats:
        """What it makes of blocks, of each alone and whatever else there is to see; (N, D) to (N, K).

        Blocks of a record stay as they are, so they are weighed once.
        """

    def lengths(self, view: RowView, state: Floats) -> Decision:
        """Tokens to draft and, of those, to submit, (C,) each; not cut to what can be drafted."""

    def observe(self, state: Floats, decision: Decision, accepted: Ints) -> Floats:
        """State after a step in which the decision was carried out, cut, with so many accepted drafts."""


@dataclass(frozen=True)
class ByRule:
    """A length rule of :mod:`simspec.speculation.lengths`, row by row.

    To a rule that weighs cost, a length costs what the step would if all rows took it. Drafts beyond
    ``longest`` are cut: LibraSpec's rule, which may exceed its own bound, needs more room than that bound.
    """

    rule: LengthRule
    longest: int
    rows_only: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.longest < 0:
            raise BadInput(f"longest is {self.longest}", allowed="at least 0")

    @property
    def weighs_confidence(self) -> bool:
        return not isinstance(self.rule, Static | G4)

    def begin(self, slots: int) -> Floats:
        return self.rule.begin(slots)

    def weigh(self, confidence: Floats, length: Ints) -> Floats:
        """Expected tokens, or lengths themselves where a rule looks at nothing but the block."""
        limit = np.minimum(length, confidence.shape[1])
        if isinstance(self.rule, ExactMarginal):
            return self.rule.weigh(confidence, limit)
        if isinstance(self.rule, LibraSpec):
            rows, places = confidence.shape
            view = rules.View(confidence, limit, np.ones((rows, places + 1)))
            decision = self.rule.decide(view, self.rule.begin(rows))
            return np.stack([decision.drafted, decision.submitted], axis=1).astype(np.float64)
        return confidence

    def lengths(self, view: RowView, state: Floats) -> Decision:
        slots, depth = view.confidence.shape
        limit = np.minimum(view.length, depth)
        if isinstance(self.rule, ExactMarginal):
            return self.rule.choose(_weighed(self, view), limit, np.array(view.seconds(depth)))
        if isinstance(self.rule, LibraSpec):
            return Decision(*_weighed(self, view).T.astype(np.int64))
        priced = np.ones((slots, depth + 1))
        if self.weighs_confidence:
            priced[:] = view.seconds(depth)
        return self.rule.decide(rules.View(view.confidence, limit, priced), state)

    def observe(self, state: Floats, decision: Decision, accepted: Ints) -> Floats:
        return self.rule.observe(state, decision, accepted)


@dataclass(frozen=True)
class Joint:
    """Shares a step's drafts between rows (DSpark, arXiv 2607.05147).

    Place j of a row survives with the product of its first j confidences. All places of all rows are
    admitted by descending survival for as long as (rows + sum of survivals) / seconds of the step rises; of
    equals, the lower slot and then the lower place first. The first stop is not optimal where the step's
    time is a staircase (claim L15b), ``full_scan`` is, if that time depends on the number of tokens alone
    (L15f). Every row's whole block, up to ``longest``, is drafted before: to see it costs a draft.
    """

    longest: int
    full_scan: bool = False
    rows_only: ClassVar[bool] = False
    weighs_confidence: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.longest < 1:
            raise BadInput(f"longest is {self.longest}", allowed="at least 1")

    def begin(self, slots: int) -> Floats:
        return np.zeros(slots)

    def weigh(self, confidence: Floats, length: Ints) -> Floats:
        """Survivals."""
        return np.asarray(np.cumprod(confidence, axis=1), dtype=np.float64)

    def lengths(self, view: RowView, state: Floats) -> Decision:
        slots, depth = view.confidence.shape
        survival = _weighed(self, view) * view.decoding[:, None]
        flat = survival.ravel()
        # Survivals never rise along a row and the sort is stable: places come in their order.
        order = np.argsort(-flat, kind="stable")[: np.count_nonzero(flat)]
        tokens = np.concatenate([[float(view.decoding.sum())], flat[order]]).cumsum()
        widest = np.concatenate([[0], np.maximum.accumulate(order % depth + 1)])
        rate = tokens / view.verifying(depth, widest, np.arange(len(tokens)))
        if self.full_scan:
            admitted = int(rate.argmax())
        else:
            stops = rate[1:] <= rate[:-1]
            admitted = int(stops.argmax()) if stops.any() else len(stops)
        submitted = np.bincount(order[:admitted] // depth, minlength=slots)
        return Decision(np.minimum(view.length, depth), submitted)

    def observe(self, state: Floats, decision: Decision, accepted: Ints) -> Floats:
        return state


def _weighed(policy: RowPolicy, view: RowView) -> Floats:
    return policy.weigh(view.confidence, view.length) if view.weighed is None else view.weighed
