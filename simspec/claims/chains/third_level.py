"""When a third level pays under the funnels: closed forms, against the rules of a cycle (S43, S44)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Any

from hypothesis import strategies as st

from simspec.claims.base import Claim, Outcome, Statement
from simspec.claims.chains.walked import (
    HALF,
    ONE,
    Setting,
    fewer_tokens,
    more_seconds,
    pays,
    random_costs,
    walked_funnel,
)
from simspec.theory import third_level as closed
from simspec.theory.acceptance import emitted_tokens
from simspec.theory.third_level import Costs, Cycle, PlaceLaw


def _funnel_rule(semantics: str, form: Any, change: Any = None, **faults: bool) -> Any:
    """Args:
    change: a fault of the closed form.
    faults: of the limit, as for :func:`pays`.
    """

    def rule(case: Setting) -> Outcome:
        said = form(case.law, case.costs, case.drafts)
        if change is not None:
            said = change(case, said)
        return pays(case, walked_funnel(case, semantics, case.drafts), said, **faults)

    return rule


def _as_the_pair(case: Setting, said: Cycle[Fraction]) -> Cycle[Fraction]:
    return Cycle(emitted_tokens(case.law.outer, case.drafts), said.seconds)


def _all_read(case: Setting, said: Cycle[Fraction]) -> Cycle[Fraction]:
    widest = case.costs.target(case.drafts + 1) - case.costs.target(
        emitted_tokens(case.law.lower, case.drafts)
    )
    return Cycle(said.tokens, said.seconds + widest)


def _no_correction(case: Setting, said: Cycle[Fraction]) -> Cycle[Fraction]:
    return Cycle(emitted_tokens(case.law.all_agree, case.drafts + 1), said.seconds)


def _laws(parts: int) -> Iterator[PlaceLaw[Fraction]]:
    for weights in product(range(parts + 1), repeat=4):
        if sum(weights) <= parts:
            yield PlaceLaw(*(Fraction(w, parts) for w in weights))


def _settings(level: int) -> Iterator[Setting]:
    prices = (Costs(HALF, HALF, HALF, ONE, ONE), Costs(Fraction(0), Fraction(0), Fraction(1, 8), ONE, ONE))
    for drafts, alone in product((1, 2), (0, 1, 2)):
        for law, costs in product(_laws(1 + level), prices):
            yield Setting(law, costs, drafts, alone)


@st.composite
def _random_settings(draw: st.DrawFn) -> Setting:
    weights = draw(st.lists(st.integers(0, 8), min_size=5, max_size=5).filter(any))
    law = PlaceLaw(*(Fraction(w, sum(weights)) for w in weights[:4]))
    return Setting(law, draw(random_costs()), draw(st.integers(1, 3)), draw(st.integers(0, 3)))


def _broken(statement: Statement, rule: Callable[..., Any]) -> tuple[Statement, ...]:
    """Faults that any of these statements must notice; ``rule`` takes them."""
    return (
        statement.but("... with a million millionth of the tokens left out", rule(change=fewer_tokens)),
        statement.but("... with a million millionth more time", rule(change=more_seconds)),
        statement.but("... against the pair with as many drafts only", rule(same=True)),
        statement.but("... with the middle's own time taken off twice", rule(twice=True)),
    )


S43_STATEMENT = Statement(
    words=(
        "Under funnel-truncate a cycle makes E(e, d) tokens and the target reads E(alpha_12, d), and so a "
        "third level beats the pair at its best length (plain decoding included) exactly when the middle's "
        "forward takes less than a closed form of the place law and the other costs"
    ),
    formula=(
        "V_2(d+1) < min_d' C2(d') E(e, d) / E(alpha_13, d') - d T_1 - V_3(E(alpha_12, d)), C2(d') = d' T_1 + "
        "V_3(d'+1), e = P(all three agree)"
    ),
    rule=_funnel_rule("funnel-truncate", closed.truncate),
    over=(
        "place laws in multiples of 1/2, 2 sets of costs, up to 2 drafts, the pair's best of up to 0, 1 or "
        "2; random laws and affine costs, up to 3 drafts; every cycle over all ways in which three models "
        "can agree is walked through"
    ),
    domain=_random_settings(),
    every=_settings,
    examples=100,
)
S43 = Claim(
    id="S43",
    source="for SpecRouter's (2505.07680) chains, i.i.d. places, affine cost; goes with S6",
    statement=S43_STATEMENT,
    expected="holds",
    because=(
        "A place reaches the text only if all three agree on it and on all before: E(e, d) tokens. The "
        "target reads the run on which M_1 and M_2 agree, S(alpha_12, d) on average, and one more; cost is "
        "affine, so the mean run is enough. At the same d, e <= alpha_13 makes it necessary that V_2(d+1) "
        "is below the slope saved, slope_3 (d - S(alpha_12, d)): where a wider forward of the target costs "
        "no more, a truncating level never pays, and if V_2's slope is at least the target's neither. Cycles "
        "are independent and alike, so faster means more mean tokens per mean second; solved for V_2."
    ),
    broken=(
        *_broken(S43_STATEMENT, partial(_funnel_rule, "funnel-truncate", closed.truncate)),
        S43_STATEMENT.but(
            "... with as many tokens as the pair gets from the block, E(alpha_13, d)",
            _funnel_rule("funnel-truncate", closed.truncate, _as_the_pair),
        ),
        S43_STATEMENT.but(
            "... with the target reading the whole block",
            _funnel_rule("funnel-truncate", closed.truncate, _all_read),
        ),
    ),
)
S44_STATEMENT = S43_STATEMENT.but(
    "Under funnel-replace a cycle makes E(e, d+1) + y E(e, d) tokens and the target reads 1 + E(alpha_12, "
    "d), and so a third level beats the pair at its best length (plain decoding included) exactly when the "
    "middle's forward takes less than a closed form of the place law and the other costs",
    _funnel_rule("funnel-replace", closed.replace),
    formula=(
        "V_2(d+1) < min_d' C2(d') [E(e, d+1) + y E(e, d)] / E(alpha_13, d') - d T_1 - V_3(1 + E(alpha_12, "
        "d)), y = P(only M_2 and the target agree)"
    ),
)
S44 = Claim(
    id="S44",
    source="for SpecRouter's (2505.07680) chains, i.i.d. places, affine cost",
    statement=S44_STATEMENT,
    expected="holds",
    because=(
        "The middle adds a token at its cut, right with probability y there, or after all d, right with "
        "alpha_23 = e + y: 1 + sum_{j <= d} e^j + y sum_{n < d} e^n + e^d (e + y) = E(e, d+1) + y E(e, d). "
        "The target reads one more than under truncation. Where its cost is flat and M_2 throws no good "
        "token away, against d' = d: V_2(d+1) / C2 < y + e^(d+1) / E(e, d)."
    ),
    broken=(
        *_broken(S44_STATEMENT, partial(_funnel_rule, "funnel-replace", closed.replace)),
        S44_STATEMENT.but(
            "... with the middle's own token counted only after a whole block",
            _funnel_rule("funnel-replace", closed.replace, _no_correction),
        ),
        S44_STATEMENT.but(
            "... with the width that truncation gives the target",
            _funnel_rule(
                "funnel-replace",
                closed.replace,
                lambda case, said: Cycle(
                    said.tokens, closed.truncate(case.law, case.costs, case.drafts).seconds
                ),
            ),
        ),
    ),
)

CLAIMS = (S43, S44)
