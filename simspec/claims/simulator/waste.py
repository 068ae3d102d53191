"""Slots that a batch's KV cache wastes without packing (S9c, S9e).

S = slots of the rectangle of rows x slots; a row's length = its valid slots; needed = the longest row's
length; waste that packing can win back = S - needed.
gamma = drafts a cycle, so a cycle appends gamma + 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np
from hypothesis import strategies as st

from simspec.claims.base import Claim, Outcome, Plot, Rule, Statement, against
from simspec.claims.plain import shown
from simspec.claims.simulator import faulty_slots
from simspec.claims.simulator.stories import Make
from simspec.speculation.slots import Slots

# S9c, S9e: decoding in cycles without packing.


@dataclass(frozen=True)
class Pattern:
    """What a batch keeps, cycle by cycle: ``kept[c][r]`` of the gamma + 1 tokens appended, 1 to gamma + 1."""

    gamma: int
    kept: tuple[tuple[int, ...], ...]


def all_patterns(level: int) -> Iterator[Pattern]:
    """Patterns of 1 to 3 rows, 1 to 3 cycles and 1 or 2 drafts, few cycles first."""
    sizes = ((1, 1, 1), (1, 2, 1), (2, 1, 1), (2, 2, 1), (2, 2, 2), (2, 3, 1), (3, 2, 1), (3, 2, 2))
    for cycles, rows, gamma in sizes[: 6 + level]:
        one = list(product(range(1, gamma + 2), repeat=rows))
        yield from (Pattern(gamma, kept) for kept in product(one, repeat=cycles))


@st.composite
def patterns(draw: st.DrawFn) -> Pattern:
    """Patterns of up to 5 rows, 6 cycles and 5 drafts."""
    rows, gamma = draw(st.integers(1, 5)), draw(st.integers(1, 5))
    one = st.tuples(*[st.integers(1, gamma + 1)] * rows)
    return Pattern(gamma, tuple(draw(st.lists(one, min_size=1, max_size=6))))


def _cycle(slots: Slots, gamma: int, kept: tuple[int, ...]) -> None:
    """Append gamma + 1 tokens in every row, keep the first ``kept`` of them, cut the common minimum."""
    before = slots.lengths
    slots.append(np.full(len(kept), gamma + 1))
    slots.roll_back(before + np.array(kept))
    slots.truncate()


def _stops_growing(pattern: Pattern) -> Outcome:
    """Whether waste is the same after one, two and three rounds of the pattern."""
    slots, waste, told = Slots(len(pattern.kept[0])), [], []
    for _ in range(3):
        for kept in pattern.kept:
            _cycle(slots, pattern.gamma, kept)
            told.append(
                f"rows keep {shown(kept)} more tokens: S = {slots.slots}, rows have {shown(slots.lengths)}, "
                f"{slots.slots - slots.needed} wasted"
            )
        waste.append(slots.slots - slots.needed)
    if not waste[0] < waste[1] < waste[2]:
        return None
    cycles = len(pattern.kept)
    return against(
        f"gamma = {pattern.gamma}, so every cycle appends {pattern.gamma + 1} slots to each row, and cuts "
        "those at the end that no row keeps; S is the number of slots of a row, and S less the longest row's "
        "tokens is wasted",
        *told[: 2 * cycles],
        f"wasted after 1, 2 and 3 rounds of {cycles} cycles: {shown(tuple(waste))}",
        "each cycle adds the most that a row keeps to S, and to a row what it keeps: n rounds waste n times "
        "what one does",
    )


SLACK, FLOOR, ROUNDS = Fraction(1, 4), 2, 4


def _packed_stays_bounded(make: Make, more: int = 0) -> Rule:
    """With slack 0 the waste is at most floor + gamma + ``more``, however often a pattern repeats."""

    def rule(pattern: Pattern) -> Outcome:
        for floor in (0, FLOOR):
            slots, bound = make(len(pattern.kept[0])), floor + pattern.gamma + more
            for c, kept in enumerate(pattern.kept * ROUNDS):
                if slots.should_compact(0, floor):
                    slots.compact()
                _cycle(slots, pattern.gamma, kept)
                if slots.slots - slots.needed > bound:
                    return against(
                        f"gamma = {pattern.gamma}, floor {floor}; rows keep, cycle by cycle, "
                        f"{shown(pattern.kept)} and again",
                        f"after cycle {c + 1} S = {slots.slots}, and the longest row has {slots.needed} "
                        f"tokens: {slots.slots - slots.needed} wasted, more than {bound}",
                    )
        return None

    return rule


def _waste_by_cycle(pattern: Pattern) -> Plot:
    bare, packed = Slots(len(pattern.kept[0])), Slots(len(pattern.kept[0]))
    series: dict[str, list[float]] = {"without packing": [], "packed (slack 1/4, floor 2)": []}
    cycles = pattern.kept * -(-60 // len(pattern.kept))
    for kept in cycles:
        if packed.should_compact(float(SLACK), FLOOR):
            packed.compact()
        for slots, line in zip((bare, packed), series.values(), strict=True):
            _cycle(slots, pattern.gamma, kept)
            line.append(slots.slots - slots.needed)
    return Plot(
        "Slots that packing could win back",
        "line",
        "cycle",
        "S - needed",
        tuple(range(1, len(cycles) + 1)),
        {name: tuple(line) for name, line in series.items()},
    )


OVER_PATTERNS = (
    "all patterns of 1 draft in up to 2 cycles of up to 3 rows, and of 2 drafts in 2 cycles of 2 rows; at "
    "the default budget of 1 draft in 3 cycles of 2 rows, too, at the largest of 2 drafts in 3 cycles of 2 "
    "rows; random ones of up to 5 rows, 6 cycles and 5 drafts"
)
S9C_REPAIRED = Statement(
    words=(
        "Packed before an append whenever it has more slots than its longest row and a floor, a batch that "
        "repeats any pattern of acceptance never wastes more than floor + gamma slots"
    ),
    formula="S - needed <= floor + gamma after every cycle",
    rule=_packed_stays_bounded(Slots),
    over=OVER_PATTERNS + f"; {ROUNDS} rounds of each with floor 0 and with floor {FLOOR}",
    domain=patterns(),
    every=all_patterns,
    examples=60,
)
S9C = Claim(
    id="S9c",
    source="SpecRouter (2505.07680), StateManager: no data moved but the common minimum's truncation",
    statement=Statement(
        words=(
            "Without packing, wasted slots stay bounded: whatever pattern of acceptance a batch repeats, its "
            "waste stops growing"
        ),
        formula="sup over n rounds of (S - needed) < infinity",
        rule=_stops_growing,
        over=OVER_PATTERNS,
        domain=patterns(),
        every=all_patterns,
        examples=100,
    ),
    expected="refuted",
    because=(
        "Proof for any batch of two rows or more and any gamma >= 1. After truncation a cycle has added "
        "max_r kept_r to S (the row that keeps most ends at the last slot) and kept_r to row r, so after C "
        "cycles waste = sum_c max_r kept - max_r sum_c kept. Let row 0 keep all gamma + 1 and the others 1 "
        "in odd cycles, and the reverse in even ones: S grows by gamma + 1 a cycle, the longest row by "
        "(gamma + 2)/2 on average, and after C = 2n cycles the waste is n gamma, past any bound. Nothing is "
        "ever cut though every row is rolled back in every other cycle. For one row max and sum commute and "
        "the waste is 0. Nor is this contrived: at 64 rows, gamma 4 and acceptance .7 nearly every cycle has "
        "some row that keeps all 5 while a row keeps 2.77 on average, so about 2.2 slots a row and cycle are "
        "wasted. Repaired: before an append S is at most the longest row and the floor, since otherwise the "
        "batch is packed and S is the longest row. The cycle adds at most gamma + 1 slots, and at least one "
        "token to the longest row, so at most floor + gamma slots are wasted after it. That is reached: two "
        "rows of one draft, floor 0, one keeps two tokens and then the other one both times one."
    ),
    pinned=Pattern(1, ((1, 2), (2, 1))),
    repaired=S9C_REPAIRED,
    broken=(
        S9C_REPAIRED.but("The same without packing", _packed_stays_bounded(faulty_slots.NeverPacks)),
        S9C_REPAIRED.but(
            "Packed so, at most floor + gamma - 1 slots are wasted", _packed_stays_bounded(Slots, more=-1)
        ),
    ),
    first_look=(
        "The first look put both halves of S9b under one id; here they are S9b and S9c. Its number, about "
        "2,200 a row after 1,000 cycles at batch 64, is what gamma 4 and acceptance .7 give (2,229 in one "
        "simulated run), but counts S less a row's own length; packing can win back S less the longest row's "
        "(2,076)."
    ),
    plot=_waste_by_cycle,
)


def _ratio(most: Callable[[int], int]) -> Rule:
    def rule(pattern: Pattern) -> Outcome:
        slots = Slots(len(pattern.kept[0]))
        for c, kept in enumerate(pattern.kept, 1):
            _cycle(slots, pattern.gamma, kept)
            short = int(slots.lengths.min())
            if slots.slots > most(pattern.gamma) * short:
                return against(
                    f"gamma = {pattern.gamma}, kept {shown(pattern.kept[:c])}",
                    f"S = {slots.slots}, shortest row {short}",
                )
        return None

    return rule


S9E_STATEMENT = Statement(
    words="Without packing S never exceeds gamma + 1 times the shortest row that was there from the start",
    formula="S <= (gamma + 1) min_r length_r",
    rule=_ratio(lambda gamma: gamma + 1),
    over=OVER_PATTERNS,
    domain=patterns(),
    every=all_patterns,
    examples=100,
)
S9E = Claim(
    id="S9e",
    source="claims ledger, S9b: the ratio of slots to tokens",
    statement=S9E_STATEMENT,
    expected="holds",
    because=(
        "After C cycles S <= C (gamma + 1), and a row has kept at least one token in each, so its length is "
        "at least C. Reached where one row keeps all and another one token in every cycle."
    ),
    broken=(S9E_STATEMENT.but("S never exceeds gamma times the shortest row", _ratio(lambda gamma: gamma)),),
)

CLAIMS = (S9C, S9E)
