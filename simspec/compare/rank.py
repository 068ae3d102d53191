"""Does the cost model pick the chain that replay finds fastest?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray

from simspec.compare.batches import Draws, batch_requests, draw_prompts, request_starts
from simspec.compare.estimates import Pair, realised, similarity
from simspec.cost.models import CostModel
from simspec.errors import BadInput
from simspec.metrics import estimate, kendall_tau
from simspec.oracle.chains import least_seconds
from simspec.replay.lockstep import price
from simspec.replay.pricing import forward
from simspec.replay.trajectories import first_width, forwards, later_width, run
from simspec.speculation.chains import Chain, all_chains
from simspec.speculation.lengths import Static
from simspec.theory.chains import funnel, reach
from simspec.traces.index import Trace

Floats = NDArray[np.float64]
Candidate = tuple[Chain, int]
Progress = Callable[[str], None]

# Candidates are replayed in so many pieces: progress is shown after each, and processes share them.
PIECES = 16

# Readings of Eq. 7 (theory/chains.py): single-token times as printed; a verify forward as wide
# as the block; the block followed level by level.
VARIANTS = ("reach", "reach-wide", "funnel")


@dataclass(frozen=True)
class RankSettings:
    """What is ranked: batch sizes, draft lengths, depth of chains, bootstrap draws of prompts."""

    batches: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 64)
    lengths: tuple[int, ...] = (1, 2, 3, 4, 5, 6, 7, 8)
    deepest: int = 3
    draws: int = 100
    seed: int = 0


@dataclass(frozen=True)
class BatchRanking:
    """One batch size. K candidates, row 0 of the draws being all prompts once.

    Attributes:
        replayed: seconds a token, shape (draws + 1, K).
        predicted: by "variant/alpha source", seconds a token, shape (draws + 1, K).
    """

    batch: int
    replayed: Floats
    predicted: dict[str, Floats]

    def score(self, name: str) -> dict[str, Any]:
        """Kendall's tau, top-1 and regret in % of one prediction, with intervals over draws."""
        guess, truth = self.predicted[name], self.replayed
        tau = np.array([kendall_tau(g, t) for g, t in zip(guess, truth, strict=True)])
        rows = np.arange(len(truth))
        pick, best = guess.argmin(axis=1), truth.argmin(axis=1)
        regret = 100.0 * (truth[rows, pick] / truth[rows, best] - 1.0)
        right = pick == best
        taus, regrets = estimate(tau[0], tau[1:]), estimate(regret[0], regret[1:])
        return {
            "kendall_tau": taus.value,
            "kendall_tau_interval": [taus.low, taus.high],
            "top1": bool(right[0]),
            "top1_share_of_draws": float(right[1:].mean()) if len(right) > 1 else None,
            "regret": regrets.value,
            "regret_interval": [regrets.low, regrets.high],
            "pick": int(pick[0]),
        }


@dataclass(frozen=True)
class Ranking:
    """A ranking of candidates under one cost; ``bound`` is the dynamic program's seconds a token."""

    cost: CostModel
    candidates: list[Candidate]
    batches: list[BatchRanking]
    bound: float
    settings: RankSettings
    alphas: dict[str, dict[Pair, float]] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """See :mod:`simspec.cli.rank` for the keys."""
        return {
            "cost": {"name": self.cost.name, "label": self.cost.label},
            "lower_bound_seconds_per_token": self.bound,
            "alphas": {
                source: {f"{a} > {b}": value for (a, b), value in sorted(pairs.items())}
                for source, pairs in self.alphas.items()
            },
            "batches": {str(b.batch): self._batch_json(b) for b in self.batches},
        }

    def _batch_json(self, ranking: BatchRanking) -> dict[str, Any]:
        replayed = ranking.replayed
        plain = self.candidates.index(next(c for c in self.candidates if c[0].drafter is None))
        speedup = replayed[:, [plain]] / replayed
        chains = []
        for k, (chain, length) in enumerate(self.candidates):
            time = estimate(replayed[0, k], replayed[1:, k])
            gain = estimate(speedup[0, k], speedup[1:, k])
            chains.append(
                {
                    "chain": list(chain.levels),
                    "draft_length": length,
                    "semantics": chain.semantics if chain.intermediates else None,
                    "replay_seconds_per_token": time.value,
                    "replay_interval": [time.low, time.high],
                    "speedup": gain.value,
                    "speedup_interval": [gain.low, gain.high],
                    "predicted": {n: float(p[0, k]) for n, p in ranking.predicted.items()},
                }
            )
        return {
            "best": int(replayed[0].argmin()),
            "chains": chains,
            "scores": {name: ranking.score(name) for name in ranking.predicted},
        }


