"""What every variant of Eq. 7 predicts from every source, for chains and batches of one's choice.

:func:`simspec.compare.rank.rank` does the same for a whole trace and holds it against replay; here what is
decoded, and so the context, may be other prompts than those that acceptance is fitted on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from simspec.compare.batches import Draws
from simspec.compare.estimates.sources import SOURCES, alphas
from simspec.compare.predicted import JOINT, JOINT_SOURCES, Told, predict, prices_for
from simspec.compare.rank import VARIANTS
from simspec.compare.replayed import Candidate, Replayed, replay_all
from simspec.cost.models import CostModel
from simspec.traces.index import Ints, Trace

Floats = NDArray[np.float64]

EMA_WEIGHT = 0.1
REPLAYED = "replay of other prompts"
DRAINED = "joint-drained/visited"


@dataclass(frozen=True)
class Fitted:
    """Candidates on the prompts that everything is fitted on.

    Attributes:
        trace: the record that was replayed.
        draws: the prompts, and bootstrap draws of them.
        replayed: one for each candidate, at each of ``batches``.
    """

    trace: Trace
    cost: CostModel
    candidates: Sequence[Candidate]
    batches: tuple[int, ...]
    draws: Draws
    replayed: list[Replayed]


def fit_on(
    trace: Trace,
    cost: CostModel,
    candidates: Sequence[Candidate],
    batches: tuple[int, ...],
    draws: Draws,
    jobs: int = 1,
) -> Fitted:
    """Replay the candidates on draws of the fitted prompts."""
    replayed = replay_all(trace, [cost], candidates, [draws], batches, jobs, None)
    return Fitted(trace, cost, candidates, batches, draws, replayed)


def foretell(fitted: Fitted, decoded: dict[int, Ints], sources: Sequence[str] = SOURCES) -> dict[str, Floats]:
    """Seconds a token by "variant/source", and by replay, shape (batches, draws, candidates) each.

    Args:
        decoded: the prompts that each batch size is to be predicted for. Only their lengths are looked at:
            forwards are priced at their mean context.
    """
    trace, cost, candidates = fitted.trace, fitted.cost, fitted.candidates
    longest = max(length for _, length in candidates)
    rates = alphas(trace, fitted.draws, longest, sources, EMA_WEIGHT)
    counted = {s: [r.counted[s] for r in fitted.replayed] for s in JOINT_SOURCES}
    told = Told(rates, fitted.draws.counts(), counted)
    found: dict[str, list[Floats]] = {}
    for batch in fitted.batches:
        here = replace(trace, context=trace.context[np.isin(trace.prompt, decoded[batch])])
        prices = prices_for(here, cost, candidates, (batch,))
        for variant in VARIANTS:
            mine = replace(told, counted=counted if variant in JOINT else {})
            for name, seconds in predict(trace, cost, prices, candidates, variant, mine).items():
                found.setdefault(name, []).append(seconds[0])
        replays = np.stack([r.seconds[0, 0, batch] for r in fitted.replayed], axis=1)
        found.setdefault(REPLAYED, []).append(replays)
    return {name: np.stack(parts) for name, parts in found.items()}
