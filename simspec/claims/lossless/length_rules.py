"""Length rules, each made from a threshold or a cost curve.

A first stop is written here as a cut of the whole block: what is drafted beyond the cut is not looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import log2, prod

import numpy as np

from simspec.claims.lossless.cycles import Rows, Rule
from simspec.speculation.lengths import LibraSpec, View
from simspec.strategies.costs import Curve
from simspec.strategies.distributions import Distribution
from simspec.strategies.models import Text
from simspec.theory.libraspec import algorithm_one, pass_limits

# What rules go by.


@dataclass(frozen=True)
class Threshold:
    """Below it a draft is weak."""

    least: Fraction

    def line(self) -> str:
        return f"the length rule's threshold is {self.least}"


@dataclass(frozen=True)
class Costs:
    """Seconds of a pass of the target over 0, 1, .. drafts."""

    seconds: Curve

    def line(self) -> str:
        numbers = ", ".join(map(str, range(len(self.seconds))))
        return f"a pass of the target over {numbers} drafts takes {', '.join(map(str, self.seconds))} seconds"


@dataclass(frozen=True)
class AlgorithmOne:
    """What LibraSpec's Algorithm 1 is given: alpha, n and d_max."""

    alpha: Fraction
    block: int
    longest: int

    def line(self) -> str:
        return (
            f"LibraSpec's Algorithm 1 with alpha = {self.alpha}, blocks of n = {self.block} tokens, d_max = "
            f"{self.longest}; the gain of places i to d is the sum, over j = i .. d, of the product of the "
            "confidences of places i to j"
        )


# First stops.

# The chance of a place that a rule looks at: of its token, or of its most probable one.
Look = Callable[[Text, Rows], Sequence[Fraction]]


def of_drawn(tokens: Text, rows: Rows) -> tuple[Fraction, ...]:
    """The probability with which each token was drawn."""
    return tuple(row[token] for token, row in zip(tokens, rows, strict=True))


def of_top(tokens: Text, rows: Rows) -> tuple[Fraction, ...]:
    """Each place's greatest probability."""
    return tuple(map(max, rows))


def _first(tokens: Text, stops: Sequence[bool]) -> int:
    return next((i for i, stop in enumerate(stops) if stop), len(tokens))


def _weak(look: Look, least: Fraction, said: str, more: int = 0, right: int = 0) -> Rule:
    """Stop at the first place with less than ``least``.

    Args:
        more: tokens that are submitted of those from that place on.
        right: places that are passed over.
    """

    def length(tokens: Text, rows: Rows) -> int:
        weak = [i >= right and chance < least for i, chance in enumerate(look(tokens, rows))]
        return min(len(tokens), _first(tokens, weak) + more)

    def why(tokens: Text, rows: Rows) -> str:
        return f" ({said} {', '.join(map(str, look(tokens, rows)))}; {least} is enough)"

    return Rule(length, why)


def stop_after(threshold: Threshold) -> Rule:
    """Submit up to the first token that was drawn with too low a probability, it included."""
    return _weak(of_drawn, threshold.least, "drawn with", more=1)


def stop_before(threshold: Threshold) -> Rule:
    """The same, but without that token."""
    return _weak(of_drawn, threshold.least, "drawn with")


def stop_before_from(right: int) -> Callable[[Threshold], Rule]:
    """The same, but the first ``right`` tokens are submitted however they were drawn."""
    return lambda threshold: _weak(of_drawn, threshold.least, "drawn with", right=right)


def first_weak_top(threshold: Threshold) -> Rule:
    """Stop before the first place whose most probable token has too little."""
    return _weak(of_top, threshold.least, "greatest probabilities")


def entropy(row: Distribution) -> float:
    """Shannon's, in bits. A float: it only says where to stop."""
    return -sum(float(x) * log2(x) for x in row if x)


def first_uncertain(threshold: Threshold) -> Rule:
    """Stop before the first place whose entropy is above 2 (1 - threshold) bits."""
    most = 2 * (1 - threshold.least)

    def why(tokens: Text, rows: Rows) -> str:
        bits = ", ".join(f"{entropy(row):.4g}" for row in rows)
        return f" (entropies {bits} bits; at most {most} is enough)"

    return Rule(lambda tokens, rows: _first(tokens, [entropy(row) > most for row in rows]), why)


