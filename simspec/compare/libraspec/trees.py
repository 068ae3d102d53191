"""Trees of drafted tokens: does a tree beat a chain of as many tokens, and what is a good size?

Batch 1. Where something is tuned or learned, each half of the prompts (even and odd) is served with what the
other half taught. What trees can be replayed exactly, and what is not priced, is said in
:mod:`simspec.speculation.trees` and :mod:`simspec.replay.trees`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from simspec.compare.asked import Asked, Progress
from simspec.compare.batches import draw_prompts
from simspec.compare.libraspec.tree_runs import MOST_NODES, Bench, Fixed, Score
from simspec.cost.models import CostModel
from simspec.metrics import Estimate, estimate, percent_over
from simspec.traces.index import Ints, Trace

Floats = NDArray[np.float64]

# Ways to tune, by name: the families whose members compete.
TUNED = {
    "chain": ("chain",),
    "top-k": ("top-2", "top-4"),
    "best-first": ("best-first",),
    "drafted-first": ("drafted-first",),
    "ddtree": ("ddtree",),
}


def study(
    trace: Trace, costs: list[CostModel], asked: Asked, say: Progress, *, tree_trace: Trace | None = None
) -> dict[str, Any]:
    """Chains, caterpillars and, of block-parallel drafters, best-first trees of products (DDTree).

    Args:
        tree_trace: a record with the probabilities of each place's alternatives, by models that ``costs``
            price. The other one tells the second-best token of autoregressive drafters.

    Returns:
        ``costs.<name>`` = label, ``most_nodes``, ``left_out[]`` (drafters of which no tree can be made, and
        why), ``records[]`` = {``name``, ``origin``, ``prompts``, ``output_tokens``, ``alternatives``,
        ``recorded`` (whether the alternatives were, or are worked out from margins), ``drafters[]`` =
        {``drafter``, ``at_once``, ``ranks[]`` (how often the text's token is the drafter's first, second ...
        choice; the last for none of them), ``costs.<name>`` = {``sizes.<family>[]`` = {``nodes`` and figures,
        ``over_chain`` being against the chain of as many nodes}, ``ways.<name>`` = {``tuned[]`` (what served
        the even and the odd prompts: family, places, nodes), ``rate[]`` and figures, ``over_chain`` against
        the tuned chain, ``over_ours`` against the cost-aware tree}}}}. Figures are ``speedup`` over plain
        decoding and ``over_<what>`` (% more time), each with ``_interval``, and ``nodes_a_cycle``,
        ``places``, ``tokens`` of a cycle. Of family drafted-first, sizes have the number of places that the
        other half finds best.
    """
    records, left_out, work = [], [], []
    for record in [trace] + ([] if tree_trace is None else [tree_trace]):
        able = []
        for name, index in record.drafters.items():
            if index.choices is None:
                why = "certain by form" if record.is_lookup(name) else "its alternatives were not recorded"
                left_out.append({"record": record.manifest.name, "drafter": name, "why": why})
            elif not any({name, record.target} <= c.models for c in costs):
                why = "no cost prices it and the target"
                left_out.append({"record": record.manifest.name, "drafter": name, "why": why})
            else:
                able.append(name)
        records.append((record, able))
        work += [(replace(record, drafters={d: record.drafters[d]}), d) for d in able]
    say(f"trees of {len(work)} drafters")
    done = iter(Parallel(n_jobs=asked.jobs, batch_size=1)(delayed(_drafter)(*w, costs, asked) for w in work))
    return {
        "costs": {c.name: c.label for c in costs},
        "most_nodes": MOST_NODES,
        "left_out": left_out,
        "records": [
            {
                "name": record.manifest.name,
                "origin": record.manifest.origin,
                "prompts": len(record.prompts),
                "output_tokens": record.manifest.output_tokens,
                "alternatives": record.manifest.alternatives or 2,
                "recorded": record.manifest.alternatives > 0,
                "drafters": [next(done) for _ in able],
            }
            for record, able in records
        ],
    }


def _drafter(trace: Trace, drafter: str, costs: Sequence[CostModel], asked: Asked) -> dict[str, Any]:
    bench = Bench(trace, drafter, costs)
    told = _Told(trace, bench.plain(), asked)
    fixed = bench.fixed_sizes()
    width = bench.offer.chance.shape[2]
    rank = np.minimum(bench.offer.text_rank[bench.offer.limit > 0, 0], width)
    found: dict[str, Any] = {}
    for cost in bench.costs:
        chains = {m.nodes: s for m, s in fixed.items() if m.family == "chain"}
        sizes: dict[str, list[dict[str, Any]]] = {}
        for family in dict.fromkeys(m.family for m in fixed):
            mine = [m for m in fixed if m.family == family]
            rows = []
            for n in sorted({m.nodes for m in mine} - {0}):
                score, _ = told.tuned(cost, {m: fixed[m] for m in mine if m.nodes == n})
                rows.append({"nodes": n, **told.shown(cost, score, {"chain": chains.get(n)})})
            sizes[family] = rows
        ways = _ways(bench, told, cost, fixed)
        found[cost.name] = {"sizes": sizes, "ways": ways}
    return {
        "drafter": drafter,
        "at_once": bench.offer.at_once,
        "ranks": (np.bincount(rank, minlength=width + 1) / max(len(rank), 1)).tolist(),
        "costs": found,
    }


def _ways(bench: Bench, told: _Told, cost: CostModel, fixed: dict[Fixed, Score]) -> dict[str, Any]:
    """Each way of choosing trees, tuned or taught by the other half of the prompts."""
    ways: dict[str, Any] = {}
    scores: dict[str, Score] = {}
    for name, families in TUNED.items():
        members = {m: s for m, s in fixed.items() if m.family in families}
        if not members:
            continue
        scores[name], best = told.tuned(cost, members)
        ways[name] = {
            "tuned": [{"family": m.family, "places": m.places, "nodes": m.nodes} for m in best],
            "rate": [],
        }
    for shape in bench.shapes():
        name = f"libraspec {shape}"
        scores[name], ways[name] = bench.libraspec(shape), {"tuned": [], "rate": []}
        name, parts, rates = f"cost-aware {shape}", [], []
        for half, other in told.halves:
            # From what the best fixed size reaches there.
            start = max(told.rate(cost, s, other) for s in fixed.values())
            part, rate = bench.cost_aware(shape, cost, half, other, start)
            parts.append(part)
            rates.append(rate)
        scores[name], ways[name] = _together(parts), {"tuned": [], "rate": rates}
    against: dict[str, Score | None] = {"chain": scores["chain"], "ours": scores["cost-aware tree"]}
    return {name: way | told.shown(cost, scores[name], against) for name, way in ways.items()}


def _together(parts: Sequence[Score]) -> Score:
    """Scores of different prompts as one."""
    return Score(
        {name: np.sum([p.seconds[name] for p in parts], axis=0) for name in parts[0].seconds},
        *(np.sum([getattr(p, n) for p in parts], axis=0) for n in ("cycles", "nodes", "places")),
    )


class _Told:
    """Scores as a reader is told them: figures with their intervals over draws of prompts."""

    def __init__(self, trace: Trace, plain: dict[str, Floats], asked: Asked):
        self.counts = draw_prompts(trace, asked.draws, asked.seed).counts()
        self.tokens = trace.prompts["output_tokens"].to_numpy()
        self.plain = plain
        number = np.arange(len(self.tokens))
        even, odd = number[number % 2 == 0], number[number % 2 == 1]
        # A single prompt has no other half.
        self.halves: list[tuple[Ints, Ints]] = [(even, odd if len(odd) else even), (odd, even)]

    def rate(self, cost: CostModel, score: Score, prompts: Ints) -> float:
        """Tokens a second on some prompts."""
        return float(self.tokens[prompts].sum() / score.seconds[cost.name][prompts].sum())

    def tuned(self, cost: CostModel, members: dict[Fixed, Score]) -> tuple[Score, list[Fixed]]:
        """Each half with the member that is fastest on the other; which that was."""
        best = [max(members, key=lambda m: self.rate(cost, members[m], other)) for _, other in self.halves]
        parts = [
            Score(
                {cost.name: _only(members[m].seconds[cost.name], half)},
                *(_only(getattr(members[m], n), half) for n in ("cycles", "nodes", "places")),
            )
            for m, (half, _) in zip(best, self.halves, strict=True)
        ]
        return _together(parts), best

    def shown(self, cost: CostModel, score: Score, against: dict[str, Score | None]) -> dict[str, Any]:
        """Speedup, time over each of ``against``, null where that is None, and what a cycle does."""
        seconds, plain = self.counts @ score.seconds[cost.name], self.counts @ self.plain[cost.name]
        faster = plain / seconds
        value = estimate(faster[0], faster[1:])
        cycles = score.cycles.sum()
        out: dict[str, Any] = {
            "speedup": value.value,
            "speedup_interval": [value.low, value.high],
            "nodes_a_cycle": float(score.nodes.sum() / cycles),
            "places": float(score.places.sum() / cycles),
            "tokens": float(self.tokens.sum() / cycles),
        }
        for name, other in against.items():
            value = Estimate(None, None, None)
            if other is not None:
                slower = np.asarray(percent_over(seconds, self.counts @ other.seconds[cost.name]))
                value = estimate(slower[0], slower[1:])
            out[f"over_{name}"], out[f"over_{name}_interval"] = value.value, [value.low, value.high]
        return out


def _only(values: NDArray[Any], prompts: Ints) -> NDArray[Any]:
    out = np.zeros_like(values)
    out[prompts] = values[prompts]
    return out
