"""Replications, and differences between scenarios that meet the same luck.

Replication i of every scenario has the seed ``first + i``: arrivals, lengths and verdicts are drawn from
streams that no policy can move, so what differs between two scenarios differs because of them (common
random numbers). Intervals are Student's, over replications.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from simspec.errors import BadInput
from simspec.metrics import Estimate
from simspec.scenario.build import Built
from simspec.scenario.config import ClosedLoad, SessionsPart
from simspec.scenario.fitting import Fitted, fit
from simspec.scenario.run import Ran, run
from simspec.serving.row_policies import RowPolicy
from simspec.serving.verdicts import Recorded

# Name of a figure -> where it stands in the figures of a run.
FIGURES: dict[str, tuple[str, ...]] = {
    "throughput_tokens_per_second": ("throughput_tokens_per_second",),
    "goodput_requests_per_second": ("goodput", "requests_per_second"),
    **{
        f"{name}_{part}": (name, part)
        for name in ("ttft_seconds", "tpot_seconds", "e2e_seconds", "queueing_seconds")
        for part in ("mean", "p50", "p90", "p99")
    },
    "emitted_per_pass_pooled": ("emitted_per_pass", "pooled"),
    "emitted_per_pass_mean_of_requests": ("emitted_per_pass", "mean_of_requests"),
    "emitted_per_pass_deviation_between_requests": ("emitted_per_pass", "deviation_between_requests"),
    "draft_waste": ("draft", "waste"),
    "preemptions": ("preemptions",),
    "output_tokens": ("output_tokens",),
    "finished": ("requests", "finished"),
}

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Replicated:
    """One scenario's replications; ``values``: figure -> one number (or None) a replication."""

    values: dict[str, list[float | None]]

    def as_json(self) -> dict[str, Any]:
        return {
            name: {**over_replications(values).as_json(), "values": values}
            for name, values in self.values.items()
        }

    def less(self, other: Replicated) -> dict[str, dict[str, float | None]]:
        """This one's figures less the other's, replication by replication, with 95% intervals."""
        found = {}
        for name, mine in self.values.items():
            pairs = zip(mine, other.values[name], strict=True)
            gaps = [None if a is None or b is None else a - b for a, b in pairs]
            found[name] = over_replications(gaps).as_json()
        return found


def replicate(
    built: Built, seeds: Sequence[int], until_seconds: float | None, progress: Progress, label: str = ""
) -> list[Ran]:
    """Run a scenario under each seed."""
    runs = []
    for seed in seeds:
        runs.append(run(built, seed, until_seconds=until_seconds))
        progress(f"{label or built.scenario.name}, seed {seed}: {runs[-1].wall_seconds:.1f} s")
    return runs


def replicated(runs: Sequence[Ran]) -> Replicated:
    """Runs of one scenario, a replication each."""
    return Replicated({figure: [_at(r.figures, path) for r in runs] for figure, path in FIGURES.items()})


def luck(built: Built) -> list[str]:
    """What differs between the replications of a scenario: all that is drawn."""
    found = []
    if not built.load.listed and not isinstance(built.load.process, ClosedLoad):
        found.append("arrivals")
    if built.load.drawn:
        found.append("lengths")
    if isinstance(built.load.sessions, SessionsPart) and built.cluster.routing == "session-affine":
        found.append("sessions")
    if built.serving.speculation is not None:
        found.append("verdicts")
    if built.cluster.failures is not None:
        found.append("failures")
    return found


def over_replications(values: Sequence[float | None]) -> Estimate:
    """Mean with its 95% Student interval; no interval for one replication, None if any is undefined."""
    known = [v for v in values if v is not None]
    if not known or len(known) < len(values):
        return Estimate(None, None, None)
    mean = float(np.mean(known))
    if len(known) < 2:
        return Estimate(mean, None, None)
    error = float(np.std(known, ddof=1)) / len(known) ** 0.5
    half = float(stats.t.ppf(0.975, len(known) - 1)) * error
    return Estimate(mean, mean - half, mean + half)


def assumptions(built: Built) -> tuple[dict[str, Built], Fitted]:
    """A scenario that replays, and the same under each narrower assumption fitted to its record.

    Raises:
        BadInput: when it does not replay, never drafts, or its policy looks at more than such verdicts have.
    """
    speculation = built.serving.speculation
    if speculation is not None and speculation.intermediates:
        raise BadInput(
            "--assumptions replaces the record by verdicts of the target alone, and there are intermediates",
            where=f"{built.read.path}, [speculation]",
        )
    if speculation is None or not isinstance(speculation.source, Recorded):
        raise BadInput(
            "--assumptions compares with replay, and this scenario replays nothing",
            where=built.read.path,
            allowed="speculation.verdicts of kind trace or acc_len, and a policy that is not off",
        )
    policy = speculation.policy
    if speculation.others or (isinstance(policy, RowPolicy) and policy.weighs_confidence):
        raise BadInput(
            "--assumptions replaces the record by verdicts on one drafter, without confidences",
            where=f"{built.read.path}, [speculation.policy]",
            hint="take a policy that needs neither",
        )
    fitted = fit(speculation.source, policy.longest)
    found = {name: built.replaying(source) for name, source in fitted.sources(speculation.source).items()}
    return found, fitted


def _at(figures: dict[str, Any], path: tuple[str, ...]) -> float | None:
    found: Any = figures
    for name in path:
        found = found[name]
    return None if found is None else float(found)
