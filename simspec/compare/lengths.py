"""How long should a draft be? Rules against oracles on the same record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from simspec.compare.batches import draw_prompts
from simspec.compare.length_runs import (
    LengthSettings,
    Replayed,
    best_drafters,
    replayed,
    static_lengths,
    tuned_static,
)
from simspec.cost.models import CostModel
from simspec.errors import BadInput
from simspec.metrics import Estimate, estimate, percent_over
from simspec.oracle.lengths import (
    least,
    long_run_expected,
    long_run_hindsight,
    myopic_expected,
    myopic_hindsight,
)
from simspec.replay.sampled import refuse_unsafe, usable
from simspec.speculation.chains import Chain
from simspec.speculation.lengths import Prescribed, Static
from simspec.speculation.rule_files import ALONE, WEIGH_COST, Rule, as_planner, published
from simspec.traces.index import Trace

Floats = NDArray[np.float64]

OURS = "long-run"
TUNED = "tuned-static"
ORACLES = {
    "myopic-expected": myopic_expected,
    "myopic-hindsight": myopic_hindsight,
    "long-run-expected": long_run_expected,
    "long-run-hindsight": long_run_hindsight,
}


def rules_under_test(trace: Trace) -> dict[str, Rule]:
    """Static lengths and every published rule by name, within the record's blocks."""
    static: dict[str, Rule] = {f"static-{n}": Static(n) for n in static_lengths(trace)}
    return static | published(trace.manifest.block_length)


@dataclass(frozen=True)
class RuleResult:
    """One rule (or oracle) on all prompts.

    Attributes:
        seconds_per_token: for all prompts and for each draw, shape (draws + 1,).
        mean_length: mean submitted tokens a cycle.
        mean_drafted: mean drafted tokens a cycle.
        deviations: mean absolute difference of submitted from what each oracle would have submitted there.
    """

    seconds_per_token: Floats
    mean_length: float
    mean_drafted: float
    deviations: dict[str, float]


@dataclass(frozen=True)
class LengthStudy:
    """Rules and oracles for one drafter under one cost at one batch size.

    ``tuned`` are the static lengths of the even and the odd prompts, each tuned on the others; ``bound`` is
    the dynamic program's seconds a token by draw, at batch 1 only.
    """

    drafter: str
    cost: CostModel
    settings: LengthSettings
    rules: dict[str, RuleResult]
    oracles: dict[str, RuleResult]
    tuned: tuple[int, int]
    bound: Floats | None

    @property
    def best_static(self) -> str:
        """The static length of least time on all prompts: tuned on what it is scored on."""
        return min(
            (n for n in self.rules if n.startswith("static-")),
            key=lambda n: self.rules[n].seconds_per_token[0],
        )

    def over(self, seconds: Floats, reference: Floats | None) -> Estimate:
        """How many percent slower, with its paired interval; null without a reference."""
        if reference is None:
            return Estimate(None, None, None)
        regret = np.asarray(percent_over(seconds, reference))
        return estimate(regret[0], regret[1:])

    def gap_closed(self, seconds: Floats) -> Estimate:
        """Share of the gap between the best static length and the bound; null where there is none."""
        if self.bound is None:
            return Estimate(None, None, None)
        static = self.rules[self.best_static].seconds_per_token
        gap = static - self.bound
        share = np.divide(static - seconds, gap, out=np.full(gap.shape, np.nan), where=gap > 0)
        return estimate(share[0], share[1:])

    def as_json(self) -> dict[str, Any]:
        """See :mod:`simspec.cli.lengths` for the keys."""
        return {
            "cost": {"name": self.cost.name, "label": self.cost.label},
            "drafter": self.drafter,
            "batch": self.settings.batch,
            "best_static": self.best_static,
            "tuned_static": dict(zip(("even", "odd"), self.tuned, strict=True)),
            "lower_bound_seconds_per_token": None if self.bound is None else float(self.bound[0]),
            "rules": {name: self._json(result) for name, result in self.rules.items()},
            "oracles": {name: self._json(result) for name, result in self.oracles.items()},
        }

    def _json(self, result: RuleResult) -> dict[str, Any]:
        seconds = result.seconds_per_token
        ours = self.rules.get(OURS)
        told = {"seconds_per_token": estimate(seconds[0], seconds[1:])}
        references = {
            "best_static": self.rules[self.best_static].seconds_per_token,
            "tuned_static": self.rules[TUNED].seconds_per_token,
            "ours": None if ours is None else ours.seconds_per_token,
            "expected": self.oracles["myopic-expected"].seconds_per_token,
            "hindsight": self.oracles["myopic-hindsight"].seconds_per_token,
            "long_run": self.oracles["long-run-expected"].seconds_per_token,
            "lower_bound": self.bound,
        }
        told |= {f"regret_{name}": self.over(seconds, other) for name, other in references.items()}
        told["gap_closed"] = self.gap_closed(seconds)
        out: dict[str, Any] = {}
        for name, found in told.items():
            out[name], out[f"{name}_interval"] = found.value, [found.low, found.high]
        for oracle, deviation in result.deviations.items():
            out[f"mad_{oracle.removeprefix('myopic-').replace('-', '_')}"] = deviation
        return {**out, "mean_length": result.mean_length, "mean_drafted": result.mean_drafted}


