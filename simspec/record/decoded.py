"""What decoding is told and what it tells."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from simspec.record.level import ForwardLog, Packing
from simspec.speculation.sampling import Sampling

Tokens = NDArray[np.int32]


@dataclass(frozen=True)
class Settings:
    """How to decode.

    Attributes:
        output_tokens: the most tokens of text.
        block_length: the most tokens drafted in a cycle.
        batch: requests at once; 0 for all of them.
        refill: whether a waiting request takes a finished one's place at once, or only when the
            whole batch is done.
        sampling: how texts are drawn; None for greedy decoding.
        seed: of the requests' luck.
        packing: when caches are packed.
        margins: whether to log the gap of the two best logits (it costs a little time).
    """

    output_tokens: int
    block_length: int
    batch: int = 0
    refill: bool = False
    sampling: Sampling | None = None
    seed: int = 0
    packing: Packing = field(default_factory=Packing)
    margins: bool = False


@dataclass(frozen=True)
class DecodedCycle:
    """What one cycle did, in the terms of replay's trajectories.

    ``middle`` and ``width`` are the new tokens that the intermediates and the target read (of
    their last forward, for nested chains). ``block`` is what was submitted of the first block and
    ``survived`` how much of it came through the intermediates. ``margin`` is the least gap between
    the two best logits that any greedy choice of the cycle was made by, infinite where not asked.
    """

    schedule: int
    position: int
    drafted: int
    lag: int
    submitted: int
    middle: tuple[int, ...]
    width: int
    accepted: int
    emitted: int
    kept: int
    survived: int
    block: Tokens
    margin: float


@dataclass(frozen=True)
class NearTie:
    """Where the text left the reference and was forced back; ``margin`` is the target's there."""

    request: int
    position: int
    margin: float


@dataclass(frozen=True)
class Decoded:
    """Texts, what made them, and where the time went.

    ``seconds`` has the keys ``prompts`` (reading them), ``total`` (everything after that) and, of
    that total, ``forward``, ``choosing`` (argmax, softmax, drawing) and ``packing``; the rest is
    bookkeeping in Python.
    """

    texts: list[Tokens]
    cycles: list[list[DecodedCycle]]
    forwards: list[ForwardLog]
    seconds: dict[str, float]
    near_ties: list[NearTie]
    packed: int
