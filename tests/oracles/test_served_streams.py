"""Streams of texts under one router's memory, against single routed texts; pools, against smaller tables."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simspec.compare.specrouter.serving_streams import Held, Watched, serve
from simspec.replay.candidates import tabulate
from simspec.replay.evidence import Similarity
from simspec.replay.routed import route
from simspec.speculation.chains import all_chains
from simspec.speculation.routing import Always, Candidate, Pool, Router, State, View
from simspec.speculation.schedulers_bandit import Bandit
from simspec.speculation.schedulers_eq7 import DyTC, PolybasicInsertion, SpecRouter
from tests.oracles.test_lockstep import AFFINE
from tests.profiles import examples
from tests.toy import LOOKUP, MIDDLE, MODELS, TARGET, Setting, Toy, settings_of

CANDIDATES: list[Candidate] = [
    (c, n) for c in all_chains(list(MODELS), TARGET, {LOOKUP}) for n in ((1, 2, 3) if c.drafter else (0,))
]
ROUTERS: dict[str, Router] = {
    "reach": SpecRouter(variant="reach", evidence="simscore", weight=0.2),
    "funnel-switch": SpecRouter(variant="funnel", horizon=4, margin=0.05, weight=0.2),
    "exact-every-3": SpecRouter(variant="exact", every=3, weight=0.2),
    "polybasic": PolybasicInsertion(prior=(0.95,), weight=0.2),
    "dytc": DyTC(),
}
MADE = settings_of(prompts=3, output_tokens=(2, 16), block_length=(3, 6))


def watched(router: Router, table, deciders: int) -> Watched:
    uses = np.array([[MIDDLE in c.levels for c, _ in table.pool.candidates]])
    return Watched(router, uses, np.zeros(deciders, dtype=np.int64))


@given(MADE, st.sampled_from(sorted(ROUTERS)))
@examples(0.3)
def test_a_queue_of_one_text_is_a_routed_text(setting: Setting, name: str) -> None:
    trace = Toy(setting).trace()
    table, similarity = tabulate(trace, CANDIDATES), Similarity.of(trace)
    starts = trace.offsets[:-1][:, None]
    plain = route(table, AFFINE, ROUTERS[name], starts, similarity=similarity, keep=True)
    one = serve(table, AFFINE, watched(ROUTERS[name], table, len(starts)), starts[None], similarity)
    assert (one.seconds[0] == plain.seconds).all()
    assert (one.tokens[0] == plain.tokens).all()
    assert (one.cycles[0] == plain.cycles).all()
    using = np.zeros(len(starts), dtype=np.int64)
    longest, run = np.zeros_like(using), np.zeros_like(using)
    for cycle in plain.log:
        took = np.array([MIDDLE in table.pool.candidates[k][0].levels for k in cycle.candidate[:, 0]])
        using[cycle.batch] += took
        run[cycle.batch] = np.where(took, run[cycle.batch] + 1, 0)
        longest = np.maximum(longest, run)
    assert (one.used[0] == using).all()
    assert (one.longest == longest).all()


@given(MADE, st.sampled_from(["reach", "funnel-switch", "exact-every-3", "polybasic"]))
@examples(0.3)
def test_memory_lasts_from_text_to_text(setting: Setting, name: str) -> None:
    """The second text is served as by a fresh router whose prior is what the first text taught."""
    trace = Toy(setting).trace()
    table, similarity = tabulate(trace, CANDIDATES), Similarity.of(trace)
    begins = trace.offsets[:-1]
    # Every decider's first text is its own, so that they end at different times and must be told apart.
    starts = np.stack([begins, np.roll(begins, 1)])[..., None]
    both = serve(table, AFFINE, watched(ROUTERS[name], table, len(begins)), starts, similarity)
    for d, (first, second) in enumerate(zip(starts[0], starts[1], strict=True)):
        taught = route(table, AFFINE, ROUTERS[name], first[None], similarity=similarity).memory["alpha"][0]
        fresh = replace(ROUTERS[name], prior=tuple(taught.tolist()))
        alone = route(table, AFFINE, fresh, second[None], similarity=similarity)
        assert both.seconds[1, d] == pytest.approx(alone.seconds[0], rel=1e-12)


@given(MADE, st.sampled_from([*sorted(ROUTERS), "bandit"]), st.data())
@examples(0.4)
def test_what_is_not_offered_might_as_well_not_exist(
    setting: Setting, name: str, data: st.DataObject
) -> None:
    trace = Toy(setting).trace()
    pairs = [k for k, (c, _) in enumerate(CANDIDATES) if len(c.levels) < 3]
    some = sorted(data.draw(st.sets(st.integers(0, len(CANDIDATES) - 1), min_size=2, max_size=6)) | {0})
    if data.draw(st.booleans()):  # nothing in the middle, where an inserting router would put something
        some = pairs
    whole, part = tabulate(trace, CANDIDATES), tabulate(trace, [CANDIDATES[k] for k in some])
    router, small = ROUTERS.get(name), ROUTERS.get(name)
    if name == "bandit":
        rates = np.linspace(1.0, 2.0, len(CANDIDATES))
        router = Bandit(tuple(range(len(CANDIDATES))), 3.0, tuple(rates), 2.0)
        small = Bandit(tuple(range(len(some))), 3.0, tuple(rates[some]), 2.0)
    assert router is not None
    assert small is not None
    starts = trace.offsets[:-1][:, None]
    offered = np.zeros((len(starts), len(CANDIDATES)), dtype=bool)
    offered[:, some] = True
    similarity = Similarity.of(trace)
    masked = route(whole, AFFINE, router, starts, similarity=similarity, offered=offered)
    alone = route(part, AFFINE, small, starts, similarity=similarity)
    assert (masked.seconds == alone.seconds).all()
    assert (masked.chosen[some] == alone.chosen).all()


def test_polybasic_inserts_only_what_it_is_offered() -> None:
    trace = Toy(Setting(seed=0, prompts=3, output_tokens=16, block_length=5, middle_rate=0.95)).trace()
    table, starts = tabulate(trace, CANDIDATES), trace.offsets[:-1][:, None]
    three = np.array([len(c.levels) == 3 for c, _ in CANDIDATES])
    router = PolybasicInsertion(prior=(0.95,))
    assert route(table, AFFINE, router, starts).chosen[three].sum() > 0
    pairs = tabulate(trace, [c for c, t in zip(CANDIDATES, three, strict=True) if not t])
    offered = np.broadcast_to(~three, (len(starts), len(three)))
    masked = route(table, AFFINE, router, starts, offered=offered)
    assert (masked.seconds == route(pairs, AFFINE, router, starts).seconds).all()


def test_a_bandit_is_as_sure_as_the_cycles_of_what_it_is_offered_make_it() -> None:
    """Arms of 7 cycles at 2.5 a second and 1 at 1: the first after 8 cycles, the second after 108."""
    pool = Pool(tuple(CANDIDATES[:3]), MODELS, TARGET, frozenset({LOOKUP}))
    state = {
        "pulls": np.array([[7.0, 1.0, 100.0]]),
        "tokens": np.array([[17.5, 1.0, 0.0]]),
        "seconds": np.array([[7.0, 1.0, 100.0]]),
        "prior": np.zeros((1, 3)),
    }
    none = np.zeros(1, dtype=np.int64)
    view = View(9, none, none + 1, none * 1.0, none[:, None], none, lambda m, w: w * 1.0, 0.0)
    bandit = Bandit((0, 1, 2), 1.0)
    two = replace(view, offered=np.array([[True, True, False]]))
    assert bandit.choose(pool, state, two) == 0
    assert bandit.choose(pool, state, view) == 1


def test_deciders_are_offered_their_own_and_a_router_that_takes_another_is_refused() -> None:
    trace = Toy(Setting(seed=3, prompts=3, output_tokens=12, block_length=4)).trace()
    table = tabulate(trace, CANDIDATES)
    starts = trace.offsets[:-1][:, None]
    only = np.array([1, 4, 0])
    offered = np.arange(len(CANDIDATES)) == only[:, None]
    found = route(table, AFFINE, ROUTERS["funnel-switch"], starts, offered=offered)
    held = route(table, AFFINE, Held(only), starts)
    assert (found.seconds == held.seconds).all()
    with pytest.raises(ValueError, match="not offered"):
        route(table, AFFINE, Always(2), starts, offered=offered)


def test_a_stream_of_a_static_candidate_is_its_texts_one_by_one_and_the_hook_sees_each() -> None:
    trace = Toy(Setting(seed=5, prompts=3, output_tokens=12, block_length=4)).trace()
    table, similarity = tabulate(trace, CANDIDATES), Similarity.of(trace)
    starts = trace.offsets[:-1][:, None, None]
    seen: list[int] = []

    def before(text: int, state: State) -> None:
        seen.append(text)
        if text == 1:
            state["candidate"][:] = 4

    found = serve(table, AFFINE, Held(np.array([2])), starts, similarity, before=before)
    for t, k in enumerate((2, 4, 4)):
        assert found.seconds[t] == route(table, AFFINE, Always(k), starts[t]).seconds
    assert seen == [0, 1, 2]
    assert isinstance(table.pool, Pool)
