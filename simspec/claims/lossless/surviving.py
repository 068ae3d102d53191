"""What a truncating intermediate costs in sampling mode: acceptance of a block, text by text (S35).

p = the target's distribution, q1 = the drafter's, q2 = an intermediate's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import product

from hypothesis import strategies as st

from simspec.claims.base import Claim, Outcome, Statement, against
from simspec.claims.lossless.chance import Texts
from simspec.claims.lossless.cycles import MakeJudge, arrays, drawn, play
from simspec.claims.lossless.faulty_judges import AsDrafted, late
from simspec.claims.lossless.luck import ONE, EveryLuck, every
from simspec.claims.lossless.sampled_cases import (
    EVENLY,
    TWO_OF_THREE,
    Case,
    all_cases,
    below,
    cases_of,
    drafting,
    remembering,
)
from simspec.claims.plain import number
from simspec.speculation.verify import RejectionJudge
from simspec.strategies.distributions import Distribution, overlap
from simspec.strategies.models import Text

# For each token x: what a place contributes to the probability that x is drafted there and accepted,
# given q1, q2 and p after the tokens before it.
Law = Callable[[Distribution, Distribution, Distribution], tuple[Fraction, ...]]


def _reached(case: Case, judged: MakeJudge) -> Texts:
    """For each text: the probability that the first cycle's block begins with it, all of it accepted."""
    models = [arrays(model) for model in case.models]

    def accepted(luck: EveryLuck) -> Text:
        done = play(case.chain, judged(luck), models, drawn(models[0], luck, case.length), (), case.want)
        return tuple(done.block[: done.accepted].tolist())

    found: Texts = {}
    for text, weight in every(accepted).items():
        for n in range(1, len(text) + 1):
            found[text[:n]] = found.get(text[:n], Fraction(0)) + weight
    return found


def _along(case: Case, law: Law, text: Text) -> Fraction:
    """The product of a law along a text."""
    total = ONE
    for i, token in enumerate(text):
        q1, q2, p = (model.after(text[:i]) for model in case.models)
        total *= law(q1, q2, p)[token]
    return total


def _in_chain(q1: Distribution, q2: Distribution, p: Distribution) -> tuple[Fraction, ...]:
    b = overlap(q1, q2)
    return tuple(min(x, y, b * z) for x, y, z in zip(q1, q2, p, strict=True))


def _in_pair(q1: Distribution, q2: Distribution, p: Distribution) -> tuple[Fraction, ...]:
    return tuple(map(min, q1, p))


def _no_more(
    chain: Law = _in_chain,
    pair: Law = _in_pair,
    share: Law = lambda q1, q2, p: (ONE,) * len(p),
    judged: MakeJudge = RejectionJudge,
) -> Callable[[Case], Outcome]:
    """Both formulas against counts of all outcomes, and that the chain accepts no more.

    Args:
        share: of what the pair accepts, place by place: the chain's bound.
    """

    def rule(case: Case) -> Outcome:
        alone = drafting("none", case.length, (case.models[0], case.models[-1]))
        with_it, without = _reached(case, judged), _reached(alone, RejectionJudge)
        for n in range(1, case.length + 1):
            for text in product(range(case.models[0].vocabulary), repeat=n):
                ours, theirs = with_it.get(text, Fraction(0)), without.get(text, Fraction(0))
                said, said_alone = _along(case, chain, text), _along(case, pair, text)
                most = theirs * _along(case, share, text)
                if ours == said and theirs == said_alone and ours <= most:
                    continue
                drafts = " ".join(map(str, text))
                return against(
                    *case.lines(),
                    f"{drafts} is drafted and accepted in the chain with {number(ours)}; the formula says "
                    f"{number(said)}",
                    f"in the pair of drafter and target with {number(theirs)}; the formula says "
                    f"{number(said_alone)}",
                    f"the chain's is said to be no more than {number(most)}",
                )
        return None

    return rule


def _every_block(level: int) -> Iterator[Case]:
    yield from all_cases("funnel-truncate", 3, 0, 2, 1)
    yield from below("funnel-truncate", 3, EVENLY, 2)
    if level > 0:
        yield from all_cases("funnel-truncate", 3, 0, 3 + (level > 1), 1)
        yield from all_cases("funnel-truncate", 3, 0, 2, 2)
        yield from below("funnel-truncate", 1, TWO_OF_THREE, 2)
        yield from (drafting("funnel-truncate", 2, models) for models in remembering())


