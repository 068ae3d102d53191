"""Cases for the claims on Eq. 7: two chains of a pool of models whose agreement is independent."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product

from hypothesis import strategies as st

from simspec.strategies.chains import (
    Level,
    Plan,
    Pool,
    Semantics,
    all_plans,
    all_pools,
    independent,
    plans,
    pools,
)
from simspec.strategies.survivals import chances, grid

HALF = Fraction(1, 2)

# Rates for which the mean lengths of a block give fractions.
BENT = (HALF, Fraction(1, 4))


@dataclass(frozen=True)
class Choice:
    """Two chains of a pool."""

    pool: Pool
    one: Plan
    other: Plan


@st.composite
def choices(
    draw: st.DrawFn,
    semantics: Semantics,
    *,
    widths: bool = False,
    steps: bool = True,
    bends: bool = False,
    deep: bool = True,
) -> Choice:
    """Two chains of a pool of three or four models with independent agreement.

    Args:
        widths, steps: forwards that take longer for more tokens, also in steps.
        bends: three models whose alpha_2 is such a power that the funnel's mean lengths give fractions.
        deep: four models as well.
    """
    if bends:
        low = draw(st.sampled_from([HALF, Fraction(1, 3), Fraction(2, 3)]))
        rates = (low, draw(chances(10)) ** (low.denominator**2))
        levels = tuple(Level(Fraction(draw(st.integers(1, 9)))) for _ in range(3))
        pool = Pool(levels, independent(rates, draw(st.sampled_from([Fraction(0), Fraction(1)]))))
        return Choice(pool, draw(plans(3, 2)), draw(plans(3, 2)))
    models = draw(st.sampled_from([3, 3, 4])) if deep and semantics.startswith("funnel") else 3
    if semantics == "nested":
        some = plans(3, 2, 2)
    else:
        some = plans(models, 3 if models == 3 else 2, 2 if semantics == "rounds" else 1)
    pool = draw(pools(models, correlated=False, widths=widths, steps=steps))
    return Choice(pool, draw(some), draw(some))


def every_choice(semantics: Semantics) -> Callable[[int], Iterator[Choice]]:
    """Three models, forwards of 1 or 2 (to 3) at any width, rates 0, 1/2, 1; two chains drafting 1 or 2."""

    def cases(level: int) -> Iterator[Choice]:
        for pool in all_pools(3, 1 + level, grid(2)):
            for one, other in combinations(all_plans(3, 2, 2 if semantics == "rounds" else 1), 2):
                yield Choice(pool, one, other)

    return cases


def swaps(
    models: int,
    total: int,
    rates: Iterable[tuple[Fraction, ...]],
    slopes: tuple[int, ...] = (0,),
    tread: int = 1,
) -> Callable[[int], Iterator[Choice]]:
    """Whole times that sum to at most ``total``, least first; two chains drafting 1 or 2."""
    chosen = tuple(rates)

    def cases(level: int) -> Iterator[Choice]:
        times = [t for t in product(range(1, total), repeat=models) if sum(t) <= total]
        for seconds in sorted(times, key=lambda t: (sum(t), t)):
            for more, some, outer in product(product(slopes, repeat=models), chosen, (0, 1)):
                if models == 3 or not outer:
                    levels = [
                        Level(Fraction(t), Fraction(v), tread) for t, v in zip(seconds, more, strict=True)
                    ]
                    pool = Pool(tuple(levels), independent(some, Fraction(outer)))
                    for one, other in combinations(all_plans(models, 2), 2):
                        yield Choice(pool, one, other)

    return cases


def flat(seconds: tuple[int, ...], rates: tuple[Fraction, ...], outer: int = 0) -> Pool:
    """A pool whose forwards take whole times whatever their width."""
    return Pool(tuple(Level(Fraction(s)) for s in seconds), independent(rates, Fraction(outer)))


ALONE, TRIPLE = Plan((2,), 0), Plan((0, 1, 2), 1)
INDEPENDENT = "whether M2 says what M1 says tells nothing of whether the target says what M2 says"
OVER = (
    "three models with forwards of 1 or 2, rates 0, 1/2, 1, every two chains drafting 1 or 2; random pools "
    "of three and, in a funnel, four models, drafts up to 3"
)
ALL_SEMANTICS: tuple[Semantics, ...] = ("funnel-truncate", "funnel-replace", "nested")
