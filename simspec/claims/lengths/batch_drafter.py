"""How the best length moves with the batch where the drafter has a fixed time of its own (L26).

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
from simspec.claims.lengths.blocks import listed
from simspec.claims.lengths.ties import (
    Best,
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
from simspec.claims.plain import shown
from simspec.strategies.costs import amounts
from simspec.strategies.survivals import Conditional, all_conditionals, conditionals, grid, tokens_by_outcome


@dataclass(frozen=True)
class Drafted:
    """T_B(d) = fixed + draft d + B (request + d).

    The target's weights are read once, the drafter's for every draft; each request costs something whatever
    is drafted (its own token, its context) and 1 for each draft.
    """

    p: Conditional
    fixed: Fraction
    draft: Fraction
    request: Fraction
    bonus: int = 1

    def best(self) -> list[Best]:
        tokens = tokens_by_outcome(self.p, self.bonus)
        return [
            best(tokens, [self.fixed + self.draft * d + b * (self.request + d) for d in range(len(tokens))])
            for b in BATCHES
        ]


BATCHES = (1, 2, 3, 4, 6, 8, 16, 64)


def _falls_if(case: Drafted) -> bool:
    return case.draft * case.request <= case.fixed


def _rises_if(case: Drafted) -> bool:
    return case.draft * case.request >= case.fixed


def _direction(
    shorter: Callable[[Drafted], bool] = _falls_if,
    longer: Callable[[Drafted], bool] = _rises_if,
    read_shorter: Reading = as_found,
    read_longer: Reading = as_found,
) -> Callable[[Drafted], Outcome]:
    """Whether the best length never rises with the batch where ``shorter`` says so of the case, and never
    falls where ``longer`` does."""

    def rule(case: Drafted) -> Outcome:
        if case.bonus == 0 and case.p[0] == 0:
            return UNMET  # nothing is emitted at any length: none is best
        found = case.best()
        falls = not shorter(case) or never_rises(found, read_shorter)
        rises = not longer(case) or never_falls(found, read_longer)
        if falls and rises:
            return None
        return against(
            f"draft k is accepted, given all before it were, with probability {shown(case.p)}",
            f"expected tokens of a request, {'with' if case.bonus else 'without'} the target's own: "
            + listed(tokens_by_outcome(case.p, case.bonus)),
            f"time of a cycle: T0 + g d + B (k + d), T0 = {case.fixed}, g = {case.draft}, k = {case.request}",
            f"best number of drafts by batch: {told(BATCHES, found)}",
        )

    return rule


def _all_drafted(level: int) -> Iterator[Drafted]:
    for p in all_conditionals(2, grid(2 + level)):
        for fixed, draft, request in product(range(3), range(3), (1, 2, 6)):
            for bonus in (1, 0):
                yield Drafted(p, Fraction(fixed), Fraction(draft), Fraction(request), bonus)


L26_STATEMENT = Statement(
    words=(
        "With a drafter that reads its weights for every token, the best length never rises with the batch "
        "if g k <= c T0 and never falls with it if g k >= c T0 (T0: target's fixed time; g: drafter's, a "
        "token; k: each request's own time, its context included; c: a draft's), if some token is "
        "expected of one draft"
    ),
    formula=(
        "T_B(d) = T0 + g d + B (k + c d), k > 0, c > 0, tau_1 > 0:  argmax_d tau_d/T_B(d) never rises with B "
        "if g k <= c T0, never falls if g k >= c T0   (of several best lengths the shortest and the longest)"
    ),
    rule=_direction(),
    over=(
        "all blocks of up to 2 places with chances in thirds (smallest effort: halves; largest: quarters), "
        "with and without the bonus, T0 and g in 0 .. 2, k = 1, 2, 6, c = 1, B = 1 .. 64; random ones of up "
        "to 6 places, T0, g and k to 40"
    ),
    domain=st.builds(Drafted, conditionals(longest=6), amounts(), amounts(), amounts(1), st.integers(0, 1)),
    every=_all_drafted,
    examples=60,
)
L26 = Claim(
    id="L26",
    source="MagicDec (2408.11049): at long context speculation gains with the batch",
    statement=L26_STATEMENT,
    expected="holds",
    because=(
        "For d < e the ratio T_B(e)/T_B(d) goes monotonically from (T0 + g e)/(T0 + g d) at B = 0 to (k + c "
        "e)/(k + c d); it rises with B, or stays, exactly if g k <= c T0. tau_e/tau_d does not depend on B "
        "(without the bonus length 0 emits nothing and is never best). A long context makes k large against "
        "c: then a larger batch favours longer blocks, as it does not with a short one (k = c, g below T0)."
    ),
    broken=(
        L26_STATEMENT.but(
            "It never rises with the batch if the drafter's fixed time is at most the target's, g <= T0",
            _direction(shorter=lambda x: x.draft <= x.fixed),
        ),
        L26_STATEMENT.but(
            "It never falls with the batch where each request's own time is that of two drafts or more",
            _direction(longer=lambda x: x.request >= 2),
        ),
        L26_STATEMENT.but(
            "It never rises if, before, the shortest of several best lengths stands for the longest",
            _direction(read_shorter=shortest_before),
        ),
        L26_STATEMENT.but(
            "It never rises if, afterwards, the longest of several best lengths stands for the shortest",
            _direction(read_shorter=longest_after),
        ),
        L26_STATEMENT.but(
            "It never falls if, afterwards, the shortest of several best lengths stands for the longest",
            _direction(read_longer=shortest_after),
        ),
        L26_STATEMENT.but(
            "It never falls if, before, the longest of several best lengths stands for the shortest",
            _direction(read_longer=longest_before),
        ),
    ),
)

CLAIMS = (L26,)
