"""Noise, mixtures and shuffles of the sensitivity study, each held against a plainer way to its number."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simspec.compare.batches import draw_prompts, request_starts
from simspec.compare.estimates.sources import alphas
from simspec.compare.joint import visited
from simspec.compare.predicted import BY_RATES, JOINT, Told, predict, prices_for
from simspec.compare.specrouter.correlated import decoupled, in_state, mixed_seconds
from simspec.compare.specrouter.noise import LEVELS, NoisyPrices, columns, drawn, noisy_rates
from simspec.compare.specrouter.regrets import Slope
from simspec.compare.specrouter.sensitivity import _plain
from simspec.cost.models import CostModel
from simspec.cost.shape import StepShape, uniform
from simspec.replay.trajectories import run
from simspec.speculation.chains import Chain, all_chains
from simspec.speculation.lengths import Static
from tests.oracles.test_lockstep import AFFINE, measured
from tests.profiles import examples
from tests.toy import LOOKUP, MIDDLE, MODELS, SMALL, TARGET, Setting, Toy, settings_of

CANDIDATES = [
    (c, n) for c in all_chains(list(MODELS), TARGET, {LOOKUP}) for n in ((1, 3) if c.drafter else (0,))
]
# Enough for what is slow: plain, pairs, and a middle level of both kinds.
FEW = [(c, n) for c, n in CANDIDATES if n != 1 and c.drafter != MIDDLE and c.intermediates != (SMALL,)]
TRACE = Toy(Setting(seed=2, prompts=4, output_tokens=20, block_length=6)).trace()
BATCHES, SEED, DRAWS = (1, 4), 7, 2


@dataclass(frozen=True)
class Scaled:
    """A cost whose forwards take a factor by model and width."""

    inner: CostModel
    column: int
    by_width: bool
    name = label = "scaled"

    @property
    def models(self) -> frozenset[str]:
        return self.inner.models

    @property
    def step_overhead_seconds(self) -> float:
        return self.inner.step_overhead_seconds

    def forward_seconds(self, model: str, shape: StepShape) -> np.ndarray:
        level = columns(DRAWS)[self.column]
        widths = np.arange(200)
        z = [drawn(SEED, DRAWS, model, int(w) if self.by_width else 0)[self.column] for w in widths]
        return self.inner.forward_seconds(model, shape) * np.exp(level * np.array(z))[shape.width]


@pytest.mark.parametrize("by_width", [False, True])
@pytest.mark.parametrize("variant", [*BY_RATES, *JOINT])
def test_noisy_prices_predict_as_a_cost_with_that_noise_does(variant: str, by_width: bool) -> None:
    size = len(columns(DRAWS))
    once = alphas(TRACE, draw_prompts(TRACE, 0, 0), 3, ("realised",), 0.5)["realised"]
    counts = np.ones((size, len(TRACE.prompts)))
    starts = request_starts(TRACE)
    counted = {"visited": [visited(TRACE, run(TRACE, c, Static(n) if n else None, starts)) for c, n in FEW]}
    rates = {"realised": {p: np.full(size, v[0]) for p, v in once.items()}}
    models = set(MODELS)
    for cost in (AFFINE, measured(TRACE)[0]):
        plain = prices_for(TRACE, cost, FEW, BATCHES)
        noisy = NoisyPrices(TRACE, cost, models, BATCHES, plain.widest, SEED, DRAWS, by_width=by_width)
        told = Told({}, counts, counted) if variant in JOINT else Told(rates, counts, {})
        for name, found in predict(TRACE, cost, noisy, FEW, variant, told).items():
            if variant not in JOINT:
                _plain(found, cost, noisy, FEW)
            for c in (0, size - 1):
                one = Scaled(cost, c, by_width)
                again = predict(TRACE, one, prices_for(TRACE, one, FEW, BATCHES), FEW, variant, told)
                assert found[:, c] == pytest.approx(again[name][:, c], rel=1e-9)


def test_the_first_column_has_no_noise_and_the_others_the_same_luck_at_every_level() -> None:
    rates = {("a", "b"): 0.75, ("b", "c"): 0.999}
    for refused in (False, True):
        found = noisy_rates(rates, 1, 50, refused=refused)
        assert found["a", "b"][0] == 0.75
        moved = 1.0 - found["a", "b"] if refused else found["a", "b"]
        start = 0.25 if refused else 0.75
        small, large = (moved[1 + i * 50 : 1 + (i + 1) * 50] - start for i in (0, 1))
        inside = large + start < 1.0
        assert large[inside] == pytest.approx(small[inside] * LEVELS[2] / LEVELS[1])
        assert all(((v >= 0) & (v <= 1)).all() for v in found.values())
        assert (found["a", "b"][1:] != 0.75).all()


@given(settings_of(prompts=2, output_tokens=(6, 16), block_length=(3, 6)), st.floats(0, 1))
@examples(0.3)
def test_without_correlation_the_mixture_is_the_exact_reading(setting: Setting, spread: float) -> None:
    trace = Toy(setting).trace()
    draws = 3
    rates = {
        (d, v): np.linspace(0.1, 0.9, draws) * (0.5 + spread / 2)
        for d in trace.drafters
        for v in trace.manifest.models
        if d != v
    }
    prices = prices_for(trace, AFFINE, CANDIDATES, BATCHES)
    told = Told({"mean": rates}, np.zeros((draws, 1)), {})
    exact = predict(trace, AFFINE, prices, CANDIDATES, "exact", told)["exact/mean"]
    for k, (chain, n) in enumerate(CANDIDATES):
        mixed = mixed_seconds(trace, AFFINE, prices, chain, n, rates, 0.0)
        assert np.broadcast_to(mixed, (len(BATCHES), draws)) == pytest.approx(exact[..., k], rel=1e-12)


def test_all_or_nothing_by_hand() -> None:
    """Rates of one half at rho 1: everything is accepted in one cycle and nothing in the next."""
    rates = {
        (SMALL, MIDDLE): np.array([0.5]),
        (MIDDLE, TARGET): np.array([0.5]),
        (SMALL, TARGET): np.array([0.5]),
    }
    prices = prices_for(TRACE, AFFINE, CANDIDATES, (1,))
    forward = {
        (m, n): float(prices.alike(m, np.array([float(n)]))[0, 0, 0])
        for m in (SMALL, MIDDLE, TARGET)
        for n in (1, 4)
    }
    over = AFFINE.step_overhead_seconds
    pair = mixed_seconds(TRACE, AFFINE, prices, Chain((SMALL, TARGET)), 3, rates, 1.0)
    assert pair[0, 0] == pytest.approx((3 * forward[SMALL, 1] + forward[TARGET, 4] + over) / ((4 + 1) / 2))
    three = mixed_seconds(TRACE, AFFINE, prices, Chain((SMALL, MIDDLE, TARGET)), 3, rates, 1.0)
    cycle = 3 * forward[SMALL, 1] + forward[MIDDLE, 4] + (forward[TARGET, 4] + forward[TARGET, 1]) / 2 + over
    assert three[0, 0] == pytest.approx(cycle / ((4 + 1) / 2))


@given(st.floats(0, 1), st.floats(0, 1))
def test_states_have_the_mean_rate_and_stay_rates(rate: float, rho: float) -> None:
    easy, hard = (in_state(np.array([rate]), rho, easy=e)[0] for e in (True, False))
    assert 0 <= hard <= easy <= 1 + 1e-12
    assert (easy + hard) / 2 == pytest.approx(rate)


def test_shuffled_levels_keep_every_pair_and_lose_each_other() -> None:
    trace = Toy(
        Setting(seed=4, prompts=6, output_tokens=120, block_length=4, middle_rate=0.8, small_rate=0.8)
    ).trace()
    apart = decoupled(trace, 0)
    whole = trace.drafters[SMALL].length == 4
    for name, index in trace.drafters.items():
        shuffled = apart.drafters[name]
        assert (shuffled.matched == index.matched).all()
        for middle, agreed in shuffled.agreed.items():
            assert (agreed <= index.length).all()
            assert (agreed != index.agreed[middle]).any()
    assert (apart.owns[TARGET] == trace.owns[TARGET]).all()
    assert [o.sum() for o in apart.owns.values()] == [o.sum() for o in trace.owns.values()]
    # Correlation of the two verdicts on one block, as recorded and shuffled.
    seen = [
        np.corrcoef(t.drafters[SMALL].agreed[MIDDLE][whole], t.drafters[SMALL].matched[whole])[0, 1]
        for t in (trace, apart)
    ]
    assert seen[0] > 0.4
    assert abs(seen[1]) < 0.15


def test_slopes_go_from_flat_to_linear_and_leave_lookups() -> None:
    one, wide = np.array([1]), np.array([5])
    for s, factor in ((0.0, 1.0), (0.25, 2.0), (1.0, 5.0)):
        cost = Slope("s", "SYNTHETIC", {TARGET: 2.0, LOOKUP: 0.5}, frozenset({LOOKUP}), s)
        assert cost.forward_seconds(TARGET, uniform(one * 3, wide, one)) == 2.0 * factor
        assert cost.forward_seconds(TARGET, uniform(one, one, one)) == 2.0
        assert cost.forward_seconds(LOOKUP, uniform(one, wide, one)) == 0.5
