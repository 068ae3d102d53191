"""Fits: exact on made-up tables of their own form, and honest about tables of another."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.optimize

from simspec.cost import presets
from simspec.cost.affine_fit import fit_affine, fit_affines
from simspec.cost.architecture import FORMATS
from simspec.cost.fit import fit_all
from simspec.cost.fit_errors import Errors, errors_of, medians
from simspec.cost.roofline import Rates, roofline_seconds
from simspec.cost.roofline_fit import fit_roofline, roofline_errors
from simspec.cost.shape import uniform
from simspec.errors import BadInput


def table(
    seconds, model="m", batches=(1, 2, 4), widths=(1, 2, 5), contexts=(10, 100), repetitions=3
) -> pd.DataFrame:
    """A made-up latency table: ``seconds(batch, width, context)``, one slow repetition."""
    rows = [
        (model, "cpu", "float32", b, w, c, r, seconds(b, w, c) * (9 if r == 1 else 1))
        for b in batches
        for w in widths
        for c in contexts
        for r in range(repetitions)
    ]
    return pd.DataFrame(
        rows, columns=["model", "device", "dtype", "batch", "new_tokens", "context", "repetition", "seconds"]
    )


def plane(b, w, c):
    return 0.02 + 3e-3 * b * w + 5e-6 * b * c


def test_an_affine_table_is_recovered():
    fit = fit_affine(medians(table(plane)))
    assert (fit.base_seconds, fit.token_seconds, fit.context_token_seconds) == pytest.approx(
        (0.02, 3e-3, 5e-6)
    )
    assert fit.in_sample.p90 < 1e-9
    assert fit.left_out is not None
    assert fit.left_out.p90 < 1e-9
    assert fit.left_out.points == 18
    assert (fit.steps, fit.worst_step, fit.remark) == (0, None, "good")


def test_no_part_of_a_cost_is_negative():
    # Cheaper the longer the context: the nearest cost without a negative part has none for the cache.
    fit = fit_affine(medians(table(lambda b, w, c: 1.0 + w - c / 1000)))
    assert fit.context_token_seconds == 0
    assert min(fit.base_seconds, fit.token_seconds) > 0


def test_a_staircase_is_called_one():
    fit = fit_affine(medians(table(lambda b, w, c: 1.0 if w < 5 else 4.0)))
    assert fit.remark.startswith("poor: a staircase of 6 steps")
    assert fit.worst_step is not None
    assert (fit.worst_step.below, fit.worst_step.above) == (2, 5)
    assert fit.worst_step.measured_rise == pytest.approx(3.0)


def test_a_point_left_out_has_no_say_in_its_own_prediction():
    # On a plane but for one point, ten times too slow: from the others the plane says a tenth of it.
    def seconds(b, w, c):
        return plane(b, w, c) * (10 if (b, w, c) == (2, 2, 10) else 1)

    alone = medians(table(seconds, batches=(2,), contexts=(10,), widths=(1, 2, 4, 5)))
    fit = fit_affine(alone)
    assert fit.left_out is not None
    # Four points: the odd one is .9 off, and the 90th percentile lies between it and the next.
    others = []
    for i in range(4):
        tokens, measured = 2.0 * alone["new_tokens"].to_numpy(), alone["seconds"].to_numpy()
        kept = np.arange(4) != i
        columns = np.stack([np.ones(4), tokens], axis=1) / measured[:, None]
        found, _ = scipy.optimize.nnls(columns[kept], np.ones(3))
        others.append(abs(columns[i] @ found - 1))
    assert others[1] == pytest.approx(0.9)
    assert fit.left_out.median == pytest.approx(np.median(others))
    assert fit.left_out.p90 == pytest.approx(np.quantile(others, 0.9))


def test_one_context_and_one_batch_do_not_tell_the_cache_apart():
    fit = fit_affine(medians(table(plane, batches=(2,), contexts=(100,))))
    assert fit.context_token_seconds == 0
    assert (fit.base_seconds, fit.token_seconds) == pytest.approx((0.021, 3e-3))


def test_few_points_say_little():
    fit = fit_affine(medians(table(plane, batches=(1, 2), widths=(1,), contexts=(10,))))
    assert fit.left_out is None
    assert "says little" in fit.remark


def test_errors_are_relative():
    found = errors_of(np.array([1.1, 2.0, 5.0]), np.array([1.0, 4.0, 5.0]))
    assert found == Errors(pytest.approx(0.1), pytest.approx(np.quantile([0, 0.1, 0.5], 0.9)), 3)
    with pytest.raises(ValueError, match="no points"):
        errors_of(np.array([]), np.array([]))


def test_a_forward_of_no_time_is_refused():
    with pytest.raises(BadInput, match=r"median seconds 0\.0 of 'm' at batch 1, 1 new tokens, context 10"):
        fit_affines(table(lambda b, w, c: 0.0 if (b, w, c) == (1, 1, 10) else 1.0))


MADE = {"big": presets.architecture("TinyLlama-1.1B"), "small": presets.architecture("llama-160m")}
RATES = Rates(2e11, 1e10, layer_overhead_seconds=2e-4, forward_overhead_seconds=3e-3, cache_passes=3.0)


def rooflined(model: str) -> pd.DataFrame:
    def seconds(b, w, c):
        shape = uniform(*(np.array([n]) for n in (b, w, c)))
        return float(roofline_seconds(RATES, MADE[model], FORMATS["float32"], shape, packed=False)[0])

    return table(seconds, model, batches=(1, 8, 64), widths=(1, 4, 16), contexts=(128, 2048))


def test_a_roofline_is_recovered_from_two_models():
    points = medians(pd.concat([rooflined("big"), rooflined("small")]))
    fit = fit_roofline(points, MADE, FORMATS["float32"])
    assert fit.in_sample.p90 < 0.01
    assert fit.left_out is not None
    assert fit.left_out.p90 < 0.02
    assert fit.rates.flops_per_second == pytest.approx(2e11, rel=0.02)
    assert fit.rates.bytes_per_second == pytest.approx(1e10, rel=0.02)
    assert fit.rates.cache_passes == pytest.approx(3.0, rel=0.05)
    assert set(fit.by_model) == set(MADE)


def test_errors_of_given_rates():
    points = medians(rooflined("small"))
    assert roofline_errors(points, MADE, FORMATS["float32"], RATES)["small"].p90 < 1e-9
    # Half of everything that could be attained, without overheads twice as large: off by some.
    half = Rates(1e11, 5e9, 2e-4, 3e-3, 3.0)
    assert roofline_errors(points, MADE, FORMATS["float32"], half)["small"].median > 0.1


def test_models_without_sizes_are_fitted_affinely_only():
    every = pd.concat([rooflined("small"), table(plane, "unknown")])
    fits = fit_all(every, MADE)
    assert [f.model for f in fits.affine] == ["small", "unknown"]
    assert [set(f.by_model) for f in fits.roofline] == [{"small"}]
    assert fit_all(every, {}).roofline == []
    with pytest.raises(BadInput, match="known architecture"):
        fit_roofline(medians(every), {}, FORMATS["float32"])
