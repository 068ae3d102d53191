"""No policy sees where a text or an answer ends; that none sees verdicts is claim M9c."""

from __future__ import annotations

import dataclasses

from hypothesis import given
from hypothesis import strategies as st

from simspec.serving.arrivals import OpenLoop
from simspec.serving.config import Serving, Speculation
from simspec.serving.pricing import Costs
from simspec.serving.request import Request
from simspec.serving.row_policies import ByRule, RowView
from simspec.serving.simulate import simulate
from simspec.speculation.lengths import ExactMarginal
from simspec.strategies.choosers import LONGEST, sighted
from simspec.strategies.small_engines import made_up_cost

COSTS = Costs(made_up_cost("ticks"), "target", "small")


@given(sighted(1), st.integers(2, 30), st.integers(0, 99))
def test_what_rows_are_seen_by_ends_neither_with_the_text_nor_with_the_answer(found, output, seed):
    """The first view of a row is the drafter's whole block, wherever its text and its request end."""
    views: list[RowView] = []

    class Spy(ByRule):
        def lengths(self, view, state):
            views.append(view)
            return super().lengths(view, state)

    record = found[0].source()
    cut = dataclasses.replace(record, available=record.available * 0, matched=record.matched * 0)
    for source, tokens in ((record, 30), (record, output), (cut, 30)):
        policy = Spy(ExactMarginal(LONGEST), LONGEST)
        before = len(views)
        simulate(Serving(COSTS, 1, Speculation(policy, source)), OpenLoop([(0, Request(0, 3, tokens))]), seed)
        del views[before + 1 :]
    first, *others = views
    for other in others:
        assert (first.confidence == other.confidence).all()
        assert (first.length == other.length).all()
