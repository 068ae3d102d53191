"""When a third level pays: published criteria, and closed forms for one place law.

For fractions, and for floats as arrays; what compares two sides takes one case at a time. Symbols: M_1
drafts, M_2 (the middle) verifies M_1, M_3 (the target) verifies what it is handed. a = alpha_12, b =
alpha_23: the probability that two models agree at a place, given that everything before it was agreed on.
All places are independent and alike. E(a, n) = 1 + a + ... + a^n, the bonus token included.

Papers number their models from the target down (CS-Drafting: M_t, M_d1, M_d2; Polybasic: M_1 = target);
each function says which of its arguments is which. The formulas for any number of levels are in
:mod:`simspec.theory.chains`; where agreement is independent from pair to pair, truncate, replace and nested
are :mod:`simspec.theory.exact_chains`'s exact, exact (replacing) and exact_rounds, for affine costs in
closed form.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic

from simspec.theory import chains
from simspec.theory.acceptance import emitted_tokens
from simspec.theory.numbers import Number

# Polybasic (arXiv 2510.26527): M_1 is the target, M_n drafts.


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
        second = self.new / self.below < self.drafts_a_pass * (self.new_after / self.before - 1)
        return bool(first or second)

    @property
    def exact(self) -> bool:
        """Both savings together exceed what is spent: Eq. 3 after the insertion is below Eq. 3 before it."""
        return bool(self.spent < self.saved_above + self.saved_below)


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
        return bool(self.tokens * other.seconds > other.tokens * self.seconds)


def relative(middle: Number, lower: Number, slope: Number) -> Costs[Number]:
    """CS-Drafting's costs, in forwards of the target over one token (arXiv 2312.11462).

    A forward over w tokens costs 1 + slope (w - 1) times its model's cost over one; the paper's slope is 0.

    Args:
        middle, lower: c_d1 and c_d2, cost of a token of M_d1 (here M_2) and M_d2 (here M_1).
    """
    return Costs(lower, middle * (1 - slope), middle * slope, 1 - slope, slope)


def pair(outer: Number, costs: Costs[Number], drafts: int) -> Cycle[Number]:
    """M_1 and the target alone, alpha_13 = ``outer``; 0 drafts is plain decoding."""
    return Cycle(emitted_tokens(outer, drafts), drafts * costs.draft + costs.target(drafts + 1))


def truncate(law: PlaceLaw[Number], costs: Costs[Number], drafts: int) -> Cycle[Number]:
    """funnel-truncate: tokens E(e, d), e = P(all agree); the target reads E(alpha_12, d).

    A place of the block reaches the text only if all three agree on it and on all before it; the
    target reads the run on which M_1 and M_2 agree and one more.
    """
    read = emitted_tokens(law.lower, drafts)
    spent = drafts * costs.draft + costs.middle(drafts + 1) + costs.target(read)
    return Cycle(emitted_tokens(law.all_agree, drafts), spent)


def replace(law: PlaceLaw[Number], costs: Costs[Number], drafts: int) -> Cycle[Number]:
    """funnel-replace: tokens E(e, d + 1) + y E(e, d), y = P(only the middle is right); the target reads
    1 + E(alpha_12, d).

    The middle always adds one token. After n < d agreed places it is right with probability y (a cut
    there means that M_1 differed); after all d it is right with probability alpha_23 = e + y. So
    1 + sum_{j=1..d} e^j + y sum_{n<d} e^n + e^d (e + y).
    """
    agreed = law.all_agree
    tokens = emitted_tokens(agreed, drafts + 1) + law.only_upper * emitted_tokens(agreed, drafts)
    read = 1 + emitted_tokens(law.lower, drafts)
    spent = drafts * costs.draft + costs.middle(drafts + 1) + costs.target(read)
    return Cycle(tokens, spent)


def nested(lower: Number, upper: Number, costs: Costs[Number], rounds: int, drafts: int) -> Cycle[Number]:
    """nested, ``rounds`` rounds of ``drafts`` tokens each before the target reads: CS-Drafting's cycle.

    Tokens are (1 - b phi^n(b)) / (1 - b), phi^n the n-th power (arXiv 2312.11462, Thm 4.3); the target reads
    n E(a, k) and its own last one. Needs alpha_12 and alpha_23 independent, since what M_1 gets right decides
    how much is handed up.
    """

    def verify(level: int, width: Number) -> Number:
        return costs.middle(width) if level == 2 else costs.target(width)

    rates = (lower, upper)
    spent = chains.nested_seconds(rates, drafts, (rounds,), costs.draft, verify)
    return Cycle(chains.round_tokens(rates, drafts, (rounds,)), spent)


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
