"""Which chains keep the target's distribution under rejection sampling (S5, S5b, S5c, S33).

p = the target's distribution, q1 = the drafter's, q2 = an intermediate's.
"""

from __future__ import annotations

from simspec.claims.base import Claim, Statement
from simspec.claims.lossless.chance import LOSSLESS
from simspec.claims.lossless.faulty_judges import (
    AsDrafted,
    AsVerified,
    Fresh,
    OwnAsDrafted,
    Sure,
    Trusting,
    hidden,
    late,
)
from simspec.claims.lossless.sampled_cases import (
    Case,
    cases_of,
    every_case,
    first_text_tokens,
    lossless,
    memoryless,
    over_models,
)

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
    over=over_models("funnel-replace", pairs=True),
    domain=cases_of("funnel-replace", 2),
    every=every_case("funnel-replace", pairs=True),
    examples=60,
)
S5 = Claim(
    id="S5",
    source=("arXiv 2211.17192 Thm 1 for a pair; SpecRouter (2505.07680) with three and more levels"),
    statement=S5_STATEMENT,
    expected="holds",
    because=(
        f"{_INDUCTION} An intermediate's accepted tokens with its own one after them are thus draws from q2, "
        "whatever drafted them, and q2 is what the next level weighs them against. That this block's length "
        "is random does no harm. It depends on which drafts the intermediate refused, so it is not settled "
        "by the tokens before a place. But whether the block goes on after place i is luck of the "
        "intermediate's at places 1 to i; given the tokens there, which are what it handed on, that luck "
        "is independent of the intermediate's draw at place i + 1 and of the target's luck. So each place "
        "that is handed on holds an honest draw from q2, given the tokens before it."
    ),
    broken=(
        S5_STATEMENT.but("... also if a refusal is followed by a draw from p itself", lossless(Fresh)),
        S5_STATEMENT.but("... also if a token is let through exactly where p(x) >= q(x)", lossless(Sure)),
        S5_STATEMENT.but(
            "... also if the target weighs what the intermediate accepted against the drafter's distribution",
            lossless(OwnAsDrafted),
        ),
        S5_STATEMENT.but(
            "... also if all is accepted from a block's third place on", lossless(late(Trusting, 2))
        ),
        *hidden(S5_STATEMENT, lossless),
    ),
)

# S5b, S5c

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
    examples=60,
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
        S5C_STATEMENT.but(
            "... if it weighs it against q1 from a block's third place on", lossless(late(AsDrafted, 2))
        ),
        S5C_STATEMENT.but("... also if a refusal is followed by a draw from p itself", lossless(Fresh)),
        *hidden(S5C_STATEMENT, lossless),
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
        "Where p/q1 >= 1 for all that survive, the target passes on the intermediate's bias as it is. The "
        "repaired statement is S5c, with its reason."
    ),
    pinned=Case("funnel-truncate", 1, 2, memoryless((1, 1), (1, 0), (1, 1))),
    repaired=S5C_STATEMENT,
    broken=hidden(S5C_STATEMENT, lossless),
    plot=first_text_tokens(AsDrafted),
)


# S33: nested chains

S33_STATEMENT = Statement(
    words=(
        "Nested chains with rejection sampling at each level are lossless: what a level collects over its "
        "inner rounds are draws of its own, and the level above weighs them as such"
    ),
    formula=LOSSLESS,
    rule=lossless(),
    over=over_models("nested") + "; what intermediates collect: one more than the level below (all), 1 to 4 "
    "(random)",
    domain=cases_of("nested"),
    every=every_case("nested"),
    examples=40,
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
            "... also if the target weighs what the intermediate accepted against the drafter",
            lossless(OwnAsDrafted),
        ),
        S33_STATEMENT.but("... also if a refusal is followed by a draw from p itself", lossless(Fresh)),
        *hidden(S33_STATEMENT, lossless),
    ),
)

CLAIMS = (S5, S5B, S5C, S33)
