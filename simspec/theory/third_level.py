"""When a third level pays: published criteria, and closed forms for one place law.

Plain Python that works for fractions and floats alike. Symbols: M_1 drafts, M_2 (the middle) verifies
M_1, M_3 (the target) verifies what it is handed. a = alpha_12, b = alpha_23: the probability that two
models agree at a place, given that everything before it was agreed on. All places are independent and
alike. E(a, n) = 1 + a + ... + a^n, the bonus token included.

Papers number their models from the target down (CS-Drafting: M_t, M_d1, M_d2; Polybasic: M_1 = target);
each function says which of its arguments is which.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Generic, TypeVar

Number = TypeVar("Number", Fraction, float)


def emitted(rate: Number, drafts: int) -> Number:
    """E(a, n) = 1 + a + ... + a^n, also at a = 1."""
    total = term = rate**0
    for _ in range(drafts):
        term = term * rate
        total = total + term
    return total


# CS-Drafting (arXiv 2312.11462): the target reviews what ``rounds`` rounds of (M_d1 reviews ``reviewed``
# tokens of M_d2) have handed up. alpha: the target accepts M_d1; inner: M_d1 accepts M_d2.


def phi(inner: Number, reviewed: int, x: Number) -> Number:
    """phi_(a,k)(x) = 1 + (x - 1)(1 - a^(k+1) x^(k+1)) / (1 - a x), CS-Drafting before Thm 4.3.

    It is E[x^N], N the tokens that one round hands up (1 .. k + 1).
    """
    return 1 + (x - 1) * emitted(inner * x, reviewed)


def cascade_tokens(alpha: Number, inner: Number, rounds: int, reviewed: int) -> Number:
    """Expected tokens of a cycle, (1 - alpha phi^n(alpha)) / (1 - alpha); phi^n is the n-th power.

    The numerator of CS-Drafting Thm 4.3. At alpha = 1: all that is handed up, and the bonus.
    """
    if alpha == 1:
        return 1 + rounds * emitted(inner, reviewed)
    return (1 - alpha * phi(inner, reviewed, alpha) ** rounds) / (1 - alpha)


def cascade_seconds(
    inner: Number, rounds: int, reviewed: int, middle: Number, lower: Number, slope: Number
) -> Number:
    """Expected cost of that cycle in forwards of the target over one token.

    1 + n c_d1 + n k c_d2 at slope 0 (CS-Drafting Thm 4.3). With a slope, a forward over w tokens costs
    1 + slope (w - 1) times its model's cost over one: the target reads n E(inner, k) tokens and its own
    last one on average, M_d1 reads k + 1 in every round.

    Args:
        middle, lower: c_d1 and c_d2, cost of a token relative to the target's.
    """
    target = 1 + slope * rounds * emitted(inner, reviewed)
    return target + rounds * (middle * (1 + slope * reviewed) + reviewed * lower)


def pair_seconds(drafts: int, drafter: Number, slope: Number) -> Number:
    """The same without M_d2: M_d1 drafts n tokens one by one, the target reads n + 1."""
    return 1 + slope * drafts + drafts * drafter


# Polybasic (arXiv 2510.26527): M_1 is the target, M_n drafts.


def polybasic_seconds(
    lengths: tuple[Number, ...], seconds: tuple[Number, ...], drafts_a_pass: Number
) -> Number:
    """Seconds per token, sum_{i<n} T_i / L_i + beta T_n / L_{n-1} (Polybasic Eq. 3 with N = 1).

    Args:
        lengths: L_1 .. L_{n-1}, tokens for each forward of M_1 .. M_{n-1}.
        seconds: T_1 .. T_n.
        drafts_a_pass: beta, forwards of M_n for each forward of M_{n-1}.
    """
    verifying = sum((t / n for t, n in zip(seconds[:-1], lengths, strict=True)), 0 * drafts_a_pass)
    return verifying + drafts_a_pass * seconds[-1] / lengths[-1]


@dataclass(frozen=True)
class Insertion(Generic[Number]):
    """What Polybasic's Thm 3.2 looks at when M_new goes between M_i and M_{i+1}, the drafter.

    Attributes:
        above, new, below: T_i, T_new, T_{i+1}, seconds of a forward.
        drafts_a_pass: beta.
        before: L_i, tokens for each forward of M_i before the insertion.
        above_after: L_{i-new}, the same after it.
        new_after: L_new, tokens for each forward of M_new.
    """

    above: Number
    new: Number
    below: Number
    drafts_a_pass: Number
    before: Number
    above_after: Number
    new_after: Number

    @property
    def saved_above(self) -> Number:
        """T_i (1 / L_i - 1 / L_{i-new}), seconds per token that M_i is spared; negative if it runs more."""
        return self.above * (1 / self.before - 1 / self.above_after)

    @property
    def saved_below(self) -> Number:
        """beta T_{i+1} (1 / L_i - 1 / L_new), seconds per token that the drafter is spared."""
        return self.drafts_a_pass * self.below * (1 / self.before - 1 / self.new_after)

    @property
    def spent(self) -> Number:
        """T_new / L_new, seconds per token of the new model."""
        return self.new / self.new_after

    @property
    def published(self) -> bool:
        """Thm 3.2: T_new / T_i < L_new (1/L_i - 1/L_{i-new}) or T_new / T_{i+1} < beta (L_new / L_i - 1)."""
        first = self.new / self.above < self.new_after * (1 / self.before - 1 / self.above_after)
        return first or self.new / self.below < self.drafts_a_pass * (self.new_after / self.before - 1)

    @property
    def exact(self) -> bool:
        """Both savings together exceed what is spent: Eq. 3 after the insertion is below Eq. 3 before it."""
        return self.spent < self.saved_above + self.saved_below


# Three levels at one place of the text


@dataclass(frozen=True)
class PlaceLaw(Generic[Number]):
    """How three models agree at a place; what is left to 1 is that all three differ.

    Attributes:
        all_agree: M_1, M_2 and the target say the same.
        only_lower: M_1 and M_2 do, the target differs.
        only_upper: M_2 and the target do, M_1 differs (M_2 corrects M_1).
        only_outer: M_1 and the target do, M_2 differs (M_2 throws a good token away).
    """

    all_agree: Number
    only_lower: Number
    only_upper: Number
    only_outer: Number

    @property
    def lower(self) -> Number:
        """alpha_12."""
        return self.all_agree + self.only_lower

    @property
    def upper(self) -> Number:
        """alpha_23."""
        return self.all_agree + self.only_upper

    @property
    def outer(self) -> Number:
        """alpha_13, the acceptance of the pair without the middle."""
        return self.all_agree + self.only_outer


def independent(lower: Number, upper: Number) -> PlaceLaw[Number]:
    """Adjacent agreements independent of one another; where the middle corrects, the drafter was wrong."""
    return PlaceLaw(lower * upper, lower * (1 - upper), (1 - lower) * upper, 0 * lower)


@dataclass(frozen=True)
class Costs(Generic[Number]):
    """Affine seconds of a forward over w tokens: ``fixed + slope w``; ``draft`` is one token of M_1."""

    draft: Number
    middle_fixed: Number
    middle_slope: Number
    target_fixed: Number
    target_slope: Number

    def middle(self, width: Number | int) -> Number:
        return self.middle_fixed + self.middle_slope * width

    def target(self, width: Number | int) -> Number:
        return self.target_fixed + self.target_slope * width


@dataclass(frozen=True)
class Cycle(Generic[Number]):
    """Expected tokens and seconds of a cycle."""

    tokens: Number
    seconds: Number

    def faster_than(self, other: Cycle[Number]) -> bool:
        """More tokens per second in the long run (cycles are independent and alike)."""
        return self.tokens * other.seconds > other.tokens * self.seconds


def pair(law: PlaceLaw[Number], costs: Costs[Number], drafts: int) -> Cycle[Number]:
    """M_1 and the target alone; 0 drafts is plain decoding."""
    return Cycle(emitted(law.outer, drafts), drafts * costs.draft + costs.target(drafts + 1))


def truncate(law: PlaceLaw[Number], costs: Costs[Number], drafts: int) -> Cycle[Number]:
    """funnel-truncate: tokens E(e, d), e = P(all agree); the target reads E(alpha_12, d).

    A place of the block reaches the text only if all three agree on it and on all before it; the
    target reads the run on which M_1 and M_2 agree and one more.
    """
    spent = drafts * costs.draft + costs.middle(drafts + 1) + costs.target(emitted(law.lower, drafts))
    return Cycle(emitted(law.all_agree, drafts), spent)


def replace(law: PlaceLaw[Number], costs: Costs[Number], drafts: int) -> Cycle[Number]:
    """funnel-replace: tokens E(e, d + 1) + y E(e, d), y = P(only the middle is right); the target reads
    1 + E(alpha_12, d).

    The middle always adds one token. After n < d agreed places it is right with probability y (a cut
    there means that M_1 differed); after all d it is right with probability alpha_23 = e + y. So
    1 + sum_{j=1..d} e^j + y sum_{n<d} e^n + e^d (e + y).
    """
    tokens = emitted(law.all_agree, drafts + 1) + law.only_upper * emitted(law.all_agree, drafts)
    spent = drafts * costs.draft + costs.middle(drafts + 1) + costs.target(1 + emitted(law.lower, drafts))
    return Cycle(tokens, spent)


def nested(lower: Number, upper: Number, costs: Costs[Number], rounds: int, drafts: int) -> Cycle[Number]:
    """nested, ``rounds`` rounds of ``drafts`` tokens each before the target reads: CS-Drafting's cycle.

    Needs alpha_12 and alpha_23 independent, since what M_1 gets right decides how much is handed up.
    """
    handed = rounds * emitted(lower, drafts)
    spent = rounds * (drafts * costs.draft + costs.middle(drafts + 1)) + costs.target(1 + handed)
    return Cycle(cascade_tokens(upper, lower, rounds, drafts), spent)


def most_middle_seconds(with_middle: Cycle[Number], without: Cycle[Number], free: Number) -> Number:
    """What all the middle's forwards of a cycle may take at most, so that the third level pays.

    With E3, E2 the tokens of a cycle with and without it, C2 the seconds without it and C3 - F the
    seconds with it but for the middle: F < (E3 / E2) C2 - (C3 - F).

    Args:
        with_middle: the cycle of three levels.
        without: the best cycle without the middle.
        free: F, the seconds of the middle that are counted in ``with_middle``.
    """
    return with_middle.tokens / without.tokens * without.seconds - (with_middle.seconds - free)