def rank(
    trace: Trace,
    costs: list[CostModel],
    settings: RankSettings,
    *,
    jobs: int = 1,
    progress: Progress | None = None,
) -> list[Ranking]:
    """Replay every candidate at every batch size, predict it, and keep both.

    Args:
        jobs: processes to replay in; the result does not depend on it.
        progress: called with a line to show now and then.

    Returns:
        one ranking for each cost, over the candidates whose models it can price.

    Raises:
        BadInput: when a cost cannot price the target and at least one drafter.
    """
    models = list(trace.manifest.models)
    only_draft = set(models) - set(trace.verifiers)
    chains = all_chains(models, trace.target, only_draft, settings.deepest)
    candidates = [(c, n) for c in chains for n in (settings.lengths if c.drafter else (0,))]
    for cost in costs:
        if trace.target not in cost.models or not cost.models & set(trace.drafters):
            raise BadInput(
                f"cost {cost.name!r} prices {sorted(cost.models)}",
                allowed=f"{trace.target} and one of {sorted(trace.drafters)}",
            )
    able = [[k for k, (c, _) in enumerate(candidates) if set(c.levels) <= cost.models] for cost in costs]
    draws = draw_prompts(trace, settings.draws, settings.seed)
    replayed = _replay(trace, costs, candidates, draws, settings, jobs, progress)
    counts = draws.counts()
    alphas = {
        "simscore": similarity(trace, counts),
        "realised": realised(trace, counts, max(settings.lengths)),
    }
    rankings = []
    for i, cost in enumerate(costs):
        mine = [candidates[k] for k in able[i]]
        batches = [
            BatchRanking(
                batch=b,
                replayed=np.stack([replayed[k][i, b] for k in able[i]], axis=1),
                predicted={
                    f"{variant}/{source}": _predict(trace, cost, mine, variant, pairs, b)
                    for variant in VARIANTS
                    for source, pairs in alphas.items()
                },
            )
            for b in settings.batches
        ]
        tokens = float(trace.prompts["output_tokens"].sum())
        bound = float(least_seconds(trace, mine, cost).sum() / tokens)
        shown = {s: {p: float(v[0]) for p, v in pairs.items()} for s, pairs in alphas.items()}
        rankings.append(Ranking(cost, mine, batches, bound, settings, shown))
    return rankings


def _replay(
    trace: Trace,
    costs: list[CostModel],
    candidates: list[Candidate],
    draws: Draws,
    settings: RankSettings,
    jobs: int,
    progress: Progress | None,
) -> list[dict[tuple[int, int], Floats]]:
    """For each candidate, seconds a token by (cost, batch), shape (draws + 1,)."""
    # Long and short drafts mixed, so that pieces take about as long as each other.
    pieces = [candidates[i::PIECES] for i in range(min(PIECES, len(candidates)))]
    work = (joblib.delayed(_replay_piece)(trace, costs, piece, draws, settings) for piece in pieces)
    found: list[dict[tuple[int, int], Floats]] = [{} for _ in candidates]
    done = joblib.Parallel(n_jobs=jobs, return_as="generator")(work)
    for i, results in enumerate(done):
        found[i::PIECES] = results
        if progress:
            progress(
                f"replayed {min((i + 1) * len(candidates) // len(pieces), len(candidates))} of "
                f"{len(candidates)} chains x lengths"
            )
    return found


