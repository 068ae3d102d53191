"""Forwards padded to graph sizes: by hand, array by array, and in an engine."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from simspec.cost.shape import StepShape
from simspec.errors import BadInput
from simspec.serving.arrivals import OpenLoop
from simspec.serving.config import Serving, Speculation
from simspec.serving.graphs import Graphs
from simspec.serving.policies import Fixed
from simspec.serving.pricing import Costs, Pricer
from simspec.serving.request import Request
from simspec.serving.simulate import simulate
from simspec.serving.verdicts import Rates
from simspec.strategies.small_engines import affine, made_up_cost
from tests.varied_engines import GRAPHS

COST = affine(4e-9, 1e-9, 0.0)
SHAPE = st.tuples(
    st.integers(1, 9), st.integers(1, 6), st.integers(1, 40), st.integers(8, 64), st.integers(8, 500)
)


def spy(*shape: int) -> int:
    """Tells rows and tokens apart."""
    rows, _, tokens, *_ = shape
    return 1000 * rows + tokens


@pytest.mark.parametrize(
    ("graphs", "shape", "price"),
    [
        (Graphs(tokens=(4, 8)), (3, 2, 5), 3008),
        (Graphs(tokens=(4, 8)), (3, 2, 4), 3004),
        # Beyond the last: nothing is padded, 1.5 times the price and 7 ns more.
        (Graphs(tokens=(4, 8), beyond_factor=1.5, beyond_seconds=7e-9), (3, 3, 9), 4521),
        # Two rows are added, each as wide as the widest.
        (Graphs(rows=(1, 5)), (3, 2, 5), 5009),
        # ... and then come tokens: 9 are in a graph of 16.
        (Graphs(rows=(1, 5), tokens=(16,)), (3, 2, 5), 5016),
        # The rows fit and the tokens do not: no graph at all.
        (Graphs(rows=(1, 5), tokens=(8,), beyond_factor=2.0), (3, 2, 5), 6010),
        (Graphs(rows=(2,)), (3, 2, 5), 3005),
    ],
)
def test_by_hand(graphs, shape, price):
    assert graphs.priced(spy)(*shape, 0, 0) == price


@given(GRAPHS, st.lists(SHAPE, min_size=1, max_size=8), st.sampled_from(["ticks", "padded"]))
def test_many_prices_are_the_prices_of_each(graphs, shapes, prices):
    pricer = Pricer(Costs(made_up_cost(prices), "target", graphs=graphs))
    columns = StepShape(*(np.array(column) for column in zip(*shapes, strict=True)))
    assert pricer.target_many_ns(columns).tolist() == [pricer.target_ns(*shape) for shape in shapes]


@given(GRAPHS, SHAPE)
@example(Graphs(rows=(3,), tokens=(3,)), (1, 1, 1, 8, 8))
def test_padding_is_never_cheaper_and_with_one_list_more_tokens_never_are(graphs, shape):
    """With both, added rows fill a graph that one token more leaves: 3 tokens for 1 row, and 2 without it."""
    rows, width, tokens, *context = shape
    alone, padded = (Pricer(Costs(COST, "target", graphs=g)).target_ns for g in (None, graphs))
    assert padded(*shape) >= alone(*shape)
    if graphs is None or not (graphs.rows and graphs.tokens):
        assert padded(rows, width, tokens + 1, *context) >= padded(*shape)


def test_prompts_that_leave_a_mostly_padded_graph_take_nothing_off():
    """A row alone fills a graph of 9 rows: 4 + 9 = 13 ns. With a prompt of 2, none: 4 + 3 = 7 ns in all."""
    load = [(0, Request(0, 1, 4)), (14, Request(1, 2, 1))]
    costs = Costs(COST, "target", graphs=Graphs(rows=(9,), tokens=(9,)))
    steps = simulate(Serving(costs, 2), OpenLoop(load), 0).steps
    assert steps["verify_ns"].to_pylist() == [0, 7, 13, 13]
    assert steps["prefill_ns"].to_pylist() == [13, 0, 0, 0]


def test_an_engine_pads_its_forwards_and_not_its_look_ups():
    """Graphs of 4 and 8 tokens, else twice the time. Prompt of 12: (4 + 12) x 2 = 32 ns, the drafter's 8.

    Then one row drafts 2: the target's 3 tokens run as 4, 8 ns; each forward of the drafter, of 1 token, as
    4 too, (4 + 4) / 4 = 2 ns.
    """
    graphs = Graphs(tokens=(4, 8), beyond_factor=2.0)
    costs = Costs(COST, "target", "small", graphs=graphs)
    load = [(0, Request(0, 12, 9))]
    steps = simulate(Serving(costs, 1, Speculation(Fixed(2), Rates((0.0, 0.0)))), OpenLoop(load), 0).steps
    assert steps["prefill_ns"].to_pylist()[0] == 32
    assert steps["draft_ns"].to_pylist()[:3] == [8, 4, 4]
    assert steps["verify_ns"].to_pylist()[1] == 8
    lookup = Costs(affine(4e-9, 1e-9, 0.0), "target", "small", lookup=True, graphs=graphs)
    steps = simulate(Serving(lookup, 1, Speculation(Fixed(2), Rates((0.0, 0.0)))), OpenLoop(load), 0).steps
    # Asked for 2 tokens: (4 + 2) / 4 = 1.5 ns, 2 rounded.
    assert steps["draft_ns"].to_pylist()[:2] == [0, 2]


def test_steps_computed_at_once_run_the_same_graphs():
    """Byte for byte, with rows that leave one by one and sizes on both sides of them."""
    costs = Costs(made_up_cost("device"), "target", graphs=Graphs(rows=(1, 3), beyond_factor=1.5))
    load = [(0, Request(i, 3, 20 + 15 * i)) for i in range(5)]
    tables = [simulate(Serving(costs, 5, stride=stride), OpenLoop(load), 0).steps for stride in (True, False)]
    assert tables[0].equals(tables[1])
    # Verification of 4 and 5 rows runs without a graph.
    steps = tables[0].to_pandas()
    assert (
        steps[steps["decoding_requests"] > 3]["verify_ns"].min()
        > 1.4 * steps[steps["decoding_requests"] == 3]["verify_ns"].max()
    )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Graphs(), "without sizes"),
        (lambda: Graphs(rows=(2, 2)), r"rows \[2, 2\]"),
        (lambda: Graphs(tokens=(0, 2)), r"tokens \[0, 2\]"),
        (lambda: Graphs(rows=(1,), beyond_factor=0.5), "beyond_factor is 0.5"),
        (lambda: Graphs(rows=(1,), beyond_seconds=-1.0), "beyond_seconds of -1.0"),
    ],
)
def test_refusals(make, message):
    with pytest.raises(BadInput, match=message):
        make()
