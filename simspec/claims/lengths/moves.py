"""Going from a block length to those that LibraSpec's conditions name, and what that does (L4, L21, L27)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from simspec.claims.base import UNMET, Outcome, against
from simspec.claims.lengths.blocks import Block, Endless, drafts, has_values, working
from simspec.claims.lengths.conditions import PRINTED, Condition
from simspec.claims.plain import number

# Of (the block's numbers, d, d'): whether the move from d to d' does what is said of it.
Verdict = Callable[[Endless, int, int], bool]


def raises(of: Endless, d: int, new: int) -> bool:
    return of.speedup(new) > of.speedup(d)


def lowers(of: Endless, d: int, new: int) -> bool:
    return of.speedup(new) < of.speedup(d)


def never_raises(of: Endless, d: int, new: int) -> bool:
    return of.speedup(new) <= of.speedup(d)


def lowers_if(alive: Callable[[Endless, int], bool]) -> Verdict:
    """Never raises, and lowers where ``alive`` says so of d'."""
    return lambda of, d, new: never_raises(of, d, new) and (lowers(of, d, new) or not alive(of, new))


def next_survives(of: Endless, new: int) -> bool:
    return of.survives(new + 1)


def is_best_cut(of: Endless, d: int, new: int) -> bool:
    cuts = range(of.block.shortest, d)
    return raises(of, d, new) and of.speedup(new) == max(map(of.speedup, cuts))


def least(bounds: list[int]) -> list[int]:
    return [min(bounds)]


def each_one(bounds: list[int]) -> list[int]:
    return bounds


def _mixed(right: list[int], other: list[int], at: Literal["first", "last"]) -> list[int]:
    """eps_1 .. eps_d with another bound at the first or the last place, if there are two or more."""
    if len(right) == 1:
        return right
    return [other[0], *right[1:]] if at == "first" else [*right[:-1], other[-1]]


def adjusted(
    verdict: Verdict,
    *,
    longer: bool,
    targets: Callable[[list[int]], list[int]] = each_one,
    condition: Condition = PRINTED,
    other: Condition | None = None,
    other_at: Literal["first", "last"] = "last",
    within: bool = False,
) -> Callable[[Block], Outcome]:
    """From every length d go to those of eps_1 .. eps_d that ``targets`` says, and see what that does.

    Args:
        verdict: whether the move does what the statement says.
        longer: look at extensions, else at cuts.
        other, other_at: another bound, and the place of 1 .. d that has it.
        within: cut eps_i at the last place.
    """

    def rule(block: Block) -> Outcome:
        if not has_values(block):
            return UNMET
        of, met = Endless(block), False
        places = range(1, of.size + 1)
        bounds = [condition.eps(of, i) for i in places]
        others = bounds if other is None else [other.eps(of, i) for i in places]
        for d in places:
            eps = _mixed(bounds[:d], others[:d], other_at)
            if within:
                eps = [min(e, of.size) for e in eps]
            for new in sorted(set(targets(eps))):
                if new == d or (new > d) != longer or of.cost(new) == 0:
                    continue
                met = True
                if not verdict(of, d, new):
                    return against(
                        *working(block),
                        *(condition.worked(of, eps.index(new) + 1) if other is None else ()),
                        f"at length {d}: " + "; ".join(f"eps_{i} = {e}" for i, e in enumerate(eps, 1)),
                        f"so from {drafts(d)} to {new}",
                        f"speedup before: {number(of.speedup(d))}; after: {number(of.speedup(new))}",
                    )
        return None if met else UNMET

    return rule
