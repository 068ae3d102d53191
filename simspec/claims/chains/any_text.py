"""A free lower level below a drafter on any text, independent acceptance or not (S40)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from hypothesis import strategies as st

from simspec.claims.base import Claim, Outcome, Statement, against
from simspec.claims.chains.walked import SOURCE_CS
from simspec.claims.plain import shown


@dataclass(frozen=True)
class HandedUp:
    """A text decoded with blocks of M_d1's own tokens.

    Attributes:
        agreed: at each place, whether M_d1 says what the target says (given the text before it).
        extra: tokens beyond ``least`` that are handed up if a cycle begins at that place.
    """

    agreed: tuple[int, ...]
    least: int
    extra: tuple[int, ...]


def _target_passes(case: HandedUp, extra: tuple[int, ...], first_less: int = 0) -> int:
    """Passes for the whole text; the first cycle is handed ``first_less`` tokens fewer."""
    at = passes = 0
    while at < len(case.agreed):
        handed, end = case.least + extra[at] - (0 if passes else first_less), at
        while end < len(case.agreed) and end - at < handed and case.agreed[end]:
            end += 1
        at, passes = end + 1, passes + 1
    return passes


def _no_more_passes(case: HandedUp, fewer: int = 0, first_less: int = 0) -> Outcome:
    given = tuple(n - fewer for n in case.extra)
    more = _target_passes(case, given, first_less)
    same = _target_passes(case, (0,) * len(case.agreed))
    if more <= same:
        return None
    return against(
        f"M_d1 agrees with the target at {shown(case.agreed)}",
        f"{case.least} tokens in every cycle: {same} passes of the target",
        f"{shown(tuple(case.least + n for n in given))} if begun at that place: {more} passes",
    )


def _texts(level: int) -> Iterator[HandedUp]:
    for size in range(1, 5 + level):
        for agreed in product((1, 0), repeat=size):
            for least, extra in product((1, 2), product((0, 1), repeat=size)):
                yield HandedUp(agreed, least, extra)


@st.composite
def _random_texts(draw: st.DrawFn) -> HandedUp:
    size = draw(st.integers(1, 30))
    agreed = draw(st.lists(st.sampled_from([1, 1, 1, 0]), min_size=size, max_size=size))
    extra = draw(st.lists(st.integers(0, 5), min_size=size, max_size=size))
    return HandedUp(tuple(agreed), draw(st.integers(1, 4)), tuple(extra))


S40_STATEMENT = Statement(
    words=(
        "On every text, handing up n tokens of M_d1 or more in each cycle takes no more passes of the "
        "target than n in each (greedy): with flat costs a free lower level never slows any text, "
        "independent or not"
    ),
    formula="h(t) >= n for all t  =>  passes(h) <= passes(n)",
    rule=_no_more_passes,
    over="all texts of up to 5 tokens, n 1 and 2, up to 1 more at each place; random ones of up to 30 tokens",
    domain=_random_texts(),
    every=_texts,
    examples=150,
)

S40 = Claim(
    id="S40",
    source=f"S11 without its supposition of independent acceptance ({SOURCE_CS} Cor. 4.4)",
    statement=S40_STATEMENT,
    expected="holds",
    because=(
        "Let D(t) be the first place from t on where M_d1 errs. A cycle from t that is handed h tokens ends "
        "at min(D(t), t + h) + 1. D never falls, so a cycle that begins no earlier and is handed no less "
        "ends no earlier: by induction the j-th cycle with more ends no earlier than the j-th with n. Each "
        "costs the same."
    ),
    broken=(
        S40_STATEMENT.but(
            "... or one fewer than n, now and then", lambda case: _no_more_passes(case, fewer=1)
        ),
        S40_STATEMENT.but(
            # It then ends at most one place earlier, and that is at most one pass in all.
            "... or one fewer than n in the first cycle alone",
            lambda case: _no_more_passes(case, first_less=1),
        ),
    ),
)

CLAIMS = (S40,)
