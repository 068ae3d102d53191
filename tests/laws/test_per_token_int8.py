"""Int8 with a scale a token: a row comes out the same whatever other rows are in the forward."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

pytestmark = pytest.mark.real_model  # of the extra `record`, only torch is needed

SIZES = st.integers(1, 70)


def layer_and_rows(inputs: int, outputs: int, rows: int, bias: bool, seed: int):
    import torch

    generator = np.random.default_rng(seed)
    linear = torch.nn.Linear(inputs, outputs, bias=bias)
    with torch.no_grad():
        linear.weight.copy_(torch.as_tensor(generator.normal(size=(outputs, inputs))))
        if bias:
            linear.bias.copy_(torch.as_tensor(generator.normal(size=outputs)))
    # Rows of very unlike size beside each other, and one of nothing: what a shared scale gets wrong.
    values = generator.normal(size=(rows, inputs)) * 10.0 ** generator.integers(-6, 6, (rows, 1))
    values[generator.integers(rows)] = 0
    return linear, torch.as_tensor(values, dtype=torch.float32)


@given(SIZES, SIZES, st.integers(1, 12), st.booleans(), st.integers(0, 2**32 - 1), st.data())
@example(64, 33, 12, True, 0, None)
def test_rows_do_not_see_each_other(inputs, outputs, rows, bias, seed, data):
    import torch

    from simspec.record.quantize import PerTokenLinear

    linear, values = layer_and_rows(inputs, outputs, rows, bias, seed)
    layer = PerTokenLinear(linear)
    whole = layer(values)
    order = torch.as_tensor(data.draw(st.permutations(range(rows))) if data else range(rows)[::-1])
    some = order[: max(1, rows // 2)]
    assert torch.equal(layer(values[order]), whole[order])
    assert torch.equal(layer(values[some]), whole[some])
    assert torch.equal(torch.cat([layer(row[None]) for row in values]), whole)
    assert torch.equal(layer(values[None, :, None]), whole[None, :, None])
    # However the rows lie in memory.
    assert torch.equal(layer(values.t().contiguous().t()), whole)
    assert torch.equal(torch.cat([layer(row[:, None].clone().t()) for row in values]), whole)


@given(SIZES, SIZES, st.integers(1, 6), st.booleans(), st.integers(0, 2**32 - 1))
def test_the_sums_are_those_of_whole_numbers(inputs, outputs, rows, bias, seed):
    """Against numpy's own 64-bit integers, rounding by rounding."""
    from simspec.record.quantize import PerTokenLinear

    linear, values = layer_and_rows(inputs, outputs, rows, bias, seed)
    weight, x = linear.weight.detach().numpy(), values.numpy()
    least, top = np.float32(1e-30), np.float32(127)
    weight_largest = np.maximum(np.abs(weight).max(1, keepdims=True), least)
    largest = np.maximum(np.abs(x).max(1, keepdims=True), least)
    rounded = np.rint(x / largest * top).astype(np.int64)
    weight_rounded = np.rint(weight / weight_largest * top).astype(np.int64)
    assert max(np.abs(rounded).max(), np.abs(weight_rounded).max()) <= 127
    expected = (rounded @ weight_rounded.T).astype(np.float32) * (weight_largest.T / top**2) * largest
    if bias:
        expected = expected + linear.bias.detach().numpy()
    assert (PerTokenLinear(linear)(values).numpy() == expected).all()