def _whole(case: Case) -> Case:
    """With a text that leaves room for the block and no more."""
    return drafting("funnel-truncate", case.length, case.models)


def _blocks() -> st.SearchStrategy[Case]:
    return cases_of("funnel-truncate", 3, 3).map(_whole)


def _product(q1: Distribution, q2: Distribution, p: Distribution) -> tuple[Fraction, ...]:
    """The adjacent acceptances, each of the token."""
    return tuple(min(x, y) * min(y, z) for x, y, z in zip(q1, q2, p, strict=True))


S35_STATEMENT = Statement(
    words=(
        "Under lossless sampling (the proposal corrected as in S5c) a funnel-truncate chain of three drafts "
        "x_1 .. x_n at the beginning of a block and accepts all of them with probability prod min(q1, q2, "
        "b p)(x_i), b = sum min(q1, q2), all after x_1 .. x_{i-1}; drafter and target alone with prod "
        "min(q1, p)(x_i), which is never less. So on average a block's accepted drafts are never more than "
        "without the intermediate"
    ),
    formula="prod_i min(q1, q2, b p)(x_i) <= prod_i min(q1, p)(x_i)",
    rule=_no_more(),
    over=(
        "every text of up to a block's length: all models over 2 tokens without memory, blocks of 1 in "
        "thirds, of 2 in halves, of 3 in halves below an even target; over 3 tokens blocks of 1 in halves "
        "below (1/2, 1/2, 0); 81 chains that look at the last token, blocks of 2; random ones over 2 and 3 "
        "tokens that see up to 2, blocks of 1 to 3; fewer at the smallest budget"
    ),
    domain=_blocks(),
    every=_every_block,
    examples=60,
)
S35 = Claim(
    id="S35",
    source=(
        "new here; S6 in sampling mode, and what chain acceptance in SpecRouter's (2505.07680) Eq. 7 "
        "stands for"
    ),
    statement=S35_STATEMENT,
    expected="holds",
    because=(
        "Given x_1 .. x_{i-1} accepted, x_i is drafted with q1, survives with min(1, q2/q1), is then a draw "
        "from min(q1, q2) / b, and the target accepts it with min(1, b p / min(q1, q2)); the product is "
        "min(q1, q2, b p). What happens at later places does not matter to it. With b <= 1 each factor is "
        "at most min(q1, p), the pair's. Accepted drafts on average are the sum of these probabilities over "
        "all texts of 1 .. n tokens."
    ),
    broken=(
        S35_STATEMENT.but(
            "The chain's is prod min(q1, q2, p)",
            _no_more(chain=lambda q1, q2, p: tuple(map(min, q1, q2, p))),
            formula="prod_i min(q1, q2, p)(x_i)",
        ),
        S35_STATEMENT.but(
            "The chain's is the product of adjacent acceptances",
            _no_more(chain=_product),
            formula="prod_i min(q1, q2)(x_i) min(q2, p)(x_i)",
        ),
        S35_STATEMENT.but(
            "The pair's is prod q1 p, as if two draws had to coincide",
            _no_more(pair=lambda q1, q2, p: tuple(x * z for x, z in zip(q1, p, strict=True))),
            formula="prod_i q1(x_i) p(x_i)",
        ),
        S35_STATEMENT.but(
            "The chain's is no more than the share b of the pair's",
            _no_more(share=lambda q1, q2, p: (overlap(q1, q2),) * len(p)),
            formula="prod_i min(q1, q2, b p)(x_i) <= prod_i b min(q1, p)(x_i)",
        ),
        S35_STATEMENT.but(
            "The same if from a block's second place on survivors are weighed against q1",
            _no_more(judged=late(AsDrafted, 1)),
        ),
        S35_STATEMENT.but(
            "The same if from a block's third place on survivors are weighed against q1",
            _no_more(judged=late(AsDrafted, 2)),
        ),
    ),
)

CLAIMS = (S35,)
