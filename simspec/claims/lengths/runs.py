"""LibraSpec's Algorithm 1 (arXiv 2608.08721) at work: whole runs of it, as cases of claims.

G_i(d) and alpha are those of ``simspec.theory.libraspec``; q_k = confidence that place k is accepted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from hypothesis import strategies as st

from simspec.claims.plain import shown
from simspec.strategies.survivals import Conditional, all_conditionals, conditionals, grid
from simspec.theory.libraspec import algorithm_one, pass_limits

PAPER = "LibraSpec (2608.08721)"
ALPHAS = tuple(Fraction(k, 5) for k in (2, 5, 8, 9, 10, 11, 16))
weights = st.builds(Fraction, st.integers(1, 40), st.integers(1, 10))


# A whole run: q, alpha, block n and d_max.


@dataclass(frozen=True)
class Start:
    q: Conditional
    alpha: Fraction
    block: int
    longest: int

    def lengths(self) -> tuple[int, ...]:
        """Before the first pass, and after each one."""
        return algorithm_one(self.q, self.alpha, self.block, self.longest).lengths

    def submitted(self) -> int:
        return self.lengths()[-1]

    def limit(self) -> int:
        """W: the longest length below d_max from which a pass extends, 0 if none does: all are tried.

        No pass extends past the end of q.
        """
        lengths = range(1, min(len(self.q), self.longest - 1) + 1)
        return max((d for d in lengths if min(pass_limits(self.q, self.alpha, d)) > d), default=0)

    def told(self) -> str:
        lengths = " -> ".join(map(str, self.lengths()))
        knobs = f"alpha = {self.alpha}, block n = {self.block}, d_max = {self.longest}"
        return f"q = {shown(self.q)}, {knobs}: its lengths, pass by pass, are {lengths}"


@st.composite
def starts(draw: st.DrawFn) -> Start:
    q = draw(st.one_of(conditionals(longest=10), conditionals(longest=10, shortest=4, positive=True)))
    return Start(q, draw(weights), draw(st.integers(1, 6)), draw(st.integers(1, 10)))


def all_starts(level: int) -> Iterator[Start]:
    for q in all_conditionals(3 if level < 2 else 4, grid(2 + min(level, 1))):
        for longest, alpha in product(range(1, len(q) + 1), ALPHAS):
            yield from (Start(q, alpha, block, longest) for block in range(1, longest + 1))


OVER_STARTS = (
    "all q of up to 3 places in thirds with 7 values of alpha from 2/5 to 16/5, every d_max up to the number "
    "of places and every n <= d_max; random q of up to 10 places, alpha up to 40, n up to 6, d_max up to 10"
)
W_FORMULA = "W = max{0, d : 1 <= d < d_max, G_i(d) / (d + 1 - i) >= 1/alpha for all i <= d}"
