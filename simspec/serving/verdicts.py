"""How many drafts the target accepts, by where a request is in its text: the luck of a simulation.

A source is a frozen description; ``open`` gives its run state for a batch of slots. What a request is
dealt depends on the seed, its number and the position in its text, never on the steps it took to get
there, so two policies meet the same luck. (The mean is the exception: it has no positions.)

Engines ask :meth:`Verdicts.accepted` after a step's draft lengths are settled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simspec.errors import BadInput
from simspec.serving.luck import Luck
from simspec.streams import stream
from simspec.traces.index import Trace

Ints = NDArray[np.int64]


class Blocks(NamedTuple):
    """What a drafter knows of its own drafts: nothing of it hangs on the target or on where a text ends.

    Attributes:
        confidence: its probability of each token of its block, 0 past the end, (Q, D).
        length: tokens in the block, (Q,).
    """

    confidence: NDArray[np.float32]
    length: Ints


class Seen(NamedTuple):
    """The blocks that C slots would draft now.

    Attributes:
        confidence, length: as in :class:`Blocks`.
        record: where these are some of many blocks that stay as they are: all of them.
        place: which of those these are, until texts move on, (C,).
    """

    confidence: NDArray[np.float32]
    length: Ints
    record: Blocks | None = None
    place: Ints | None = None


# Requests whose places are drawn from one stream: making a stream for each would cost more than the draw.
PLACES_A_STREAM = 256

NO_BLOCKS = "verdicts that were drawn have no confidences"


class Verdicts(Protocol):
    """Run state of a source: C slots, each somewhere in a text. Arrays have shape (C,)."""

    def seat(self, slot: int, request_id: int, produced: int, output_tokens: int) -> None:
        """Put a request that has ``produced`` tokens, of ``output_tokens`` in the end, into a slot."""

    def available(self) -> Ints:
        """Tokens that the drafter could draft at most now, in every slot."""

    def blocks(self) -> Seen:
        """What the drafter would draft now; only sources with confidences can say."""

    def accepted(self, drafted: Ints) -> Ints:
        """Of so many drafted tokens, how many the target accepts. Asked once a step."""

    def move(self, emitted: Ints) -> None:
        """Every slot's text has grown by so many tokens."""


class Source(Protocol):
    """Where verdicts come from.

    Attributes:
        unconfident: why there are no confidences; None where there are.
    """

    @property
    def unconfident(self) -> str | None: ...

    def open(self, slots: int, seed: int) -> Verdicts: ...


@dataclass(frozen=True)
class Recorded:
    """Recorded texts: from every position, how many drafts could be had and how many were right.

    A request begins at a position drawn from all of them, so that no two are in phase, and goes on from
    there; a text that ends begins again, so a request keeps its prompt's acceptance throughout. No
    block runs past the end of its text.

    Attributes:
        offsets: first flat position of each text, with the total at the end, shape (P + 1,).
        matched: leading drafts that the target accepts, from each flat position, shape (N,).
        available: drafts that can be had from there, shape (N,).
        blocks: what the drafter knew of them, N rows; None where that was not recorded.
    """

    offsets: Ints
    matched: Ints
    available: Ints
    blocks: Blocks | None = None

    def __post_init__(self) -> None:
        sizes = np.diff(self.offsets)
        if not len(sizes) or self.offsets[0] or (sizes < 1).any() or self.offsets[-1] != len(self.matched):
            raise BadInput("texts have no positions, or not as many as verdicts", allowed="at least 1 a text")
        for name in ("matched", "available"):
            bad = np.flatnonzero(getattr(self, name) < 0)
            if len(bad):
                raise BadInput(f"{name} is negative at position {bad[0]}", allowed="at least 0")
        if self.blocks is not None and any(len(part) != len(self.matched) for part in self.blocks):
            raise BadInput("not as many blocks as positions")

    @property
    def unconfident(self) -> str | None:
        return None if self.blocks is not None else "a record of accepted lengths alone"

    @classmethod
    def of_trace(cls, trace: Trace, drafter: str) -> Recorded:
        """What a recorded drafter's blocks were worth; raises :class:`BadInput` for an unknown one."""
        trace.require(drafter)
        if drafter not in trace.drafters:
            raise BadInput(f"{drafter!r} drafts nothing", allowed=", ".join(trace.drafters))
        index = trace.drafters[drafter]
        in_text = trace.remaining > 0  # a shortened trace still has the positions past its texts' ends
        sizes = np.bincount(trace.prompt[in_text], minlength=len(trace.offsets) - 1)
        available = np.minimum(index.length, trace.remaining - 1)[in_text]
        matched = np.minimum(index.matched[in_text], available)
        blocks = Blocks(index.confidence[in_text], index.length[in_text])
        return cls(np.concatenate([[0], np.cumsum(sizes)]), matched, available, blocks)

    @classmethod
    def of_lengths(cls, texts: Sequence[ArrayLike], longest: int) -> Recorded:
        """From tokens that a step emits from each output position, bonus included (``acc_len``).

        Args:
            texts: one array a text.
            longest: how many drafts were verified when that was written down.
        """
        arrays = [np.asarray(t, dtype=np.int64) for t in texts]
        for i, array in enumerate(arrays):
            if array.ndim != 1 or not len(array) or array.min() < 1 or array.max() > longest + 1:
                raise BadInput(
                    f"text {i}: emitted tokens a step", allowed=f"1 to {longest + 1}, at least one"
                )
        offsets = np.concatenate([[0], np.cumsum([len(a) for a in arrays])]).astype(np.int64)
        left = np.concatenate([np.arange(len(a))[::-1] for a in arrays])
        available = np.minimum(longest, left)
        return cls(offsets, np.minimum(np.concatenate(arrays) - 1, available), available)

    def open(self, slots: int, seed: int) -> _Texts:
        return _Texts(self, slots, seed)