def study_lengths(
    trace: Trace,
    drafter: str,
    cost: CostModel,
    settings: LengthSettings,
    rules: Mapping[str, Rule] | None = None,
) -> LengthStudy:
    """Replay rules and oracles with one drafter; see :func:`study_batches`."""
    return study_batches(trace, {settings.batch: drafter}, cost, settings, rules)[settings.batch]


def study_batches(
    trace: Trace,
    drafters: Mapping[int, str],
    cost: CostModel,
    settings: LengthSettings,
    rules: Mapping[str, Rule] | None = None,
    jobs: int = 1,
) -> dict[int, LengthStudy]:
    """Replay rules and oracles at several batch sizes.

    Args:
        drafters: the drafter of each batch size.
        settings: of which the batch size is not looked at.
        rules: static lengths among them; None for all that come with the package and can be used.
        jobs: processes; the result does not depend on it.

    Raises:
        BadInput: when a drafter is unknown or the cost cannot price it, or the texts are sampled and a rule
            would change them.
    """
    for drafter in drafters.values():
        trace.require(drafter)
        if drafter == trace.target:
            raise BadInput(f"{drafter!r} is the target", allowed=", ".join(trace.drafters))
        missing = {drafter, trace.target} - cost.models
        if missing:
            raise BadInput(f"cost {cost.name!r} has no price for {', '.join(sorted(missing))}")
    wanted = usable(trace, rules_under_test(trace)) if rules is None else rules
    for drafter in drafters.values():
        refuse_unsafe(trace, Chain((drafter, trace.target)), {n: as_planner(r) for n, r in wanted.items()})
    alone = {n: r for n, r in wanted.items() if isinstance(r, tuple(ALONE.values()))}
    quick = {n: r for n, r in alone.items() if not isinstance(r, WEIGH_COST)}
    held = {d: replace(trace, drafters={d: trace.drafters[d]}) for d in drafters.values()}
    given = {b: (held[d], d, cost, replace(settings, batch=b)) for b, d in sorted(drafters.items())}
    # The longest first: fewer rows mean more cycles one after another.
    work = [(b, {name: rule}) for b in given for name, rule in wanted.items() if name not in quick]
    work += [(b, quick) for b in given]
    tasks = [delayed(replayed)(*given[b], some) for b, some in work]
    tasks += [delayed(_references)(*each) for each in given.values()]
    done = Parallel(n_jobs=jobs, batch_size=1)(tasks)
    studies = {}
    for references, (batch, each) in zip(done[len(work) :], given.items(), strict=True):
        parts = [found for (b, _), found in zip(work, done, strict=False) if b == batch]
        found = {name: result for part in parts for name, result in part.items()}
        studies[batch] = references.study(each, {name: found[name] for name in wanted})
    return studies


@dataclass(frozen=True)
class _References:
    """What rules of one batch size are held against: lengths, what came of them, and the bound."""

    lengths: dict[str, Prescribed]
    replayed: dict[str, Replayed]
    tuned: tuple[int, int]
    bound: Floats | None

    def study(
        self, given: tuple[Trace, str, CostModel, LengthSettings], rules: Mapping[str, Replayed]
    ) -> LengthStudy:
        _, drafter, cost, settings = given
        tuned = {TUNED: self._result(self.replayed[TUNED])}
        return LengthStudy(
            drafter=drafter,
            cost=cost,
            settings=settings,
            rules={name: self._result(found) for name, found in rules.items()} | tuned,
            oracles={name: self._result(self.replayed[name]) for name in ORACLES},
            tuned=self.tuned,
            bound=self.bound,
        )

    def _result(self, found: Replayed) -> RuleResult:
        off = {n: np.abs(found.submitted - oracle.lengths[found.flat]) for n, oracle in self.lengths.items()}
        return RuleResult(
            seconds_per_token=found.seconds_per_token,
            mean_length=float(found.submitted.mean()),
            mean_drafted=float(found.drafted.mean()),
            deviations={name: float(each.mean()) for name, each in off.items()},
        )


def _references(trace: Trace, drafter: str, cost: CostModel, settings: LengthSettings) -> _References:
    chain = Chain((drafter, trace.target))
    lengths = {name: oracle(trace, chain, cost, settings.batch) for name, oracle in ORACLES.items()}
    fixed, tuned = tuned_static(trace, drafter, cost, settings)
    found = replayed(trace, drafter, cost, settings, {**lengths, TUNED: fixed})
    bound = None
    if settings.batch == 1:
        program = least(trace, chain, cost)
        lengths["lower-bound"] = Prescribed(program.lengths)
        counts = draw_prompts(trace, settings.draws, settings.seed).counts()
        bound = (counts @ program.seconds) / (counts @ trace.prompts["output_tokens"].to_numpy())
    return _References(lengths, found, tuned, bound)


def best_drafter(
    trace: Trace, cost: CostModel, settings: LengthSettings, among: Sequence[str] | None = None
) -> str:
    """The drafter of :func:`~simspec.compare.length_runs.best_drafters` at one batch size."""
    return best_drafters(trace, cost, [settings.batch], settings.seed, among)[settings.batch]
