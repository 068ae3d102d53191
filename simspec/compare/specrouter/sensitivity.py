"""How much worse each estimator picks as inputs get noisy, levels correlate, or wide forwards cost more."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray

from simspec.compare.asked import Asked, Progress
from simspec.compare.bands import banded
from simspec.compare.batches import Draws
from simspec.compare.estimates.similarity import Pair
from simspec.compare.estimates.sources import alphas
from simspec.compare.forward_prices import ForwardPrices
from simspec.compare.parts import Part, parts
from simspec.compare.predicted import BY_RATES, JOINT, Told, predict, prices_for
from simspec.compare.rank import VARIANTS, RankSettings
from simspec.compare.rankings import Candidate
from simspec.compare.replayed import Replayed, replay_all
from simspec.compare.routing import RouteSettings, candidates_of
from simspec.compare.specrouter.correlated import mixed_seconds
from simspec.compare.specrouter.noise import LEVELS, NoisyPrices, columns, noisy_rates
from simspec.compare.specrouter.regrets import SLOPES, decoupled_regrets, sloped_regrets
from simspec.cost.models import CostModel
from simspec.streams import stream
from simspec.traces.index import Trace

Floats = NDArray[np.float64]

RHOS = (0.0, 0.25, 0.5, 0.75, 1.0)
# Standard deviation, in logarithms, of the refused shares of made-up pools about the trace's.
POOLS = 0.3
# Draws of prompts where every cost is replayed again.
SLOPE_DRAWS = 40
SOURCES = ("simscore", "realised")


def study(trace: Trace, costs: list[CostModel], asked: Asked, say: Progress) -> dict[str, Any]:
    """All of it; estimators are called "variant/source", regret is % over the fastest candidate.

    Returns:
        ``batches``, ``draws``, ``slope_draws``, ``prompts``, ``levels``, ``rhos``, ``slopes``;
        ``noise.<cost>.<B>.<case>.<estimator>`` = {``median``, ``low``, ``high`` by level over draws: the
        middle 80%}, cases ``refused`` (1 - alpha), ``rate`` (alpha), ``model`` and ``width`` (latency), null
        where an estimator is not told what is noisy;
        ``correlation.<cost>.<B>.<variant>`` likewise by rho, over made-up pools;
        ``decoupled.<cost>.<B>.<estimator>`` = {``trace``, ``decoupled``: [value, low, high]};
        ``slope.<cost>.<B>.<estimator>`` = [[value, low, high]] by slope. Costs give their labels under
        ``labels``.
    """
    batches = tuple(sorted({1, 16 if 16 in asked.batches else max(asked.batches)}))
    found: dict[str, Any] = {
        "batches": list(batches),
        "draws": asked.draws,
        "slope_draws": min(SLOPE_DRAWS, asked.draws),
        "prompts": len(trace.prompts),
        "levels": list(LEVELS),
        "rhos": list(RHOS),
        "slopes": list(SLOPES),
        "labels": {c.name: c.label for c in costs},
    }
    settings = RankSettings(
        batches=batches,
        lengths=asked.lengths,
        draws=asked.draws,
        seed=asked.seed,
        sources=SOURCES,
        split=True,
    )
    found["noise"], found["correlation"] = {}, {}
    for cost in costs:
        candidates = candidates_of(trace, cost, RouteSettings(lengths=asked.lengths))
        divided = parts(trace, 0, asked.seed, split=True)
        replayed = replay_all(
            trace, [cost], candidates, [p.score for p in divided], batches, asked.jobs, None
        )
        work = [(v, c) for v in VARIANTS for c in ("refused", "rate", "model", "width")]
        done = joblib.Parallel(n_jobs=asked.jobs)(
            joblib.delayed(_noisy)(
                trace, cost, candidates, batches, divided, _slim(replayed, v), asked, variant=v, case=c
            )
            for v, c in work
        )
        noisy: dict[str, Any] = {str(b): {c: {} for _, c in work} for b in batches}
        for (_, case), regrets in zip(work, done, strict=True):
            for name, values in regrets.items():
                for i, b in enumerate(batches):
                    noisy[str(b)][case][name] = None if values is None else _by_level(values[i], asked.draws)
        found["noise"][cost.name] = noisy
        say(f"{cost.name}: noise on inputs")
        found["correlation"][cost.name] = _correlated(trace, cost, candidates, batches, asked)
        say(f"{cost.name}: correlated levels")
    found["decoupled"] = decoupled_regrets(trace, costs, settings, asked)
    say("levels decoupled")
    found["slope"] = sloped_regrets(trace, costs, replace(settings, draws=found["slope_draws"]), asked)
    return found


def _slim(replayed: list[Replayed], variant: str) -> list[Replayed]:
    """What a variant needs of them, since it goes to another process."""
    if variant in JOINT:
        return [Replayed(r.seconds, {"visited": r.counted["visited"]}) for r in replayed]
    return [Replayed(r.seconds, {}) for r in replayed]


def _noisy(
    trace: Trace,
    cost: CostModel,
    candidates: list[Candidate],
    batches: tuple[int, ...],
    divided: list[Part],
    replayed: list[Replayed],
    asked: Asked,
    *,
    variant: str,
    case: str,
) -> dict[str, Floats | None]:
    """Regret of a variant's pick under one kind of noise by estimator, mean of halves: (batches, columns)."""
    joint = variant in JOINT
    if joint and case in ("refused", "rate"):
        return {f"{variant}/visited": None}
    size = len(columns(asked.draws))
    prices = prices_for(trace, cost, candidates, batches)
    models = {m for chain, _ in candidates for m in chain.levels}
    if case in ("model", "width"):
        prices = NoisyPrices(
            trace,
            cost,
            models,
            batches,
            prices.widest,
            asked.seed,
            asked.draws,
            by_width=case == "width",
        )
    total: dict[str, Floats] = {}
    for d, part in enumerate(divided):
        told = _told(trace, part, replayed, variant, case, max(asked.lengths), asked)
        truth = np.stack([[r.seconds[0, d, b][0] for r in replayed] for b in batches])
        for name, times in predict(trace, cost, prices, candidates, variant, told).items():
            if not joint:
                _plain(times, cost, prices, candidates)
            pick = np.broadcast_to(times, (len(batches), size, len(candidates))).argmin(axis=2)
            regret = 100.0 * (np.take_along_axis(truth, pick, axis=1) / truth.min(axis=1)[:, None] - 1.0)
            total[name] = total.get(name, 0.0) + regret / len(divided)
    return dict(total)


