"""What comes, and when, is not moved by what is drafted (M5b)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from hypothesis import strategies as st

from simspec.claims.base import Claim, Outcome, Rule, Statement, against
from simspec.claims.plain import shown
from simspec.serving.arrivals import ClosedLoop, Gamma, OpenLoop, Poisson, Sizes, open_loop
from simspec.serving.policies import Fixed
from simspec.strategies.serving import SURE, draftings
from simspec.strategies.small_engines import Drafting, Setup
from simspec.streams import stream

# The engine needs pyarrow, which whoever only lists claims need not wait for.
if TYPE_CHECKING:
    from simspec.serving.arrivals import Ints


class OneGenerator:
    """A source that draws what is accepted from one generator, as steps come to it."""

    unconfident: ClassVar[str] = "drawn as it comes"

    def __init__(self, seed: int, longest: int = 4):
        self.generator, self.longest = stream(seed, "everything"), longest

    def open(self, slots: int, seed: int) -> Any:
        self.slots = slots
        return self

    def seat(self, slot: int, request_id: int, produced: int, output_tokens: int) -> None:
        """All places are alike."""

    def available(self) -> Ints:
        return np.full(self.slots, self.longest)

    def blocks(self) -> Any:
        raise ValueError(f"no confidences: {self.unconfident}")

    def accepted(self, drafted: Ints) -> Ints:
        return np.minimum(self.generator.geometric(0.5, self.slots) - 1, drafted)

    def move(self, emitted: Ints) -> None:
        """Nor is anything remembered."""


@dataclass(frozen=True)
class Arriving:
    """Requests of an arrival process, to an engine of two slots that decodes plainly and then drafts."""

    process: Poisson | Gamma
    count: int
    seed: int
    drafting: Drafting


# The load of an engine that drafts or does not, given the case and a generator that verdicts are drawn from.
Load = Callable[[Arriving, np.random.Generator], OpenLoop | ClosedLoop]


def _open(case: Arriving, generator: np.random.Generator) -> OpenLoop:
    return open_loop(case.process, Sizes.alike(case.count, 3, 6), case.seed)


def _closed(case: Arriving, generator: np.random.Generator) -> ClosedLoop:
    """Two clients that each wait for their answer."""
    return ClosedLoop(2, list(Sizes.alike(case.count, 3, 6).requests()))


def _drawn_as_they_come(case: Arriving, generator: np.random.Generator) -> OpenLoop:
    """Each gap drawn when the request before it has come, from the generator of verdicts."""

    def load() -> Iterator[Any]:
        at = 0
        for request in Sizes.alike(case.count, 3, 6).requests():
            yield at, request
            at += int(generator.exponential(1e9 / case.process.rate))

    return OpenLoop(load())


def _arrivals_stay(load: Load, shared: bool = False) -> Rule:
    """The instants at which requests come are the same plainly and with drafts."""

    def rule(case: Arriving) -> Outcome:
        from simspec.serving.config import Speculation
        from simspec.serving.simulate import simulate

        found = []
        for drafting in (None, case.drafting):
            serving = Setup(2, drafting).serving()
            source = OneGenerator(case.seed)
            if shared and drafting is not None:
                serving = replace(serving, speculation=Speculation(drafting.policy, source))
            rows = simulate(serving, load(case, source.generator), case.seed).requests.to_pylist()
            found.append(
                [row["arrived_at_ns"] for row in sorted(rows, key=lambda row: int(row["request_id"]))]
            )
        if found[0] == found[1]:
            return None
        return against(
            f"{case.count} requests, {case.process}, seed {case.seed}; {case.drafting}",
            f"plainly they come at {shown(tuple(found[0]))} ns",
            f"with drafts they come at {shown(tuple(found[1]))} ns",
        )

    return rule


def _arriving(level: int) -> Iterator[Arriving]:
    """Few requests, about as fast as they are served and as their steps last."""
    processes: tuple[Poisson | Gamma, ...] = (Poisson(3e7), Gamma(1e8, 2.0))
    for count, seed, process in product(range(1, 5 + 4 * level), range(2 + level), processes):
        yield Arriving(process, count, seed, Drafting(Fixed(2), SURE))


M5B_STATEMENT = Statement(
    words=(
        "Changing how long drafts are, or whether there are any, does not move open-loop arrivals: the same "
        "seed sends the same requests at the same nanoseconds"
    ),
    formula="arrived(seed, policy) = arrived(seed)",
    rule=_arrivals_stay(_open),
    over=(
        "Poisson and gamma arrivals of up to 8 requests (4 and 12 at the smallest and the largest budget) by "
        "seeds; random processes, policies and acceptances, up to 20 requests"
    ),
    domain=st.builds(
        Arriving,
        st.one_of(
            st.builds(Poisson, st.sampled_from((1e6, 1e8))), st.builds(Gamma, st.just(1e8), st.just(3.0))
        ),
        st.integers(1, 20),
        st.integers(0, 1000),
        draftings(),
    ),
    every=_arriving,
    examples=40,
)
M5B = Claim(
    id="M5b",
    source="claims ledger, M5: the serving engine",
    statement=M5B_STATEMENT,
    expected="holds",
    because=(
        "Instants are drawn from a stream of their own, named arrivals, before anything is served; what is "
        "accepted is drawn from streams named after requests. A closed loop follows completions, so there "
        "the claim cannot hold."
    ),
    broken=(
        M5B_STATEMENT.but("The same of a closed loop", _arrivals_stay(_closed)),
        M5B_STATEMENT.but(
            "The same where one generator serves for gaps and for verdicts, as each is needed",
            _arrivals_stay(_drawn_as_they_come, shared=True),
        ),
    ),
)

CLAIMS = (M5B,)
