"""Under load, too, nothing that chooses drafts sees what it predicts (M9c)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from simspec.claims.base import UNMET, Claim, Outcome, Rule, Statement, against
from simspec.claims.plain import shown
from simspec.claims.serving.laws import Row
from simspec.serving.policies import Fixed, Policy, View
from simspec.serving.row_policies import ByRule, RowPolicy
from simspec.speculation.lengths import ExactMarginal
from simspec.strategies.choosers import Acceptance, Choosing, Place, Sighted, choosing
from simspec.strategies.small_engines import Drafting, Scenario, Setup, Survival, Texts, serve

# The engine needs pyarrow, which whoever only lists claims need not wait for.
if TYPE_CHECKING:
    from simspec.serving.verdicts import Seen, Source, Verdicts

Ints = NDArray[np.int64]
NEVER = 1 << 40  # tokens
# What comes of a step; all else in its row is decided before.
AFTERWARDS = ("accepted_tokens", "emitted_tokens", "finished_requests")


@dataclass(frozen=True)
class Glance:
    """A scenario, one of its steps, and how the verdicts from that step on are changed."""

    choosing: Choosing
    step: int
    luck: int

    def __str__(self) -> str:
        return str(self.choosing)


def redrawn(acceptance: Acceptance, random: Random) -> Acceptance:
    """The same texts and blocks with other verdicts."""
    if isinstance(acceptance, Texts):
        texts = (tuple(random.randint(1, acceptance.longest + 1) for _ in t) for t in acceptance.emitted)
        return replace(acceptance, emitted=tuple(texts))
    if isinstance(acceptance, Sighted):
        return Sighted(
            tuple(
                tuple(replace(place, right=random.randint(0, len(place.sure))) for place in text)
                for text in acceptance.texts
            )
        )
    return acceptance


def _shift(acceptance: Acceptance, random: Random) -> int:
    """Verdicts that are drawn are other ones under another seed; in a record that would be another place."""
    return random.randint(1, 10**6) if isinstance(acceptance, Survival) else 0


@dataclass(frozen=True)
class Parting:
    """The verdicts of ``truth`` until a request has so many tokens, then those of ``other``.

    What can be drafted and how sure the drafter is come from ``other`` then, too.

    Attributes:
        shift: what is added to the seed of ``other``.
        tokens: by request.
    """

    truth: Source
    other: Source
    shift: int
    tokens: dict[int, int]

    @property
    def unconfident(self) -> str | None:
        return self.truth.unconfident

    def open(self, slots: int, seed: int) -> Verdicts:
        both = self.truth.open(slots, seed), self.other.open(slots, seed + self.shift)
        return _Parted(*both, self.tokens, slots)


class _Parted:
    def __init__(self, truth: Verdicts, other: Verdicts, tokens: dict[int, int], slots: int):
        self.truth, self.other, self.tokens = truth, other, tokens
        self.left = np.zeros(slots, np.int64)  # tokens until they part

    def seat(self, slot: int, request_id: int, produced: int, output_tokens: int) -> None:
        self.left[slot] = self.tokens.get(request_id, 0) - produced
        for one in (self.truth, self.other):
            one.seat(slot, request_id, produced, output_tokens)

    def available(self) -> Ints:
        return self._either(self.truth.available(), self.other.available())

    def blocks(self) -> Seen:
        truth, other = self.truth.blocks(), self.other.blocks()
        confidence = self._either(truth.confidence, other.confidence)
        length = self._either(truth.length, other.length)
        return truth._replace(confidence=confidence, length=length, record=None)

    def accepted(self, drafted: Ints) -> Ints:
        return self._either(self.truth.accepted(drafted), self.other.accepted(drafted))

    def move(self, emitted: Ints) -> None:
        self.left -= emitted
        for one in (self.truth, self.other):
            one.move(emitted)

    def _either(self, truth: NDArray[Any], other: NDArray[Any]) -> NDArray[Any]:
        parted = self.left <= 0
        return np.where(parted if truth.ndim == 1 else parted[:, None], other, truth)


# How a source is made of what is known, and a policy that is not the scenario's own.
Made = Callable[[Acceptance], Acceptance]


def _honest(acceptance: Acceptance) -> Acceptance:
    return acceptance


def _blind(made: Made = _honest, peeks: bool = False) -> Rule:
    """What is decided of a step stays when verdicts from it on are changed."""

    def rule(case: Glance) -> Outcome:
        told, random = case.choosing, Random(case.luck)
        if peeks and len(told.acceptances) > 1:
            return UNMET  # who peeks does not choose among drafters
        truths = [made(one).source() for one in told.acceptances]
        before = _rows(told, truths, peeks)
        drafting = [step for step, row in enumerate(before[0]) if row["decoding_requests"]]
        if not drafting:
            return UNMET
        k = drafting[case.step % len(drafting)]
        # Requests that are over by then part never; those that have not begun, at once.
        tokens = {row["request_id"]: NEVER for row in before[1]}
        tokens |= {row["request_id"]: 0 for row in before[1] if row["step"] >= k}
        for row in before[1]:
            if row["step"] < k:
                tokens[row["request_id"]] += row["emitted_tokens"]
        changed = [
            Parting(truth, made(redrawn(one, random)).source(), _shift(one, random), tokens)
            for truth, one in zip(truths, told.acceptances, strict=True)
        ]
        after = _rows(told, changed, peeks)
        for step in range(k + 1):
            was, now = (dict(rows[step]) for rows in (before[0], after[0]))
            for name in AFTERWARDS if step == k else ():
                del was[name], now[name]
            if was != now:
                known = {number: n for number, n in tokens.items() if n < NEVER}
                differ = {name: (was[name], now[name]) for name in was if was[name] != now[name]}
                return against(
                    str(case),
                    f"verdicts are changed from step {k} on, where requests have {shown(known)} tokens",
                    f"step {step} (was, and is then): {shown(differ)}",
                )
        return None

    return rule


def _rows(told: Choosing, sources: list[Any], peeks: bool) -> tuple[list[Row], list[Row]]:
    """Of steps and of emissions."""
    policy = None
    if peeks:
        policy = _Hindsight(told.policy.longest)
        sources = [_Overheard(sources[0], policy), *sources[1:]]
    records = serve(told.scenario, emissions=True, serving=told.serving(sources, policy))
    assert records.emissions is not None
    return records.steps.to_pylist(), records.emissions.to_pylist()


# What must be noticed.


class _Hindsight:
    """Drafts what the first row will have accepted: it is given what types do not give it."""

    rows_only: ClassVar[bool] = False
    verdicts: Verdicts

    def __init__(self, longest: int):
        self.longest = longest

    def begin(self) -> int:
        return 0

    def length(self, view: View, state: int) -> tuple[int, int]:
        most = np.minimum(self.longest, self.verdicts.available())
        return int(self.verdicts.accepted(most)[0]), state


@dataclass(frozen=True)
class _Overheard:
    """Verdicts that a policy has hold of."""

    source: Source
    by: _Hindsight

    @property
    def unconfident(self) -> str | None:
        return self.source.unconfident

    def open(self, slots: int, seed: int) -> Verdicts:
        self.by.verdicts = self.source.open(slots, seed)
        return self.by.verdicts


def _every_place(change: Callable[[Place], Place]) -> Made:
    def made(acceptance: Acceptance) -> Acceptance:
        if not isinstance(acceptance, Sighted):
            return acceptance
        return Sighted(tuple(tuple(map(change, text)) for text in acceptance.texts))

    return made


def _knowing(place: Place) -> Place:
    """Sure of what is right, and of nothing else."""
    return replace(place, sure=tuple(float(j < place.right) for j in range(len(place.sure))))


def _ending(place: Place) -> Place:
    """Without what will be refused."""
    return replace(place, sure=place.sure[: place.right])


def _few(level: int) -> Iterator[Glance]:
    """One request and two, to one slot and two, that draft up to two tokens of one short text."""
    policies: tuple[Policy | RowPolicy, ...] = (ByRule(ExactMarginal(2), 2), Fixed(2))
    for policy, count, step, luck in product(policies, (1, 2), range(2), range(1 + level)):
        for right in product(range(3), repeat=2):
            text = (*(Place((0.9, 0.75), n) for n in right), Place((0.5,), 1), Place((), 0))
            engine = Setup(count, Drafting(Fixed(2), Survival((0.5, 0.5))))
            scenario = Scenario(engine, 0, ((1, 6),) * count, (0,) * count)
            yield Glance(Choosing(scenario, policy, (Sighted((text,)),)), step, luck)


M9C_STATEMENT = Statement(
    words=(
        "Under load no policy sees what it predicts: change every verdict from a step on, and what is "
        "decided of that step stays, for all rows: who drafts, how much, what is submitted, and all that it "
        "costs"
    ),
    formula="decision_k is a function of (blocks and confidences, outcomes of steps before k)",
    rule=_blind(),
    over=(
        "one and two requests that draft up to two tokens of a short text; random scenarios of up to 12 "
        "requests under every option, with every kind of policy and of verdicts; from a random step on "
        "verdicts are redrawn"
    ),
    domain=st.builds(Glance, choosing(), st.integers(0, 50), st.integers(0, 10**6)),
    every=_few,
    examples=40,
)
M9C = Claim(
    id="M9c",
    source="claims ledger, M9: the serving engine",
    statement=M9C_STATEMENT,
    expected="holds",
    because=(
        "A policy is given rows, tokens, prices and the recent acceptance; one that chooses for each row is "
        "also given its block's confidences, which are recorded with the block. The engine asks for verdicts "
        "when a step is over. That blocks and confidences do not hang on verdicts is a promise of whoever "
        "recorded them, and what is changed here holds them to it."
    ),
    broken=(
        M9C_STATEMENT.but("The same of hindsight, were it a policy", _blind(peeks=True)),
        M9C_STATEMENT.but(
            "The same where the drafter is sure of what will be accepted, and of nothing else",
            _blind(_every_place(_knowing)),
        ),
        M9C_STATEMENT.but(
            "The same where a drafter's block ends before the first token that will be refused",
            _blind(_every_place(_ending)),
        ),
    ),
)

CLAIMS = (M9C,)