def _told(
    trace: Trace,
    part: Part,
    replayed: list[Replayed],
    variant: str,
    case: str,
    longest: int,
    asked: Asked,
) -> Told:
    """What was learned on a part's prompts to fit, once a column, with noise if it is on rates."""
    size = len(columns(asked.draws))
    counts = np.repeat(part.fit.counts(), size, axis=0)
    if variant in JOINT:
        return Told({}, counts, {"visited": [r.counted["visited"] for r in replayed]})
    sources = ("simscore", "realised") if variant == "reach" else ("realised",)
    rates: dict[str, dict[Pair, Floats]] = {}
    for source, pairs in alphas(trace, part.fit, longest, sources, 0.5).items():
        once = {p: float(v[0]) for p, v in pairs.items()}
        if case in ("refused", "rate"):
            rates[source] = noisy_rates(once, asked.seed, asked.draws, refused=case == "refused")
        else:
            rates[source] = {p: np.full(size, v) for p, v in once.items()}
    return Told(rates, counts, {})


def _plain(times: Floats, cost: CostModel, prices: ForwardPrices, candidates: list[Candidate]) -> None:
    """Plain decoding's own noisy price in every column, which :func:`predict` takes from the first."""
    for k, (chain, _) in enumerate(candidates):
        if chain.drafter is None:
            alone = prices.alike(chain.target, np.ones(1))[:, 0] + cost.step_overhead_seconds
            times[..., k] = alone / np.array(prices.batches)[:, None]


def _by_level(regret: Floats, draws: int) -> dict[str, list[float | None]]:
    """From (columns,)."""
    levels = [regret[:1], *np.split(regret[1:], len(LEVELS) - 1)] if draws else [regret[:1]]
    return banded(levels)


def _correlated(
    trace: Trace, cost: CostModel, candidates: list[Candidate], batches: tuple[int, ...], asked: Asked
) -> dict[str, Any]:
    """SYNTHETIC pools with the trace's mean rates, moved a little in each draw; regret by rho."""
    draws = max(asked.draws, 1)
    everything = Draws(np.arange(len(trace.prompts))[None], len(trace.prompts))
    mean = alphas(trace, everything, max(asked.lengths), ("realised",), 0.5)["realised"]
    rates = {
        p: np.clip(
            1.0 - (1.0 - v[0]) * np.exp(POOLS * stream(asked.seed, "pool", *p).standard_normal(draws)),
            0.0,
            1.0,
        )
        for p, v in mean.items()
    }
    prices = prices_for(trace, cost, candidates, batches)
    told = Told({"mean": rates}, np.zeros((draws, 1)), {})
    picks = {
        v: predict(trace, cost, prices, candidates, v, told)[f"{v}/mean"].argmin(axis=2) for v in BY_RATES
    }
    regrets: dict[str, list[Floats]] = {v: [] for v in BY_RATES}
    for rho in RHOS:
        mixed = [mixed_seconds(trace, cost, prices, c, n, rates, rho) for c, n in candidates]
        truth = np.stack([np.broadcast_to(t, (len(batches), draws)) for t in mixed], axis=2)
        for v, pick in picks.items():
            taken = np.take_along_axis(truth, pick[..., None], axis=2)[..., 0]
            regrets[v].append(100.0 * (taken / truth.min(axis=2) - 1.0))
    return {
        str(b): {v: banded([r[i] for r in by_rho]) for v, by_rho in regrets.items()}
        for i, b in enumerate(batches)
    }
