"""How the best length moves with the fixed cost and the drafter (L24, L25).

p_k = probability that draft k is accepted given that those before it were; tau_d = expected tokens of a
request's cycle that submits d drafts; B requests alike; the best length maximises B tau_d over the time of
the batch's cycle. Where several lengths are best, the shortest and the longest of them are both looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from hypothesis import strategies as st

from simspec.claims.base import UNMET, Claim, Outcome, Statement, against
from simspec.claims.lengths.blocks import Block, all_blocks, blocks, listed
from simspec.claims.lengths.ties import (
    Reading,
    as_found,
    best,
    longest_after,
    longest_before,
    never_falls,
    never_rises,
    shortest_after,
    shortest_before,
    told,
)
from simspec.claims.plain import number, shown
from simspec.strategies.costs import rising_costs
from simspec.strategies.survivals import Conditional, chances, grid, tokens_by_outcome

# L24: the fixed cost

ADDED = tuple(Fraction(n, 2) for n in (0, 1, 2, 4, 8, 16, 32))
BATCHES = (1, 2, 3, 4, 8, 16, 64)
SHARED = (Fraction(1), Fraction(8))

# Of (d, time): what of it a cycle of d drafts takes.
Charge = Callable[[int, Fraction], Fraction]


def _all_of_it(d: int, time: Fraction) -> Fraction:
    return time


def _spared_by_none(d: int, time: Fraction) -> Fraction:
    """Length 0 is spared it, as it is the starting of a drafter."""
    return time if d else Fraction(0)


def _for_each(d: int, time: Fraction) -> Fraction:
    return d * time


def _moved_by_fixed(
    added: Charge = _all_of_it,
    shared: Charge = _all_of_it,
    read_added: Reading = as_found,
    read_batch: Reading = as_found,
) -> Callable[[Block], Outcome]:
    """Whether best lengths never fall as time is added, nor rise with the batch at a shared fixed time.

    Args:
        added, shared: how much of the added, and of the shared, time each length takes.
        read_added, read_batch: how ties of neighbours are read.
    """

    def rule(block: Block) -> Outcome:
        tokens = tokens_by_outcome(block.p, block.bonus)
        head = (
            f"draft k is accepted, given all before it were, with probability {shown(block.p)}",
            f"time by number of drafts: {listed(block.cost)}; expected tokens: {listed(tokens)}",
        )
        found = [best(tokens, [t + added(d, more) for d, t in enumerate(block.cost)]) for more in ADDED]
        if not never_falls(found, read_added):
            return against(*head, f"best number of drafts by what is added: {told(ADDED, found)}")
        for fixed in SHARED:
            found = [
                best(tokens, [shared(d, fixed) + batch * t for d, t in enumerate(block.cost)])
                for batch in BATCHES
            ]
            if not never_rises(found, read_batch):
                return against(
                    *head,
                    f"that is a request's own time, and a cycle takes {number(fixed)} besides",
                    f"best number of drafts by batch: {told(BATCHES, found)}",
                )
        return None

    return rule


L24_STATEMENT = Statement(
    words=(
        "The best length never falls as a fixed time is added to every cycle, whatever the cost of drafts; "
        "and it never grows with the batch where a cycle takes a fixed time and each request's own on top"
    ),
    formula=(
        "argmax_d tau_d/(T0 + v(d)) never falls with T0;  argmax_d B tau_d/(T0 + B v(d)) never rises with "
        "B   (v > 0, never falling; of several best lengths the shortest and the longest)"
    ),
    rule=_moved_by_fixed(),
    over=(
        "all blocks of up to 2 places with chances in thirds and every cost with T(0) of 1 or 2 and steps "
        "up of 0, 1, 2, with and without the bonus (largest effort: 3 places, chances 0, 1/2, 1); random "
        "ones of up to 7 places with costs of every kind; 0 to 16 added in 6 steps, and fixed times of 1 "
        "and 8 with 1 to 64 requests"
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
            "The same with an added time that length 0 is spared, such as starting the drafter",
            _moved_by_fixed(added=_spared_by_none),
        ),
        L24_STATEMENT.but("The same with an added time for each draft", _moved_by_fixed(added=_for_each)),
        L24_STATEMENT.but(
            "The same with a batch's fixed time that length 0 is spared",
            _moved_by_fixed(shared=_spared_by_none),
        ),
        L24_STATEMENT.but(
            "The same of added time if, afterwards, the shortest of several best lengths stands for the "
            "longest",
            _moved_by_fixed(read_added=shortest_after),
        ),
        L24_STATEMENT.but(
            "The same of added time if, before, the longest of several best lengths stands for the shortest",
            _moved_by_fixed(read_added=longest_before),
        ),
        L24_STATEMENT.but(
            "The same of batches if, before, the shortest of several best lengths stands for the longest",
            _moved_by_fixed(read_batch=shortest_before),
        ),
        L24_STATEMENT.but(
            "The same of batches if, afterwards, the longest of several best lengths stands for the shortest",
            _moved_by_fixed(read_batch=longest_after),
        ),
    ),
)


# L25: a better drafter


@dataclass(frozen=True)
class Better:
    """A block, and chances none of which is below the block's own."""

    block: Block
    raised: Conditional


