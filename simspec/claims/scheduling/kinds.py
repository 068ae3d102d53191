"""Cycles of several kinds, drawn afresh, and every policy that sees the kind."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product

from hypothesis import strategies as st

from simspec.claims.plain import shown
from simspec.strategies.costs import Curve, affine, rising_costs
from simspec.strategies.survivals import Conditional, conditionals, expected_accepted, grid
from simspec.theory import renewal

ONE = Fraction(1)


@dataclass(frozen=True)
class Kinds:
    """Kinds of cycles, equally likely unless weighted.

    Attributes:
        weights: how often each comes.
        accepted: p_1 .. p_D of each kind, each given that all before were accepted.
        seconds: T(0) .. T(D), one curve for all kinds or one for each.
    """

    weights: tuple[Fraction, ...]
    accepted: tuple[Conditional, ...]
    seconds: tuple[Curve, ...]

    @cached_property
    def tokens(self) -> list[list[Fraction]]:
        """Expected tokens, shape (kinds, D + 1)."""
        return [[1 + x for x in expected_accepted(p)] for p in self.accepted]

    @cached_property
    def curves(self) -> tuple[Curve, ...]:
        return self.seconds * (len(self.weights) if len(self.seconds) == 1 else 1)

    def rate(self, lengths: tuple[int, ...]) -> Fraction:
        """Long-run tokens per second if each kind gets its length."""
        tokens = [x[d] for x, d in zip(self.tokens, lengths, strict=True)]
        return renewal.rate(self.weights, tokens, [t[d] for t, d in zip(self.curves, lengths, strict=True)])

    @property
    def policies(self) -> Iterator[tuple[int, ...]]:
        """Every way of giving each kind a length."""
        return product(range(len(self.accepted[0]) + 1), repeat=len(self.weights))

    def best(self) -> tuple[Fraction, tuple[int, ...]]:
        """The greatest rate of all policies, by trying them all."""
        return max((self.rate(lengths), lengths) for lengths in self.policies)

    def best_static(self) -> tuple[Fraction, int]:
        lengths = range(len(self.accepted[0]) + 1)
        return max((self.rate((d,) * len(self.weights)), d) for d in lengths)


def told(case: Kinds) -> tuple[str, ...]:
    return tuple(
        f"kind {i} of cycles, weight {w}: lengths 0.. make {shown(tuple(x))} tokens in {shown(t)} s"
        for i, (w, x, t) in enumerate(zip(case.weights, case.tokens, case.curves, strict=True), 1)
    )


def kinds_grid(level: int, curves: int = 1) -> Iterator[Kinds]:
    for depth in (1, 2):
        prices = [affine(Fraction(t), ONE, depth) for t in range(1, 4 + level)]
        for first, second in product(product(grid(5), repeat=depth), repeat=2):
            # Past a certain refusal nothing counts.
            if any(0 in p[:-1] for p in (first, second)) or (
                depth == 2 and level < 2 and first != (ONE, ONE)
            ):
                continue
            for seconds in product(prices, repeat=curves):
                yield Kinds((ONE, ONE), (first, second), seconds)


@st.composite
def random_kinds(draw: st.DrawFn, own_costs: bool = False) -> Kinds:
    count, depth = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    weights = draw(st.lists(st.integers(1, 8), min_size=count, max_size=count))
    one = conditionals(longest=depth, shortest=depth)
    accepted = draw(st.lists(one, min_size=count, max_size=count))
    curves = count if own_costs else 1
    seconds = draw(st.lists(rising_costs(depth), min_size=curves, max_size=curves))
    return Kinds(tuple(map(Fraction, weights)), tuple(accepted), tuple(seconds))
