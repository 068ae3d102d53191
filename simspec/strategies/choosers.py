"""Engines whose rows choose their drafts, by what the drafter thinks of them, or that choose a drafter.

Everything in them is made up. Built on the scenarios of :mod:`simspec.strategies.serving`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from hypothesis import strategies as st

from simspec.serving.policies import ByRowsAndContext, Fixed, Goodput, Policy
from simspec.serving.row_policies import ByRule, Joint, RowPolicy
from simspec.serving.switching import Switching
from simspec.speculation.lengths import G4, ExactMarginal, LibraSpec, Static
from simspec.strategies.serving import SURVIVALS, TEXTS, scenarios
from simspec.strategies.small_engines import Drafting, Scenario, Survival, Texts, made_up_cost

# The engine itself needs pyarrow: loaded where a scenario is served.
if TYPE_CHECKING:
    from simspec.serving.config import Serving
    from simspec.serving.verdicts import Recorded, Source

LONGEST = 5
DEEP = st.integers(1, LONGEST)
BLIND: st.SearchStrategy[Policy | RowPolicy] = st.one_of(
    st.builds(lambda n: ByRule(Static(n), n), st.integers(0, LONGEST)),
    st.builds(
        lambda first, up, down: ByRule(G4(first, up, down, LONGEST), LONGEST),
        DEEP,
        st.integers(0, 2),
        st.integers(0, 2),
    ),
    st.just(ByRowsAndContext(((1, 1, 0, 99, 4), (2, 3, 0, 12, 2), (2, 9, 13, 20, 1)))),
    st.builds(Goodput, DEEP, st.floats(0, 1), st.just(2.0), st.integers(0, 3)),
)
SIGHTED: st.SearchStrategy[RowPolicy] = st.one_of(
    st.builds(lambda n: ByRule(ExactMarginal(n), n), DEEP),
    st.builds(
        lambda alpha, block, longest: ByRule(LibraSpec(alpha, block, longest), LONGEST),
        st.floats(0.5, 3),
        st.integers(1, 3),
        st.integers(1, 4),
    ),
    st.builds(Joint, DEEP, st.booleans()),
)
SWITCHING = st.builds(
    Switching,
    st.integers(0, LONGEST),
    st.sampled_from([0.0, 0.05, 0.5]),
    st.sampled_from([1, 32]),
    st.floats(0, 1),
    st.sampled_from([0.5, 5.0]),
)


@dataclass(frozen=True)
class Place:
    """A place of a text: how sure a drafter is of each token of its block there, and how many are right."""

    sure: tuple[float, ...]
    right: int


@dataclass(frozen=True)
class Sighted:
    """Recorded texts of which it is known how sure the drafter was."""

    texts: tuple[tuple[Place, ...], ...]

    def source(self) -> Recorded:
        """Blocks as they are, verdicts no further than the text goes."""
        from simspec.serving.verdicts import Blocks, Recorded

        sizes = [len(text) for text in self.texts]
        left = np.concatenate([np.arange(n)[::-1] for n in sizes])
        places = [place for text in self.texts for place in text]
        confidence = np.zeros((len(places), LONGEST), np.float32)
        for i, place in enumerate(places):
            confidence[i, : len(place.sure)] = place.sure
        length = np.array([len(place.sure) for place in places])
        available = np.minimum(length, left)
        matched = np.minimum([place.right for place in places], available)
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        return Recorded(offsets, matched, available, Blocks(confidence, length))


Acceptance = Survival | Texts | Sighted
# Few values, so that survivals are equal now and then; 0 is a token that its drafter rounds away.
PLACES = st.lists(st.sampled_from([0.0, 0.25, 0.5, 0.75, 0.9, 1.0]), max_size=LONGEST).flatmap(
    lambda sure: st.builds(Place, st.just(tuple(sure)), st.integers(0, len(sure)))
)
UNSURE: st.SearchStrategy[Survival] = st.builds(Survival, SURVIVALS, st.booleans())


@st.composite
def sighted(draw: st.DrawFn, drafters: int) -> tuple[Sighted, ...]:
    """What several drafters' blocks on the same texts were worth."""
    sizes = draw(st.lists(st.integers(1, 10), min_size=1, max_size=3))
    found = []
    for _ in range(drafters):
        texts = (draw(st.lists(PLACES, min_size=n, max_size=n).map(tuple)) for n in sizes)
        found.append(Sighted(tuple(texts)))
    return tuple(found)


@dataclass(frozen=True)
class Choosing:
    """A scenario, and who chooses its drafts instead of its own policy, which drafts as many at most.

    Attributes:
        acceptances: of each drafter's drafts; several where the policy chooses among them.
    """

    scenario: Scenario
    policy: Policy | RowPolicy | Switching
    acceptances: tuple[Acceptance, ...]

    def __str__(self) -> str:
        return f"{self.scenario}; {self.policy}; acceptance {self.acceptances}"

    def serving(self, sources: Sequence[Source], policy: Policy | RowPolicy | None = None) -> Serving:
        """The engine with these verdicts on each drafter's drafts, and perhaps yet another policy."""
        from simspec.serving.candidates import Candidate
        from simspec.serving.config import Speculation

        others = tuple(
            Candidate(name, source, made_up_cost(prices), lookup)
            for source, (name, prices, lookup) in zip(sources[1:], _OTHERS, strict=False)
        )
        speculation = Speculation(policy or self.policy, sources[0], others=others)
        return replace(self.scenario.serving, speculation=speculation)


_OTHERS = (("ngram", "ticks", True), ("small", "device", False))


@st.composite
def choosing(draw: st.DrawFn) -> Choosing:
    """Every kind of policy with acceptances that it may have."""
    policy: Policy | RowPolicy | Switching = draw(st.one_of(BLIND, SIGHTED, SIGHTED, SWITCHING))
    acceptances: tuple[Acceptance, ...]
    if isinstance(policy, Switching):
        acceptances = draw(sighted(3) | st.tuples(UNSURE, UNSURE))
    elif isinstance(policy, RowPolicy) and policy.weighs_confidence:
        acceptances = draw(sighted(1))
    else:
        acceptances = draw(sighted(1) | st.tuples(UNSURE) | st.tuples(TEXTS))
    return Choosing(draw(stand_ins(policy.longest)), policy, acceptances)


def stand_ins(longest: int) -> st.SearchStrategy[Scenario]:
    """Scenarios that always draft ``longest``: there is room for a policy that does so at most."""
    return scenarios(st.just(Drafting(Fixed(longest), Survival((0.5,) * LONGEST))))