def _raised(case: Better) -> Conditional:
    return case.raised


def _only_first(case: Better) -> Conditional:
    """Survival rises at the first place whose chance does, and is at all others what it was."""
    p = list(case.block.p)
    for k, chance in enumerate(case.raised):
        if chance > p[k]:
            if k + 1 < len(p):
                p[k + 1] *= p[k] / chance
            p[k] = chance
            break
    return tuple(p)


def _longer_when(
    change: Callable[[Better], Conditional] = _raised, read: Reading = as_found
) -> Callable[[Better], Outcome]:
    def rule(case: Better) -> Outcome:
        block, then = case.block, change(case)
        if block.bonus == 0 and block.p[0] == 0:
            return UNMET  # nothing is emitted at any length: none is best
        found = [best(tokens_by_outcome(p, block.bonus), block.cost) for p in (block.p, then)]
        if never_falls(found, read):
            return None
        return against(
            f"drafts are accepted, given all before were, with {shown(block.p)}; then with {shown(then)}",
            f"time by number of drafts: {listed(block.cost)}",
            f"expected tokens before: {listed(tokens_by_outcome(block.p, block.bonus))}; then: "
            + listed(tokens_by_outcome(then, block.bonus)),
            f"best number of drafts: {told(('before', 'then'), found)}",
        )

    return rule


def _all_better(level: int) -> Iterator[Better]:
    for block in all_blocks(max(0, level - 1)):
        for raised in product(grid(2 + (level < 2)), repeat=len(block.p)):
            if raised != block.p and all(a <= b for a, b in zip(block.p, raised, strict=True)):
                yield Better(block, raised)


@st.composite
def _random_better(draw: st.DrawFn) -> Better:
    block = draw(blocks(rising_costs))
    return Better(block, tuple(max(p, draw(chances())) if draw(st.booleans()) else p for p in block.p))


L25_STATEMENT = Statement(
    words=(
        "The best length never falls when chances rise, each being that of a place given that all before it "
        "were accepted, and none falls, whatever the cost, if some token is expected of one draft"
    ),
    formula=(
        "p_k <= p'_k for all k  =>  argmax_d tau_d(p)/T(d) <= argmax_d tau_d(p')/T(d)   (T > 0, tau_1(p) > "
        "0; of several best lengths the shortest and the longest)"
    ),
    rule=_longer_when(),
    over=(
        "all blocks of up to 2 places with chances in thirds and every cost with T(0) of 1 or 2 and steps "
        "up of 0, 1, 2, with and without the bonus, with all larger chances in thirds (largest effort: 3 "
        "places, chances 0, 1/2, 1); random ones of up to 7 places with costs of every kind, any number of "
        "chances raised"
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
        "Raise the chances one after the other. For d >= k tau_d = A + p_k Y_d, where A is what is emitted "
        "before place k and Y_d >= 0 rises with d; for d < k p_k is not in it. For d < e the ratio "
        "tau_e/tau_d is then A + p_k Y_e over a constant or over A + p_k Y_d with Y_e >= Y_d: it cannot "
        "fall as p_k rises. So whoever beats a shorter length goes on beating it, at any cost. Where no "
        "token is expected at all nothing is best, and the rule says nothing."
    ),
    broken=(
        L25_STATEMENT.but(
            "The same when survival rises at one place and nowhere else", _longer_when(_only_first)
        ),
        L25_STATEMENT.but(
            "The same if, afterwards, the shortest of several best lengths stands for the longest",
            _longer_when(read=shortest_after),
        ),
        L25_STATEMENT.but(
            "The same if, before, the longest of several best lengths stands for the shortest",
            _longer_when(read=longest_before),
        ),
    ),
)

CLAIMS = (L24, L25)
