"""SYNTHETIC models put into a recorded trace: right at places that are drawn, priced as a share of another.

Such a model drafts the text's own token where it is right and elsewhere one that no other model would
ever say, so whatever follows is refused by everybody; as a verifier it accepts what it would have drafted
itself. All verdicts follow from that: replay of chains with at most one such model is as exact as of
recorded ones.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import msgspec
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from simspec.compare.estimates.similarity import along_text
from simspec.cost.models import CostModel
from simspec.cost.shape import StepShape, uniform
from simspec.streams import stream
from simspec.traces.drafters import DrafterIndex
from simspec.traces.index import Ints, Trace
from simspec.traces.manifest import ModelEntry

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Synthetic:
    """A made-up model.

    Attributes:
        right: chance of the text's own token at each place, places independent.
        overlap: 1 - TV from the target at every place, which need not be ``right``.
        like: the model that its forwards cost a share of.
        share: that share.
        useful: whether a pool gains by it; None where that depends on the cost.
    """

    name: str
    right: float
    overlap: float
    like: str
    share: float
    useful: bool | None
    about: str


def made_up(trace: Trace, cost: CostModel) -> tuple[Synthetic, ...]:
    """Three models of no use and an excellent one."""
    target = trace.target
    networks = [m for m in trace.verifiers if m != target and m in cost.models]
    one, context = np.ones(1, dtype=np.int64), np.array([round(float(trace.context.mean()))])
    small = min(
        networks, key=lambda m: float(cost.forward_seconds(m, uniform(one, one, context))[0]), default=target
    )
    return (
        Synthetic("shifted", 0.0, 0.0, small, 1.0, False, f"never right, costs what {small} costs"),
        Synthetic(
            "flattering",
            0.0,
            0.9,
            small,
            1.0,
            False,
            f"never right, though TV from the target is 0.1 everywhere; costs what {small} costs",
        ),
        Synthetic("double", 1.0, 1.0, target, 0.95, False, "the target again at 95% of its cost"),
        Synthetic(
            "excellent", 0.9, 0.9, target, 0.1, None, "right with chance 0.9 at a tenth of the target's cost"
        ),
    )


@dataclass(frozen=True)
class Extended:
    """A cost that prices made-up models as shares of others."""

    inner: CostModel
    more: tuple[Synthetic, ...]

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def label(self) -> str:
        return f"{self.inner.label}; SYNTHETIC models at shares of others' cost"

    @property
    def models(self) -> frozenset[str]:
        return self.inner.models | {m.name for m in self.more}

    @property
    def step_overhead_seconds(self) -> float:
        return self.inner.step_overhead_seconds

    def forward_seconds(self, model: str, shape: StepShape) -> Floats:
        for made in self.more:
            if made.name == model:
                return made.share * self.inner.forward_seconds(made.like, shape)
        return self.inner.forward_seconds(model, shape)


def with_models(trace: Trace, more: tuple[Synthetic, ...], seed: int) -> Trace:
    """The trace with made-up models in it; where they are right is drawn from ``seed``."""
    for made in more:
        drawn = stream(seed, "newcomer", made.name).random(len(trace.tokens))
        trace = _with_model(trace, made, drawn < made.right)
    return trace


def _with_model(trace: Trace, made: Synthetic, right: Bools) -> Trace:
    depth, remaining = trace.manifest.block_length, trace.remaining
    until = _first_false(right, remaining)
    # A block that is right to the text's end stops there if the text ends itself, and goes on otherwise.
    stops = (trace.prompts["finish"] == "eos").to_numpy()[trace.prompt] & (until == remaining)
    length = np.where(stops, np.minimum(remaining, depth), depth)
    matched = np.minimum(until, length)
    confidence = np.where(np.arange(depth) < length[:, None], np.float32(made.overlap), np.float32(0.0))
    others = [m for m in trace.verifiers if m != trace.target]
    mine = DrafterIndex(
        length=length,
        ended=stops & (remaining <= depth),
        confidence=confidence.astype(np.float32),
        matched=matched,
        agreed={m: np.minimum(_first_false(trace.owns[m], remaining), matched) for m in others},
    )
    drafters = {
        name: replace(index, agreed={**index.agreed, made.name: np.minimum(index.matched, until)})
        for name, index in trace.drafters.items()
    }
    entry = ModelEntry(kind="autoregressive", about={"synthetic": made.about})
    manifest = msgspec.structs.replace(trace.manifest, models={**trace.manifest.models, made.name: entry})
    return replace(
        trace,
        manifest=manifest,
        owns={**trace.owns, made.name: right},
        drafters={**drafters, made.name: mine},
        pairs=pd.concat([trace.pairs, _pairs(trace, made, right)], ignore_index=True),
    )


def _pairs(trace: Trace, made: Synthetic, right: Bools) -> pd.DataFrame:
    """How near it is to the others: as near as the target is, times its own overlap with the target."""
    near, same = along_text(trace, "overlap"), along_text(trace, "argmax_agree")
    every = np.ones(len(trace.tokens))
    frames = []
    for other in trace.manifest.models:
        pair = (trace.target, other)
        overlap = made.overlap * (every if other == trace.target else near.get(pair, 0.0 * every))
        agree = right & ((every if other == trace.target else same.get(pair, 0.0 * every)) > 0)
        frames.append(
            pd.DataFrame(
                {
                    "prompt_id": trace.prompt,
                    "position": trace.position,
                    "model_a": other,
                    "model_b": made.name,
                    "tv": 1.0 - overlap,
                    "argmax_agree": agree,
                }
            )
        )
    return pd.concat(frames, ignore_index=True)


def _first_false(flags: Bools, remaining: Ints) -> Ints:
    """From each flat position, how many places in a row are True, at most to the text's end."""
    size = len(flags)
    at = np.where(flags, size, np.arange(size))
    following = np.minimum.accumulate(at[::-1])[::-1]
    return np.asarray(np.minimum(following - np.arange(size), remaining), dtype=np.int64)
