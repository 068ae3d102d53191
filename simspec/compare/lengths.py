"""How long should a draft be? Rules against oracles on the same record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simspec.compare.batches import batch_requests, draw_prompts, request_starts
from simspec.cost.models import CostModel
from simspec.errors import BadInput
from simspec.metrics import estimate, percent_over
from simspec.oracle.lengths import least_seconds, myopic_expected, myopic_hindsight
from simspec.replay.lockstep import price
from simspec.replay.pricing import two_level_seconds
from simspec.replay.trajectories import Trajectories, run
from simspec.speculation.chains import Chain
from simspec.speculation.lengths import G4, ExactMarginal, LengthRule, LibraSpec, Prescribed, Static
from simspec.traces.index import Trace

Floats = NDArray[np.float64]

STATIC_LENGTHS = (0, 1, 2, 3, 4, 5, 6, 8, 12, 16)


def rules_under_test(block_length: int) -> dict[str, LengthRule]:
    """The rules by name, defaults from the papers; lengths within the record's blocks.

    LibraSpec's other published setting (n 10, d_max 60) asks for blocks of 61 tokens.
    """
    rules: dict[str, LengthRule] = {f"static-{n}": Static(n) for n in STATIC_LENGTHS if n <= block_length}
    rules["g4"] = G4(longest=min(20, block_length))
    # d_max - 1 + floor(alpha) tokens is the most that Algorithm 1 returns.
    longest = min(24, block_length - 1)
    rules["libraspec"] = LibraSpec(alpha=2.2, block=min(16, longest), longest=longest)
    rules["libraspec-n1"] = LibraSpec(alpha=2.2, block=1, longest=longest)
    rules["exact-marginal"] = ExactMarginal(longest=longest)
    return rules


@dataclass(frozen=True)
class LengthSettings:
    """Batch size, bootstrap draws of prompts, seed."""

    batch: int = 1
    draws: int = 100
    seed: int = 0


@dataclass(frozen=True)
class RuleResult:
    """One rule (or oracle) on all prompts.

    Attributes:
        seconds_per_token: for all prompts and for each draw, shape (draws + 1,).
        mean_length: mean submitted tokens a cycle.
        mean_drafted: mean drafted tokens a cycle.
        mad_hindsight: mean absolute difference of submitted from the myopic hindsight length.
    """

    seconds_per_token: Floats
    mean_length: float
    mean_drafted: float
    mad_hindsight: float


@dataclass(frozen=True)
class LengthStudy:
    """Rules and oracles for one drafter under one cost.

    ``bound`` is the dynamic program's seconds a token by draw, at batch 1 only.
    """

    drafter: str
    cost: CostModel
    settings: LengthSettings
    rules: dict[str, RuleResult]
    oracles: dict[str, RuleResult]
    bound: Floats | None

    @property
    def best_static(self) -> str:
        """The static length of least time on all prompts: tuned on what it is scored on."""
        return min(
            (n for n in self.rules if n.startswith("static-")),
            key=lambda n: self.rules[n].seconds_per_token[0],
        )

    def as_json(self) -> dict[str, Any]:
        """See :mod:`simspec.cli.lengths` for the keys."""
        return {
            "cost": {"name": self.cost.name, "label": self.cost.label},
            "drafter": self.drafter,
            "batch": self.settings.batch,
            "best_static": self.best_static,
            "lower_bound_seconds_per_token": None if self.bound is None else float(self.bound[0]),
            "rules": {name: self._json(result) for name, result in self.rules.items()},
            "oracles": {name: self._json(result) for name, result in self.oracles.items()},
        }

    def _json(self, result: RuleResult) -> dict[str, Any]:
        out: dict[str, Any] = {}
        time = estimate(result.seconds_per_token[0], result.seconds_per_token[1:])
        out["seconds_per_token"] = time.value
        out["seconds_per_token_interval"] = [time.low, time.high]
        references = {
            "regret_expected": self.oracles["myopic-expected"].seconds_per_token,
            "regret_hindsight": self.oracles["myopic-hindsight"].seconds_per_token,
            "regret_lower_bound": self.bound,
            "regret_best_static": self.rules[self.best_static].seconds_per_token,
        }
        for name, reference in references.items():
            if reference is None:
                out[name], out[f"{name}_interval"] = None, [None, None]
                continue
            over = np.asarray(percent_over(result.seconds_per_token, reference))
            regret = estimate(over[0], over[1:])
            out[name], out[f"{name}_interval"] = regret.value, [regret.low, regret.high]
        out["mad_hindsight"] = result.mad_hindsight
        out["mean_length"] = result.mean_length
        out["mean_drafted"] = result.mean_drafted
        return out


def study_lengths(trace: Trace, drafter: str, cost: CostModel, settings: LengthSettings) -> LengthStudy:
    """Replay every rule and oracle with one drafter.

    Rules see the price of a cycle at the batch size; which requests share their batch they do
    not see.

    Raises:
        BadInput: when the drafter is unknown or the cost cannot price it.
    """
    trace.require(drafter)
    if drafter == trace.target:
        raise BadInput(f"{drafter!r} is the target", allowed=", ".join(trace.drafters))
    missing = {drafter, trace.target} - cost.models
    if missing:
        raise BadInput(f"cost {cost.name!r} has no price for {', '.join(sorted(missing))}")
    chain = Chain((drafter, trace.target))
    seconds = two_level_seconds(trace, chain, cost, settings.batch)
    hindsight = myopic_hindsight(trace, chain, cost, settings.batch)
    draws = draw_prompts(trace, settings.draws, settings.seed)
    counts = draws.counts()
    start = request_starts(trace)
    lookup = trace.is_lookup(drafter)

    def result(rule: LengthRule | Prescribed) -> RuleResult:
        runs = run(trace, chain, rule, start, seconds)
        if settings.batch == 1:
            times = price(runs, np.arange(len(trace.prompts))[:, None], [cost], lookup=lookup)[0]
            per_token = (counts @ times.seconds) / (counts @ times.tokens)
        else:
            requests, owner = batch_requests(draws, settings.batch)
            times = price(runs, requests, [cost], lookup=lookup)[0]
            per_token = np.bincount(owner, weights=times.seconds) / np.bincount(owner, weights=times.tokens)
        return _summary(trace, runs, hindsight, per_token)

    bound = None
    if settings.batch == 1:
        tokens = trace.prompts["output_tokens"].to_numpy()
        bound = (counts @ least_seconds(trace, chain, cost)) / (counts @ tokens)
    return LengthStudy(
        drafter=drafter,
        cost=cost,
        settings=settings,
        rules={n: result(r) for n, r in rules_under_test(trace.manifest.block_length).items()},
        oracles={
            "myopic-hindsight": result(hindsight),
            "myopic-expected": result(myopic_expected(trace, chain, cost, settings.batch)),
        },
        bound=bound,
    )


def _summary(trace: Trace, runs: Trajectories, hindsight: Prescribed, per_token: Floats) -> RuleResult:
    # Every prompt once, from its beginning.
    active = runs.active.copy()
    active[len(trace.prompts) :] = False
    submitted = runs.submitted[active].astype(np.float64)
    wanted = hindsight.lengths[runs.flat[active]]
    return RuleResult(
        seconds_per_token=per_token,
        mean_length=float(submitted.mean()),
        mean_drafted=float(runs.drafted[active].mean()),
        mad_hindsight=float(np.abs(submitted - wanted).mean()),
    )


def best_drafter(
    trace: Trace, cost: CostModel, settings: LengthSettings, among: Sequence[str] | None = None
) -> str:
    """The priced drafter (of ``among``) whose best static length, at least 1, is fastest."""
    able = [d for d in (among or trace.drafters) if d in cost.models]
    if not able:
        raise BadInput(f"cost {cost.name!r} prices no drafter", allowed=", ".join(trace.drafters))

    def least(drafter: str) -> float:
        chain = Chain((drafter, trace.target))
        requests, _ = batch_requests(draw_prompts(trace, 0, settings.seed), settings.batch)
        times = [
            price(
                run(trace, chain, Static(n), request_starts(trace)),
                requests,
                [cost],
                lookup=trace.is_lookup(drafter),
            )[0]
            for n in STATIC_LENGTHS
            if 1 <= n <= trace.manifest.block_length
        ]
        return min(float(t.seconds.sum() / t.tokens.sum()) for t in times)

    return min(able, key=least)


@dataclass(frozen=True)
class LengthsAlongText:
    """Chosen against oracle length, cycle by cycle, along one prompt's text.

    ``position``, ``chosen`` and ``hindsight`` (what the oracle would have submitted at the same
    place) have one entry a cycle of the rule.
    """

    prompt: int
    rule: str
    position: NDArray[np.int64]
    chosen: NDArray[np.int64]
    hindsight: NDArray[np.int64]
    accepted: NDArray[np.int64]


def lengths_along_text(
    trace: Trace, drafter: str, cost: CostModel, prompt: int, rule_name: str
) -> LengthsAlongText:
    """Follow one rule along one text at batch 1."""
    chain = Chain((drafter, trace.target))
    rule = rules_under_test(trace.manifest.block_length)[rule_name]
    runs = run(
        trace,
        chain,
        rule,
        trace.offsets[prompt : prompt + 1],
        two_level_seconds(trace, chain, cost, 1),
    )
    flat = runs.flat[0].astype(np.int64)
    return LengthsAlongText(
        prompt=prompt,
        rule=rule_name,
        position=trace.position[flat],
        chosen=runs.submitted[0].astype(np.int64),
        hindsight=myopic_hindsight(trace, chain, cost, 1).lengths[flat],
        accepted=runs.accepted[0].astype(np.int64),
    )
