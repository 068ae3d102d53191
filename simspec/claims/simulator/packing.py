"""What a batch's KV cache wastes, and copies, if it is packed now and then (S9d).

S = slots of the rectangle of rows x slots; a row's length = its valid slots; needed = the longest row's
length; waste that packing can win back = S - needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

from hypothesis import strategies as st

from simspec.claims.base import Claim, Outcome, Rule, Statement, against
from simspec.claims.plain import number, shown
from simspec.claims.simulator import faulty_slots
from simspec.claims.simulator.cases import counted
from simspec.claims.simulator.stories import (
    OVER_STORIES,
    Cache,
    Make,
    Story,
    Texts,
    after,
    all_stories,
    narrated,
    stories,
)
from simspec.speculation.slots import Slots

# S9d: packing.


@dataclass(frozen=True)
class Packed:
    """A story during which the owner packs whenever the rule asks, before an append."""

    slack: Fraction
    floor: int
    story: Story


def all_packed(level: int) -> Iterator[Packed]:
    for story in all_stories(level):
        if story.steps[-1][0] == "append":  # the bound is looked at after appends
            yield Packed(Fraction(0), 0, story)
            yield Packed(Fraction(1, 2), 1, story)


def _from_level_1(level: int) -> Iterator[Packed]:
    """Level 0 has no append of two tokens, which it takes to catch these variants."""
    yield from all_packed(max(level, 1))


def packed_stories() -> st.SearchStrategy[Packed]:
    slack = st.sampled_from([Fraction(0), Fraction(1, 100), Fraction(1, 4), Fraction(1), Fraction(3)])
    return st.builds(Packed, slack, st.sampled_from([0, 1, 5]), stories(longest=30))


def _bounded(make: Make, last_width: int = 1) -> Rule:
    """S <= needed (1 + slack) + floor + width after each append; slack x slots copied < slots appended."""

    def rule(case: Packed) -> Outcome:
        texts: Texts = [[] for _ in range(case.story.rows)]
        cache, appended, copied, packings = Cache(make(case.story.rows)), 0, 0, 0
        for step in case.story.steps:
            if step[0] == "append" and cache.slots.should_compact(case.slack, case.floor):  # type: ignore[arg-type]
                cache.do(("compact", ()), texts)
                copied, packings = copied + cache.slots.slots, packings + 1
            texts = after(texts, step, 0)
            cache.do(step, texts)
            if step[0] != "append":
                continue
            width, needed = max(step[1]), max(len(t) for t in texts if t is not None)
            appended += width
            bound = needed * (1 + case.slack) + case.floor + last_width * width
            if cache.slots.slots > bound:
                return against(
                    _told(case),
                    f"after appending {shown(step[1])} S = {cache.slots.slots}, the longest row has {needed}",
                    f"the bound is {number(bound)}",
                )
            if packings and not case.slack * copied + packings * case.floor < appended:
                paid = case.slack * copied + packings * case.floor
                return against(
                    _told(case),
                    f"packed {packings} times, copying {copied} slots of each row: slack x slots copied + "
                    f"floor x packings = {number(paid)}",
                    f"{appended} slots were appended, which is not more",
                )
        return None

    return rule


def _told(case: Packed) -> str:
    rows = counted(case.story.rows, "row")
    return f"{rows}, slack {case.slack}, floor {case.floor}: {narrated(case.story)}"


def _with(slack: int, floor: int) -> Callable[[int], Iterator[Packed]]:
    """The enumerated stories with this slack and floor, appends of two tokens at every level."""
    return lambda level: (Packed(Fraction(slack), floor, case.story) for case in _from_level_1(level))


S9D_STATEMENT = Statement(
    words=(
        "Packed whenever Slots' rule asks, before an append, a cache never has more slots than (1 + slack) "
        "times its longest row, the floor and one append, whatever is rolled back, finished, removed or "
        "joined; and where slack is not 0, less than 1/slack slots are copied for every slot appended"
    ),
    formula="S <= needed (1 + slack) + floor + width;  slack sum copied + floor packings < sum appended",
    rule=_bounded(Slots),
    over=OVER_STORIES
    + "; slack 0 with floor 0 and slack 1/2 with floor 1, in random ones slack 0 to 3 and floor 0 to 5",
    domain=packed_stories(),
    every=all_packed,
    examples=150,
)
S9D = Claim(
    id="S9d",
    source="the compaction rule of simspec.speculation.slots; what SpecRouter's StateManager leaves open",
    statement=S9D_STATEMENT,
    expected="holds",
    because=(
        "Before an append either the rule was quiet, which is S <= needed (1 + slack) + floor, or S = "
        "needed; the append adds its width to S and does not lower needed. Copies: let n_i be needed at "
        "packing i (n_0 = 0) and W_i the slots appended since the one before. Packing i finds n_i (1 + "
        "slack) + floor < S <= n_(i-1) + W_i, so slack n_i + floor < W_i + n_(i-1) - n_i; summed over i the "
        "n telescope. The first bound is reached: the longest row need not get a token in an append."
    ),
    broken=(
        S9D_STATEMENT.but(
            "The same where finished rows stay in the minimum",
            _bounded(faulty_slots.FinishedStay),
            every=_from_level_1,
        ),
        S9D_STATEMENT.but("The same without the last append's width", _bounded(Slots, last_width=0)),
        S9D_STATEMENT.but(
            "The same where the rule allows twice the mean row, not the longest",
            _bounded(faulty_slots.AsksMean),
            every=_from_level_1,
        ),
        S9D_STATEMENT.but(
            "The same, packed whenever that wins a slot, whatever the floor",
            _bounded(faulty_slots.PacksAlways),
            domain=None,
            every=_with(slack=0, floor=2),
        ),
        S9D_STATEMENT.but(
            "The same, packed whenever that wins a slot, whatever the slack",
            _bounded(faulty_slots.PacksAlways),
            domain=None,
            every=_with(slack=3, floor=0),
        ),
    ),
)

CLAIMS = (S9D,)
