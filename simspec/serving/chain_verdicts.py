"""What goes up a chain, level by level, and what the target accepts of it.

Between the drafter and the target stand intermediates. Each is given a block, agrees with its leading
tokens and hands those up, under funnel-replace with a token of its own at the cut, as in
:mod:`simspec.speculation.cycle`. What they hand up is asked as a step is settled, since the widths of its
forwards hang on it; what the target accepts, as everywhere, when the step's time is over.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from simspec.errors import BadInput
from simspec.serving.luck import Luck
from simspec.serving.verdicts import NO_BLOCKS, Rates, Recorded, Seen, Source, Verdicts, _Drawn, _Texts
from simspec.speculation.chains import Chain
from simspec.traces.index import Trace

Ints = NDArray[np.int64]


class Handed(NamedTuple):
    """Tokens that go up in a step from C slots to K verifiers, the target last.

    Attributes:
        given: what each verifier is given, (K, C).
        passed: of that, the leading tokens that each intermediate agrees with, (K - 1, C).
    """

    given: Ints
    passed: Ints


class ChainVerdicts(Verdicts, Protocol):
    """Run state of verdicts on a chain; ``accepted`` means nothing there."""

    def handed(self, submitted: Ints, room: Ints) -> Handed:
        """What goes up when so many drafts are submitted, (C,).

        Args:
            room: tokens that the target may be given at most, (C,): it adds one.
        """

    def settled(self, given: Ints, passed: Ints) -> Ints:
        """Of what the target is given, how many tokens it accepts, (C,). Asked once a step."""


@runtime_checkable
class ChainSource(Source, Protocol):
    """Where verdicts on a chain come from.

    Attributes:
        intermediates: how many there are.
        replace: whether they add a token of their own (funnel-replace).
    """

    @property
    def intermediates(self) -> int: ...

    @property
    def replace(self) -> bool: ...

    def open(self, slots: int, seed: int) -> ChainVerdicts: ...


def refuse_replacing(intermediates: int, replace: bool) -> None:
    """Raise :class:`BadInput` for what nobody has verdicts on."""
    if replace and intermediates > 1:
        raise BadInput(f"funnel-replace with {intermediates} intermediates", allowed="at most one")


@dataclass(frozen=True)
class RecordedChain:
    """Recorded texts, as :class:`~simspec.serving.verdicts.Recorded`: what every level said of each block.

    One record for all levels, so what is correlated in the models is correlated here. The rules are those of
    :func:`simspec.replay.trajectories.outcome`; a request that ends is like a text that ends.

    Attributes:
        drafts: the record of the drafter's blocks and of the target's word on them, N positions.
        agreed: for each intermediate, leading tokens of the block that are its own, (N,).
        ended: length of a block that its drafter ended with an end of text, else -1, (N,).
        owns: whether the intermediate's token is the text's own, (N,); only looked at under ``replace``.
    """

    drafts: Recorded
    agreed: tuple[Ints, ...]
    ended: Ints
    owns: NDArray[np.bool_]
    replace: bool = False

    def __post_init__(self) -> None:
        refuse_replacing(self.intermediates, self.replace)
        if any(len(part) != len(self.drafts.matched) for part in (*self.agreed, self.ended, self.owns)):
            raise BadInput("not as many verdicts of intermediates as positions")

    @property
    def intermediates(self) -> int:
        return len(self.agreed)

    @property
    def unconfident(self) -> str | None:
        return self.drafts.unconfident

    @classmethod
    def of_trace(cls, trace: Trace, chain: Chain) -> RecordedChain:
        """What a recorded chain's blocks were worth.

        Raises:
            BadInput: when the trace does not know a model, or one cannot stand where it does.
        """
        assert chain.drafter is not None
        drafts = Recorded.of_trace(trace, chain.drafter)
        for model in chain.intermediates:
            trace.require(model)
            if model not in trace.verifiers or model == trace.target:
                raise BadInput(
                    f"{model!r} cannot verify drafts below the target",
                    allowed=", ".join(m for m in trace.verifiers if m not in (trace.target, chain.drafter)),
                )
        refuse_replacing(len(chain.intermediates), chain.semantics == "funnel-replace")
        index, in_text = trace.drafters[chain.drafter], trace.remaining > 0
        return cls(
            drafts,
            tuple(index.agreed[model][in_text] for model in chain.intermediates),
            np.where(index.ended, index.length, -1)[in_text],
            trace.owns[chain.intermediates[-1]][in_text],
            chain.semantics == "funnel-replace",
        )

    def open(self, slots: int, seed: int) -> _ChainTexts:
        return _ChainTexts(self, slots, seed)


class _ChainTexts(_Texts):
    """Places on recorded texts, with every level's word."""

    def __init__(self, source: RecordedChain, slots: int, seed: int):
        super().__init__(source.drafts, slots, seed)
        self.replace = source.replace

        def laid_out(values: NDArray[np.generic]) -> Ints:
            found = np.zeros(len(self.left), np.int64)
            found[self.padded] = values
            return found

        self.agreed = [laid_out(level) for level in source.agreed]
        self.ended, self.owns = laid_out(source.ended), laid_out(source.owns)
        self.to_the_end = laid_out(self.sizes[self.text] - 1 - self.positions)

    def handed(self, submitted: Ints, room: Ints) -> Handed:
        given, passed = [submitted], []
        for agreed in self.agreed:
            block = np.minimum(agreed.take(self.place), given[-1])
            passed.append(block)
            if self.replace:
                most = np.minimum(self.to_the_end.take(self.place), room)
                block = block + ((block != self.ended.take(self.place)) & (block < most))
            given.append(block)
        return Handed(np.array(given), np.array(passed))

    def settled(self, given: Ints, passed: Ints) -> Ints:
        block = passed[-1]
        kept = np.minimum(self.matched.take(self.place), block)
        own_right = (given[-1] > block) & (self.owns.take(self.place + block) > 0)
        accepted: Ints = kept + ((kept == block) & own_right)
        return accepted


