"""Cycles of chains, walked outcome by outcome: the truth side of the claims on further levels.

CS-Drafting's rounds go token by token here, funnels by the project's own rules of a cycle, over every way in
which the models can agree. What is published, or a closed form of simspec.theory.third_level, is held
against it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import product
from math import lcm, prod
from typing import Any

import numpy as np
from hypothesis import strategies as st

from simspec.claims.base import Outcome, against
from simspec.claims.plain import number
from simspec.speculation.cycle import run_cycle
from simspec.theory import third_level as closed
from simspec.theory.third_level import Costs, Cycle, PlaceLaw

ONE, HALF = Fraction(1), Fraction(1, 2)
SOURCE_CS = "CS-Drafting (2312.11462)"


def whole_numbers(least: int, most: int) -> st.SearchStrategy[Fraction]:
    return st.builds(Fraction, st.integers(least, most))


# CS-Drafting's cycle, token by token


@dataclass(frozen=True)
class Cascade:
    """A target, M_d1 and M_d2; costs are forwards of the target over one token, M_d2's is 0.

    Attributes:
        alpha: the target accepts a token of M_d1.
        inner: M_d1 accepts a token of M_d2.
        rounds: n, forwards of M_d1 before the target reads (without M_d2: tokens that M_d1 drafts).
        reviewed: k, tokens of M_d2 in each round.
        middle: c_d1, a forward of M_d1 over one token.
        slope: a forward over w tokens costs 1 + slope (w - 1) times one over a single token.
    """

    alpha: Fraction
    inner: Fraction
    rounds: int
    reviewed: int
    middle: Fraction
    slope: Fraction = Fraction(0)


@lru_cache(maxsize=4096)
def review(rate: Fraction, block: int) -> dict[int, Fraction]:
    """Tokens after a verifier read ``block`` tokens, its own one included, with their probability."""
    alive, ends = ONE, {}
    for place in range(block):
        ends[place + 1] = alive * (1 - rate)
        alive *= rate
    ends[block + 1] = alive
    return ends


@lru_cache(maxsize=4096)
def handed_up(inner: Fraction, rounds: int, reviewed: int, own_tokens: int = 1) -> dict[int, Fraction]:
    """What ``rounds`` rounds collect, with its probability; 0 ``own_tokens`` forgets M_d1's own."""
    held = {0: ONE}
    for _ in range(rounds):
        more: dict[int, Fraction] = {}
        for (so_far, p), (tokens, q) in product(held.items(), review(inner, reviewed).items()):
            at = so_far + tokens - 1 + own_tokens
            more[at] = more.get(at, Fraction(0)) + p * q
        held = more
    return held


def mean(outcomes: dict[int, Fraction]) -> Fraction:
    return sum((n * p for n, p in outcomes.items()), Fraction(0))


def walked_cascade(
    case: Cascade, own_tokens: int = 1, lower: Fraction = Fraction(0), capped: bool = False
) -> Cycle[Fraction]:
    """Expected tokens and cost of a cycle with M_d2.

    Args:
        own_tokens: of M_d1 in a round, handed up after what it accepted.
        lower: cost of a token of M_d2.
        capped: the target reads n tokens at most, however many are handed up.
    """
    tokens, spent = Fraction(0), Fraction(0)
    for handed, p in handed_up(case.inner, case.rounds, case.reviewed, own_tokens).items():
        given = min(handed, case.rounds) if capped else handed
        tokens += p * mean(review(case.alpha, given))
        spent += p * (1 + case.slope * given)
    rounds = case.rounds * (case.middle * (1 + case.slope * case.reviewed) + case.reviewed * lower)
    return Cycle(tokens, spent + rounds)


def walked_pair(case: Cascade) -> Cycle[Fraction]:
    """The same without M_d2: M_d1 drafts ``rounds`` tokens one by one."""
    spent = 1 + case.slope * case.rounds + case.rounds * case.middle
    return Cycle(mean(review(case.alpha, case.rounds)), spent)


@lru_cache(maxsize=4096)
def right_by_round(law: PlaceLaw[Fraction], rounds: int, reviewed: int) -> tuple[Fraction, ...]:
    """Tokens that each round of M_2 adds to the text, on average, whatever the three models' agreement is.

    Place by place over what has been right so far: M_2 hands up a token of its own at every place, and goes
    on with the round's drafts where M_1 agrees with it. The target's own token is not among them.
    """
    found, begins = [], ONE
    for _ in range(rounds):
        right, going, ended = Fraction(0), begins, Fraction(0)
        for _ in range(reviewed):
            right += going * (law.all_agree + law.only_upper)
            ended += going * law.only_upper
            going *= law.all_agree
        own = going * law.upper
        found.append(right + own)
        begins = ended + own
    return tuple(found)


@lru_cache(maxsize=4096)
def cascade_tokens(alpha: Fraction, inner: Fraction, rounds: int, reviewed: int) -> Fraction:
    return walked_cascade(Cascade(alpha, inner, rounds, reviewed, ONE)).tokens


# S43, S44, S45: closed forms, against the rules of a cycle

# What M_1 and M_2 say where the target says 0, for each part of a PlaceLaw and for "all differ".
_SAID = ((0, 0), (1, 1), (2, 0), (0, 1), (2, 1))


