"""Rules that read the whole block before they cut it, under rejection sampling (L16c, L16e, L16f, L16h)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import product

from simspec.claims.base import Claim, Statement
from simspec.claims.lossless.chance import LOSSLESS
from simspec.claims.lossless.cycles import AtOnce, OneByOne
from simspec.claims.lossless.faulty_judges import hidden
from simspec.claims.lossless.length_cases import (
    EVEN,
    HALVES,
    THIRDS,
    UNEVEN,
    Case,
    cases_of,
    first_text_tokens,
    lossless,
)
from simspec.claims.lossless.length_rules import AlgorithmOne, Costs, libraspec, scan_drawn, scan_top
from simspec.strategies.distributions import normalised
from simspec.strategies.models import Table

# A plain step, then one step up that any number of drafts shares, as where steps of 1 token and of 3 are
# compiled; and a cost that is charged for every draft.
_STEP, _STEPS = Costs(tuple(map(Fraction, (4, 7, 7)))), Costs(tuple(map(Fraction, (4, 7, 7, 7))))
_SLOPE, _SLOPES = Costs(tuple(map(Fraction, (4, 5, 6)))), Costs(tuple(map(Fraction, (4, 5, 6, 7))))


def _threes(costs: Costs, at_once: bool) -> Iterator[Case]:
    """Blocks of 3, without memory, below an even target."""
    for q in THIRDS:
        table = Table(2, 0, (q,))
        yield Case(costs, 3, 4, AtOnce((table,) * 3) if at_once else OneByOne(table), EVEN)


def _every_scan(costs: Sequence[Costs], longer: Costs) -> Callable[[int], Iterator[Case]]:
    """Drafters that see the last token, blocks of 2; and blocks of 3."""

    def cases(level: int) -> Iterator[Case]:
        yield from _threes(longer, at_once=False)
        for setting in costs:
            for target in (EVEN, UNEVEN)[: level + 1]:
                for values in product(THIRDS if level else HALVES, repeat=3):
                    yield Case(setting, 2, 3, OneByOne(Table(2, 1, values)), target)

    return cases


def _every_block(level: int) -> Iterator[Case]:
    """Block drafters without memory, blocks of 2; and blocks of 3."""
    yield from _threes(_SLOPES, at_once=True)
    for setting in (_SLOPE, _STEP):
        for target in (EVEN, UNEVEN)[: level + 1]:
            for places in product(THIRDS, repeat=2):
                yield Case(setting, 2, 3, AtOnce(tuple(Table(2, 0, (q,)) for q in places)), target)


def _every_libraspec(at_once: bool) -> Callable[[int], Iterator[Case]]:
    """Halves, blocks of 3: alpha 1, where a greatest probability of 1/2 is low enough for the rule to cut."""
    setting = AlgorithmOne(Fraction(1), 3, 4)

    def cases(level: int) -> Iterator[Case]:
        # Blocks whose places are all alike first: wrong verification shows in those.
        for values in sorted(product(HALVES[::-1], repeat=3), key=lambda one: len({*one})):
            drafter: OneByOne | AtOnce = OneByOne(Table(2, 1, values))
            if at_once:
                drafter = AtOnce(tuple(Table(2, 0, (q,)) for q in values))
            yield Case(setting, 3, 4, drafter, UNEVEN)

    return cases


OVER_COSTS = "random models over 2 and 3 tokens that see up to 2, blocks of 1 to 3; cost curves: "

# L16c, L16e, L16f

L16F_STATEMENT = Statement(
    words=(
        "With a block drafter, whose places do not see what is drawn at other places, a full scan over "
        "each place's greatest probability is lossless at any cost"
    ),
    formula=LOSSLESS,
    rule=lossless(scan_top),
    over="all blocks of 2 over 2 tokens in halves and thirds, two costs, two targets; "
    + OVER_COSTS
    + "any that rise",
    domain=cases_of("rising", at_once=True),
    every=_every_block,
    examples=100,
)
L16C = Claim(
    id="L16c",
    source="LibraSpec (2608.08721): q_i read as the probability of the token that was drawn",
    statement=Statement(
        words="Taking the best length for the drawn tokens' probabilities, over the whole block, is lossless",
        formula=LOSSLESS,
        rule=lossless(scan_drawn),
        over=(
            "all drafters over 2 tokens that see the last one, in halves and thirds, two costs, two targets; "
            + OVER_COSTS
            + "any that rise"
        ),
        domain=cases_of("rising"),
        every=_every_scan((_SLOPE, _STEP), _SLOPES),
    ),
    expected="refuted",
    because=(
        "Whether a token is submitted depends on which token it is, as in L16b. The repaired statement is "
        "L16f, with its reason."
    ),
    pinned=Case(Costs((Fraction(2), Fraction(3))), 1, 2, OneByOne(UNEVEN), EVEN),
    repaired=L16F_STATEMENT,
    broken=hidden(L16F_STATEMENT, lambda judged: lossless(scan_top, judged)),
    plot=first_text_tokens(scan_drawn),
)
L16F = Claim(
    id="L16f",
    source="LibraSpec (2608.08721) with block-parallel drafters (DFlash, Fast-dLLM)",
    statement=L16F_STATEMENT,
    expected="holds",
    because=(
        "The greatest probability of each place of the block is known before anything is drawn, so the "
        "length is, too. Not so for blocks chained one after another: the second one's confidences see "
        "what the first drew."
    ),
    broken=(
        L16F_STATEMENT.but("... also over the drawn tokens' own probabilities", lossless(scan_drawn)),
        L16F_STATEMENT.but(
            "... also with a drafter whose places see what was drawn before them",
            lossless(scan_top),
            domain=cases_of("staircase"),
            every=_every_scan((_STEP,), _STEPS),
        ),
        *hidden(L16F_STATEMENT, lambda judged: lossless(scan_top, judged)),
    ),
)

_CONVEX = Statement(
    words="It is lossless where the cost is convex: there a full scan stops where a first stop would",
    formula=LOSSLESS,
    rule=lossless(scan_top),
    over=(
        "all drafters over 2 tokens that see the last one, in halves and thirds, blocks of 2, one slope; "
        "five without memory, blocks of 3; " + OVER_COSTS + "convex ones"
    ),
    domain=cases_of("convex"),
    every=_every_scan((_SLOPE,), _SLOPES),
    examples=60,
)
L16E = Claim(
    id="L16e",
    source="a full scan (L13) with padded or staircase cost, under rejection sampling",
    statement=Statement(
        words=(
            "With a drafter that goes token by token, a full scan over each place's greatest probability "
            "is lossless when the cost is a staircase"
        ),
        formula=LOSSLESS,
        rule=lossless(scan_top),
        over=(
            "all drafters over 2 tokens that see the last one, in halves and thirds, where any number of "
            "drafts costs the same; " + OVER_COSTS + "staircases"
        ),
        domain=cases_of("staircase"),
        every=_every_scan((_STEP,), _STEPS),
    ),
    expected="refuted",
    because=(
        "At a step the first draft pays only if the second is good as well. How good the second is depends "
        "on which token the first is, so that first token is submitted or not depending on itself. The "
        "repaired statement: expected tokens are concave in the length, each further one adding a product "
        "of more confidences. Over a convex cost their ratio rises to its first place that brings no more "
        "and never rises above it again (L13). So the best length is that of a first stop, and whether place "
        "i is submitted is settled by the confidences of places 1 to i, which the tokens before i settle."
    ),
    pinned=Case(
        _STEP,
        2,
        3,
        OneByOne(Table(2, 1, (normalised((1, 1)), normalised((1, 0)), normalised((1, 1))))),
        EVEN,
    ),
    repaired=_CONVEX,
    broken=(
        _CONVEX.but("... also over the drawn tokens' own probabilities", lossless(scan_drawn)),
        *hidden(_CONVEX, lambda judged: lossless(scan_top, judged)),
    ),
    plot=first_text_tokens(scan_top),
)

# L16h

_AT_ONCE = Statement(
    words="It does with a block drafter that fills the whole block in one forward",
    formula=LOSSLESS,
    rule=lossless(libraspec),
    over=(
        "all blocks of 3 over 2 tokens in halves, alpha 1, n 3, d_max 4; random models over 2 and 3 "
        "tokens, alpha 1 to 2, n 1 to 3, d_max 2 to 4"
    ),
    domain=cases_of("libraspec", at_once=True),
    every=_every_libraspec(at_once=True),
    examples=100,
)
L16H = Claim(
    id="L16h",
    source="LibraSpec (2608.08721) Algorithm 1 at temperature above 0, top-1 confidences",
    statement=Statement(
        words=(
            "LibraSpec's Algorithm 1 keeps rejection sampling lossless for a drafter that goes token by "
            "token, with each place's greatest probability for its confidence"
        ),
        formula=LOSSLESS,
        rule=lossless(libraspec),
        over=(
            "all drafters over 2 tokens that see the last one, in halves, alpha 1, n 3, d_max 4; random "
            "models over 2 and 3 tokens, alpha 1 to 2, n 1 to 3, d_max 2 to 4"
        ),
        domain=cases_of("libraspec"),
        every=_every_libraspec(at_once=False),
    ),
    expected="refuted",
    because=(
        "It drafts a block and then cuts it by a minimum over sums to the block's end, so that confidences "
        "that were formed after a token was drawn decide whether that token is submitted. The alpha here "
        "is the paper's 2; with a vocabulary of thousands a greatest probability below 1/2 is nothing rare. "
        "The repaired statement: a block drafter's confidences are known before anything is drawn, so the "
        "length is, too (L16f)."
    ),
    pinned=Case(
        AlgorithmOne(Fraction(2), 3, 4),
        3,
        4,
        OneByOne(Table(3, 1, tuple(map(normalised, ((1, 1, 1), (1, 0, 0), (1, 1, 1), (1, 1, 1)))))),
        Table(3, 0, (normalised((1, 1, 1)),)),
    ),
    repaired=_AT_ONCE,
    broken=(
        _AT_ONCE.but(
            "... with any drafter that goes token by token",
            lossless(libraspec),
            domain=cases_of("libraspec"),
            every=_every_libraspec(at_once=False),
        ),
        *hidden(_AT_ONCE, lambda judged: lossless(libraspec, judged)),
    ),
)

CLAIMS = (L16C, L16E, L16F, L16H)
