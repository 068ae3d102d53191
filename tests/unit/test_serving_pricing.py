"""Prices: plain numbers and arrays give the same nanoseconds, and a remembered price is the asked one."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from simspec.cost.shape import StepShape
from simspec.serving.pricing import Costs, Pricer
from simspec.strategies.small_engines import affine, made_up_cost

PADDED = made_up_cost("padded")
COUNT = st.integers(1, 5000)
SHAPES = st.tuples(COUNT, COUNT, COUNT, COUNT, st.integers(0, 10**7))


@given(st.floats(0, 1), st.floats(0, 1e-3), st.floats(0, 1e-6), SHAPES)
def test_an_affine_price_is_the_cost_models_own(base, token, cached, shape):
    cost = affine(base, token, cached)
    pricer = Pricer(Costs(cost, "target", "small"))
    one = StepShape(*(np.array([n]) for n in shape))
    assert pricer.target_ns(*shape) == int(cost.forward_seconds("target", one)[0] * 1e9 + 0.5)
    assert pricer.drafters[0].price_ns(*shape) == int(cost.forward_seconds("small", one)[0] * 1e9 + 0.5)


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(1, 8), st.integers(8, 64)), min_size=1, max_size=9))
def test_a_padded_price_is_the_cost_models_own_every_time(asked):
    pricer = Pricer(Costs(PADDED, "target"))
    for rows, width, context in asked + asked:
        shape = (rows, width, rows * width, context, rows * context)
        one = StepShape(*(np.array([n]) for n in shape))
        assert pricer.target_ns(*shape) == int(PADDED.forward_seconds("target", one)[0] * 1e9 + 0.5)


@given(st.booleans(), st.integers(1, 4), st.lists(st.integers(1, 5000), min_size=1, max_size=9))
def test_many_prices_are_the_prices_of_each(packed, rows, contexts):
    pricer = Pricer(Costs(affine(5.9e-3, 2.1e-5, 3.9e-8) if packed else PADDED, "target"))
    context = np.array(contexts)
    found = pricer.decoding_ns(rows, context, rows * context)
    assert found.tolist() == [pricer.target_ns(rows, 1, rows, c, rows * c) for c in contexts]


def test_own_overhead_and_own_drafter():
    """A drafter on its own device, and an overhead that is said."""
    slow, fast = affine(8e-9, 0.0, 0.0), affine(400e-9, 0.0, 0.0)
    costs = Costs(slow, "target", "small", drafter_cost=fast, overhead_seconds=7e-9)
    pricer = Pricer(costs)
    shape = (1, 1, 1, 1, 1)
    assert (pricer.overhead_ns, pricer.target_ns(*shape), pricer.drafters[0].price_ns(*shape)) == (7, 8, 100)
    assert Pricer(Costs(slow, "target")).overhead_ns == 2
