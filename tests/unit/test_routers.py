"""Schedulers of chains: what they see, what they expect, and a bandit's regret."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simspec.compare.route_batches import halves
from simspec.errors import BadInput
from simspec.oracle.myopic import MyopicHindsight
from simspec.replay.candidates import CandidateTable, tabulate
from simspec.replay.evidence import Similarity
from simspec.replay.routed import route
from simspec.speculation.chains import Chain, all_chains
from simspec.speculation.predicting import catching_up, predict
from simspec.speculation.routing import Candidate, Evidence, Pool, Seen, View
from simspec.speculation.schedulers_bandit import Bandit
from simspec.speculation.schedulers_eq7 import DyTC, SpecRouter, published
from simspec.streams import stream
from simspec.theory.third_level import Insertion
from simspec.theory.variants import VARIANTS, Given
from tests.laws.test_lagged_program import routers
from tests.oracles.test_lockstep import AFFINE
from tests.profiles import examples
from tests.toy import LOOKUP, MIDDLE, MODELS, SMALL, TARGET, Setting, Toy, settings_of

CANDIDATES: list[Candidate] = [
    (c, n) for c in all_chains(list(MODELS), TARGET, {LOOKUP}) for n in ((1, 3) if c.drafter else (0,))
]


def without_success(table: CandidateTable, since: np.ndarray) -> CandidateTable:
    """The table with nothing accepted from the places of ``since`` on."""
    changed = {}
    for name, value in (("verified", 0), ("kept", 0), ("read", 0), ("accepted", 0), ("emitted", 1)):
        column = getattr(table, name).copy()
        column[:, since] = value
        changed[name] = column
    return replace(table, **changed)


def sees_only_the_past(setting: Setting, cycle: int, alone: bool) -> dict[str, bool]:
    """By scheduler: whether its choices up to a cycle stay as they are when all that follows changes.

    Every text is one request, in a batch of its own or all in one.
    """
    trace = Toy(setting).trace()
    table = tabulate(trace, CANDIDATES)
    similarity = Similarity.of(trace)
    starts = trace.offsets[:-1].reshape((-1, 1) if alone else (1, -1))
    found = {}
    for name, router in routers(table, AFFINE, 3).items():
        log = route(table, AFFINE, router, starts, similarity=similarity, keep=True).log[: cycle + 1]
        # What lies at or after the place that a text has come to.
        later = np.zeros(len(trace.tokens), dtype=bool)
        for place in log[-1].flat[log[-1].active]:
            later[place : trace.offsets[trace.prompt[place] + 1]] = True
        # Sums up to a later place, but not up to a text's end, where the next one begins.
        upto = similarity.upto.copy()
        upto[:, 1:-1][:, later[:-1] & later[1:]] = 0.0
        other = Similarity(upto)
        changed = without_success(table, later)
        if isinstance(router, MyopicHindsight):
            router = replace(router, table=changed)
        again = route(changed, AFFINE, router, starts, similarity=other, keep=True).log[: len(log)]
        found[name] = all(
            (a.flat[a.active] == b.flat[b.active]).all() and (a.candidate == b.candidate)[a.active].all()
            for a, b in zip(log, again, strict=True)
        )
    return found


@given(settings_of(output_tokens=(6, 16), block_length=(3, 6)), st.integers(0, 5), st.booleans())
@examples(0.4)
def test_what_is_still_to_come_changes_no_choice(setting: Setting, cycle: int, alone: bool) -> None:
    found = sees_only_the_past(setting, cycle, alone)
    assert [name for name, same in found.items() if not same and name != "myopic-hindsight"] == []


@dataclass(frozen=True)
class Listening:
    """All candidates in turn; keeps what it is told."""

    evidence: Evidence
    told: list[Seen] = field(default_factory=list)

    def begin(self, pool, deciders):
        return {}

    def choose(self, pool, state, view):
        return (view.request + view.cycle) % len(pool.candidates)

    def observe(self, pool, state, seen):
        self.told.append(seen)
        return state


@given(settings_of(prompts=1, output_tokens=(6, 16), block_length=(3, 6)), st.integers(0, 40))
@examples(2.0)
def test_what_a_router_is_told_is_of_the_emitted_text(setting: Setting, first: int) -> None:
    """Similarity past what was emitted is changed, and nothing that was told changes with it."""
    trace = Toy(setting).trace()
    turned = [*CANDIDATES[first % len(CANDIDATES) :], *CANDIDATES[: first % len(CANDIDATES)]]
    table = tabulate(trace, turned)
    for evidence in ("simscore", "simscore-all"):
        before, after = Listening(evidence), Listening(evidence)
        similarity = Similarity.of(trace)
        log = route(table, AFFINE, before, trace.offsets[:1][None], similarity=similarity, keep=True).log
        emitted = int(log[0].emitted[0, 0])
        upto = similarity.upto.copy()
        upto[:, emitted + 1 :] = 0.0
        route(table, AFFINE, after, trace.offsets[:1][None], similarity=Similarity(upto))
        assert (before.told[0].good == after.told[0].good).all()
        assert (before.told[0].tried == after.told[0].tried).all()
        assert (before.told[0].good <= before.told[0].tried + 1e-12).all()


def test_an_oracle_would_be_caught() -> None:
    setting = Setting(seed=2, prompts=1, output_tokens=12, block_length=4, middle_rate=1.0, small_rate=1.0)
    found = sees_only_the_past(setting, 1, True)
    assert not found["myopic-hindsight"]
    assert found["funnel"]


def view_of(pool: Pool, deciders: int, lag: int = 1) -> View:
    """Made-up forwards: 0.1, 0.2, .. seconds a model, and a hundredth more for each token and decider."""

    def seconds(model: int, width: np.ndarray) -> np.ndarray:
        width = np.asarray(width)
        rows = np.arange(deciders) if width.ndim < 2 else np.arange(deciders)[:, None]
        return 0.1 * (model + 1) + 0.01 * width * (1 + rows)

    every = np.ones(deciders, dtype=np.int64)
    lags = np.full((deciders, len(pool.names)), lag)
    return View(0, np.arange(deciders), every, 9.0 * every, lags, -every, seconds, 0.05)


@pytest.fixture(scope="module")
def pool() -> Pool:
    return tabulate(Toy(Setting()).trace(), CANDIDATES).pool


@pytest.mark.parametrize("variant", VARIANTS)
def test_predictions_are_the_formulas_one_by_one(pool: Pool, variant: str) -> None:
    deciders = 3
    alphas = stream(1, "alphas").uniform(0.1, 0.9, (deciders, len(pool.names) ** 2))
    view = view_of(pool, deciders)
    found = predict(pool, variant, alphas, view)
    for d in range(deciders):
        for k, (chain, length) in enumerate(pool.candidates):

            def verify(level: int, width: np.ndarray, chain: Chain = chain, d: int = d) -> np.ndarray:
                model = pool.names.index(chain.levels[level - 1])
                overhead = 0.05 if chain.levels[level - 1] == TARGET else 0.0
                return 0.1 * (model + 1) + 0.01 * np.clip(width, 1, 4) * (1 + d) + overhead

            if chain.drafter is None:
                assert found[d, k] == pytest.approx(float(verify(1, np.ones(1))[0]))
                continue
            model = pool.names.index(chain.levels[0])
            wide = length if chain.drafter == LOOKUP else 1
            draft = 0.1 * (model + 1) + 0.01 * wide * (1 + d)
            draft = draft / length if chain.drafter == LOOKUP else draft
            rates = [
                alphas[d, pool.pair(a, b)] for a, b in zip(chain.levels[:-1], chain.levels[1:], strict=True)
            ]
            through = alphas[d, pool.pair(chain.levels[0], TARGET)]
            replaces = bool(chain.intermediates) and chain.semantics == "funnel-replace"
            wanted = VARIANTS[variant](
                Given(
                    [np.array(r) for r in rates], length, np.array(draft), verify, np.array(through), replaces
                )
            )
            assert found[d, k] == pytest.approx(float(np.ravel(wanted)[0]), rel=1e-9), (str(chain), length)


def test_what_catching_up_would_cost(pool: Pool) -> None:
    late = catching_up(pool, view_of(pool, 2, lag=5))
    for k, (chain, _) in enumerate(pool.candidates):
        # Four tokens more in each forward of a model that keeps a cache, but for the target.
        models = [m for m in chain.levels[:-1] if m != LOOKUP]
        assert late[:, k].tolist() == pytest.approx([0.04 * len(models), 0.08 * len(models)])


def test_similarity_moves_towards_what_was_seen(pool: Pool) -> None:
    pair = pool.pair(SMALL, TARGET)
    good, tried = np.zeros((1, 16)), np.zeros((1, 16))
    good[0, pair], tried[0, pair] = 3.0, 4.0
    one = np.ones(1, dtype=np.int64)
    seen = Seen(0 * one, 2 * one, one, np.ones(1), one, one, np.ones((1, 2)), good, tried)
    for weight, wanted in ((0.0, 0.5), (1.0, 0.75), (0.5, 0.75 - 0.25 * 0.25)):
        router = SpecRouter(weight=weight)
        after = router.observe(pool, router.begin(pool, 1), seen)["alpha"][0]
        assert after[pair] == pytest.approx(wanted)
        assert np.delete(after, pair).tolist() == [0.5] * 15


def test_polybasics_condition_is_the_published_one() -> None:
    generator = stream(3, "insertions")
    held = 0
    for _ in range(300):
        above, new, below, beta, before, after, made = generator.uniform(0.1, 6.0, 7)
        case = Insertion(above, new, below, beta, before, after, made)
        assert bool(published(above, new, below, beta, before, after, made)) == case.published
        held += case.published
    assert 0 < held < 300


def test_dytc_forgets_by_its_weights(pool: Pool) -> None:
    """alpha = 0.7 old + 0.3 mean of the window: 0.5, then a success, then a failure."""
    router, one = DyTC(window=20), np.ones(1, dtype=np.int64)
    state = router.begin(pool, 1)
    k = pool.candidates.index((Chain((SMALL, TARGET)), 3))
    nothing = np.zeros((1, 16))
    for right in (1, 0):
        first = np.array([[right, 1]])
        seen = Seen(k * one, one, one, np.ones(1), one, one, first, nothing, nothing)
        state = router.observe(pool, state, seen)
    assert state["alpha"][0, pool.names.index(SMALL)] == pytest.approx(0.7 * (0.7 * 0.5 + 0.3) + 0.3 * 0.5)
    assert state["alpha"][0, pool.names.index(MIDDLE)] == 0.5


def regret(pool: Pool, spread: float, means: np.ndarray, cycles: int, runs: int) -> np.ndarray:
    """Expected regret after each cycle, over runs of arms that yield 0 or 1 token a second."""
    bandit = Bandit(tuple(range(len(means))), spread)
    state, luck = bandit.begin(pool, runs), stream(0, "bandit")
    view, lost = view_of(pool, runs), np.zeros((cycles, runs))
    nothing = np.zeros((runs, 1))
    for t in range(cycles):
        arm = bandit.choose(pool, state, view)
        tokens = (luck.random(runs) < means[arm]).astype(np.int64)
        one = np.ones(runs, dtype=np.int64)
        seen = Seen(arm, one, tokens, np.ones(runs), one, one, nothing, nothing, nothing)
        state = bandit.observe(pool, state, seen)
        lost[t] = means.max() - means[arm]
    return np.asarray(lost.cumsum(axis=0).mean(axis=1))


def test_the_bandits_regret_is_within_its_law(pool: Pool) -> None:
    """Theorem 1 of Auer et al. (2002), and a bandit that never looks round breaks it."""
    means, cycles = np.array([0.9, 0.6, 0.5]), 3000
    gaps = (means.max() - means)[1:]
    t = np.arange(1, cycles + 1)
    bound = 8.0 * np.log(t) * (1 / gaps).sum() + (1 + np.pi**2 / 3) * gaps.sum()
    found = regret(pool, 1.0, means, cycles, 300)
    assert (found <= bound).all()
    # It grows like a logarithm: less in the second half than in the first eighth.
    assert found[-1] - found[cycles // 2] < found[cycles // 8]
    greedy = regret(pool, 0.0, means, cycles, 300)
    assert greedy[-1] - greedy[cycles // 2] > 0.9 * (greedy[cycles // 2] - greedy[0])


def test_parameters_out_of_range_are_refused() -> None:
    for kind, wrong in (
        (SpecRouter, {"every": 0}),
        (SpecRouter, {"horizon": -1}),
        (SpecRouter, {"weight": 2.0}),
        (Bandit, {"arms": (), "spread": 1.0}),
        (Bandit, {"arms": (0, 1), "spread": 1.0, "prior": (0.5,)}),
    ):
        with pytest.raises(BadInput):
            kind(**wrong)


def test_each_prompt_is_scored_once_by_what_the_others_taught() -> None:
    trace = Toy(Setting(prompts=5)).trace()
    parts = halves(trace)
    assert sorted(np.concatenate([score for score, _ in parts]).tolist()) == list(range(5))
    assert all(not set(score.tolist()) & set(teach.tolist()) for score, teach in parts)