def _replay_piece(
    trace: Trace, costs: list[CostModel], candidates: list[Candidate], draws: Draws, settings: RankSettings
) -> list[dict[tuple[int, int], Floats]]:
    start = request_starts(trace)
    plans = {b: batch_requests(draws, b) for b in settings.batches if b > 1}
    counts = draws.counts()
    single = np.arange(len(trace.prompts))[:, None]
    found = []
    for chain, length in candidates:
        which = [i for i, cost in enumerate(costs) if set(chain.levels) <= cost.models]
        result: dict[tuple[int, int], Floats] = {}
        found.append(result)
        if not which:
            continue
        runs = run(trace, chain, Static(length) if chain.drafter else None, start)
        lookup = chain.drafter is not None and trace.is_lookup(chain.drafter)
        for batch in settings.batches:
            requests, owner = (single, None) if batch == 1 else plans[batch]
            timed = price(runs, requests, [costs[i] for i in which], lookup=lookup)
            for i, times in zip(which, timed, strict=True):
                if owner is None:  # alone, a prompt takes the same time in every draw
                    result[i, batch] = (counts @ times.seconds) / (counts @ times.tokens)
                else:
                    seconds = np.bincount(owner, weights=times.seconds)
                    result[i, batch] = seconds / np.bincount(owner, weights=times.tokens)
    return found


def _predict(
    trace: Trace,
    cost: CostModel,
    candidates: list[Candidate],
    variant: str,
    alphas: dict[Pair, Floats],
    batch: int,
) -> Floats:
    """Predicted seconds a token, shape (draws + 1, candidates), at the trace's mean context."""
    context = np.array([round(float(trace.context.mean()))], dtype=np.int64)
    at_once = {m: trace.tokens_a_forward(m) for m in trace.manifest.models}
    widest = max(length for _, length in candidates) + 1
    widths = np.arange(1, 2 * max(widest, *at_once.values()) + 1)
    curves = {
        model: forward(cost, model, batch, widths, context)
        for model in {m for chain, _ in candidates for m in chain.levels}
    }
    draws = len(next(iter(alphas.values())))
    out = np.empty((draws, len(candidates)))
    for k, (chain, length) in enumerate(candidates):

        def verify(level: int, width: Floats, chain: Chain = chain) -> Floats:
            model = chain.levels[level - 1]
            # A mean width need not be whole.
            seconds: Floats = np.interp(width, widths, curves[model])
            return seconds + (cost.step_overhead_seconds if model == chain.target else 0.0)

        if chain.drafter is None:
            out[:, k] = verify(1, np.ones(1))
            continue
        adjacent = [alphas[pair] for pair in zip(chain.levels[:-1], chain.levels[1:], strict=True)]
        if trace.is_lookup(chain.drafter):
            one = curves[chain.drafter][length - 1] / length
        elif at_once[chain.drafter] == 1:
            one = curves[chain.drafter][0]
        else:
            # What a token costs when the drafter has read all of the text but its last token.
            size = at_once[chain.drafter]
            first = curves[chain.drafter][int(first_width(np.array(1), size)) - 1]
            more = int(forwards(np.array(length), size)) - 1
            one = (first + more * curves[chain.drafter][later_width(size) - 1]) / length
        if variant == "funnel":
            replace = chain.semantics == "funnel-replace"
            out[:, k] = funnel(adjacent, length, one, verify, replace=replace)
        else:
            out[:, k] = reach(adjacent, length, one, verify, wide=variant == "reach-wide")
    # The formulas follow one request; its batch emits as much in every row at the same time.
    return out / batch
