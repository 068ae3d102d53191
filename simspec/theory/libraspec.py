"""LibraSpec's draft lengths (arXiv 2608.08721), plain Python on fractions or on floats.

q_k = confidence that place k is accepted given that all before it were, k = 1, 2, ... (the paper's p_k
where it is the true chance); past the end of a block q_k = 0. alpha = T_i / (tau_i c): time so far, over
tokens so far times the cost of one more place; one constant in Algorithm 1.

G_i(d) = sum_{j=i..d} prod_{k=i..j} q_k is the gain of places i..d, given that place i is reached
(``lengths.conditional_gain``). The paper bounds a length by it, in two ways that are not the same (claim L7):

- Theorems 3.3 and 3.4: eps_i = max{d' : d' < alpha G_i(d') + i}, the sum going to d' itself;
- Algorithm 1: eps_i = floor(alpha G_i(d) + i), the sum going to the present length d.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

from simspec.theory.lengths import last_repaid

Number = TypeVar("Number", float, Fraction)


def theorem_limit(p: Sequence[Number], alpha: Number, i: int, *, or_equal: bool = False) -> int:
    """max{d' in Z : d' < alpha G_i(d') + i}, the eps_i of Theorems 3.3 and 3.4, for any alpha.

    That is ``lengths.last_repaid`` where one more place costs 1 and an accepted draft is worth alpha.

    Args:
        or_equal: with <= for <, which is how Algorithm 1's floor rounds.
    """
    return last_repaid(p, i, lambda d: alpha * 0 + d, alpha, or_equal=or_equal)


def pass_limits(q: Sequence[Number], alpha: Number, d: int) -> tuple[int, ...]:
    """floor(alpha G_i(d) + i) for i = 1..d: Algorithm 1's eps_i at length d."""
    limits = []
    total = alpha * 0
    for i in range(d, 0, -1):
        total = q[i - 1] * (1 + total) if i <= len(q) else alpha * 0
        limits.append(math.floor(alpha * total + i))
    return tuple(reversed(limits))


@dataclass(frozen=True)
class Run:
    """What Algorithm 1 did.

    Attributes:
        lengths: d before the first pass and after each one; the last is what is submitted.
        drafted: tokens drafted, whole blocks.
    """

    lengths: tuple[int, ...]
    drafted: int

    @property
    def submitted(self) -> int:
        return self.lengths[-1]


def algorithm_one(q: Sequence[Number], alpha: Number, block: int, longest: int) -> Run:
    """Algorithm 1 as printed, overshoot past d_max and all.

    Start at one block. While d < d_max: e = min over i = 1..d of floor(alpha G_i(d) + i). If e <= d, submit
    e; otherwise go on from d = e and draft whole blocks as the budget runs out.

    Args:
        q: confidences of places 1, 2, ...; 0 past their end.
        block: n, tokens in a block.
        longest: d_max.

    Raises:
        ValueError: ``block`` is below 1.
    """
    if block < 1:
        raise ValueError(f"a block holds at least 1 token, not {block}")
    lengths = [block]
    drafted, budget = block, 0
    while lengths[-1] < longest:
        d, e = lengths[-1], min(pass_limits(q, alpha, lengths[-1]))
        lengths.append(e)
        if e <= d:
            break
        budget -= e - d
        if budget < 0:
            blocks = -(budget // block)
            drafted += blocks * block
            budget += blocks * block
    return Run(tuple(lengths), drafted)
