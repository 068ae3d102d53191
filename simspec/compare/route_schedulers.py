"""The schedulers that routed replay compares, by name, and what each is told from other prompts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simspec.compare.batches import Draws
from simspec.compare.estimates.sources import alphas
from simspec.cost.models import CostModel
from simspec.oracle.myopic import MyopicHindsight
from simspec.replay.candidates import CandidateTable
from simspec.replay.pricing import forward
from simspec.speculation.routing import Always, Evidence, Router
from simspec.speculation.schedulers_bandit import Bandit
from simspec.speculation.schedulers_eq7 import DyTC, PolybasicInsertion, SpecRouter

Floats = NDArray[np.float64]

# Acceptance of a pair that no prompt tried: look-ups do not verify.
_UNKNOWN = 0.5

# How much one forward moves the time that its model is taken to need, where routers learn it.
_LATENCY_WEIGHT = 0.1


@dataclass(frozen=True)
class Tuned:
    """What a scheduler may know beforehand, from prompts that it is not scored on.

    Attributes:
        table, cost: what is replayed.
        seconds: seconds a token of each candidate as a static schedule there, at this batch size, (K,).
        own: the same on the very prompts that are scored: for oracles.
        priors: acceptance of every ordered pair there, by source.
    """

    table: CandidateTable
    cost: CostModel
    seconds: Floats
    own: Floats
    priors: dict[str, tuple[float, ...]]

    def best(self, levels: int, drafter: str | None = None) -> int | None:
        """The fastest static candidate of so many levels; None where there is none."""
        chains = [chain for chain, _ in self.table.pool.candidates]
        fits = [len(c.levels) == levels and (drafter is None or c.drafter == drafter) for c in chains]
        return int(np.where(fits, self.seconds, np.inf).argmin()) if any(fits) else None

    @property
    def smallest(self) -> str | None:
        """The drafter of the quickest forward; a look-up only where nothing else drafts."""
        pool, one = self.table.pool, np.ones(1, dtype=np.int64)
        context = np.array([round(float(self.table.trace.context.mean()))])
        names = {c.drafter for c, _ in pool.candidates if c.drafter}
        order = [(m in pool.lookups, float(forward(self.cost, m, 1, one, context)[0]), m) for m in names]
        return min(order)[2] if order else None


def priors(table: CandidateTable, draws: Draws, longest: int) -> dict[str, tuple[float, ...]]:
    """Acceptance of every ordered pair of models on all prompts of ``draws``, by source."""
    once = Draws(draws.prompts[:1], draws.total)
    found = {}
    for source, pairs in alphas(table.trace, once, longest, ("simscore", "realised"), 0.5).items():
        values = np.full(len(table.pool.names) ** 2, _UNKNOWN)
        for (lower, upper), alpha in pairs.items():
            values[table.pool.pair(lower, upper)] = alpha[0]
        found[source] = tuple(float(v) for v in values)
    return found


def _always(k: int | None) -> Router | None:
    return None if k is None else Always(k)


def _router(
    tuned: Tuned,
    variant: str,
    evidence: Evidence,
    every: int = 1,
    horizon: int = 0,
    margin: float = 0.0,
    latency_weight: float = 0.0,
) -> Router:
    source = "realised" if evidence == "realised" else "simscore"
    return SpecRouter(
        prior=tuned.priors[source],
        evidence=evidence,
        variant=variant,
        every=every,
        horizon=horizon,
        margin=margin,
        latency_weight=latency_weight,
    )


def _dytc(tuned: Tuned) -> Router:
    pool = tuned.table.pool
    first = [tuned.priors["realised"][pool.pair(m, pool.target)] for m in pool.names]
    return DyTC(prior=tuple(first))


def _bandit(tuned: Tuned, spread: float, prior_cycles: float = 0.0) -> Router:
    """Arms: the target, each drafter's best pair, the best triple; ``spread`` is a share of the best rate."""
    pool = tuned.table.pool
    drafters = sorted({c.drafter for c, _ in pool.candidates if c.drafter})
    arms = [pool.plain, *(tuned.best(2, d) for d in drafters), tuned.best(3)]
    known = [k for k in arms if k is not None]
    rates = 1.0 / tuned.seconds[known]
    prior = tuple(float(r) for r in rates) if prior_cycles else ()
    return Bandit(tuple(known), spread * float(rates.max()), prior, prior_cycles)


# None where the candidates hold nothing for it.
Factory = Callable[[Tuned], Router | None]
SCHEDULERS: dict[str, Factory] = {
    "target-only": lambda t: _always(t.table.pool.plain),
    "smallest-drafter": lambda t: _always(t.best(2, t.smallest)),
    "static-pair": lambda t: _always(t.best(2)),
    "three-level": lambda t: _always(t.best(3)),
    "static-tuned": lambda t: Always(int(t.seconds.argmin())),
    "reach": lambda t: _router(t, "reach", "simscore"),
    "reach-all-pairs": lambda t: _router(t, "reach", "simscore-all"),
    "reach-learned-times": lambda t: _router(t, "reach", "simscore", latency_weight=_LATENCY_WEIGHT),
    "reach-wide": lambda t: _router(t, "reach-wide", "realised"),
    "funnel": lambda t: _router(t, "funnel", "realised"),
    "funnel-switch": lambda t: _router(t, "funnel", "realised", horizon=8, margin=0.05),
    "exact-switch": lambda t: _router(t, "exact", "realised", every=8, horizon=8, margin=0.05),
    "polybasic": lambda t: PolybasicInsertion(prior=t.priors["realised"]),
    "dytc": _dytc,
    "ucb": lambda t: _bandit(t, 1.0),
    "ucb-prior": lambda t: _bandit(t, 0.1, prior_cycles=4.0),
    "static-oracle": lambda t: Always(int(t.own.argmin())),
    "myopic-hindsight": lambda t: MyopicHindsight(t.table, t.cost),
}
ORACLES = ("static-oracle", "myopic-hindsight", "dynamic-program")
