"""How long a block should be when places are accepted with known chances, exactly.

p_k = probability that draft k is accepted given that those before it were (k = 1 .. D); S_j = p_1 .. p_j,
the survival; tau_d = expected tokens of a cycle that submits d drafts: S_1 + .. + S_d, plus 1 where the
bonus token is counted; T(d) = time of that cycle; eta_d = tau_d / T(d), LibraSpec's speedup (arXiv
2608.08721, Eq. 1) up to a constant, the time of a plain token. Past place D nothing is accepted.

Plain Python on numbers: fractions give fractions, floats give floats.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import accumulate, pairwise
from operator import mul
from typing import TypeVar

Number = TypeVar("Number", float, Fraction)


def survivals(p: Sequence[Number]) -> tuple[Number, ...]:
    """S_1 .. S_D."""
    return tuple(accumulate(p, mul))


def expected_tokens(p: Sequence[Number], *, bonus: bool = True) -> tuple[Number, ...]:
    """tau_0 .. tau_D. Raises ValueError for no place at all."""
    if not p:
        raise ValueError("expected tokens need at least one place")
    return tuple(accumulate(survivals(p), initial=type(p[0])(int(bonus))))


def speedups(
    p: Sequence[Number], cost: Sequence[Number], *, bonus: bool = True, shortest: int = 0, plain: int = 1
) -> tuple[Number, ...]:
    """eta_d for d = ``shortest`` .. D: expected tokens over time, times that of a plain token.

    Args:
        cost: T(0) .. T(D); only T(``shortest``) and on are used and must be above 0.
        shortest: 1 where length 0 is no choice, or T(0) = 0 is not a time.
        plain: a plain token's time; 1 leaves tokens per unit of time, which orders lengths alike.
    """
    tokens = expected_tokens(p, bonus=bonus)
    if len(cost) != len(tokens) or min(cost[shortest:]) <= 0:
        raise ValueError(f"need {len(tokens)} times above 0, not {cost}")
    return tuple(plain * n / t for n, t in zip(tokens[shortest:], cost[shortest:], strict=True))


def marginal_gain(p: Sequence[Number], d: int, longer: int) -> Number:
    """tau_longer - tau_d = S_{d+1} + .. + S_longer: what Thm 3.2 needs, with products from place 1."""
    tokens = expected_tokens(p)
    return _at(tokens, longer) - _at(tokens, d)


def conditional_gain(p: Sequence[Number], i: int, longer: int) -> Number:
    """LibraSpec's E[tau_{i:longer}] as printed: sum_{j=i..longer} p_i p_{i+1} .. p_j.

    The expected accepted drafts among places i .. longer once all before i were accepted.
    """
    return sum(survivals(p[i - 1 : longer]), type(p[0])(0))


def eps_printed(
    p: Sequence[Number],
    i: int,
    cost: Callable[[int], Number],
    *,
    bonus: bool = True,
    limit: int | None = None,
) -> int:
    """eps_i of LibraSpec's Thm 3.3 and 3.4 as printed, i in 1 .. D.

    max{ d' in Z : d' < (T_i / (tau_i c)) E[tau_{i:d'}] + i }, for T(d) = T0 + c d the same as the larger of
    i - 1 and the greatest d' >= i with T(d') - T(i) < (T(i) / tau_i) E[tau_{i:d'}], which is what is
    computed and has a meaning for other costs too. It is i - 1 where p_i = 0: an empty sum is 0, and
    (i - 1) - i is below 0, in the formula as printed.

    Args:
        cost: T as a function of d; convex, and rising without end past place D (else use ``limit``).
        limit: no d' above this one is looked at.

    Raises:
        ValueError: if tau_i is 0, or T does not rise past place D and there is no limit.
    """
    worth = cost(i) / _expected(p, i, bonus)[i]
    return last_repaid(p, i, cost, worth, limit=limit)


def last_repaid(
    p: Sequence[Number],
    i: int,
    cost: Callable[[int], Number],
    worth: Number,
    *,
    or_equal: bool = False,
    limit: int | None = None,
) -> int:
    """The larger of i - 1 and the greatest d' >= i with T(d') - T(i) < worth E[tau_{i:d'}], for i from 1.

    Args:
        cost: T as a function of d, as for :func:`eps_printed`.
        worth: of an accepted draft, in time.
        or_equal: with <= for <.
        limit: no d' above this one is looked at.

    Raises:
        ValueError: if T does not rise past place D and there is no limit.
    """
    gains = tuple(accumulate(survivals(p[i - 1 :]), initial=worth * 0))  # E[tau_{i:d'}] for d' = i - 1 .. D

    def repaid(d: int) -> bool:
        spent, gained = cost(d) - cost(i), worth * _at(gains, d - i + 1)
        return spent < gained or (or_equal and spent == gained)

    return _last(repaid, p, i, cost, limit)


def eps_repaired(
    p: Sequence[Number],
    i: int,
    cost: Callable[[int], Number],
    *,
    bonus: bool = True,
    ties: bool = True,
    limit: int | None = None,
) -> int:
    """eps_i with both repairs, products from place 1 and a sum from i + 1: the last length not below i's.

    The largest d' >= i with T(d') - T(i) <= (T(i) / tau_i) (tau_{d'} - tau_i), which by Thm 3.2 is the last
    whose speedup is at least that of i; with ``ties`` false the last whose speedup is more, or i if none is.
    Other arguments and errors as for :func:`eps_printed`; i may be 0.
    """
    tokens = _expected(p, i, bonus)
    worth = cost(i) / tokens[i]

    def surplus(d: int) -> Number:
        return worth * (_at(tokens, d) - tokens[i]) - (cost(d) - cost(i))

    return _last(lambda d: surplus(d) >= 0 if ties else surplus(d) > 0, p, i + 1, cost, limit)


def _expected(p: Sequence[Number], i: int, bonus: bool) -> tuple[Number, ...]:
    tokens = expected_tokens(p, bonus=bonus)
    if tokens[i] == 0:
        raise ValueError(f"no token is expected of {i} places: T_i / tau_i has no value")
    return tokens


def _last(
    true_of: Callable[[int], bool],
    p: Sequence[Number],
    i: int,
    cost: Callable[[int], Number],
    limit: int | None,
) -> int:
    """The last d' >= i that the condition is true of, or i - 1.

    Gain less cost is concave in d' for a convex cost, and 0 or more before the first: what is true of one
    d' is true of all between i and it. So strides may double until one is too long, and be halved then.
    """
    low, high = i - 1, i
    while (limit is None or high <= limit) and true_of(high):
        low, high = high, 2 * high - i + 1
        if limit is None and low > len(p) and cost(high) <= cost(low):
            raise ValueError(f"the cost does not rise past length {low}: eps has no end")
    if limit is not None:
        high = min(high, limit + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if true_of(middle) else (low, middle)
    return low


def _at(tokens: Sequence[Number], d: int) -> Number:
    return tokens[min(d, len(tokens) - 1)]


def best_lengths(values: Sequence[Number]) -> tuple[int, ...]:
    """Every index at which ``values`` is greatest."""
    most = max(values)
    return tuple(d for d, value in enumerate(values) if value == most)


def first_stop(values: Sequence[Number]) -> int:
    """The index before the first value that is no improvement on its predecessor (CaDDTree's rule)."""
    for d, (here, then) in enumerate(pairwise(values)):
        if then <= here:
            return d
    return len(values) - 1


def is_unimodal(values: Sequence[Number]) -> bool:
    """Whether values, once they have fallen, never rise again."""
    fallen = False
    for here, then in pairwise(values):
        if fallen and then > here:
            return False
        fallen = fallen or then < here
    return True


def envelope_corners(cost: Sequence[Number]) -> tuple[int, ...]:
    """Lengths at the corners of the greatest convex curve below ``cost``, both ends among them.

    Between two of them the cost lies on or above the straight line.
    """
    kept: list[int] = []
    for d in range(len(cost)):
        while len(kept) > 1 and _is_above(cost, kept[-2], kept[-1], d):
            kept.pop()
        kept.append(d)
    return tuple(kept)


def _is_above(cost: Sequence[Number], a: int, b: int, c: int) -> bool:
    """Whether T(b) lies on or above the line through T(a) and T(c)."""
    return (cost[b] - cost[a]) * (c - a) >= (cost[c] - cost[a]) * (b - a)
