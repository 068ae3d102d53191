"""Long-run tokens per second when cycles differ: renewal reward, and what adapting can gain.

Cycles come in kinds, drawn afresh each time with probability w_i, whatever was done before. In a cycle of
kind i, option k yields X_ik tokens on average and takes T_k seconds (or T_ik). By the renewal reward theorem
a policy that takes option k(i) makes sum w_i X_ik(i) / sum w_i T_k(i) tokens per second in the long run.
Along a text none of this holds: there, what is chosen decides where the next cycle begins (claim S47b).
Plain Python that works for fractions and floats alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TypeVar

Number = TypeVar("Number", Fraction, float)


def rate(weights: Sequence[Number], tokens: Sequence[Number], seconds: Sequence[Number]) -> Number:
    """sum w X / sum w T over kinds; weights need not sum to 1."""
    return _dot(weights, tokens) / _dot(weights, seconds)


def choices_at(
    price: Number, tokens: Sequence[Sequence[Number]], seconds: Sequence[Sequence[Number]]
) -> tuple[int, ...]:
    """For each kind the option of greatest X_ik - price T_ik, the first of equals.

    Args:
        price: tokens that a second is worth.
        tokens, seconds: shape (kinds, options).
    """
    worth = [
        [x - price * t for x, t in zip(*both, strict=True)] for both in zip(tokens, seconds, strict=True)
    ]
    return tuple(row.index(max(row)) for row in worth)


def best_rate(
    weights: Sequence[Number], tokens: Sequence[Sequence[Number]], seconds: Sequence[Sequence[Number]]
) -> Number:
    """The greatest long-run rate of any policy that sees a cycle's kind.

    Dinkelbach's iteration (Management Science 13, 1967): price a second at the rate of the last policy until
    that changes nothing. With fractions it ends, after as many steps as there are policies at most.
    """
    found = rate(weights, [x[0] for x in tokens], [t[0] for t in seconds])
    while True:
        choice = choices_at(found, tokens, seconds)
        better = rate(
            weights,
            [x[k] for x, k in zip(tokens, choice, strict=True)],
            [t[k] for t, k in zip(seconds, choice, strict=True)],
        )
        if not better > found:
            return found
        found = better


def excess(weights: Sequence[Number], tokens: Sequence[Sequence[Number]]) -> Number:
    """sum_i w_i max_k (X_ik - mean_i X_ik): how far kinds are ahead of the average, each where it is most.

    The most that any adaptive scheme can gain over the best static option, in speedup over plain decoding,
    where kinds are drawn afresh whatever was chosen, seconds depend on the option only and plain decoding
    (the shortest cycle) is among the options.
    """
    total = sum(weights, 0 * weights[0])
    means = [_dot(weights, [row[k] for row in tokens]) / total for k in range(len(tokens[0]))]
    ahead = [max(x - m for x, m in zip(row, means, strict=True)) for row in tokens]
    return _dot(weights, ahead) / total


def spread(weights: Sequence[Number], survivals: Sequence[Sequence[Number]]) -> Number:
    """Half the mean absolute deviation of S_ij over kinds, summed over places j; at least :func:`excess`.

    Args:
        survivals: S_ij, the probability that the first j drafts are accepted, shape (kinds, places).
    """
    total = sum(weights, 0 * weights[0])
    found = 0 * total
    for j in range(len(survivals[0])):
        column = [row[j] for row in survivals]
        mean = _dot(weights, column) / total
        found = found + _dot(weights, [abs(s - mean) for s in column]) / total / 2
    return found


def variance(weights: Sequence[Number], values: Sequence[Number]) -> Number:
    """Weighted mean of squared deviations from the weighted mean."""
    total = sum(weights, 0 * weights[0])
    mean = _dot(weights, values) / total
    return _dot(weights, [(v - mean) ** 2 for v in values]) / total


def spread_squared_at_most(weights: Sequence[Number], rates: Sequence[Number], places: int) -> Number:
    """(sd(a) / 2)^2 (sum_{j<=places} j r^(j-1))^2, which is at least ``spread ** 2`` where S_ij = a_i^j.

    a^j has slope at most j r^(j-1) up to r, the greatest rate, so sd(a^j) <= j r^(j-1) sd(a); and a mean
    absolute deviation is at most the standard deviation.
    """
    top = max(rates)
    slope = sum((j * top ** (j - 1) for j in range(1, places + 1)), 0 * top)
    return variance(weights, rates) * slope**2 / 4


def _dot(weights: Sequence[Number], values: Sequence[Number]) -> Number:
    return sum((w * v for w, v in zip(weights, values, strict=True)), 0 * weights[0])
