"""Chains to choose among, each with its own luck on the same texts. A drafter and its target are one too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from simspec.cost.models import CostModel
from simspec.errors import BadInput, unknown_name
from simspec.serving.chain_verdicts import ChainSource, ChainVerdicts, Handed
from simspec.serving.verdicts import Seen, Source, Verdicts

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Candidate:
    """A further drafter, and who stands between it and the target.

    Attributes:
        drafter: its name in ``cost``.
        source: what the target accepts of its drafts, and intermediates where there are any. Sources of one
            trace put a request at one place of one text.
        cost: prices the drafter, as ``drafter_cost`` does the one that is named in the costs.
        lookup: whether it is a look-up.
        intermediates: names of verifiers below the target, the drafter's neighbour first; what prices the
            target prices them.
    """

    drafter: str
    source: Source
    cost: CostModel
    lookup: bool = False
    intermediates: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.drafter not in self.cost.models:
            raise unknown_name("model", self.drafter, self.cost.models, where=self.cost.name)
        check_chain(self.drafter, self.intermediates, self.source)


def check_chain(drafter: str, intermediates: Sequence[str], source: Source) -> None:
    """Raise :class:`BadInput` unless every model is there once and the verdicts are on that many levels."""
    levels = (drafter, *intermediates)
    if len(set(levels)) < len(levels):
        raise BadInput(f"chain {' > '.join(levels)}", allowed="each model once")
    told = source.intermediates if isinstance(source, ChainSource) else 0
    if told != len(intermediates):
        raise BadInput(f"{len(intermediates)} intermediates and verdicts on {told}")


class Links(NamedTuple):
    """Which models a chain uses, by their number: rows of a batch's lags.

    Attributes:
        drafter: the one that drafts.
        middles: intermediates, the drafter's neighbour first.
        replace: whether they add a token of their own (funnel-replace).
    """

    drafter: int
    middles: tuple[int, ...] = ()
    replace: bool = False


def linked(candidates: Sequence[Candidate], target_cost: CostModel) -> tuple[Links, ...]:
    """Number the models of all chains.

    A model that stands in several chains has one cache: the same name priced by the same cost. Where no
    chain has an intermediate, all drafters are taken to be different.
    """
    shared = any(one.intermediates for one in candidates)
    known: list[tuple[str, CostModel]] = []

    def number(name: str, cost: CostModel) -> int:
        for i, (other, priced_by) in enumerate(known):
            if shared and other == name and priced_by is cost:
                return i
        known.append((name, cost))
        return len(known) - 1

    return tuple(
        Links(
            number(one.drafter, one.cost),
            tuple(number(name, target_cost) for name in one.intermediates),
            isinstance(one.source, ChainSource) and one.source.replace,
        )
        for one in candidates
    )


class Several:
    """Verdicts on several chains, of which one is in use; run state as :class:`Verdicts`."""

    def __init__(self, verdicts: Sequence[Verdicts]):
        self.verdicts, self.current = verdicts, verdicts[0]

    def use(self, drafter: int) -> None:
        """From now on, drafts are this one's."""
        self.current = self.verdicts[drafter]

    def seat(self, slot: int, request_id: int, produced: int, output_tokens: int) -> None:
        for one in self.verdicts:
            one.seat(slot, request_id, produced, output_tokens)

    def available(self) -> Ints:
        return self.current.available()

    def blocks(self) -> Seen:
        return self.current.blocks()

    def accepted(self, drafted: Ints) -> Ints:
        return self.current.accepted(drafted)

    def handed(self, submitted: Ints, room: Ints) -> Handed:
        """As :class:`ChainVerdicts`; only where the chain in use has intermediates."""
        return cast(ChainVerdicts, self.current).handed(submitted, room)

    def settled(self, given: Ints, passed: Ints) -> Ints:
        """The same."""
        return cast(ChainVerdicts, self.current).settled(given, passed)

    def move(self, emitted: Ints) -> None:
        for one in self.verdicts:
            one.move(emitted)
