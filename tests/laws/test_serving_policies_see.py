"""M9 of the claims for every policy: none sees the verdict it predicts, nor where a text or an answer ends.

What a policy may not see is garbage while it is asked, and the tables stay the same. A policy that does look
is caught.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st
from simpy import Environment

from simspec.serving.arrivals import OpenLoop
from simspec.serving.cluster import Cluster
from simspec.serving.config import Serving, Speculation
from simspec.serving.door import Door
from simspec.serving.engine import Engine
from simspec.serving.policies import Fixed, View
from simspec.serving.pricing import Costs
from simspec.serving.recorder import Recorder
from simspec.serving.request import Request
from simspec.serving.row_policies import ByRule, RowView
from simspec.serving.simulate import simulate
from simspec.serving.verdicts import Recorded, Source, Verdicts, _Texts
from simspec.speculation.lengths import ExactMarginal
from simspec.strategies.small_engines import made_up_cost, serve
from tests.varied_engines import LONGEST, records, varied

COSTS = Costs(made_up_cost("ticks"), "target", "small")


@dataclass(frozen=True)
class Masked:
    """A record whose verdicts are garbage but for the moment in which the engine asks for them."""

    record: Recorded

    @property
    def unconfident(self) -> str | None:
        return self.record.unconfident

    def open(self, slots: int, seed: int) -> Verdicts:
        texts = _Texts(self.record, slots, seed)
        truth, garbage = texts.matched, np.random.default_rng(seed).integers(0, 9, len(texts.matched))
        texts.matched = garbage
        rightly = texts.accepted

        def accepted(drafted):
            texts.matched = truth
            found = rightly(drafted)
            texts.matched = garbage
            return found

        texts.accepted = accepted  # type: ignore[method-assign]
        return texts


def masked(source: Source) -> Source:
    return Masked(source) if isinstance(source, Recorded) else source


@given(varied())
def test_no_policy_sees_a_verdict(scenario):
    spec = scenario.serving.speculation
    assume(isinstance(spec.source, Recorded))
    others = tuple(dataclasses.replace(o, source=masked(o.source)) for o in spec.others)
    hidden = dataclasses.replace(spec, source=masked(spec.source), others=others)
    blind = serve(scenario, serving=dataclasses.replace(scenario.serving, speculation=hidden))
    seeing = serve(scenario)
    assert blind.steps.equals(seeing.steps)
    assert blind.requests.equals(seeing.requests)


class Peeks(Fixed):
    """Drafts as many tokens as the first row will have accepted: it is given what types do not give it."""

    def length(self, view: View, state: int) -> tuple[int, int]:
        texts = Peeks.texts
        return min(int(texts.matched[texts.place[0]]), self.longest), state


def test_a_policy_that_peeks_is_caught():
    """Drafts are always right; garbage says anything from 0 to 8."""
    record = Recorded(np.array([0, 40]), np.full(40, 2), np.minimum(2, np.arange(40)[::-1]))
    tables = []
    for source in (record, Masked(record)):
        env, recorder = Environment(), Recorder()
        serving = Serving(COSTS, 1, Speculation(Peeks(2), source))
        engine = Engine(env, serving, 0, recorder)
        Peeks.texts = engine.verdicts
        Door(env, Cluster((serving,)), [engine], recorder).submit(Request(0, 3, 40))
        env.run()
        tables.append(recorder.close()["steps"])
    assert not tables[0].equals(tables[1])


@given(records(1), st.integers(2, 30), st.integers(0, 99))
def test_what_rows_are_seen_by_ends_neither_with_the_text_nor_with_the_answer(found, output, seed):
    """The first view of a row is the drafter's whole block, wherever its text and its request end."""
    views: list[RowView] = []

    class Spy(ByRule):
        def lengths(self, view, state):
            views.append(view)
            return super().lengths(view, state)

    record = found[0]
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