@lru_cache(maxsize=64)
def _funnel_outcomes(semantics: Any, drafts: int) -> tuple[tuple[tuple[int, ...], int, int, int], ...]:
    """Every cycle of a funnel over ``drafts`` drafted places and the one after them.

    Returns:
        (how often each way of agreeing occurs, tokens that the target was given, emitted, how many such).
        Without semantics, of the pair.
    """
    seen: Counter[tuple[tuple[int, ...], int, int]] = Counter()
    target = np.zeros(drafts + 3, dtype=np.int32)
    for ways in product(range(len(_SAID)), repeat=drafts + 1):
        block = np.array([_SAID[way][0] for way in ways[:drafts]], dtype=np.int32)
        middle = np.array([_SAID[way][1] for way in ways], dtype=np.int32)

        def read(block: Any, words: Any = target) -> Any:
            return words[: len(block) + 1]

        def read_middle(block: Any, words: Any = middle) -> Any:
            return words[: len(block) + 1]

        verifiers = [read] if semantics is None else [read_middle, read]
        done = run_cycle(block, verifiers, semantics or "none", drafts + 3, ())
        counts = tuple(ways.count(way) for way in range(len(_SAID)))
        seen[counts, done.offered[-1], len(done.emitted)] += 1
    return tuple((counts, given, out, times) for (counts, given, out), times in seen.items())


@dataclass(frozen=True)
class Setting:
    """Three models at work; the pair without the middle drafts what is best of 0 to ``alone`` tokens."""

    law: PlaceLaw[Fraction]
    costs: Costs[Fraction]
    drafts: int
    alone: int
    rounds: int = 1


def walked_funnel(case: Setting, semantics: Any, drafts: int) -> Cycle[Fraction]:
    law = case.law
    known = (law.all_agree, law.only_lower, law.only_upper, law.only_outer)
    whole = lcm(*(chance.denominator for chance in known))
    weights = [int(chance * whole) for chance in (*known, 1 - sum(known))]
    tokens, given_to_target = 0, Counter[int]()
    for counts, given, out, times in _funnel_outcomes(semantics, drafts):
        weight = times * prod(w**n for w, n in zip(weights, counts, strict=True))
        tokens += weight * out
        given_to_target[given] += weight
    every = whole ** (drafts + 1)
    spent = drafts * case.costs.draft + (case.costs.middle(drafts + 1) if semantics else 0)
    reading = sum((w * case.costs.target(n + 1) for n, w in given_to_target.items()), Fraction(0))
    return Cycle(Fraction(tokens, every), spent + reading / every)


def pays(
    case: Setting, walked: Cycle[Fraction], said: Cycle[Fraction], same: bool = False, twice: bool = False
) -> Outcome:
    """Whether the closed form gives the cycle, and its limit on the middle's time decides as walking does.

    Args:
        walked, said: the cycle of three levels, walked through and by the closed form.
        same: the limit looks at the pair with as many drafts only, or as many as it may have.
        twice: the limit forgets that the middle's time is in the cycle already.
    """
    lengths = range(case.alone + 1)
    rivals = [walked_funnel(case, None, n) for n in lengths]
    free = case.rounds * case.costs.middle(case.drafts + 1)
    judged = [min(case.drafts, case.alone)] if same else lengths
    pairs = [closed.pair(case.law.outer, case.costs, n) for n in judged]
    most = min(closed.most_middle_seconds(said, one, Fraction(0) if twice else free) for one in pairs)
    wins = all(walked.faster_than(one) for one in rivals)
    if walked == said and wins == (free < most):
        return None
    return against(
        *_told(case),
        f"walked through, a cycle makes {number(walked.tokens)} tokens in {number(walked.seconds)} s; the "
        "pair "
        + ", ".join(
            f"{number(one.tokens)} in {number(one.seconds)} s with {n} drafts" for n, one in enumerate(rivals)
        ),
        f"formula: {number(said.tokens)} tokens in {number(said.seconds)} s; the middle takes {number(free)} "
        f"s, and pays if that is less than {number(most)} s",
    )


# So small a fault changes no decision: only the comparison of the cycle itself shows it.
_SLIGHTLY = Fraction(1, 10**12)


def fewer_tokens(case: Setting, said: Cycle[Fraction]) -> Cycle[Fraction]:
    return Cycle(said.tokens * (1 - _SLIGHTLY), said.seconds)


def more_seconds(case: Setting, said: Cycle[Fraction]) -> Cycle[Fraction]:
    return Cycle(said.tokens, said.seconds * (1 + _SLIGHTLY))


def _told(case: Setting) -> tuple[str, ...]:
    costs = case.costs
    return (
        f"{case.drafts} drafts of M_1, {case.rounds} forwards of M_2; " + told_law(case.law),
        f"seconds: a draft {costs.draft}, a forward of M_2 {costs.middle_fixed} + {costs.middle_slope} for "
        f"each token it reads, of the target {costs.target_fixed} + {costs.target_slope} for each",
    )


def told_law(law: PlaceLaw[Fraction]) -> str:
    """How three models agree at a place, in words."""
    return (
        f"at a place all three models agree with probability {law.all_agree}, only M_1 and M_2 with "
        f"{law.only_lower}, only M_2 and the target with {law.only_upper}, only M_1 and the target with "
        f"{law.only_outer}"
    )


def random_costs() -> st.SearchStrategy[Costs[Fraction]]:
    small, some = whole_numbers(0, 5), whole_numbers(0, 40)
    return st.builds(Costs, small, small, small, some, small).filter(lambda c: c.target(1) > 0)
