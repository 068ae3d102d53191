"""Laws of the roofline and of the affine fit."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simspec.cost.affine_fit import fit_affine
from simspec.cost.architecture import Architecture, Formats, forward_work
from simspec.cost.fit_errors import medians
from simspec.cost.roofline import Rates, roofline_seconds
from simspec.cost.shape import StepShape, uniform

SIZES = st.integers(1, 64)
MADE = st.builds(
    Architecture,
    layers=SIZES,
    hidden=SIZES,
    intermediate=SIZES,
    heads=SIZES,
    kv_heads=SIZES,
    head_dim=SIZES,
    vocabulary=st.integers(1, 1000),
    tied=st.booleans(),
)
BYTES = st.sampled_from([0.5625, 1.0, 2.0, 4.0])
FORMATS = st.builds(Formats, weight_bytes=BYTES, activation_bytes=BYTES, kv_bytes=BYTES)
RATE = st.floats(1e3, 1e15)
OVERHEAD = st.floats(0, 1)
RATES = st.builds(Rates, RATE, RATE, OVERHEAD, OVERHEAD, st.floats(1, 10))
COUNTS = st.tuples(st.integers(1, 64), st.integers(1, 32), st.integers(0, 4096))
MORE = st.tuples(st.integers(0, 8), st.integers(0, 8), st.integers(0, 512))


def shape(counts: tuple[int, ...]) -> StepShape:
    return uniform(*(np.array([n]) for n in counts))


@given(MADE, FORMATS, RATES, COUNTS, MORE, st.booleans())
def test_more_rows_width_or_context_never_takes_less(made, formats, rates, counts, more, packed):
    below = roofline_seconds(rates, made, formats, shape(counts), packed=packed)[0]
    above = tuple(a + b for a, b in zip(counts, more, strict=True))
    assert roofline_seconds(rates, made, formats, shape(above), packed=packed)[0] >= below * (1 - 1e-12)


@given(MADE, FORMATS, RATES, COUNTS)
def test_a_forward_takes_at_least_all_its_arithmetic_all_its_traffic_and_its_overhead(
    made, formats, rates, counts
):
    found = roofline_seconds(rates, made, formats, shape(counts), packed=True)[0]
    work = forward_work(made, formats, shape(counts), packed=True)
    overhead = rates.forward_overhead_seconds + made.layers * rates.layer_overhead_seconds
    flops = sum(p.flops[0] for p in work.parts) / rates.flops_per_second
    traffic = sum(p.moved_bytes[0] for p in work.parts) / rates.bytes_per_second
    extra = (rates.cache_passes - 1) * work.cache_bytes[0] / rates.bytes_per_second
    slack = 1 + 1e-9
    assert found * slack >= overhead + max(flops, traffic + extra)
    assert found <= (overhead + flops + traffic + extra) * slack


@given(MADE, FORMATS, RATES, COUNTS)
def test_alike_rows_take_the_same_packed_and_padded(made, formats, rates, counts):
    packed = roofline_seconds(rates, made, formats, shape(counts), packed=True)[0]
    assert roofline_seconds(rates, made, formats, shape(counts), packed=False)[0] == pytest.approx(packed)


@given(MADE, FORMATS, RATES, st.lists(COUNTS, min_size=2, max_size=4))
def test_a_forward_costs_the_same_beside_others(made, formats, rates, several):
    together = uniform(*(np.array(c) for c in zip(*several, strict=True)))
    alone = [roofline_seconds(rates, made, formats, shape(c), packed=True)[0] for c in several]
    assert roofline_seconds(rates, made, formats, together, packed=True).tolist() == pytest.approx(alone)


@given(
    st.floats(1e-4, 1.0),
    st.floats(0, 1e-1),
    st.floats(0, 1e-3),
    st.integers(1, 3),
)
def test_an_affine_cost_is_fitted_exactly(base, token, cached, repetitions):
    rows = [
        ("m", "cpu", "float32", b, w, c, r, base + token * b * w + cached * b * c)
        for b in (1, 3, 8)
        for w in (1, 4, 9)
        for c in (16, 300)
        for r in range(repetitions)
    ]
    columns = ["model", "device", "dtype", "batch", "new_tokens", "context", "repetition", "seconds"]
    fit = fit_affine(medians(pd.DataFrame(rows, columns=columns)))
    assert fit.in_sample.p90 < 1e-6
    assert fit.left_out is not None
    assert fit.left_out.p90 < 1e-5
    assert fit.base_seconds == pytest.approx(base, rel=1e-3)
    assert fit.remark == "good"