def surprised(threshold: Threshold) -> Rule:
    """The drawn token's information in the place of the entropy, its mean: a fault that people make."""
    most = 2 * (1 - threshold.least)

    def length(tokens: Text, rows: Rows) -> int:
        return _first(tokens, [-log2(chance) > most for chance in of_drawn(tokens, rows)])

    return Rule(length, lambda tokens, rows: f" (at most {most} bits of information is enough)")


def weak_itself(threshold: Threshold) -> Rule:
    """A stop by the greatest probability that also drops a drawn token which is not the greatest."""

    def length(tokens: Text, rows: Rows) -> int:
        stop = first_weak_top(threshold).length(tokens, rows)
        return next((i for i in range(stop) if rows[i][tokens[i]] < max(rows[i])), stop)

    return Rule(
        length, lambda tokens, rows: f" (greatest probabilities {', '.join(map(str, of_top(tokens, rows)))})"
    )


def last_place(threshold: Threshold) -> Rule:
    """Submit all of the block if its last place is confident, nothing otherwise."""

    def length(tokens: Text, rows: Rows) -> int:
        return len(tokens) if rows and max(rows[-1]) >= threshold.least else 0

    return Rule(length, lambda tokens, rows: f" (greatest probability of the last place {max(rows[-1])})")


# Scans of the whole block.


def rates(confidence: Sequence[Fraction], seconds: Curve) -> list[Fraction]:
    """Expected tokens a second at each length: (1 + sum of products of confidences) / T."""
    tokens = [
        1 + sum((prod(confidence[: k + 1], start=Fraction(1)) for k in range(n)), Fraction(0))
        for n in range(len(confidence) + 1)
    ]
    return [expected / seconds[n] for n, expected in enumerate(tokens)]


def best_length(confidence: Sequence[Fraction], seconds: Curve) -> int:
    """The length of most expected tokens a second, the least of equals."""
    found = rates(confidence, seconds)
    return found.index(max(found))


def _scan(look: Look, seconds: Curve) -> Rule:
    def why(tokens: Text, rows: Rows) -> str:
        confidence = look(tokens, rows)
        found = rates(confidence, seconds)
        each = ", ".join(f"{rate * seconds[n]} / {seconds[n]} = {rate}" for n, rate in enumerate(found))
        said = ", ".join(map(str, confidence))
        return f" (confidences {said}; tokens a second by length: {each}; the shortest of the best)"

    return Rule(lambda tokens, rows: best_length(look(tokens, rows), seconds), why)


def scan_drawn(costs: Costs) -> Rule:
    """Look at the whole block's drawn tokens and take the best length."""
    return _scan(of_drawn, costs.seconds)


def scan_top(costs: Costs) -> Rule:
    """The same with each place's greatest probability for the confidence."""
    return _scan(of_top, costs.seconds)


def libraspec(setting: AlgorithmOne) -> Rule:
    """LibraSpec's Algorithm 1, the simulator's own code, on top-1 confidences."""
    algorithm = LibraSpec(float(setting.alpha), setting.block, setting.longest)

    def length(tokens: Text, rows: Rows) -> int:
        n = len(tokens)
        confidence = np.array([[float(max(row)) for row in rows]])
        view = View(confidence.reshape(1, n), np.array([n]), np.ones((1, n + 1)))
        return min(n, int(algorithm.decide(view, algorithm.begin(1)).submitted[0]))

    def why(tokens: Text, rows: Rows) -> str:
        confidence = of_top(tokens, rows)
        run = algorithm_one(confidence, setting.alpha, setting.block, setting.longest)
        limits = pass_limits(confidence, setting.alpha, setting.block)
        return (
            f" (confidences {', '.join(map(str, confidence))}; floor(alpha gain of places i to "
            f"{setting.block} + i) is {', '.join(map(str, limits))} for i = 1, 2, ..; length pass by pass, "
            f"each the least of these: {', '.join(map(str, run.lengths))})"
        )

    return Rule(length, why)
