"""SpecRouter's Eq. 7 as a family (arXiv 2505.07680), its published relatives, and what is exact.

T_eff = (expected seconds of a cycle) / (expected target tokens of a cycle). The paper gives
no expansion in any text that could be reached, so every reading here has a name, and
none is "the" Eq. 7.

For a chain M_1 .. M_N (N = target): gamma = tokens drafted by M_1, alpha_i = acceptance of
M_i's tokens by M_{i+1}, T_1 = M_1's seconds a token, V_i(n) = seconds of a forward of M_i
over n tokens. All acceptances are taken as independent and identical along the block.
Arrays broadcast, so that one call prices many draws; fractions in give fractions out. What
each reading gets right, and under which rules of a cycle, is decided by the claims S7.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from simspec.theory.acceptance import Number, emitted_tokens, surviving_tokens

Floats = NDArray[np.float64]
Forward = Callable[[int, Floats], Floats]
Reach = Literal["any", "all", "always"]


@overload
def _number(value: Fraction) -> Fraction: ...
@overload
def _number(value: Floats) -> Floats: ...
def _number(value: Any) -> Any:
    """A fraction as it is, anything else as an array of floats."""
    return value if isinstance(value, Fraction) else np.asarray(value, dtype=np.float64)


@overload
def _like(value: Fraction, wanted: int) -> Fraction: ...
@overload
def _like(value: Floats, wanted: int) -> Floats: ...
def _like(value: Any, wanted: int) -> Any:
    """A whole number as the kind of number that ``value`` is, and of its shape."""
    if isinstance(value, Fraction):
        return Fraction(wanted)
    return np.full_like(np.asarray(value, dtype=np.float64), wanted)


@overload
def _width(value: Fraction, wanted: int) -> Fraction: ...
@overload
def _width(value: Floats, wanted: int) -> Floats: ...
def _width(value: Any, wanted: int) -> Any:
    """One width for all draws: a fraction beside fractions, else an array without dimensions."""
    return Fraction(wanted) if isinstance(value, Fraction) else np.asarray(float(wanted))


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
    rates = [_number(a) for a in alphas]
    levels = len(rates) + 1
    width = _width(rates[0], gamma + 1 if wide else 1)
    total = gamma * _number(draft_seconds)
    passed = _like(rates[0], 1)  # the product of the rates up to M_{i-1}
    for i in range(2, levels + 1):
        weight = _like(rates[0], 1)
        if i > 2:
            passed = passed * rates[i - 3]
        if 2 < i < levels and reached != "always":
            weight = passed**gamma if reached == "all" else passed
        total = total + weight * verify(i, width)
    through = passed * rates[-1] if end_to_end is None else _number(end_to_end)
    return _number(total / emitted_tokens(through, gamma))


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
    rates = [_number(a) for a in alphas]
    levels = len(rates) + 1
    total = gamma * _number(draft_seconds)
    n = _like(rates[0], gamma)
    for i in range(2, levels + 1):
        total = total + verify(i, n + 1)
        if i < levels:
            n = emitted_tokens(rates[i - 2], n) if replace else surviving_tokens(rates[i - 2], n)
    return _number(total / (1 + surviving_tokens(rates[-1], n)))


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
    rates = [_number(a) for a in alphas]
    total = nested_seconds(rates, gamma, rounds, draft_seconds, verify)
    return _number(total / round_tokens(rates, gamma, rounds))


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
    rates = [_number(a) for a in alphas]
    if len(rounds) != len(rates) - 1:
        raise ValueError(f"{len(rates) + 1} levels need {len(rates) - 1} counts of rounds, not {len(rounds)}")
    total = gamma * _number(draft_seconds) + verify(2, _width(rates[0], gamma + 1))
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
    total = drafts_a_forward * _number(seconds[-1]) / _number(lengths[-1])
    for length, time in zip(lengths, seconds[:-1], strict=True):
        total = total + _number(time) / _number(length)
    return _number(total)


def product(alphas: Sequence[Number], seconds: Sequence[Number]) -> Number:
    """sum_i T_i / prod alpha_i, a straw man to beat; knows no draft length.

    ZeroDivisionError for a fraction of 0 among the rates.
    """
    total, through = _number(seconds[0]), _number(alphas[0])
    for time in seconds[1:]:
        total = total + _number(time)
    for a in alphas[1:]:
        through = through * _number(a)
    return _number(total / through)


def exact(
    alphas: Sequence[Number],
    gamma: int,
    draft_seconds: Number,
    verify: Callable[[int, Number], Number],
    *,
    replace: bool = False,
) -> Number:
    """Expected seconds a token of a funnel under independent acceptance, widths priced one by one.

    The length of the block is followed as a Markov chain from level to level: of n tokens M_{i+1}
    keeps m < n with probability alpha^m (1 - alpha) and all with alpha^n, and adds one if ``replace``.
    Conventions of :mod:`simspec.speculation.cycle`: an intermediate that is handed nothing stays
    idle, the target always runs. Arguments as for :func:`reach`.
    """
    rates = [_number(a) for a in alphas]
    levels = len(rates) + 1
    total = gamma * _number(draft_seconds)
    lengths = {gamma: _like(rates[0], 1)}
    for i in range(2, levels + 1):
        for n, chance in lengths.items():
            if n or i == levels:
                total = total + chance * verify(i, _width(rates[0], n + 1))
        if i < levels:
            lengths = _passed_on(lengths, rates[i - 2], int(replace))
    tokens = _like(rates[0], 0)
    for n, chance in lengths.items():
        tokens = tokens + chance * emitted_tokens(rates[-1], n)
    return _number(total / tokens)


def exact_rounds(
    alphas: Sequence[Number],
    gamma: int,
    rounds: int,
    draft_seconds: Number,
    verify: Callable[[int, Number], Number],
) -> Number:
    """As :func:`exact`, for three levels of which the target reads what ``rounds`` rounds made."""
    inner, outer = _number(alphas[0]), _number(alphas[1])
    made = _passed_on({gamma: _like(inner, 1)}, inner, 1)
    lengths = {0: _like(inner, 1)}
    for _ in range(rounds):
        longer: dict[int, Number] = {}
        for n, chance in lengths.items():
            for more, also in made.items():
                longer[n + more] = longer.get(n + more, _like(inner, 0)) + chance * also
        lengths = longer
    total = rounds * (gamma * _number(draft_seconds) + verify(2, _width(inner, gamma + 1)))
    tokens = _like(inner, 0)
    for n, chance in lengths.items():
        total = total + chance * verify(3, _width(inner, n + 1))
        tokens = tokens + chance * emitted_tokens(outer, n)
    return _number(total / tokens)


def exact_collected(
    alphas: Sequence[Number],
    gamma: int,
    collect: int,
    draft_seconds: Number,
    verify: Callable[[int, Number], Number],
) -> Number:
    """As :func:`exact`, for three levels nested as the decoder does: rounds until ``collect`` tokens.

    The last rounds draft no more than is still wanted less one. What the target reads is the
    middle's own text, so how much of it is accepted does not depend on M_1 at all.
    """
    inner, outer = _number(alphas[0]), _number(alphas[1])
    # Expected seconds until so many tokens are there.
    until = [_like(inner, 0)]
    for left in range(1, collect + 1):
        drafts = min(gamma, left - 1)
        cost = drafts * _number(draft_seconds) + verify(2, _width(inner, drafts + 1))
        for more, chance in _passed_on({drafts: _like(inner, 1)}, inner, 1).items():
            cost = cost + chance * until[left - more]
        until.append(cost)
    total = until[collect] + verify(3, _width(inner, collect + 1))
    return _number(total / emitted_tokens(outer, collect))


def _passed_on(lengths: dict[int, Number], alpha: Number, own: int) -> dict[int, Number]:
    """The law of what a verifier passes on, given the law of what it reads; ``own`` tokens are added."""
    found: dict[int, Number] = {}
    for n, chance in lengths.items():
        for kept in range(n + 1):
            share = chance * alpha**kept
            if kept < n:
                share = share * (1 - alpha)
            found[kept + own] = found.get(kept + own, _like(alpha, 0)) + share
    return found