class _Texts:
    """Places on recorded texts. Each text has one extra place, its end, which leads back to its begin."""

    def __init__(self, source: Recorded, slots: int, seed: int):
        sizes = np.diff(source.offsets)
        text = np.repeat(np.arange(len(sizes)), sizes)
        padded = np.arange(len(text)) + text
        self.begins = source.offsets[:-1] + np.arange(len(sizes))
        self.sizes, self.text = sizes, text
        total = len(text) + len(sizes)
        self.matched, self.left = np.zeros(total, np.int64), np.zeros(total, np.int64)
        self.matched[padded], self.left[padded] = source.matched, source.available
        self.padded, self.source = padded, source
        self.seen: Blocks | None = None  # laid out when first asked for: most policies never do
        self.follows = np.arange(total)
        self.follows[self.begins + sizes] = self.begins
        self.positions = np.arange(len(text)) - source.offsets[text]
        self.place = np.zeros(slots, np.int64)
        self.seed = seed
        self.drawn: dict[int, Ints] = {}

    def seat(self, slot: int, request_id: int, produced: int, output_tokens: int) -> None:
        flat = self._first(request_id)
        text = self.text[flat]
        position = (self.positions[flat] + produced) % self.sizes[text]
        self.place[slot] = self.begins[text] + position

    def _first(self, request_id: int) -> int:
        group, member = divmod(request_id, PLACES_A_STREAM)
        if group not in self.drawn:
            if len(self.drawn) > 64:
                self.drawn.clear()  # drawn again when needed
            random = stream(self.seed, "acceptance", "places", group)
            self.drawn[group] = random.integers(len(self.text), size=PLACES_A_STREAM)
        return int(self.drawn[group][member])

    def available(self) -> Ints:
        found: Ints = self.left.take(self.place)
        return found

    def blocks(self) -> Seen:
        if self.seen is None:
            told, total = self.source.blocks, len(self.left)
            if told is None:
                raise ValueError("these texts have no confidences")
            depth = told.confidence.shape[1]
            self.seen = Blocks(np.zeros((total, depth), np.float32), np.zeros(total, np.int64))
            self.seen.confidence[self.padded], self.seen.length[self.padded] = told
        (confidence, length), place = self.seen, self.place
        return Seen(confidence.take(place, axis=0), length.take(place), self.seen, place)

    def accepted(self, drafted: Ints) -> Ints:
        return np.minimum(self.matched.take(self.place), drafted)

    def move(self, emitted: Ints) -> None:
        # Blocks end with their text, so a step reaches its end at most.
        self.place += emitted
        self.place = self.follows.take(self.place)


