"""Which chains keep the target's distribution under rejection sampling (S5, S5b, S5c, S33, S34).

p = the target's distribution, q1 = the drafter's, q2 = an intermediate's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction

from hypothesis import strategies as st

from simspec.claims.base import Claim, Outcome, Statement, against
from simspec.claims.lossless.chance import LOSSLESS, beginnings
from simspec.claims.lossless.faulty_judges import AsDrafted, AsVerified, Fresh, OwnAsDrafted, Sure
from simspec.claims.lossless.sampled_cases import (
    Case,
    all_cases,
    cases_of,
    early,
    every_case,
    first_text_tokens,
    lossless,
    over_models,
    texts_of,
)
from simspec.speculation.verify import RejectionJudge
from simspec.strategies.distributions import normalised, overlap
from simspec.strategies.models import Chances, Table, distribution_levels

# S5

_INDUCTION = (
    "One place: x drawn from q is let through with min(1, p/q), which gives min(p, q); a refusal, of "
    "probability 1 - sum min(p, q), draws from (p - q)+ over the same number. Together: min(p, q) + (p - "
    "q)+ = p, given all tokens before. By induction along the text every token is a draw from p."
)

S5_STATEMENT = Statement(
    words=(
        "With rejection sampling at each level a pair or a funnel-replace chain is lossless: the joint "
        "distribution of the emitted text's first n tokens is the target's, for every n"
    ),
    formula=LOSSLESS,
    rule=lossless(),
    over=over_models("pairs and funnel-replace"),
    domain=cases_of("funnel-replace", 2),
    every=every_case("funnel-replace"),
    examples=100,
)
S5 = Claim(
    id="S5",
    source=(
        "Leviathan et al. (2211.17192) Thm 1 for a pair; SpecRouter (2505.07680) with three and more levels"
    ),
    statement=S5_STATEMENT,
    expected="holds",
    because=(
        f"{_INDUCTION} An intermediate's accepted tokens with its own one after them are thus draws from q2, "
        "whatever drafted them, and q2 is what the next level weighs them against. That the block's length "
        "is random does no harm: it says which places are drafted, and is settled at each place by the "
        "tokens before it."
    ),
    broken=(
        S5_STATEMENT.but("... also if a refusal is followed by a draw from p itself", lossless(Fresh)),
        S5_STATEMENT.but("... also if a token is let through exactly where p(x) >= q(x)", lossless(Sure)),
        S5_STATEMENT.but(
            "... also if the target weighs what the intermediate accepted against the drafter's distribution",
            lossless(OwnAsDrafted),
        ),
    ),
)

# S5b, S5c


def _memoryless(*weights: tuple[int, ...]) -> tuple[Chances, ...]:
    return tuple(Table(len(w), 0, (normalised(w),)) for w in weights)


S5C_STATEMENT = Statement(
    words=(
        "Funnel-truncate with rejection sampling is lossless if every verifier weighs what survived the "
        "one below it against min(q1, q2) / sum min(q1, q2)"
    ),
    formula=LOSSLESS,
    rule=lossless(),
    over=over_models("funnel-truncate"),
    domain=cases_of("funnel-truncate"),
    every=every_case("funnel-truncate"),
    examples=100,
)
S5C = Claim(
    id="S5c",
    source="repair of S5b; chains of SpecRouter (2505.07680)",
    statement=S5C_STATEMENT,
    expected="holds",
    because=(
        "Place i survives with probability b = sum min(q1, q2), given the tokens before it, and a survivor "
        "is then distributed as min(q1, q2) / b. Whether place i is offered to the target is settled by "
        "the tokens before it and by luck that is independent of which token survived. So the target sees "
        "an honest draw from min(q1, q2) / b, or nothing and draws from p itself: p either way, and the "
        "induction of S5 goes through. With more levels the same holds of min(q1, q2) / b in the place of "
        "q1."
    ),
    broken=(
        S5C_STATEMENT.but("... if it weighs it against the intermediate's q2", lossless(AsVerified)),
        S5C_STATEMENT.but("... if it weighs it against the drafter's q1", lossless(AsDrafted)),
        S5C_STATEMENT.but("... also if a refusal is followed by a draw from p itself", lossless(Fresh)),
    ),
)
S5B = Claim(
    id="S5b",
    source="the plain reading of SpecRouter's (2505.07680) chains in sampling mode",
    statement=S5C_STATEMENT.but(
        "Funnel-truncate with rejection sampling is lossless if the target weighs what survived against the "
        "distribution it was drafted from, q1",
        lossless(AsDrafted),
    ),
    expected="refuted",
    because=(
        "What survives the intermediate is no longer a draw from q1: tokens that q2 dislikes are gone. "
        "Where p/q1 >= 1 for all that survive, the target passes on the intermediate's bias as it is."
    ),
    pinned=Case("funnel-truncate", 1, 2, _memoryless((1, 1), (1, 0), (1, 1))),
    repaired=S5C_STATEMENT,
    plot=first_text_tokens(AsDrafted),
)


# S33: nested chains


def _uncollected(case: Case) -> Outcome:
    return lossless(OwnAsDrafted)(case)


S33_STATEMENT = Statement(
    words=(
        "Nested chains with rejection sampling at each level are lossless: what a level collects over its "
        "inner rounds are draws of its own, and the level above weighs them as such"
    ),
    formula=LOSSLESS,
    rule=lossless(),
    over=over_models("nested"),
    domain=cases_of("nested"),
    every=every_case("nested"),
    examples=100,
)
S33 = Claim(
    id="S33",
    source="CS-Drafting (2312.11462), vertical cascade, in sampling mode",
    statement=S33_STATEMENT,
    expected="holds",
    because=(
        "By S5 applied to the inner chain, its text of any length is distributed as the intermediate's "
        "own; so it is an honest draft from q2, and S5 for a pair does the rest. Rounds end when enough "
        "tokens are collected: a number, whatever the tokens are."
    ),
    broken=(
        S33_STATEMENT.but(
            "... also if the target weighs what the intermediate accepted against the drafter", _uncollected
        ),
        S33_STATEMENT.but("... also if a refusal is followed by a draw from p itself", lossless(Fresh)),
    ),
)

# S34: early-emit


@st.composite
def _twins(draw: st.DrawFn) -> Case:
    """Early-emit chains whose intermediate is the target itself."""
    drafter, target = draw(distribution_levels(2, draw(st.integers(2, 3)), 0))
    return Case("early-emit", 1, 2, (drafter, target, target))


def _every_early(level: int) -> Iterator[Case]:
    return all_cases("early-emit", 3, 0, 3 + level, 1, 2)


def _first_of_early(share: Callable[[Fraction], Fraction]) -> Callable[[Case], Outcome]:
    """P(first token = x) = min(q1, q2)(x) + share(b) p(x)."""

    def rule(case: Case) -> Outcome:
        q1, q2, p = (model.after(()) for model in case.models)
        rest = share(overlap(q1, q2))
        found = beginnings(texts_of(case), 1)
        for x in range(len(p)):
            wanted = min(q1[x], q2[x]) + rest * p[x]
            if found.get((x,), Fraction(0)) != wanted:
                return against(
                    *case.lines(), f"P(first = {x}) is {found.get((x,), Fraction(0))}, not {wanted}"
                )
        return None

    return rule


S34 = Claim(
    id="S34",
    source=(
        "the reading of SpecRouter (2505.07680) in which an intermediate's verdict is emitted; S4b in "
        "sampling mode"
    ),
    statement=Statement(
        words=(
            "An early-emit chain is lossless in sampling mode if its intermediate is the target itself, q2 "
            "= p"
        ),
        formula=LOSSLESS,
        rule=lossless(),
        over="random drafters and targets over 2 and 3 tokens without memory",
        domain=_twins(),
    ),
    expected="refuted",
    because=(
        "Survivors are draws from min(q1, p) / b and go out unseen, while the token after a cut is drawn "
        "from p and not from (p - q1)+: what the drafter says too rarely is never made up for. Under "
        "greedy decoding the same chain is the target's text (S4b)."
    ),
    pinned=Case("early-emit", 1, 2, _memoryless((1, 0), (1, 1), (1, 1))),
    repaired=Statement(
        words=(
            "With one token drafted, an early-emit chain's first token has the distribution min(q1, q2) + "
            "(1 - b) p with b = sum min(q1, q2): right only where survivors happen to be draws from p"
        ),
        formula="P(x_1) = min(q1, q2)(x_1) + (1 - b) p(x_1)",
        rule=_first_of_early(lambda b: 1 - b),
        over="all models over 2 tokens without memory, thirds and quarters; random ones over 2 and 3 tokens",
        domain=early(),
        every=_every_early,
        examples=100,
    ),
    plot=first_text_tokens(RejectionJudge),
)

CLAIMS = (S5, S5B, S5C, S33, S34)
