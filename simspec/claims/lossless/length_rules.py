"""Length rules, each made from a threshold or a cost curve.

A first stop is written here as a cut of the whole block: what is drafted beyond the cut is not looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import log2, prod

import numpy as np

from simspec.claims.lossless.chance import Rule
from simspec.speculation.lengths import LibraSpec, View
from simspec.strategies.costs import Curve
from simspec.strategies.distributions import Distribution
from simspec.strategies.models import Text

# Rules. Each is made from a threshold or a cost curve.


def stop_after(least: Fraction) -> Rule:
    """Submit up to the first token that was drawn with a probability below ``least``, it included."""

    def rule(tokens: Text, rows: Sequence[Distribution]) -> int:
        for i, (token, row) in enumerate(zip(tokens, rows, strict=True)):
            if row[token] < least:
                return i + 1
        return len(tokens)

    return rule


def stop_before(least: Fraction) -> Rule:
    """The same, but without that token."""

    def rule(tokens: Text, rows: Sequence[Distribution]) -> int:
        for i, (token, row) in enumerate(zip(tokens, rows, strict=True)):
            if row[token] < least:
                return i
        return len(tokens)

    return rule


def first_weak_top(least: Fraction) -> Rule:
    """Stop before the first place whose most probable token has less than ``least``."""

    def rule(tokens: Text, rows: Sequence[Distribution]) -> int:
        return next((i for i, row in enumerate(rows) if max(row) < least), len(tokens))

    return rule


def entropy(row: Distribution) -> float:
    """Shannon's, in bits. A float: it only says where to stop."""
    return -sum(float(x) * log2(x) for x in row if x)


def first_uncertain(least: Fraction) -> Rule:
    """Stop before the first place whose entropy is above 2 (1 - ``least``) bits."""

    def rule(tokens: Text, rows: Sequence[Distribution]) -> int:
        return next((i for i, row in enumerate(rows) if entropy(row) > 2 * (1 - least)), len(tokens))

    return rule


def best_length(confidence: Sequence[Fraction], seconds: Curve) -> int:
    """The length of most expected tokens a second: (1 + sum of products of confidences) / T.

    The least of equals.
    """
    rates = [Fraction(1) / seconds[0]]
    tokens = Fraction(1)
    for n in range(1, len(confidence) + 1):
        tokens += prod(confidence[:n], start=Fraction(1))
        rates.append(tokens / seconds[n])
    return rates.index(max(rates))


def scan_drawn(seconds: Curve) -> Rule:
    """Look at the whole block's drawn tokens and take the best length."""
    return lambda tokens, rows: best_length([row[t] for t, row in zip(tokens, rows, strict=True)], seconds)


def scan_top(seconds: Curve) -> Rule:
    """The same with each place's greatest probability for the confidence."""
    return lambda tokens, rows: best_length([max(row) for row in rows], seconds)


def libraspec(setting: tuple[Fraction, int, int]) -> Rule:
    """LibraSpec's Algorithm 1, the simulator's own code, on top-1 confidences; alpha, n and d_max given."""
    alpha, block, longest = setting
    algorithm = LibraSpec(float(alpha), block, longest)

    def rule(tokens: Text, rows: Sequence[Distribution]) -> int:
        n = len(tokens)
        confidence = np.array([[float(max(row)) for row in rows]])
        view = View(confidence.reshape(1, n), np.array([n]), np.ones((1, n + 1)))
        return min(n, int(algorithm.decide(view, algorithm.begin(1)).submitted[0]))

    return rule
