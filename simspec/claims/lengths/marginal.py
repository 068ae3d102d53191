"""Marginal gain against marginal cost (L1, L18).

p_k = probability that draft k is accepted given that those before it were; S_j = p_1 .. p_j; tau_d =
expected tokens of a cycle that submits d drafts; T(d) = its time; speedup eta_d = tau_d / T(d).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from hypothesis import strategies as st

from simspec.claims.base import UNMET, Claim, Outcome, Statement, against
from simspec.claims.lengths.blocks import OVER_BLOCKS, OVER_ORIGIN, Block, all_blocks, blocks, drafts, working
from simspec.claims.lengths.conditions import Gain, last_left_out, later_sum, printed_sum, sum_of_survivals
from simspec.claims.plain import number, shown
from simspec.strategies.costs import Curve, affine, rising_costs
from simspec.strategies.survivals import Conditional, all_conditionals, conditionals, grid, tokens_by_outcome
from simspec.theory.lengths import marginal_gain

# L1


@dataclass(frozen=True)
class Says:
    """What a criterion asks: the gain of going from d to e over its time, and whether equal is enough."""

    gain: Gain = marginal_gain
    ties: bool = False


def _criterion(
    extend: Says = Says(), cut: Says = Says(), *, from_length: int = 0
) -> Callable[[Block], Outcome]:
    """Thm 3.2 for every pair of lengths d < e, from ``from_length`` on: what ``extend`` says of going from d
    to e and ``cut`` of going back, against the speedups."""

    def rule(block: Block) -> Outcome:
        tokens, cost = tokens_by_outcome(block.p, block.bonus), block.cost
        met = False
        for e in range(1, len(cost)):
            for d in range(from_length, e):
                extra = cost[e] - cost[d]
                if cost[d] <= 0 or cost[e] <= 0 or extra == 0:
                    continue
                met = True
                short, long = tokens[d] / cost[d], tokens[e] / cost[e]
                more, less = extend.gain(block.p, d, e) / extra, cut.gain(block.p, d, e) / extra
                extends = more > short or (extend.ties and more == short)
                cuts = less < long or (cut.ties and less == long)
                told = f"the speedups are {number(short)} at {d} and {number(long)} at {e}"
                if extends != (long > short):
                    return against(
                        *working(block),
                        f"from {d} to {drafts(e)}: {number(more * extra)} tokens are said to be gained in "
                        f"{number(extra)} of time, {number(more)} a unit, against {number(short)} so far: "
                        f"{'extend' if extends else 'do not extend'}",
                        told,
                    )
                if cuts != (short > long):
                    return against(
                        *working(block),
                        f"from {e} back to {drafts(d)}: {number(less * extra)} tokens are said to be lost in "
                        f"{number(extra)} of time, {number(less)} a unit, against {number(long)} so far: "
                        f"{'cut' if cuts else 'do not cut'}",
                        told,
                    )
        return None if met else UNMET

    return rule


def _last_for_all(p: Conditional, d: int, e: int) -> Fraction:
    """As if each place between brought as much as the last one, S_e."""
    return (e - d) * marginal_gain(p, e - 1, e)


@st.composite
def _falling(draw: st.DrawFn, depth: int) -> Curve:
    """A cost with a step down in it: measured curves have them."""
    cost = list(draw(rising_costs(depth)))
    cut = draw(st.integers(0, depth))
    return tuple(cost[:cut] + [t / 2 for t in cost[cut:]])


def _possible(level: int) -> Iterator[Block]:
    """Those in which every draft may be accepted."""
    return (block for block in all_blocks(level) if min(block.p) > 0)


L1_STATEMENT = Statement(
    words=(
        "Going from one block length to a longer one that takes more time raises expected speedup exactly if "
        "the expected tokens that it adds, over the time that it adds, exceed the speedup there is; going "
        "back raises it exactly if they fall short"
    ),
    formula=(
        "extend: (tau_e - tau_d)/(T_e - T_d) > tau_d/T_d <=> eta_e > eta_d; truncate: (tau_e - tau_d)/(T_e - "
        "T_d) < tau_e/T_e <=> eta_d > eta_e   (d < e, 0 < T_d < T_e)"
    ),
    rule=_criterion(),
    over=OVER_BLOCKS,
    domain=blocks(rising_costs),
    every=all_blocks,
    examples=150,
)
L1 = Claim(
    id="L1",
    source="LibraSpec (2608.08721) Thm 3.2, its gain read as tau_e - tau_d (as printed: L1-printed)",
    statement=L1_STATEMENT,
    expected="holds",
    because=(
        "eta_e = (tau_d + g)/(T_d + h) with gain g and h > 0 is the mean of tau_d/T_d and g/h with weights "
        "T_d and h: it lies strictly between them unless the two are equal. Needs T_d > 0 and h > 0, "
        "nothing else: any cost, with a bonus or without. Where a measured curve falls (h < 0) the "
        "inequality turns round. The paper prints another gain under the same name: L1-printed."
    ),
    broken=(
        L1_STATEMENT.but(
            "The same with the gain of places d+1..e given that the first d were accepted (Thm 3.3's "
            "products), extending",
            _criterion(extend=Says(later_sum)),
            domain=None,
            every=_possible,
        ),
        L1_STATEMENT.but(
            "The same with that gain when going back",
            _criterion(cut=Says(later_sum)),
            domain=None,
            every=_possible,
        ),
        L1_STATEMENT.but(
            "The same with the last place's gain for each place between, extending",
            _criterion(extend=Says(_last_for_all)),
            domain=None,
            every=_possible,
        ),
        L1_STATEMENT.but(
            "The same with the last place's gain for each place between, going back",
            _criterion(cut=Says(_last_for_all)),
            domain=None,
            every=_possible,
        ),
        L1_STATEMENT.but(
            "The same if they are as much, extending",
            _criterion(extend=Says(ties=True)),
            domain=None,
            every=_possible,
        ),
        L1_STATEMENT.but(
            "The same if they are as much, going back",
            _criterion(cut=Says(ties=True)),
            domain=None,
            every=_possible,
        ),
        L1_STATEMENT.but(
            "It holds for costs that fall somewhere, too",
            _criterion(),
            domain=blocks(_falling),
            every=lambda level: (Block(b.p, b.cost[::-1], b.bonus) for b in all_blocks(level)),
        ),
    ),
)

L1_PRINTED_STATEMENT = L1_STATEMENT.but(
    "Thm 3.2 with the gain that is printed for it, E[tau_{d:e}] = sum_{j=d..e} p_d .. p_j, tells every pair "
    "of lengths d < e, d >= 1, that extending or going back raises expected speedup",
    _criterion(Says(printed_sum), Says(printed_sum), from_length=1),
    formula=(
        "extend: E[tau_{d:e}]/(T_e - T_d) > tau_d/T_d <=> eta_e > eta_d; truncate: E[tau_{d:e}]/(T_e - T_d) "
        "< tau_e/T_e <=> eta_d > eta_e, E[tau_{d:e}] = sum_{j=d..e} p_d .. p_j   (1 <= d < e, 0 < T_d < T_e)"
    ),
)
L1_PRINTED_REPAIRED = L1_PRINTED_STATEMENT.but(
    "It does with tau_e - tau_d: products from place 1, the sum from d + 1",
    _criterion(from_length=1),
    formula="the same with E[tau_{d:e}] = sum_{j=d+1..e} p_1 .. p_j",
)
L1_PRINTED = Claim(
    id="L1-printed",
    source="LibraSpec (2608.08721) Thm 3.2 with the gain E[tau_{i:d'}] as printed",
    statement=L1_PRINTED_STATEMENT,
    expected="refuted",
    because=(
        "The printed sum begins with place d, which tau_d counts already, and its products begin there, as "
        "if the places before it had been accepted for certain: it overstates what is gained (L3, "
        "L3-offset), so it extends too often and goes back too seldom. With tau_e - tau_d it is L1."
    ),
    pinned=Block((Fraction(1, 4), Fraction(1, 4)), affine(Fraction(0), Fraction(1), 2), 0),
    repaired=L1_PRINTED_REPAIRED,
    broken=(
        L1_PRINTED_REPAIRED.but(
            "It does with products from place 1 alone, extending",
            _criterion(extend=Says(sum_of_survivals), from_length=1),
        ),
        L1_PRINTED_REPAIRED.but(
            "It does with products from place 1 alone, going back",
            _criterion(cut=Says(sum_of_survivals), from_length=1),
        ),
        L1_PRINTED_REPAIRED.but(
            "It does with the sum from d + 1 alone, extending",
            _criterion(extend=Says(later_sum), from_length=1),
            domain=None,
            every=_possible,
        ),
        L1_PRINTED_REPAIRED.but(
            "It does with a sum that leaves the last place out, extending",
            _criterion(extend=Says(last_left_out), from_length=1),
        ),
        L1_PRINTED_REPAIRED.but(
            "It does if going back asks for <=",
            _criterion(cut=Says(ties=True), from_length=1),
            domain=None,
            every=_possible,
        ),
    ),
)

# L18


def _prefix_means(
    means: Callable[[Conditional], list[Fraction]], strict: bool
) -> Callable[[Conditional], Outcome]:
    def rule(p: Conditional) -> Outcome:
        values = means(p)
        fine = all(b < a if strict else b <= a for a, b in pairwise(values))
        return None if fine else against(f"p = {shown(p)}", f"means: {shown(values)}")

    return rule


def _mean_tokens(p: Conditional) -> list[Fraction]:
    tokens = tokens_by_outcome(p, 0)
    return [tokens[d] / d for d in range(1, len(tokens))]


def _mean_chance(p: Conditional) -> list[Fraction]:
    return [sum(p[:d], Fraction(0)) / d for d in range(1, len(p) + 1)]


L18_STATEMENT = Statement(
    words="Expected accepted drafts per submitted draft do not rise with the length of the block",
    formula="E[tau_{d+1}]/(d+1) <= E[tau_d]/d",
    rule=_prefix_means(_mean_tokens, strict=False),
    over=OVER_ORIGIN,
    domain=conditionals(longest=10),
    every=lambda level: all_conditionals((3, 4, 5)[level], grid(4)),
    examples=250,
)
L18 = Claim(
    id="L18",
    source="LibraSpec (2608.08721): the lemma that the proof of Thm 3.5 leaves out",
    statement=L18_STATEMENT,
    expected="holds",
    because=(
        "E[tau_d] = S_1 + .. + S_d, so the ratio is the mean of the first d survivals; S_{d+1} = S_d "
        "p_{d+1} is at most each of those, so it cannot raise their mean. The chances p_d themselves may "
        "rise."
    ),
    broken=(
        L18_STATEMENT.but(
            (
                "The same of the chances p_k, each given that all before were accepted: their prefix means "
                "do not rise"
            ),
            _prefix_means(_mean_chance, strict=False),
        ),
        L18_STATEMENT.but("It falls with every draft", _prefix_means(_mean_tokens, strict=True)),
    ),
)

CLAIMS = (L1, L1_PRINTED, L18)
