"""How the best length moves with the fixed cost and the drafter (L24, L25).

p_k = probability that draft k is accepted given that those before it were; tau_d = expected tokens of a
request's cycle that submits d drafts; B requests alike; the best length maximises B tau_d over the time of
the batch's cycle. Where several lengths are best, the shortest and the longest of them are both looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from hypothesis import strategies as st

from simspec.claims.base import UNMET, Claim, Outcome, Statement, against
from simspec.claims.lengths.blocks import Block, all_blocks, blocks, listed
from simspec.claims.plain import shown
from simspec.strategies.costs import rising_costs
from simspec.strategies.survivals import Conditional, chances, tokens_by_outcome
from simspec.theory.lengths import best_lengths

Best = tuple[int, int]


def best(tokens: Sequence[Fraction], cost: Sequence[Fraction]) -> Best:
    """The shortest and the longest best length."""
    found = best_lengths([n / t for n, t in zip(tokens, cost, strict=True)])
    return found[0], found[-1]


def never_rises(found: Sequence[Best]) -> bool:
    return all(now[0] <= before[0] and now[1] <= before[1] for before, now in pairwise(found))


def never_falls(found: Sequence[Best]) -> bool:
    return never_rises(found[::-1])


def told(names: Sequence[object], found: Sequence[Best]) -> str:
    one = (
        f"{name}: {low}" if low == high else f"{name}: {low} and {high}"
        for name, (low, high) in zip(names, found, strict=True)
    )
    return "; ".join(one)


# L24: the fixed cost

ADDED = tuple(Fraction(n, 2) for n in (0, 1, 2, 4, 8, 16, 32))


def _with_fixed(spared: bool) -> Callable[[Block], list[Best]]:
    """Best lengths as a fixed time is added: to every length, or to every one but 0."""

    def found(block: Block) -> list[Best]:
        tokens = tokens_by_outcome(block.p, block.bonus)
        return [
            best(tokens, [t + (0 if spared and d == 0 else more) for d, t in enumerate(block.cost)])
            for more in ADDED
        ]

    return found


def _longer_with(
    of: Callable[[Block], list[Best]], moves: Callable[[Sequence[Best]], bool] = never_falls
) -> Callable[[Block], Outcome]:
    def rule(block: Block) -> Outcome:
        found = of(block)
        if moves(found):
            return None
        return against(
            f"draft k is accepted, given all before it were, with probability {shown(block.p)}",
            f"time by number of drafts: {listed(block.cost)}; bonus {block.bonus}",
            f"best number of drafts by what is added: {told(ADDED, found)}",
        )

    return rule


L24_STATEMENT = Statement(
    words=(
        "The best length never falls as a fixed time is added to every cycle, whatever the cost of drafts; "
        "so it never grows with the batch where a cycle takes a fixed time and each request's own on top"
    ),
    formula=(
        "argmax_d tau_d/(T0 + v(d)) rises in T0;  argmax_d B tau_d/(T0 + B v(d)) falls in B, any rising v"
    ),
    rule=_longer_with(_with_fixed(spared=False)),
    over=(
        "all small blocks with whole costs that never fall, 0 to 16 added; random "
        "ones of up to 7 places with costs of every kind"
    ),
    domain=blocks(rising_costs),
    every=lambda level: all_blocks(max(0, level - 1)),
    examples=60,
)
L24 = Claim(
    id="L24",
    source="follows from LibraSpec's (2608.08721) Eq. 2 and CaDDTree's (2606.01813) objective",
    statement=L24_STATEMENT,
    expected="holds",
    because=(
        "For d < e: e is at least as good as d exactly if T0 (tau_e - tau_d) >= tau_d v(e) - tau_e v(d). "
        "tau_e >= tau_d, so once true it stays true as T0 grows: whoever beats a shorter length goes on "
        "beating it. With a batch divide by B: only T0/B counts. No shape of v is used; padding each "
        "request to a multiple is allowed."
    ),
    broken=(
        L24_STATEMENT.but(
            "The same with a fixed time that length 0 is spared, such as starting the drafter",
            _longer_with(_with_fixed(spared=True)),
        ),
        L24_STATEMENT.but(
            "The best length never grows as a fixed time is added",
            _longer_with(_with_fixed(spared=False), never_rises),
        ),
    ),
)


# L25: a better drafter


@dataclass(frozen=True)
class Better:
    """A block, and what the chance of one place (from 1) rises to."""

    block: Block
    place: int
    chance: Fraction

    def raised(self) -> Conditional:
        """All other chances, each given that the places before were accepted, stay."""
        k = self.place - 1
        return (*self.block.p[:k], self.chance, *self.block.p[k + 1 :])

    def only_here(self) -> Conditional:
        """The survivals of all other places stay, so the next place's chance falls."""
        k, p = self.place - 1, list(self.raised())
        if k + 1 < len(p):
            p[k + 1] *= self.block.p[k] / self.chance
        return tuple(p)


def _longer_when(change: Callable[[Better], Conditional]) -> Callable[[Better], Outcome]:
    def rule(case: Better) -> Outcome:
        block, then = case.block, change(case)
        if block.bonus == 0 and block.p[0] == 0:
            return UNMET  # nothing is emitted at any length: none is best
        found = [best(tokens_by_outcome(p, block.bonus), block.cost) for p in (block.p, then)]
        if never_falls(found):
            return None
        return against(
            f"drafts are accepted, given all before were, with {shown(block.p)}; then with {shown(then)}",
            f"time by number of drafts: {listed(block.cost)}; bonus {block.bonus}",
            f"best number of drafts: {told(('before', 'after'), found)}",
        )

    return rule


def _all_better(level: int) -> Iterator[Better]:
    for block in all_blocks(max(0, level - 1)):
        for place, chance in enumerate(block.p, 1):
            if chance < 1:
                yield Better(block, place, min(Fraction(1), chance + Fraction(1, 3)))


@st.composite
def _random_better(draw: st.DrawFn) -> Better:
    block = draw(blocks(rising_costs))
    place = draw(st.integers(1, len(block.p)))
    chance = max(block.p[place - 1], draw(chances()))
    return Better(block, place, chance if chance > 0 else Fraction(1))


L25_STATEMENT = Statement(
    words=(
        "The best length never falls when the chance of one place rises, the others (each given that all "
        "before were accepted) staying as they are, whatever the cost"
    ),
    formula="p_k <= p'_k for all k  =>  argmax_d tau_d(p)/T(d) <= argmax_d tau_d(p')/T(d)",
    rule=_longer_when(Better.raised),
    over=(
        "all small blocks with whole costs that never fall, each chance raised by a third; "
        "random ones of up to 7 places with costs of every kind"
    ),
    domain=_random_better(),
    every=_all_better,
    examples=100,
)
L25 = Claim(
    id="L25",
    source="follows from CaDDTree's (2606.01813) objective",
    statement=L25_STATEMENT,
    expected="holds",
    because=(
        "For d >= k tau_d = A + p_k Y_d, where A is what is emitted before place k and Y_d >= 0 rises with "
        "d; for d < k p_k is not in it. For d < e the ratio tau_e/tau_d is then A + p_k Y_e over a constant "
        "or over A + p_k Y_d with Y_e >= Y_d: it cannot fall as p_k rises. So whoever beats a shorter "
        "length goes on beating it, at any cost. Where no token is expected at all nothing is best, and the "
        "rule says nothing."
    ),
    broken=(
        L25_STATEMENT.but(
            "The same when survival rises at one place and nowhere else", _longer_when(Better.only_here)
        ),
    ),
)

CLAIMS = (L24, L25)