@dataclass(frozen=True)
class LevelRates:
    """Made up: every level accepts a token of the level below with one rate, given all before it were.

    Levels are independent of each other, which recorded models are not.

    Attributes:
        rates: of the drafter's tokens by its neighbour first, of the last intermediate's by the target last.
        longest: tokens that could be drafted.
    """

    rates: tuple[float, ...]
    longest: int
    replace: bool = False
    unconfident: ClassVar[str] = "verdicts drawn level by level"

    def __post_init__(self) -> None:
        if len(self.rates) < 2:
            raise BadInput(f"rates {list(self.rates)}", allowed="one for each verifier, at least 2")
        for rate in self.rates:
            if not 0 <= rate <= 1:
                raise BadInput(f"rate {rate}", allowed="probabilities")
        if self.longest < 0:
            raise BadInput(f"longest is {self.longest}", allowed="at least 0")
        refuse_replacing(self.intermediates, self.replace)

    @property
    def intermediates(self) -> int:
        return len(self.rates) - 1

    def open(self, slots: int, seed: int) -> _DrawnLevels:
        return _DrawnLevels(self, slots, seed)


class _DrawnLevels:
    """For every level, one accepted run for every position of each request's text."""

    def __init__(self, source: LevelRates, slots: int, seed: int):
        # One token more than is drafted may come up.
        self.levels = [
            _Drawn(Rates.independent(rate, source.longest + 1), slots, seed) for rate in source.rates
        ]
        self.luck = Luck(seed)
        self.replace, self.longest = source.replace, np.full(slots, source.longest, np.int64)

    def seat(self, slot: int, request_id: int, produced: int, output_tokens: int) -> None:
        drawn = self.luck.draws(request_id, len(self.levels) * output_tokens)
        for level, own in zip(self.levels, drawn.reshape(-1, output_tokens), strict=True):
            level.put(slot, produced, own)

    def available(self) -> Ints:
        return self.longest

    def blocks(self) -> Seen:
        raise ValueError(NO_BLOCKS)

    def accepted(self, drafted: Ints) -> Ints:
        raise ValueError("of a chain it is asked what is handed up")

    def handed(self, submitted: Ints, room: Ints) -> Handed:
        given, passed = [submitted], []
        for level in self.levels[:-1]:
            block = level.accepted(given[-1])
            passed.append(block)
            given.append(block + (block < room) if self.replace else block)
        return Handed(np.array(given), np.array(passed))

    def settled(self, given: Ints, passed: Ints) -> Ints:
        return self.levels[-1].accepted(given[-1])

    def move(self, emitted: Ints) -> None:
        for level in self.levels:
            level.move(emitted)
