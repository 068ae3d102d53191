"""Early-emit chains in sampling mode (S34).

p = the target's distribution, q1 = the drafter's, q2 = an intermediate's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction

from hypothesis import strategies as st

from simspec.claims.base import Claim, Outcome, Statement
from simspec.claims.lossless.chance import LOSSLESS, State, compared, joint
from simspec.claims.lossless.cycles import MakeJudge
from simspec.claims.lossless.faulty_judges import Trusting, hidden
from simspec.claims.lossless.luck import EveryLuck
from simspec.claims.lossless.sampled_cases import (
    EVENLY,
    TWO_OF_THREE,
    Case,
    all_cases,
    below,
    cases_of,
    first_text_tokens,
    lossless,
    memoryless,
    step_of,
)
from simspec.speculation.verify import RejectionJudge
from simspec.strategies.distributions import Distribution
from simspec.strategies.models import Text, distribution_levels

# What is drawn from after a cut, given q1, q2 and p there.
Rest = Callable[[Distribution, Distribution, Distribution], Distribution]


@st.composite
def _twins(draw: st.DrawFn) -> Case:
    """Early-emit chains whose intermediate is the target itself."""
    drafter, target = draw(distribution_levels(2, draw(st.integers(2, 3)), 0))
    return Case("early-emit", 1, 2, (drafter, target, target))


def _every_early(level: int) -> Iterator[Case]:
    yield from all_cases("early-emit", 3, 0, 2, 1)
    yield from below("early-emit", 3, EVENLY, 2)
    if level > 0:
        yield from all_cases("early-emit", 3, 0, 3 + (level > 1), 1)
        yield from all_cases("early-emit", 3, 0, 2, 2)
        yield from below("early-emit", 2, TWO_OF_THREE, 2)


def _as_law(rest: Rest, judged: MakeJudge = RejectionJudge) -> Callable[[Case], Outcome]:
    """Whether the text is what cycles of this law make, written without any judge.

    At each place x comes out with min(q1, q2)(x) and the cycle goes on; otherwise, with 1 - b, it ends with a
    draw from ``rest``; after the whole block with one from p.
    """

    def rule(case: Case) -> Outcome:
        low, middle, top = case.models

        def step(luck: EveryLuck, text: Text, state: State, room: int) -> tuple[Text, State]:
            out: Text = ()
            for _ in range(min(case.length, room - 1)):
                q1, q2, p = (model.after(text + out) for model in (low, middle, top))
                both = tuple(map(min, q1, q2))
                token = luck.choose([*enumerate(both), (-1, 1 - sum(both, Fraction(0)))])
                if token < 0:
                    return (*out, luck.choose([*enumerate(rest(q1, q2, p))])), state
                out += (token,)
            return (*out, luck.choose([*enumerate(top.after(text + out))])), state

        law = joint(step, case.want)
        return compared(step_of(case, judged), law, case.lines, right="the formula says")

    return rule


def _own(q1: Distribution, q2: Distribution, p: Distribution) -> Distribution:
    return p


def _residual(q1: Distribution, q2: Distribution, p: Distribution) -> Distribution:
    """(p - q1)+, as after a refusal of the target's."""
    left = tuple(max(x - y, Fraction(0)) for x, y in zip(p, q1, strict=True))
    total = sum(left, Fraction(0))
    return tuple(x / total for x in left) if total else p


_LAW = Statement(
    words=(
        "An early-emit chain of three says at each place of a block x with probability min(q1, q2)(x) and "
        "goes on; otherwise, with 1 - b, b = sum min(q1, q2), the cycle ends with a draw from p: right only "
        "where min(q1, q2) + (1 - b) p = p, so where survivors happen to be draws from p"
    ),
    formula="P(x_1) = min(q1, q2)(x_1) + (1 - b) p(x_1)",
    rule=_as_law(_own),
    over=(
        "all models over 2 tokens without memory: blocks of 1 in thirds, of 2 in halves, of 3 in "
        "halves below an even target; over 3 tokens blocks of 2 in halves below (1/2, 1/2, 0); random ones "
        "over 2 and 3 tokens that see up to 2, blocks of 1 to 3; fewer at the smallest budget"
    ),
    domain=cases_of("early-emit", 3, 3),
    every=_every_early,
    examples=50,
)
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
        "greedy decoding the same chain is the target's text (S4b). The repaired statement: x is drafted "
        "and let through by the intermediate with q1 min(1, q2/q1) = min(q1, q2), and nobody looks at it "
        "again; at a cut the target has nothing to settle and draws from p."
    ),
    pinned=Case("early-emit", 1, 2, memoryless((1, 0), (1, 1), (1, 1))),
    repaired=_LAW,
    broken=(
        _LAW.but("... the cycle ends with a draw from q2", _as_law(lambda q1, q2, p: q2)),
        _LAW.but("... the cycle ends with a draw from (p - q1)+", _as_law(_residual)),
        *hidden(
            _LAW, lambda judged: _as_law(_own, judged), Trusting, "the intermediate lets everything through"
        ),
    ),
    plot=first_text_tokens(RejectionJudge),
)

CLAIMS = (S34,)
