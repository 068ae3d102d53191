"""Growing the pool: is a model of no use soon left alone, and a good one taken up without retuning?

A stream is texts in a random order, served one after another (or batch after batch) by one router whose
memory lasts. After some texts a model joins: one of the trace's, left out till then, or a made-up one
(:mod:`simspec.compare.specrouter.newcomers`). The router is told nothing of it but a prior acceptance. Beside
each stream runs the same one that the model never joins. All that is tuned comes from the prompts of the
other half.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import joblib
import numpy as np

from simspec.compare.asked import Asked, Progress
from simspec.compare.batches import draw_prompts
from simspec.compare.route_batches import halves, static_seconds
from simspec.compare.route_schedulers import SCHEDULERS, Tuned, priors
from simspec.compare.routing import RouteSettings, candidates_of
from simspec.compare.specrouter.newcomers import Extended, made_up, with_models
from simspec.compare.specrouter.pool_arms import UCB, Arm, arms_of, bandit, bandit_arms
from simspec.compare.specrouter.pool_figures import CRITERION, PRIORS, figures, verdicts
from simspec.compare.specrouter.serving_streams import Bools, Floats, Held, Served, Watched, orders, serve
from simspec.cost.models import CostModel
from simspec.cost.shape import uniform
from simspec.replay.candidates import tabulate
from simspec.replay.evidence import Similarity
from simspec.speculation.predicting import predict
from simspec.speculation.routing import Pool, Router, State, View
from simspec.traces.index import Ints, Trace

# Routers that learn of acceptance, and so begin with a prior of the newcomer's.
TOLD = (
    "reach",
    "reach-all-pairs",
    "funnel",
    "funnel-switch",
    "exact-switch",
    "polybasic",
    "dytc",
    "ucb-prior",
)
# A bandit without priors tries every arm once.
UNTOLD = ("ucb",)
# Each other prior is tried where it tells most: at batch 1 an optimistic one by all.
SOME = {"optimistic": ("reach", "exact-switch", "ucb-prior"), "pessimistic": ()}
SOME_ALONE = {"pessimistic": ("reach", "reach-all-pairs", "exact-switch", "ucb-prior")}
# Streams are shared by the halves.
STREAMS, BEFORE, AFTER = 12, 2, 10
LENGTHS = (1, 2, 4, 8)


@dataclass(frozen=True)
class _Half:
    """What is served and what was tuned on the other half of the prompts.

    Attributes:
        tuned: static times and acceptance there.
        starts: of the streams, (T, S, B).
    """

    tuned: Tuned
    batch: int
    starts: Ints


def study(
    trace: Trace,
    costs: list[CostModel],
    asked: Asked,
    say: Progress,
    streams: int = STREAMS,
    routers: tuple[str, ...] = (*TOLD, *UNTOLD),
) -> dict[str, Any]:
    """Serve growing pools.

    Args:
        streams: of both halves together.
        routers: of those above.

    Returns:
        ``criterion``, ``streams``, ``before`` and ``after`` (texts, at batch B batches of B texts),
        ``newcomers.<name>`` = {``synthetic``, ``about``}, ``costs.<name>`` = {``label``, ``batches.<B>`` =
        {``gain.<newcomer>`` (% less time of the best static candidate of the other half, with it against
        without), ``routers.<router>.<newcomer>`` as :func:`figures` says}}, ``verdicts.<router>`` as
        :func:`verdicts` says. A router is named with its prior: "funnel, prior 0.5".
    """
    batches = tuple(sorted({1, 16 if 16 in asked.batches else max(asked.batches)}))
    lengths = tuple(n for n in asked.lengths if n in LENGTHS) or asked.lengths
    found: dict[str, Any] = {}
    about: dict[str, Any] = {}
    for cost in costs:
        more = made_up(trace, cost)
        grown = with_models(trace, more, asked.seed)
        priced = Extended(cost, more)
        known = [m for m in trace.drafters if m in cost.models]
        about |= {m: {"synthetic": False, "about": "of the trace, left out until then"} for m in known}
        about |= {m.name: {"synthetic": True, "about": m.about} for m in more}
        settings = RouteSettings(batches=batches, lengths=lengths, seed=asked.seed)
        names = {m.name for m in more}
        table = tabulate(
            grown,
            [
                (c, n)
                for c, n in candidates_of(grown, priced, settings)
                # Triples at every second length: a third of the work.
                if len(names & set(c.levels)) <= 1 and (not c.intermediates or n in lengths[1::2])
            ],
        )
        arms = arms_of(table, known, sorted(names))
        parts = halves(trace)
        static = static_seconds(table, priced, batches, asked.seed, parts, asked.jobs)
        say(f"{cost.name}: tuned {len(table.pool.candidates)} static candidates")
        similarity = Similarity.of(grown)
        given = {
            b: [
                _Half(
                    Tuned(
                        table,
                        priced,
                        static[b][-1 - h],
                        static[b][h],
                        priors(table, draw_prompts(grown, 0, asked.seed, among=part[1]), max(lengths)),
                    ),
                    b,
                    orders(grown, part[0], asked.seed, max(streams // len(parts), 1), BEFORE + AFTER, b),
                )
                for h, part in enumerate(parts)
            ]
            for b in batches
        }
        jobs = [
            (b, n, p)
            for b in batches
            for n, p in [
                ("", ""),
                *((n, p) for p in PRIORS for n in TOLD if n in routers and _asked(b, n, p)),
                *((n, "") for n in UNTOLD if n in routers),
            ]
        ]
        done = joblib.Parallel(n_jobs=asked.jobs, return_as="generator")(
            joblib.delayed(serve_halves)(given[b], arms, n, PRIORS.get(p), similarity) for b, n, p in jobs
        )
        served: dict[tuple[int, str], list[Served]] = {}
        for i, ((b, n, p), one) in enumerate(zip(jobs, done, strict=True)):
            served[b, f"{n}, prior {p}" if p else n] = one
            if (i + 1) % max(len(jobs) // 4, 1) == 0:
                say(f"{cost.name}: served {i + 1} of {len(jobs)} sets of streams")
        found[cost.name] = {
            "label": priced.label,
            "batches": {
                str(b): figures(
                    {name: one for (at, name), one in served.items() if at == b},
                    len(parts),
                    [(a.newcomer, bool((a.after != a.before).any())) for a in arms],
                    {m.name: m.useful for m in more},
                    BEFORE,
                    asked,
                )
                for b in batches
            },
        }
    return {
        "criterion": CRITERION,
        "streams": streams,
        "before": BEFORE,
        "after": AFTER,
        "lengths": list(lengths),
        "newcomers": about,
        "costs": found,
        "verdicts": verdicts(found),
    }


def _asked(batch: int, router: str, prior: str) -> bool:
    """Whether a router is tried with a prior at a batch size."""
    return router in (SOME_ALONE if batch == 1 else SOME).get(prior, TOLD)


def serve_halves(
    halves_of: list[_Half], arms: list[Arm], name: str, prior: float | None, similarity: Similarity
) -> list[Served]:
    """One router on every arm's streams of both halves, deciders by half, arm and stream.

    Without a name: the best static candidates of the small and of the grown pools.
    """
    table, cost = halves_of[0].tuned.table, halves_of[0].tuned.cost
    streams = halves_of[0].starts.shape[1]
    starts = np.concatenate([np.tile(h.starts, (1, len(arms), 1)) for h in halves_of], axis=1)
    arm = np.tile(np.repeat(np.arange(len(arms)), streams), len(halves_of))
    half = np.repeat(np.arange(len(halves_of)), len(arms) * streams)
    pools = [np.stack([getattr(a, when) for a in arms]) for when in ("before", "after")]
    if not name:
        best = [
            np.stack([np.where(pool, h.tuned.seconds, np.inf).argmin(axis=1) for h in halves_of])
            for pool in pools
        ]
        return [serve(table, cost, Held(b[half, arm]), starts, similarity) for b in best]
    offered = [np.stack([pool] * len(halves_of)) for pool in pools]
    if name in UCB:
        own = [np.stack(both) for both in zip(*(bandit_arms(h.tuned, arms) for h in halves_of), strict=True)]
        offered = [o & mine for o, mine in zip(offered, own, strict=True)]
        routers: list[Router | None] = [bandit(h.tuned, name, *offered) for h in halves_of]
    else:
        routers = [SCHEDULERS[name](h.tuned) for h in halves_of]
    assert routers[0] is not None
    uses = np.stack([_uses(table.pool, a.newcomer) for a in arms])

    def join(text: int, state: State) -> None:
        if text == 0:
            for i, router in enumerate(routers):
                assert router is not None
                for key, values in router.begin(table.pool, len(half)).items():
                    state[key] = np.where(
                        (half == i).reshape(-1, *(1,) * (values.ndim - 1)), values, state[key]
                    )
        if text == BEFORE and prior is not None:
            for (i, h), (k, a) in product(enumerate(halves_of), enumerate(arms)):
                if a.newcomer:
                    _told(h, state, (arm == k) & (half == i), a.newcomer, prior)

    watched = Watched(routers[0], uses, arm)
    return [
        serve(
            table,
            cost,
            watched,
            starts,
            similarity,
            lambda text: offered[int(text >= BEFORE)][half, arm],
            join,
        )
    ]


def _uses(pool: Pool, model: str) -> Bools:
    return np.array([model in c.levels for c, _ in pool.candidates])


def _told(half: _Half, state: State, rows: Bools, model: str, prior: float) -> None:
    """Put a newcomer's prior where the router keeps acceptance, or the rate that follows from it."""
    table = half.tuned.table
    pool, number = table.pool, table.pool.names.index(model)
    if "alpha" in state:
        models = len(pool.names)
        columns = np.array([number])
        if state["alpha"].shape[1] == models**2:
            each = np.arange(models)
            columns = np.concatenate([number * models + each, each * models + number])
        state["alpha"][np.ix_(rows, columns)] = prior
    else:
        arms: Ints = state["arms"][0]
        own = _uses(pool, model)[arms]
        state["prior"][np.ix_(rows, own)] = _rates(half, prior)[arms][own]


def _rates(half: _Half, prior: float) -> Floats:
    """Tokens a second of each candidate by ``reach``, were all acceptance ``prior``, (K,)."""
    table, cost = half.tuned.table, half.tuned.cost
    names, rows = table.pool.names, np.array([half.batch])
    context = np.array([round(float(table.trace.context.mean()))])

    def seconds(model: int, width: Ints) -> Floats:
        shape = np.broadcast_arrays(rows[:, None], np.atleast_2d(width), context[:, None])
        return np.reshape(cost.forward_seconds(names[model], uniform(*shape)), np.shape(width))

    none = np.zeros(1, dtype=np.int64)
    lag = np.ones((1, len(names)), dtype=np.int64)
    view = View(0, none, rows, context.astype(float), lag, none - 1, seconds, cost.step_overhead_seconds)
    alphas = np.full((1, len(names) ** 2), prior)
    return np.asarray(half.batch / predict(table.pool, "reach", alphas, view)[0])
