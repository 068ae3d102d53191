"""One text, cycle by cycle: what a scheduler took and why, what it cost, what the oracle would have done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simspec.compare.batches import draw_prompts, request_starts
from simspec.compare.route_batches import halves, static_seconds
from simspec.compare.route_schedulers import SCHEDULERS, Factory, Tuned, priors
from simspec.compare.routing import RouteSettings, candidates_of
from simspec.cost.models import CostModel
from simspec.errors import BadInput, unknown_name
from simspec.oracle.lagged import LaggedProgram
from simspec.replay.candidates import CandidateTable, tabulate
from simspec.replay.meter import RoutedCycle
from simspec.replay.routed import Foreseeing, route
from simspec.speculation.predicting import catching_up, tokens_a_cycle
from simspec.speculation.routing import Candidate, Evidence, Ints, Pool, Router, Seen, State, View
from simspec.speculation.schedulers_eq7 import SpecRouter
from simspec.traces.index import Trace

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Explained:
    """One cycle of one request alone.

    Attributes:
        position: tokens of text before it.
        taken: the candidate.
        predicted: seconds a token that the scheduler expected of it, and ``runner_up`` of the next best;
            None where it does not predict.
        alphas: the acceptances it expected along the chain.
        expected_tokens, expected_catching_up: tokens of a cycle, and seconds for what its models had missed.
        emitted, seconds, catching_up: what the cycle did and cost.
        oracle: what the fastest schedule from here on would have taken.
        lost: seconds that the cycle's choice costs if everything after it is as good as can be.
    """

    position: int
    taken: Candidate
    predicted: float | None
    runner_up: Candidate | None
    runner_up_predicted: float | None
    alphas: tuple[float, ...]
    expected_tokens: float | None
    expected_catching_up: float | None
    emitted: int
    seconds: float
    catching_up: float
    oracle: Candidate
    lost: float

    def as_json(self) -> dict[str, Any]:
        """See :mod:`simspec.cli.route` for the keys."""
        out: dict[str, Any] = {}
        for name in self.__dataclass_fields__:
            value = getattr(self, name)
            if name in ("taken", "runner_up", "oracle"):
                value = None if value is None else candidate_json(value)
            out[name] = list(value) if isinstance(value, tuple) else value
        return out


def candidate_json(candidate: Candidate) -> dict[str, Any]:
    """Keys: chain, semantics, draft_length."""
    chain, length = candidate
    semantics = chain.semantics if chain.intermediates else None
    return {"chain": list(chain.levels), "semantics": semantics, "draft_length": length}


def told(candidate: Candidate | dict[str, Any]) -> str:
    """A candidate in a few words."""
    found = candidate if isinstance(candidate, dict) else candidate_json(candidate)
    text = " > ".join(found["chain"])
    if len(found["chain"]) > 1:
        text += f" x {found['draft_length']}"
    return f"{text} ({found['semantics']})" if found["semantics"] else text


@dataclass(frozen=True)
class _Watched:
    """A router that notes what it expected before every cycle."""

    router: Router
    notes: list[tuple[Ints, dict[str, Floats]]] = field(default_factory=list)

    @property
    def evidence(self) -> Evidence:
        return self.router.evidence

    @property
    def latency_weight(self) -> float:
        return float(getattr(self.router, "latency_weight", 0.0))

    def begin(self, pool: Pool, deciders: int) -> State:
        return self.router.begin(pool, deciders)

    def choose(self, pool: Pool, state: State, view: View) -> Ints:
        expected: dict[str, Floats] = {}
        if isinstance(self.router, SpecRouter):
            expected["predicted"] = self.router.scores(pool, state, view)[0]
            expected["tokens"] = tokens_a_cycle(pool, state["alpha"])[0]
            expected["catching_up"] = catching_up(pool, view)[0]
            expected["alpha"] = state["alpha"][0].copy()
        self.notes.append((view.lag[0], expected))
        return self.router.choose(pool, state, view)

    def observe(self, pool: Pool, state: State, seen: Seen) -> State:
        return self.router.observe(pool, state, seen)


def explain(
    trace: Trace,
    cost: CostModel,
    settings: RouteSettings,
    prompt: int,
    scheduler: str,
    schedulers: Mapping[str, Factory] | None = None,
) -> list[Explained]:
    """Follow one scheduler along one text at batch 1, tuned on the other half of the prompts.

    Raises:
        BadInput: when the prompt or the scheduler is unknown, or the scheduler is an oracle.
    """
    factories = dict(SCHEDULERS if schedulers is None else schedulers)
    if scheduler not in factories:
        raise unknown_name("scheduler", scheduler, factories)
    if not 0 <= prompt < len(trace.prompts):
        raise BadInput(f"no prompt {prompt}", where=trace.folder, allowed=f"0 to {len(trace.prompts) - 1}")
    table = tabulate(trace, candidates_of(trace, cost, settings))
    parts = halves(trace)
    number = next(i for i, (score, _) in enumerate(parts) if prompt in score)
    static = static_seconds(table, cost, (1,), settings.seed, parts, 1)[1]
    taught = draw_prompts(trace, 0, settings.seed, among=parts[number][1])
    known = priors(table, taught, max(settings.lengths))
    router = factories[scheduler](Tuned(table, cost, static[-1 - number], static[number], known))
    if router is None or isinstance(router, Foreseeing):
        raise BadInput(f"{scheduler} cannot be explained here", allowed="schedulers that see only the past")
    watched = _Watched(router)
    done = route(table, cost, watched, request_starts(trace)[[[prompt]]], keep=True)
    program = LaggedProgram(table, cost)
    return [
        _cycle(table, program, cycle, lag, expected)
        for cycle, (lag, expected) in zip(done.log, watched.notes, strict=True)
    ]


def _cycle(
    table: CandidateTable, program: LaggedProgram, cycle: RoutedCycle, lag: Ints, expected: dict[str, Floats]
) -> Explained:
    pool, flat, k = table.pool, int(cycle.flat[0, 0]), int(cycle.candidate[0, 0])
    mine = lag[[pool.names.index(m) for m in program.lagging]]
    best = program.least(flat, mine)
    alphas: tuple[float, ...] = ()
    second: int | None = None
    if expected:
        levels = pool.candidates[k][0].levels
        pairs = [pool.pair(a, b) for a, b in pairwise(levels)]
        alphas = tuple(float(expected["alpha"][p]) for p in pairs)
        others = expected["predicted"].copy()
        others[k] = np.inf
        second = int(others.argmin())
    return Explained(
        position=int(table.trace.position[flat]),
        taken=pool.candidates[k],
        predicted=float(expected["predicted"][k]) if expected else None,
        runner_up=None if second is None else pool.candidates[second],
        runner_up_predicted=None if second is None else float(expected["predicted"][second]),
        alphas=alphas,
        expected_tokens=float(expected["tokens"][k]) if expected else None,
        expected_catching_up=float(expected["catching_up"][k]) if expected else None,
        emitted=int(cycle.emitted[0, 0]),
        seconds=float(cycle.seconds[0]),
        catching_up=float(cycle.catching_up[0]),
        oracle=pool.candidates[best.candidates[0]],
        lost=program.after(flat, mine, k) - best.seconds,
    )
