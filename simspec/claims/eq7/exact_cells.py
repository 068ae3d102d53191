"""The readings that are exact, each under its own rules of a cycle (S7-reading@rules)."""

from __future__ import annotations

from fractions import Fraction

from simspec.claims.base import Claim, Statement
from simspec.claims.eq7.cases import INDEPENDENT, choices
from simspec.claims.eq7.readings import READINGS, SOURCES, Inputs, nested
from simspec.claims.eq7.rules import is_exact
from simspec.claims.eq7.statements import ranking
from simspec.strategies.chains import Plan, Pool, Semantics
from simspec.theory import chains as theory
from simspec.theory.acceptance import emitted_tokens

# Mistakes that a reading can make, for the ones that hold.


def free_target(pool: Pool, plan: Plan, semantics: Semantics) -> Fraction | None:
    """The target is charged with its reach probability and its own token counted all the same."""
    given = Inputs.of(pool, plan)
    through = Fraction(1)
    for a in given.alphas[:-1]:
        through *= a
    rest = theory.reach(given.alphas, plan.drafts, given.draft, given.verify)
    tokens = emitted_tokens(through * given.alphas[-1], plan.drafts)
    return rest - (1 - through) * given.verify(len(plan.models), Fraction(1)) / tokens


def _iterated(pool: Pool, plan: Plan, semantics: Semantics) -> Fraction:
    """phi^n read as phi applied n times, not as the n-th power."""
    given = Inputs.of(pool, plan)
    if len(plan.models) < 3:
        return nested(pool, plan, semantics)
    inner, outer = given.alphas
    x = outer
    for _ in range(plan.rounds):
        x = theory.round_generating([inner], plan.drafts, (), x)
    tokens = (
        (1 - outer * x) / (1 - outer)
        if outer < 1
        else theory.round_tokens([inner, outer], plan.drafts, [plan.rounds])
    )
    right = theory.round_tokens([inner, outer], plan.drafts, [plan.rounds])
    return nested(pool, plan, semantics) * right / tokens


_ANY = ranking("reach-any", "funnel-truncate").but(
    "The reading reach-any, given exact inputs, is the exact time per token of every chain under "
    "funnel-truncate, and so ranks them, where forwards take the same time at any width and acceptance is "
    f"independent ({INDEPENDENT})",
    is_exact(READINGS["reach-any"], "funnel-truncate"),
    examples=100,
)
REACH_ANY = Claim(
    id="S7-reach-any@truncate",
    source=SOURCES["reach-any"],
    statement=_ANY,
    expected="holds",
    because=(
        "Draft j reaches the text if all levels let drafts 1 .. j through: probability (prod alpha)^j, "
        "which sums to E(prod alpha, gamma). M_i has work exactly if the first draft came through the "
        "levels below: prod_{j<=i-2} alpha_j. The target runs in every cycle."
    ),
    broken=(
        _ANY.but(
            "The same with alpha_1N for the product", is_exact(READINGS["reach-direct"], "funnel-truncate")
        ),
        _ANY.but(
            "The same, the target charged only when something reaches it",
            is_exact(free_target, "funnel-truncate"),
        ),
        _ANY.but("The same under funnel-replace", is_exact(READINGS["reach-any"], "funnel-replace")),
    ),
)


def _nested_statement(semantics: Semantics) -> Statement:
    return ranking("nested", semantics).but(
        "CS-Drafting's Theorem 4.3, given exact inputs and each forward priced at its mean width, is the "
        "exact time per token under "
        f"{'funnel-replace, as one round' if semantics != 'rounds' else 'a fixed number of rounds'}, where "
        f"each further token takes a forward the same time (or none); independent: {INDEPENDENT}",
        is_exact(nested, semantics),
        domain=choices(semantics, widths=True, steps=False),
        examples=40,
    )


_ONE_ROUND, _ROUNDS = _nested_statement("funnel-replace"), _nested_statement("rounds")
_PHI = (
    "A round hands up min(G, gamma) + 1 tokens, phi is that number's generating function, and rounds are "
    "independent. Of a block of B tokens the target emits (1 - alpha^(B+1)) / (1 - alpha), whose mean "
    "needs E[alpha^B] = phi(alpha)^n and nothing else: no mean length is carried through a curve. A mean "
    "width is right for costs that are straight lines."
)
NESTED_REPLACE = Claim(
    id="S7-nested@replace",
    source=SOURCES["nested"],
    statement=_ONE_ROUND,
    expected="holds",
    because=_PHI + " funnel-replace is its case n = 1, at any number of levels.",
    broken=(
        _ONE_ROUND.but(
            "The same without the middle's own token", is_exact(READINGS["reach-any"], "funnel-replace")
        ),
        _ONE_ROUND.but("The same for funnel-truncate", is_exact(nested, "funnel-truncate")),
    ),
)
NESTED_ROUNDS = Claim(
    id="S7-nested@rounds",
    source=SOURCES["nested"],
    statement=_ROUNDS,
    expected="holds",
    because=_PHI,
    broken=(
        _ROUNDS.but("phi^n is phi applied n times", is_exact(_iterated, "rounds")),
        _ROUNDS.but("The same for rounds until n (gamma + 1) tokens are there", is_exact(nested, "nested")),
    ),
)

CLAIMS = (REACH_ANY, NESTED_REPLACE, NESTED_ROUNDS)
