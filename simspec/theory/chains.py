"""SpecRouter's Eq. 7 as a family (arXiv 2505.07680), and its published relatives.

T_eff = (expected seconds of a cycle) / (expected target tokens of a cycle). The paper gives
no expansion in any text that could be reached, so every reading here has a name, and
none is "the" Eq. 7.

For a chain M_1 .. M_N (N = target): gamma = tokens drafted by M_1, alpha_i = acceptance of
M_i's tokens by M_{i+1}, T_1 = M_1's seconds a token, V_i(n) = seconds of a forward of M_i
over n tokens. All acceptances are taken as independent and identical along the block.
Arrays broadcast, so that one call prices many draws; fractions in give fractions out. What
each reading gets right, and under which rules of a cycle, is decided by the claims S7; what is exact is in
:mod:`simspec.theory.exact_chains`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Literal

import numpy as np

from simspec.theory.acceptance import emitted_tokens, surviving_tokens
from simspec.theory.numbers import Floats, Number, like, number, width_of

Forward = Callable[[int, Floats], Floats]
Reach = Literal["any", "all", "always"]


def reach(
    alphas: Sequence[Number],
    gamma: int,
    draft_seconds: Number,
    verify: Callable[[int, Number], Number],
    reached: Reach = "any",
    *,
    wide: bool = False,
    end_to_end: Number | None = None,
) -> Number:
    """The reading nearest to the published phrase ("probabilities of reaching each level").

    T_eff = [gamma T_1 + sum_{i>=2} R_i T_i] / E(prod alpha, gamma), with R_2 = R_N = 1 and, for
    2 < i < N, R_i = prod_{j<=i-2} alpha_j ("any": at least one survives), the same to the power
    gamma ("all"), or 1 ("always"); up to three levels these are one and the same. T_i is the
    model's single-token time, as printed; ``wide`` puts a forward over gamma + 1 tokens there.

    Args:
        alphas: alpha_1 .. alpha_{N-1}, adjacent acceptance.
        gamma: tokens drafted by M_1.
        draft_seconds: T_1.
        verify: V_i(n) given (i, n); i = 2 .. N, n float (or a fraction).
        end_to_end: alpha_{1N}, to be used in place of prod alpha.
    """
    rates = [number(a) for a in alphas]
    levels = len(rates) + 1
    width = width_of(rates[0], gamma + 1 if wide else 1)
    total = gamma * number(draft_seconds)
    passed = like(rates[0], 1)  # the product of the rates up to M_{i-1}
    for i in range(2, levels + 1):
        weight = like(rates[0], 1)
        if i > 2:
            passed = passed * rates[i - 3]
        if 2 < i < levels and reached != "always":
            weight = passed**gamma if reached == "all" else passed
        total = total + weight * verify(i, width)
    through = passed * rates[-1] if end_to_end is None else number(end_to_end)
    return number(total / emitted_tokens(through, gamma))


def funnel(
    alphas: Sequence[Number],
    gamma: int,
    draft_seconds: Number,
    verify: Callable[[int, Number], Number],
    *,
    replace: bool = False,
) -> Number:
    """Follow the block up the funnel: n_1 = gamma, n_{i+1} = S(alpha_i, n_i), or E where the
    verifier appends its own token.

    T_eff = [gamma T_1 + sum_{i>=2} V_i(n_{i-1} + 1)] / (1 + S(alpha_{N-1}, n_{N-1})). Takes the
    acceptance of what survives to be the plain pairwise rate, which is where it errs when
    levels are correlated; and carries a mean length through functions that bend, which is where
    it errs when they are not (claims S7, S22). Arguments as for :func:`reach`. Between fractions
    ValueError where a mean length makes a power that is no fraction.
    """
    rates = [number(a) for a in alphas]
    levels = len(rates) + 1
    total = gamma * number(draft_seconds)
    n = like(rates[0], gamma)
    for i in range(2, levels + 1):
        total = total + verify(i, n + 1)
        if i < levels:
            n = emitted_tokens(rates[i - 2], n) if replace else surviving_tokens(rates[i - 2], n)
    return number(total / (1 + surviving_tokens(rates[-1], n)))


def nested(
    alphas: Sequence[Number],
    gamma: int,
    rounds: Sequence[int],
    draft_seconds: Number,
    verify: Callable[[int, Number], Number],
) -> Number:
    """CS-Drafting's Theorem 4.3 (arXiv 2312.11462), for any number of levels.

    A round of M_2: gamma tokens of M_1 are reviewed, and M_2 adds one of its own. M_{i+1} reviews
    what ``rounds[i - 2]`` rounds of M_i have made, and adds one. With
    phi(x) = 1 + (x - 1) (1 - a^(k+1) x^(k+1)) / (1 - a x), the generating function of the tokens of
    a round, a cycle of three levels emits (1 - alpha_2 phi(alpha_2)^n) / (1 - alpha_2) tokens.
    Each forward is priced at its expected width; the theorem's are free of width.

    Args:
        rounds: n for each of M_2 .. M_{N-1}.
        alphas, gamma, draft_seconds, verify: as for :func:`reach`.
    """
    rates = [number(a) for a in alphas]
    total = nested_seconds(rates, gamma, rounds, draft_seconds, verify)
    return number(total / round_tokens(rates, gamma, rounds))


def nested_seconds(
    alphas: Sequence[Number],
    gamma: int,
    rounds: Sequence[int],
    draft_seconds: Number,
    verify: Callable[[int, Number], Number],
) -> Number:
    """Seconds of the cycle of :func:`nested`, which needs no acceptance by the target.

    The expected ones where each further token takes a forward the same time. Arguments as there.
    """
    rates = [number(a) for a in alphas]
    if len(rounds) != len(rates) - 1:
        raise ValueError(f"{len(rates) + 1} levels need {len(rates) - 1} counts of rounds, not {len(rounds)}")
    total = gamma * number(draft_seconds) + verify(2, width_of(rates[0], gamma + 1))
    for i, n in enumerate(rounds, 3):
        made = n * round_tokens(rates[: i - 2], gamma, rounds[: i - 3])
        total = n * total + verify(i, made + 1)
    return total


def round_tokens(alphas: Sequence[Number], gamma: int, rounds: Sequence[int]) -> Number:
    """Expected tokens of one round of the uppermost of these levels, its own one included.

    (1 - alpha phi(alpha)^n) / (1 - alpha), phi the generating function of a round one level down.
    """
    return _geometric(alphas, gamma, rounds, alphas[-1])


def round_generating(alphas: Sequence[Number], gamma: int, rounds: Sequence[int], x: Number) -> Number:
    """E[x^tokens of a round]: CS-Drafting's phi, which it defines for two levels.

    For a block of random length G under a rate a it is 1 + (x - 1) (1 - a x E[(a x)^G]) / (1 - a x).
    """
    return 1 + (x - 1) * _geometric(alphas, gamma, rounds, alphas[-1] * x)


def _geometric(alphas: Sequence[Number], gamma: int, rounds: Sequence[int], y: Number) -> Number:
    """(1 - y E[y^G]) / (1 - y), G the length of the block that the uppermost level reads."""
    if not rounds:
        return emitted_tokens(y, gamma)
    n, below = rounds[-1], (alphas[:-1], gamma, rounds[:-1])
    limit = 1 + n * round_tokens(*below)  # as y goes to 1
    if isinstance(y, Fraction):
        return limit if y == 1 else (1 - y * round_generating(*below, y) ** n) / (1 - y)
    sure = y >= 1.0
    safe = np.where(sure, 0.0, y)
    return np.where(sure, limit, (1.0 - safe * round_generating(*below, safe) ** n) / (1.0 - safe))


def polybasic(lengths: Sequence[Number], seconds: Sequence[Number], drafts_a_forward: Number) -> Number:
    """Polybasic speculative decoding's Eq. 3 (arXiv 2510.26527), a token: the target comes FIRST here.

    sum_{i<n} T_i / L_i + beta T_n / L_{n-1}.

    Args:
        lengths: L_1 .. L_{n-1}, tokens that a forward of M_i passes on, its own one included.
        seconds: T_1 .. T_n of a forward.
        drafts_a_forward: beta, forwards of M_n for each one of M_{n-1}.
    """
    if len(seconds) != len(lengths) + 1 or not lengths:
        raise ValueError(f"{len(lengths)} lengths need {len(lengths) + 1} times, not {len(seconds)}")
    total = drafts_a_forward * number(seconds[-1]) / number(lengths[-1])
    for length, time in zip(lengths, seconds[:-1], strict=True):
        total = total + number(time) / number(length)
    return number(total)


def product(alphas: Sequence[Number], seconds: Sequence[Number]) -> Number:
    """sum_i T_i / prod alpha_i, a straw man to beat; knows no draft length.

    ZeroDivisionError for a fraction of 0 among the rates.
    """
    total, through = number(seconds[0]), number(alphas[0])
    for time in seconds[1:]:
        total = total + number(time)
    for a in alphas[1:]:
        through = through * number(a)
    return number(total / through)
