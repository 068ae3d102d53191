"""A chain that truncates against the same chain without its middle levels (S24)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction

from hypothesis import strategies as st

from simspec.claims.base import UNMET, Claim, Outcome, Statement, against
from simspec.claims.eq7.cases import ALONE, Choice
from simspec.claims.eq7.readings import truth
from simspec.claims.eq7.rules import described
from simspec.claims.plain import number
from simspec.strategies.chains import Level, Plan, Pool, Semantics, patterns, plans, pools
from simspec.strategies.distributions import all_distributions


def _without_middle(semantics: Semantics) -> Callable[[Choice], Outcome]:
    def rule(case: Choice) -> Outcome:
        plan = case.one
        if len(plan.models) < 3:
            return UNMET
        short = Plan((plan.models[0], plan.models[-1]), plan.drafts)
        longer, shorter = (truth(case.pool, p, semantics).seconds_per_token for p in (plan, short))
        if longer > shorter:
            return None
        return against(
            *described(case.pool, semantics), f"{plan}: {number(longer)}; {short}: {number(shorter)}"
        )

    return rule


def _any_law(slope: int) -> Callable[[int], Iterator[Choice]]:
    """Three models, every law in halves (thirds at larger budgets); the target's tokens cost ``slope``."""

    def cases(level: int) -> Iterator[Choice]:
        target = Level(Fraction(1), Fraction(slope))
        for weights in all_distributions(5, 1 + level):
            law = tuple((w, p) for w, p in zip(patterns(3), weights, strict=True) if p)
            for middle in (1, 2):
                pool = Pool((Level(Fraction(1)), Level(Fraction(middle)), target), law)
                for drafts in (1, 2):
                    yield Choice(pool, Plan((0, 1, 2), drafts), ALONE)

    return cases


S24_STATEMENT = Statement(
    words=(
        "Under funnel-truncate, where a forward takes the same time at any width, every chain is slower "
        "than the same chain and draft without its middle levels, whatever the agreement"
    ),
    rule=_without_middle("funnel-truncate"),
    over="three models with every law in halves; random pools of three and four with any law, drafts up to 3",
    domain=st.sampled_from([3, 3, 4]).flatmap(
        lambda n: st.builds(Choice, pools(n, widths=False), plans(n, 3 if n == 3 else 2), plans(n, 1))
    ),
    every=_any_law(0),
    examples=40,
)
S24 = Claim(
    id="S24",
    source="consequence of S6 for SpecRouter's (2505.07680) chains of three",
    statement=S24_STATEMENT,
    expected="holds",
    because=(
        "By S6 the middle takes tokens away and adds none, and its own forward takes time. So Eq. 7 with "
        "single-token times, read as funnel-truncate, should never choose a third level: where one pays it "
        "is by the width of the target's forward, by the middle's own tokens (funnel-replace, nested), or "
        "not at all."
    ),
    broken=(
        S24_STATEMENT.but("The same under funnel-replace", _without_middle("funnel-replace")),
        S24_STATEMENT.but(
            "The same where forwards take longer for more tokens",
            _without_middle("funnel-truncate"),
            every=_any_law(4),
        ),
    ),
)

CLAIMS = (S24,)