@dataclass(frozen=True)
class Rates:
    """Acceptance by place in the block, independent between steps.

    ``survival[j]`` is the probability that the first j + 1 drafts are all accepted; they never rise.
    """

    survival: tuple[float, ...]
    unconfident: ClassVar[str] = "verdicts drawn by place in the block"

    def __post_init__(self) -> None:
        _survival(self.survival)

    @classmethod
    def independent(cls, rate: float, longest: int) -> Rates:
        """Every draft accepted with one rate, given all before it were."""
        return cls(tuple(rate ** (j + 1) for j in range(longest)))

    def open(self, slots: int, seed: int) -> _Drawn:
        return _Drawn(self, slots, seed)


class _Drawn:
    """One accepted run for every position of each request's text, drawn when it is seated.

    A step from a position uses that position's run, and no step starts from the same one again, so
    steps are independent; a draft of n accepts min(run, n), which has the given survival.
    """

    def __init__(self, source: Rates, slots: int, seed: int):
        self.falling = -np.asarray(source.survival, dtype=np.float64)
        self.longest = np.full(slots, len(source.survival), np.int64)
        self.luck, self.slots, self.width = Luck(seed), slots, 0
        self.run, self.place = np.zeros(0, np.int64), np.zeros(slots, np.int64)

    def seat(self, slot: int, request_id: int, produced: int, output_tokens: int) -> None:
        self.put(slot, produced, self.luck.draws(request_id, output_tokens))

    def put(self, slot: int, produced: int, drawn: NDArray[np.float64]) -> None:
        """Seat a request whose luck has been drawn, a number for each of its output tokens."""
        if len(drawn) >= self.width:
            self._widen(max(2 * self.width, len(drawn) + 1))
        begin = slot * self.width
        # Counts the survivals that exceed the draw.
        self.run[begin : begin + len(drawn)] = np.searchsorted(self.falling, -drawn, side="left")
        self.place[slot] = begin + produced

    def _widen(self, width: int) -> None:
        wider = np.zeros((self.slots, width), np.int64)
        if self.width:
            wider[:, : self.width] = self.run.reshape(self.slots, self.width)
            row, column = np.divmod(self.place, self.width)
            self.place = row * width + column
        else:
            self.place = np.arange(self.slots) * width
        self.run, self.width = wider.reshape(-1), width

    def available(self) -> Ints:
        return self.longest

    def blocks(self) -> Seen:
        raise ValueError(NO_BLOCKS)

    def accepted(self, drafted: Ints) -> Ints:
        return np.minimum(self.run.take(self.place), drafted)

    def move(self, emitted: Ints) -> None:
        self.place += emitted


@dataclass(frozen=True)
class Mean:
    """Every step of every request accepts the mean of its draft length, carried over in fractions.

    What is left of a request when only the mean acceptance is known: no luck at all but its first
    fraction, which is drawn. A preempted request draws the same fraction again.
    """

    survival: tuple[float, ...]
    unconfident: ClassVar[str] = "a mean of verdicts"

    def __post_init__(self) -> None:
        _survival(self.survival)

    def open(self, slots: int, seed: int) -> _Credit:
        return _Credit(self, slots, seed)


class _Credit:
    """Accepted drafts owed to each slot, in units of 2**-32, so that sums are exact."""

    def __init__(self, source: Mean, slots: int, seed: int):
        means = np.concatenate([[0.0], np.cumsum(source.survival)])
        self.means = np.floor(means * 2**32).astype(np.int64)
        self.longest = np.full(slots, len(source.survival), np.int64)
        self.credit = np.zeros(slots, np.int64)
        self.luck = Luck(seed)

    def seat(self, slot: int, request_id: int, produced: int, output_tokens: int) -> None:
        self.credit[slot] = self.luck.draws(request_id, 1)[0] * 2**32

    def available(self) -> Ints:
        return self.longest

    def blocks(self) -> Seen:
        raise ValueError(NO_BLOCKS)

    def accepted(self, drafted: Ints) -> Ints:
        owed = self.credit + self.means.take(drafted)
        self.credit = owed & (2**32 - 1)
        # Less than one was owed before, and a mean is at most its length: never more than was drafted.
        found: Ints = owed >> 32
        return found

    def move(self, emitted: Ints) -> None:
        """A mean is the same everywhere."""


def _survival(rates: tuple[float, ...]) -> None:
    values = np.asarray(rates, dtype=np.float64)
    if (
        not np.isfinite(values).all()
        or (values < 0).any()
        or (values > 1).any()
        or (np.diff(values) > 0).any()
    ):
        raise BadInput(f"acceptance by place {rates}", allowed="probabilities that never rise")
