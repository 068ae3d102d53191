"""Does Eq. 7 rank chains as their exact expected time does? Per reading and per rules of a cycle (S7, S7b).

The readings of SpecRouter's (2505.07680) Eq. 7 and their relatives are in :mod:`simspec.theory.chains`.
The truth is expected seconds over expected tokens of a cycle, by running the cycle's rules on every
outcome (:func:`simspec.strategies.chains.expected`). Symbols: M1 drafts gamma tokens, the last model is
the target; alpha_i = how often M_i and M_{i+1} say the same.

What "independent i.i.d. acceptance" is taken to mean, here and in the statements: at every place of the
text, whether M_{i+1} says what M_i says has probability alpha_i, independent of every other place and of
whether any other two neighbours agree there. For three models that fixes the joint law of the two
verdicts as the cycle sees them:

- funnel-truncate: the target judges only tokens that M2 let through, and accepts each with
  P(target = M2 | M2 = M1) = alpha_2, so a draft comes through both with probability alpha_1 alpha_2;
- funnel-replace and nested: the target judges M2's own text, its token at the cut included, so
  P(target = M2 | M2 != M1) = alpha_2 is supposed as well.

By rejection sampling the two verdicts on a token are in general not independent (what survives M2 is no
longer a draw from M1, claim S5b); these claims are about verdicts that are, and S7b about ones that are not.

How often M1 and the target agree where both differ from M2 is left open: only the pair M1 > target,
which has its own exact rate, depends on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import combinations, product

from hypothesis import strategies as st

from simspec.claims.base import UNMET, Claim, Outcome, Rule, Statement, against
from simspec.claims.plain import number
from simspec.strategies.chains import (
    Expected,
    Law,
    Level,
    Plan,
    Pool,
    Semantics,
    all_plans,
    all_pools,
    expected,
    independent,
    patterns,
    plans,
    pools,
)
from simspec.strategies.distributions import all_distributions
from simspec.strategies.survivals import chances, grid
from simspec.theory import chains as theory
from simspec.theory.acceptance import emitted_tokens

HALF = Fraction(1, 2)


@dataclass(frozen=True)
class Choice:
    """Two chains of a pool."""

    pool: Pool
    one: Plan
    other: Plan


@lru_cache(maxsize=20_000)
def truth(pool: Pool, plan: Plan, semantics: Semantics) -> Expected:
    """Exact, by enumeration."""
    return expected(pool, plan, semantics)


# Seconds a token as a reading has it, for a chain below the target; None where it gives no fraction.
Reading = Callable[[Pool, Plan, Semantics], Fraction | None]


@dataclass(frozen=True)
class Inputs:
    """What every reading is given, exactly."""

    alphas: tuple[Fraction, ...]
    draft: Fraction
    verify: Callable[[int, Fraction], Fraction]

    @classmethod
    def of(cls, pool: Pool, plan: Plan) -> Inputs:
        levels = [pool.levels[m] for m in plan.models]
        rates = [pool.rate(a, b) for a, b in zip(plan.models[:-1], plan.models[1:], strict=True)]
        return cls(tuple(rates), levels[0].forward(1), lambda i, n: levels[i - 1].forward(n))


def _reach(reached: theory.Reach, *, wide: bool = False, direct: bool = False) -> Reading:
    def read(pool: Pool, plan: Plan, semantics: Semantics) -> Fraction:
        given = Inputs.of(pool, plan)
        ends = pool.rate(plan.models[0], plan.models[-1]) if direct else None
        return theory.reach(
            given.alphas, plan.drafts, given.draft, given.verify, reached, wide=wide, end_to_end=ends
        )

    return read


def _funnel(replace: bool) -> Reading:
    def read(pool: Pool, plan: Plan, semantics: Semantics) -> Fraction | None:
        given = Inputs.of(pool, plan)
        try:
            return theory.funnel(given.alphas, plan.drafts, given.draft, given.verify, replace=replace)
        except ValueError:  # a power that is no fraction
            return None

    return read


def _nested(pool: Pool, plan: Plan, semantics: Semantics) -> Fraction:
    given = Inputs.of(pool, plan)
    rounds = (plan.rounds,) * (len(plan.models) - 2)
    return theory.nested(given.alphas, plan.drafts, rounds, given.draft, given.verify)


def _polybasic(pool: Pool, plan: Plan, semantics: Semantics) -> Fraction | None:
    """L_i and beta as they really are on average: tokens passed on for each forward of M_i."""
    real = truth(pool, plan, semantics)
    lengths = [up / runs for up, runs in zip(real.passed, real.forwards, strict=True)][:0:-1]
    if not all(lengths):
        return None
    seconds = [pool.levels[m].forward(1) for m in reversed(plan.models)]
    return theory.polybasic(lengths, seconds, real.forwards[0] / real.forwards[1])


def _product(pool: Pool, plan: Plan, semantics: Semantics) -> Fraction | None:
    alphas = Inputs.of(pool, plan).alphas
    return theory.product(alphas, [pool.levels[m].forward(1) for m in plan.models]) if all(alphas) else None


def _exact(pool: Pool, plan: Plan, semantics: Semantics) -> Fraction:
    """The repaired formula: the block's length followed as a Markov chain."""
    given = Inputs.of(pool, plan)
    told = (given.draft, given.verify)
    if len(plan.models) == 3 and semantics == "nested":
        return theory.exact_collected(given.alphas, plan.drafts, plan.rounds * (plan.drafts + 1), *told)
    if len(plan.models) == 3 and semantics == "rounds":
        return theory.exact_rounds(given.alphas, plan.drafts, plan.rounds, *told)
    return theory.exact(given.alphas, plan.drafts, *told, replace=semantics == "funnel-replace")


READINGS: dict[str, Reading] = {
    "reach-any": _reach("any"),
    "reach-all": _reach("all"),
    "reach-always": _reach("always"),
    "reach-direct": _reach("any", direct=True),
    "funnel-truncate": _funnel(False),
    "funnel-replace": _funnel(True),
    "nested": _nested,
    "polybasic": _polybasic,
    "product": _product,
}


def says(reading: Reading, pool: Pool, plan: Plan, semantics: Semantics) -> Fraction | None:
    """The target alone takes its own time; other chains what the reading says."""
    return pool.levels[-1].forward(1) if not plan.drafts else reading(pool, plan, semantics)


def ranks(reading: Reading, semantics: Semantics) -> Rule:
    """The slower of two chains is never put first; nothing is said of chains that are equally fast."""

    def rule(case: Choice) -> Outcome:
        fast, slow = case.one, case.other
        times = {plan: truth(case.pool, plan, semantics).seconds_per_token for plan in (fast, slow)}
        if times[fast] == times[slow]:
            return UNMET
        if times[fast] > times[slow]:
            fast, slow = slow, fast
        said = {plan: says(reading, case.pool, plan, semantics) for plan in (fast, slow)}
        first, second = said[fast], said[slow]
        if first is None or second is None:
            return UNMET
        if first <= second:
            return None
        return against(
            *described(case.pool, semantics),
            f"{fast} really takes {number(times[fast])} a token; the formula says {number(first)}",
            f"{slow} really takes {number(times[slow])} a token; the formula says {number(second)}",
            "so the formula puts the slower chain first",
        )

    return rule


def is_exact(reading: Reading, semantics: Semantics) -> Rule:
    """The formula's seconds a token are the exact ones, for both chains (and so in their order)."""

    def rule(case: Choice) -> Outcome:
        for plan in (case.one, case.other):
            real = truth(case.pool, plan, semantics).seconds_per_token
            said = says(reading, case.pool, plan, semantics)
            if said != real:
                return against(
                    *described(case.pool, semantics), f"{plan}: {number(real)} a token, formula {said}"
                )
        return None

    return rule


def described(pool: Pool, semantics: Semantics) -> tuple[str, ...]:
    """A pool in words."""
    forwards = []
    for i, level in enumerate(pool.levels, 1):
        more = f" and {level.slope} for each further {level.tread} tokens begun" if level.slope else ""
        forwards.append(f"M{i} {level.seconds}{more}")
    rates = [f"M{a + 1} and M{b + 1} {pool.rate(a, b)}" for a, b in combinations(range(len(pool.levels)), 2)]
    return (
        f"a forward takes: {', '.join(forwards)}; M{len(pool.levels)} is the target",
        f"they say the same with probability: {', '.join(rates)}; cycles go by {semantics}",
    )


# Cases


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


def _every(semantics: Semantics) -> Callable[[int], Iterator[Choice]]:
    """Three models, forwards of 1 or 2 (to 3) at any width, rates 0, 1/2, 1; two chains drafting 1 or 2."""

    def cases(level: int) -> Iterator[Choice]:
        for pool in all_pools(3, 1 + level, grid(2)):
            for one, other in combinations(all_plans(3, 2, 2 if semantics == "rounds" else 1), 2):
                yield Choice(pool, one, other)

    return cases


def _swaps(
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


def _repaired(semantics: Semantics) -> Statement:
    how = {
        "funnel-truncate": "to min(G, n) by level, G geometric",
        "funnel-replace": "to min(G, n) + 1 by level, G geometric",
        "nested": "round by round until the middle has enough",
        "rounds": "round by round, a fixed number of times",
    }[semantics]
    return Statement(
        words=(
            f"Under {semantics}, the length of the block followed as a Markov chain ({how}), each length "
            "priced at its own width, gives the exact time per token of every chain, and so its rank; "
            f"independent: {INDEPENDENT}"
        ),
        formula="T = E[sum of V_i(n_i + 1) + drafts T_1] / (1 + E[S(alpha_{N-1}, n_{N-1})])",
        rule=is_exact(_exact, semantics),
        over=OVER + "; random forwards also take longer for more tokens, by the token or in steps",
        domain=choices(semantics, widths=True),
        every=_every(semantics),
        examples=40,
    )


REPAIRED = {semantics: _repaired(semantics) for semantics in (*ALL_SEMANTICS, "rounds")}


# What each reading gets wrong under each semantics, and the smallest two chains that it swaps: of all pools
# with whole times up to 3 (7 for funnel-replace under itself), rates in quarters and drafts up to 2.
_TRUNCATED = "The target's tokens under funnel-truncate are E(alpha_1 alpha_2 .., gamma). "
_OWN = (
    "The middle's own token is passed on as well, and the target accepts it with alpha_2: a cycle emits 1 "
    "+ alpha_2 E(alpha_1 alpha_2, gamma) tokens where the formula has E(alpha_1 alpha_2, gamma), up to "
    "twice too few. Chains with a middle are put too low (S23). "
)
_COLLECTED = (
    "(The middle collects m = n (gamma + 1) tokens, what n rounds make when everything is accepted.) "
    "What the target reads are m tokens of the middle's own text: a cycle emits E(alpha_2, m) whatever M1 "
    "is, and M1's rate only sets the number of rounds. The formula makes tokens, or rounds, depend "
    "otherwise on alpha_1. "
)
_JENSEN = (
    "It carries the mean length n into S(alpha_2, n), which is concave in n, so it counts too many tokens "
    "for every chain with a middle and none too many for pairs (S22): by up to {} for gamma = 1, {} for 4, "
    "{} for 8. "
)
_LEVELS = (
    "It divides the time of the levels below the target by what they pass on, as if the target let all of it "
)
_STRAW = "It knows no draft length and no bonus token, and is not even right for a pair. "
_LOW = flat((1, 1, 2), (HALF, Fraction(1)))
_NONE_ALIKE = flat((1, 1, 2), (Fraction(0), Fraction(1)))
_QUARTER = flat((2, 1, 2), (Fraction(1, 4), Fraction(1)))
_BENT = (HALF, Fraction(1, 4))

WRONG: dict[tuple[str, Semantics], tuple[Choice, str]] = {
    ("reach-all", "funnel-truncate"): (
        Choice(
            flat((1, 1, 2, 1), (HALF, Fraction(1), Fraction(1))), Plan((0, 2, 3), 1), Plan((0, 1, 2, 3), 2)
        ),
        "Right up to three levels. M3 runs when anything comes through M2 (probability alpha_1), not only "
        "when all does: it is charged too seldom. ",
    ),
    ("reach-always", "funnel-truncate"): (
        Choice(
            flat((1, 1, 1, 1), (Fraction(1, 4), Fraction(1), Fraction(1))),
            Plan((0, 1, 3), 2),
            Plan((0, 1, 2, 3), 1),
        ),
        "Right up to three levels. M3 stays idle when nothing comes through M2 (probability 1 - alpha_1): "
        "it is charged too often. ",
    ),
    ("reach-direct", "funnel-truncate"): (
        Choice(flat((1, 1, 3), (Fraction(0), Fraction(0)), 1), ALONE, TRIPLE),
        _TRUNCATED + "How often M1 and the target agree counts tokens that M2 throws away on the way. ",
    ),
    ("funnel-truncate", "funnel-truncate"): (
        Choice(flat((1, 1, 1), _BENT), Plan((0, 2), 2), TRIPLE),
        _TRUNCATED + _JENSEN.format("3.9%", "12.0%", "16.9%"),
    ),
    ("funnel-replace", "funnel-truncate"): (
        Choice(_LOW, ALONE, TRIPLE),
        _TRUNCATED + "It counts the middle's own token, which is not passed on. ",
    ),
    ("nested", "funnel-truncate"): (
        Choice(_LOW, ALONE, TRIPLE),
        _TRUNCATED + "It counts the middle's own token, which is not passed on. ",
    ),
    ("polybasic", "funnel-truncate"): (
        Choice(flat((1, 1, 3), (Fraction(1), Fraction(1))), ALONE, TRIPLE),
        _LEVELS + "through once and added nothing itself. ",
    ),
    ("funnel-replace", "funnel-replace"): (
        Choice(flat((1, 1, 7), _BENT), ALONE, TRIPLE),
        "A cycle emits 1 + alpha_2 E(alpha_1 alpha_2, gamma). " + _JENSEN.format("1.3%", "5.8%", "9.9%"),
    ),
    ("funnel-replace", "nested"): (Choice(_QUARTER, ALONE, TRIPLE), _COLLECTED),
    ("nested", "nested"): (
        Choice(_QUARTER, ALONE, TRIPLE),
        _COLLECTED + "(Theorem 4.3 fixes the rounds, and lets the number of tokens vary.) ",
    ),
}
for _name in ("reach-any", "reach-all", "reach-always", "reach-direct", "funnel-truncate"):
    WRONG[_name, "funnel-replace"] = (Choice(_LOW, ALONE, TRIPLE), _OWN)
    WRONG[_name, "nested"] = (Choice(_NONE_ALIKE, ALONE, TRIPLE), _COLLECTED)
WRONG["polybasic", "funnel-replace"] = (Choice(_LOW, ALONE, TRIPLE), _LEVELS + "through. ")
WRONG["polybasic", "nested"] = (Choice(_NONE_ALIKE, ALONE, TRIPLE), _LEVELS + "through. ")
for _semantics in ALL_SEMANTICS:
    WRONG["product", _semantics] = (
        Choice(flat((1, 1, 2), (Fraction(0), Fraction(0)), 1), ALONE, Plan((0, 2), 1)),
        _STRAW,
    )

FORMULAS = {
    "reach-any": "[gamma T_1 + T_2 + sum_{2<i<N} (prod_{j<=i-2} alpha_j) T_i + T_N] / E(prod alpha, gamma)",
    "reach-all": "[gamma T_1 + T_2 + sum_{2<i<N} (prod_{j<=i-2} alpha_j)^gamma T_i + T_N] / E(prod "
    "alpha, gamma)",
    "reach-always": "[gamma T_1 + sum_{i>=2} T_i] / E(prod alpha, gamma)",
    "reach-direct": "[gamma T_1 + T_2 + .. + T_N] / E(alpha_1N, gamma)",
    "funnel-truncate": "[gamma T_1 + sum V_i(n_{i-1} + 1)] / (1 + S(alpha_{N-1}, n_{N-1})), n_{i+1} = "
    "S(alpha_i, n_i)",
    "funnel-replace": "[gamma T_1 + sum V_i(n_{i-1} + 1)] / (1 + S(alpha_{N-1}, n_{N-1})), n_{i+1} = "
    "E(alpha_i, n_i)",
    "nested": "[n (gamma T_1 + T_2) + T_3] / [(1 - alpha_2 phi(alpha_2)^n) / (1 - alpha_2)]",
    "polybasic": "T_N / L_N + sum_{1<i<N} T_i / L_i + beta T_1 / L_2",
    "product": "sum T_i / prod alpha_i",
}
SOURCES = dict.fromkeys(FORMULAS, "a reading of SpecRouter's (2505.07680) Eq. 7")
SOURCES["nested"] = "CS-Drafting (2312.11462) Thm 4.3 as a reading of SpecRouter's (2505.07680) Eq. 7"
SOURCES["polybasic"] = "Polybasic (2510.26527) Eq. 3 as a reading of SpecRouter's (2505.07680) Eq. 7"


def _statement(name: str, semantics: Semantics) -> Statement:
    every, over = _every(semantics), OVER
    if name.startswith("funnel"):
        over = (
            "three models with alpha_1 = 1/2, alpha_2 = 1/4, times that sum to at most 9, drafts 1 or 2; "
            "random ones with alpha_1 of 1/3, 1/2, 2/3 and alpha_2 such that the formula gives fractions"
        )
        every = _swaps(3, 9, [_BENT])
        if semantics == "nested":
            # With alpha_2 = 1 nothing bends.
            every = _swaps(3, 5, product((Fraction(0), Fraction(1, 4), HALF), (Fraction(1),)))
            over = over.replace("alpha_1 = 1/2, alpha_2 = 1/4", "alpha_1 of 0, 1/4, 1/2 and alpha_2 = 1")
            over = over.replace("at most 9", "at most 5")
    elif (name, semantics) in DEEP:
        over = "four models with whole times that sum to at most 5, rates 1/4, 1/2, 1, drafts 1 or 2; " + (
            "random pools of three and four models, drafts up to 3"
        )
        every = _swaps(4, 5, product((HALF / 2, HALF, Fraction(1)), repeat=3))
    return Statement(
        words=(
            f"The reading {name}, given exact inputs, never puts the slower of two chains first under "
            f"{semantics}, where forwards take the same time at any width and acceptance is independent "
            f"({INDEPENDENT})"
        ),
        formula=f"T_eff = {FORMULAS[name]}",
        rule=ranks(READINGS[name], semantics),
        over=over,
        domain=choices(semantics, bends=name.startswith("funnel")),
        every=every,
        examples=150,
    )


# Right up to three levels.
DEEP = {("reach-all", "funnel-truncate"), ("reach-always", "funnel-truncate")}


def _refuted(name: str, semantics: Semantics) -> Claim:
    pinned, because = WRONG[name, semantics]
    return Claim(
        id=f"S7-{name}@{semantics.removeprefix('funnel-')}",
        source=SOURCES[name],
        statement=_statement(name, semantics),
        expected="refuted",
        because=because.strip(),
        pinned=pinned,
        # Decided over the grid as well where it is the repair of S7 and of the readings' own semantics.
        repaired=REPAIRED[semantics] if name == "nested" else replace(REPAIRED[semantics], every=None),
    )


# Mistakes that a reading can make, for the ones that hold.


def free_target(pool: Pool, plan: Plan, semantics: Semantics) -> Fraction | None:
    """The target is charged with its reach probability and its own token counted all the same."""
    given = Inputs.of(pool, plan)
    through = Fraction(1)
    for a in given.alphas[:-1]:
        through *= a
    rest = theory.reach(given.alphas, plan.drafts, given.draft, given.verify)
    tokens = emitted_tokens(through * given.alphas[-1], plan.drafts)
    return rest - (1 - through) * given.verify(len(plan.models), Fraction(1)) / tokens


def _iterated(pool: Pool, plan: Plan, semantics: Semantics) -> Fraction:
    """phi^n read as phi applied n times, not as the n-th power."""
    given = Inputs.of(pool, plan)
    if len(plan.models) < 3:
        return _nested(pool, plan, semantics)
    inner, outer = given.alphas
    x = outer
    for _ in range(plan.rounds):
        x = theory.round_generating([inner], plan.drafts, (), x)
    tokens = (
        (1 - outer * x) / (1 - outer)
        if outer < 1
        else theory.round_tokens([inner, outer], plan.drafts, [plan.rounds])
    )
    right = theory.round_tokens([inner, outer], plan.drafts, [plan.rounds])
    return _nested(pool, plan, semantics) * right / tokens


_ANY = _statement("reach-any", "funnel-truncate").but(
    "The reading reach-any, given exact inputs, is the exact time per token of every chain under "
    "funnel-truncate, and so ranks them, where forwards take the same time at any width and acceptance is "
    f"independent ({INDEPENDENT})",
    is_exact(READINGS["reach-any"], "funnel-truncate"),
    examples=100,
)
REACH_ANY = Claim(
    id="S7-reach-any@truncate",
    source=SOURCES["reach-any"],
    statement=_ANY,
    expected="holds",
    because=(
        "Draft j reaches the text if all levels let drafts 1 .. j through: probability (prod alpha)^j, "
        "which sums to E(prod alpha, gamma). M_i has work exactly if the first draft came through the "
        "levels below: prod_{j<=i-2} alpha_j. The target runs in every cycle."
    ),
    broken=(
        _ANY.but(
            "The same with alpha_1N for the product", is_exact(READINGS["reach-direct"], "funnel-truncate")
        ),
        _ANY.but(
            "The same, the target charged only when something reaches it",
            is_exact(free_target, "funnel-truncate"),
        ),
        _ANY.but("The same under funnel-replace", is_exact(READINGS["reach-any"], "funnel-replace")),
    ),
)


def _nested_statement(semantics: Semantics) -> Statement:
    return _statement("nested", semantics).but(
        "CS-Drafting's Theorem 4.3, given exact inputs and each forward priced at its mean width, is the "
        "exact time per token under "
        f"{'funnel-replace, as one round' if semantics != 'rounds' else 'a fixed number of rounds'}, where "
        f"each further token takes a forward the same time (or none); independent: {INDEPENDENT}",
        is_exact(_nested, semantics),
        domain=choices(semantics, widths=True, steps=False),
        examples=40,
    )


_ONE_ROUND, _ROUNDS = _nested_statement("funnel-replace"), _nested_statement("rounds")
_PHI = (
    "A round hands up min(G, gamma) + 1 tokens, phi is that number's generating function, and rounds are "
    "independent. Of a block of B tokens the target emits (1 - alpha^(B+1)) / (1 - alpha), whose mean "
    "needs E[alpha^B] = phi(alpha)^n and nothing else: no mean length is carried through a curve. A mean "
    "width is right for costs that are straight lines. "
)
NESTED_REPLACE = Claim(
    id="S7-nested@replace",
    source=SOURCES["nested"],
    statement=_ONE_ROUND,
    expected="holds",
    because=_PHI + "funnel-replace is its case n = 1, at any number of levels.",
    broken=(
        _ONE_ROUND.but(
            "The same without the middle's own token", is_exact(READINGS["reach-any"], "funnel-replace")
        ),
        _ONE_ROUND.but("The same for funnel-truncate", is_exact(_nested, "funnel-truncate")),
    ),
)
NESTED_ROUNDS = Claim(
    id="S7-nested@rounds",
    source=SOURCES["nested"],
    statement=_ROUNDS,
    expected="holds",
    because=_PHI,
    broken=(
        _ROUNDS.but("phi^n is phi applied n times", is_exact(_iterated, "rounds")),
        _ROUNDS.but("The same for rounds until n (gamma + 1) tokens are there", is_exact(_nested, "nested")),
    ),
)


def _cells() -> Iterator[Claim]:
    for name in READINGS:
        for semantics in ALL_SEMANTICS:
            if (name, semantics) == ("reach-any", "funnel-truncate"):
                yield REACH_ANY
            elif (name, semantics) == ("nested", "funnel-replace"):
                yield NESTED_REPLACE
            else:
                yield _refuted(name, semantics)
    yield NESTED_ROUNDS


CELLS = tuple(_cells())

# The same where forwards take longer for more tokens.

_S7 = Statement(
    words=(
        "The reading nearest to the published words (reach, any), given exact inputs, never puts the "
        "slower of two chains first under funnel-truncate, where acceptance is independent and a forward "
        "may take longer for more tokens; its T_i are single-token times, as printed; independent: "
        f"{INDEPENDENT}"
    ),
    formula="T_eff = " + FORMULAS["reach-any"],
    rule=ranks(READINGS["reach-any"], "funnel-truncate"),
    over=(
        "three models with times that sum to at most 5, slopes 0 or 1, rates 1/2, 3/4, 1, drafts 1 or 2; "
        "random pools of three and four models whose forwards take longer for more tokens, drafts up to 3"
    ),
    domain=choices("funnel-truncate", widths=True),
    every=_swaps(3, 5, product((HALF, Fraction(3, 4), Fraction(1)), repeat=2), (0, 1)),
    examples=150,
)
_SLOPED = Level(Fraction(2), Fraction(1))
S7 = Claim(
    id="S7",
    source=SOURCES["reach-any"],
    statement=_S7,
    expected="refuted",
    because=(
        "A verifying forward is gamma + 1 tokens wide and costs more than a single-token one. What holds "
        "without that is decided reading by reading in the claims S7-...: with forwards of the same time "
        "at any width this reading is exact under funnel-truncate and no other reading is; CS-Drafting's "
        "Theorem 4.3 is exact under funnel-replace and a fixed number of rounds; no reading ranks right "
        "under nested."
    ),
    pinned=Choice(
        Pool((Level(Fraction(1)), Level(Fraction(1)), _SLOPED), independent((Fraction(1), Fraction(3, 4)))),
        ALONE,
        Plan((0, 2), 1),
    ),
    repaired=REPAIRED["funnel-truncate"],
)
S7_WIDE = Claim(
    id="S7-wide@truncate",
    source=SOURCES["reach-any"],
    statement=_S7.but(
        "The same with forwards over gamma + 1 tokens in the place of single-token times (reach, wide)",
        ranks(_reach("any", wide=True), "funnel-truncate"),
    ),
    expected="refuted",
    because=(
        "Right for M2 and for pairs; the levels above M2 read only what came through, so chains with a "
        "middle are put too low, and what a third level is good for under funnel-truncate is left out of "
        "the sum."
    ),
    pinned=Choice(
        Pool(
            (Level(Fraction(1)), Level(Fraction(1)), Level(Fraction(1), Fraction(1))),
            independent((HALF, HALF)),
        ),
        Plan((1, 2), 2),
        TRIPLE,
    ),
    repaired=REPAIRED["funnel-truncate"],
)
S7_STEPS = Claim(
    id="S7-nested-steps@rounds",
    source=SOURCES["nested"],
    statement=Statement(
        words=(
            "CS-Drafting's Theorem 4.3 with forwards priced at their mean width never puts the slower of "
            "two chains "
            "first where a forward takes longer in steps (padding); independent: " + INDEPENDENT
        ),
        rule=ranks(_nested, "rounds"),
        over=(
            "three models with times that sum to at most 5, 0 or 2 for each further 2 tokens begun, rates "
            "1/2 or 1, drafts 1 or 2; random pools of three models, drafts up to 3, rounds up to 2"
        ),
        domain=choices("rounds", widths=True),
        every=_swaps(3, 5, product((HALF, Fraction(1)), repeat=2), (0, 2), 2),
        examples=150,
    ),
    expected="refuted",
    because=(
        "The width varies with luck, and the cost of the mean width is not the mean cost unless cost is a "
        "straight line."
    ),
    pinned=Choice(
        Pool(
            (Level(Fraction(1)), Level(Fraction(1)), Level(Fraction(3), Fraction(2), 2)),
            independent((HALF, Fraction(1))),
        ),
        ALONE,
        Plan((0, 1, 2), 2),
    ),
    repaired=REPAIRED["rounds"],
)

# S7b: agreement that is not independent from pair to pair.


@dataclass(frozen=True)
class Worlds:
    """Two laws with the same pairwise rates, and two chains."""

    levels: tuple[Level, ...]
    here: Law
    there: Law
    one: Plan
    other: Plan


def correlated_by(rates: tuple[Fraction, Fraction, Fraction], together: Fraction) -> Law:
    """Three models with alpha_12, alpha_23, alpha_13 that all agree with probability ``together``.

    Empty where there are no such models.
    """
    a12, a23, a13 = rates
    parts = {
        (0, 0, 0): together,
        (0, 0, 1): a12 - together,
        (0, 1, 1): a23 - together,
        (0, 1, 0): a13 - together,
        (0, 1, 2): 1 - a12 - a23 - a13 + 2 * together,
    }
    return tuple((w, p) for w, p in sorted(parts.items()) if p) if min(parts.values()) >= 0 else ()


def _same_order(semantics: Semantics) -> Callable[[Worlds], Outcome]:
    def rule(case: Worlds) -> Outcome:
        times = [
            [
                truth(Pool(case.levels, law), plan, semantics).seconds_per_token
                for plan in (case.one, case.other)
            ]
            for law in (case.here, case.there)
        ]
        (a, b), (c, d) = times
        if (a - b) * (c - d) >= 0:
            return None
        together = [dict(law).get((0, 0, 0), Fraction(0)) for law in (case.here, case.there)]
        return against(
            *described(Pool(case.levels, case.here), semantics),
            f"if all three agree with probability {together[0]}: {case.one} takes {number(a)}, "
            f"{case.other} {number(b)}",
            f"if all three agree with probability {together[1]}: {case.one} takes {number(c)}, "
            f"{case.other} {number(d)}",
        )

    return rule


def _with_joint_rate(case: Choice) -> Outcome:
    """gamma T_1 + V_2(gamma + 1) + E[V_3(min(G, gamma) + 1)] over E(e, gamma), e the rate of all agreeing."""
    for plan in (case.one, case.other):
        real = truth(case.pool, plan, "funnel-truncate").seconds_per_token
        said = says(_exact, case.pool, plan, "funnel-truncate")
        if len(plan.models) == 3:
            together = dict(case.pool.law).get((0, 0, 0), Fraction(0))
            a, g = case.pool.rate(0, 1), plan.drafts
            first, second, target = case.pool.levels
            time = g * first.forward(1) + second.forward(g + 1) + a**g * target.forward(g + 1)
            time += sum(a**n * (1 - a) * target.forward(n + 1) for n in range(g))
            said = time / emitted_tokens(together, g)
        if said != real:
            return against(*described(case.pool, "funnel-truncate"), f"{plan}: {real}, formula {said}")
    return None


def _worlds(level: int) -> Iterator[Worlds]:
    """Whole times to 6 (7 at larger budgets) that sum to least first, rates and joint rates in quarters."""
    some = grid(4)
    laws = [
        [law for e in some if (law := correlated_by((a, b, c), e))] for a, b, c in product(some, some, some)
    ]
    several = [held for held in laws if len(held) > 1]
    for seconds in sorted(product(range(1, 6 + level), repeat=3), key=lambda t: (sum(t), t)):
        levels = tuple(Level(Fraction(s)) for s in seconds)
        for held in several:
            for here, there in combinations(held, 2):
                for plan in (ALONE, Plan((0, 2), 1), Plan((1, 2), 1)):
                    yield Worlds(levels, here, there, plan, TRIPLE)


S7B_STATEMENT = Statement(
    words=(
        "Which of two chains is faster follows from the models' times and pairwise acceptance rates alone, "
        "also where agreement is not independent from pair to pair (places are; funnel-truncate)"
    ),
    rule=_same_order("funnel-truncate"),
    over="whole times up to 6, rates in quarters; a chain of three, 1 drafted, against the target alone "
    "and pairs",
    every=_worlds,
)
S7B = Claim(
    id="S7b",
    source="SpecRouter (2505.07680) Eq. 7 is a function of times and pairwise acceptance rates",
    statement=S7B_STATEMENT,
    expected="refuted",
    because=(
        "A draft reaches the text of a three-level chain where all three agree, and pairwise rates do not "
        "fix how often that is: between alpha_12 + alpha_23 - 1 and the least of the three. So no formula "
        "of these inputs, however expanded, ranks every two chains right."
    ),
    pinned=Worlds(
        (Level(Fraction(1)), Level(Fraction(1)), Level(Fraction(5))),
        correlated_by((HALF, HALF, HALF), Fraction(1, 4)),
        correlated_by((HALF, HALF, HALF), HALF),
        ALONE,
        TRIPLE,
    ),
    repaired=Statement(
        words=(
            "With one more number, the rate at which all three models agree, the exact time per token "
            "under funnel-truncate follows, whatever the correlation between the pairs"
        ),
        formula="T = [gamma T_1 + V_2(gamma + 1) + E[V_3(min(G, gamma) + 1)]] / E(e, gamma), e = P(all "
        "three agree)",
        rule=_with_joint_rate,
        over="random pools of three models with any law of agreement, drafts up to 3",
        domain=st.builds(Choice, pools(3), plans(3), plans(3)),
        examples=100,
    ),
)

# Which way the readings err.

Chosen = tuple[Pool, Plan]


def _errs(name: str, semantics: Semantics, sign: int) -> Callable[[Choice], Outcome]:
    """The reading's time per token is at most (-1) or at least (1) the exact one; for pairs it is exact."""

    def rule(case: Choice) -> Outcome:
        real = truth(case.pool, case.one, semantics).seconds_per_token
        said = says(READINGS[name], case.pool, case.one, semantics)
        if said is None:
            return UNMET
        if said == real or (len(case.one.models) > 2 and (said - real) * sign > 0):
            return None
        return against(
            *described(case.pool, semantics),
            f"{case.one}: {number(real)} a token, the formula says {number(said)}",
        )

    return rule


def _bent(level: int) -> Iterator[Choice]:
    """alpha_1 = 1/2 and alpha_2 a fourth power, so that mean lengths give fractions; forwards of 1 or 2."""
    for seconds in product((1, 2), repeat=3):
        for root in grid(2 + level):
            pool = flat(seconds, (HALF, root**4))
            for plan in all_plans(3, 2):
                yield Choice(pool, plan, ALONE)


S22_STATEMENT = Statement(
    words=(
        "The funnel reading never takes a chain with a middle to be slower than it is, and is exact for "
        "pairs (funnel-truncate, independent acceptance, forwards of the same time at any width): it swaps "
        "only in favour of the longer chain"
    ),
    formula="S(alpha_2, S(alpha_1, gamma)) >= sum_{j=1}^{gamma} (alpha_1 alpha_2)^j",
    rule=_errs("funnel-truncate", "funnel-truncate", -1),
    over="three models, alpha_1 of 1/3, 1/2 or 2/3 and alpha_2 such powers that the formula gives fractions",
    domain=choices("funnel-truncate", bends=True),
    every=_bent,
    examples=60,
)
S22 = Claim(
    id="S22",
    source=SOURCES["funnel-truncate"],
    statement=S22_STATEMENT,
    expected="holds",
    because=(
        "S(a, n) = a (1 - a^n) / (1 - a) is concave in n, so E[S(a, n)] <= S(a, E[n]) (Jensen), and "
        "E[S(alpha_2, n)] with n = min(G, gamma) is the sum of (alpha_1 alpha_2)^j."
    ),
    broken=(
        S22_STATEMENT.but("It is exact", _errs("funnel-truncate", "funnel-truncate", 0)),
        S22_STATEMENT.but(
            "It never takes one to be faster than it is", _errs("funnel-truncate", "funnel-truncate", 1)
        ),
    ),
)
S23_STATEMENT = Statement(
    words=(
        "The reach reading (any) never takes a chain to be faster than it is under funnel-replace, and is "
        "exact for pairs (three models, independent acceptance, forwards of the same time at any width)"
    ),
    formula="E(alpha_1 alpha_2, gamma) <= 1 + alpha_2 E(alpha_1 alpha_2, gamma)",
    rule=_errs("reach-any", "funnel-replace", 1),
    over=OVER,
    domain=choices("funnel-replace", deep=False),
    every=_every("funnel-replace"),
    examples=60,
)
S23 = Claim(
    id="S23",
    source=SOURCES["reach-any"],
    statement=S23_STATEMENT,
    expected="holds",
    because=(
        "Let x = alpha_1 alpha_2. E(x, gamma) = 1 + x E(x, gamma - 1), which is at most 1 + alpha_2 E(x, "
        "gamma). The ratio goes to 2 as alpha_1 goes to 0 and alpha_2 to 1: the middle's own token is all "
        "that is passed on."
    ),
    broken=(S23_STATEMENT.but("It never takes one to be slower", _errs("reach-any", "funnel-replace", -1)),),
)


def _without_middle(semantics: Semantics) -> Callable[[Choice], Outcome]:
    def rule(case: Choice) -> Outcome:
        plan = case.one
        if len(plan.models) < 3:
            return UNMET
        short = Plan((plan.models[0], plan.models[-1]), plan.drafts)
        longer, shorter = (truth(case.pool, p, semantics).seconds_per_token for p in (plan, short))
        if longer > shorter:
            return None
        return against(
            *described(case.pool, semantics), f"{plan}: {number(longer)}; {short}: {number(shorter)}"
        )

    return rule


def _any_law(slope: int) -> Callable[[int], Iterator[Choice]]:
    """Three models, every law in halves (thirds at larger budgets); the target's tokens cost ``slope``."""

    def cases(level: int) -> Iterator[Choice]:
        target = Level(Fraction(1), Fraction(slope))
        for weights in all_distributions(5, 1 + level):
            law = tuple((w, p) for w, p in zip(patterns(3), weights, strict=True) if p)
            for middle in (1, 2):
                pool = Pool((Level(Fraction(1)), Level(Fraction(middle)), target), law)
                for drafts in (1, 2):
                    yield Choice(pool, Plan((0, 1, 2), drafts), ALONE)

    return cases


S24_STATEMENT = Statement(
    words=(
        "Under funnel-truncate, where a forward takes the same time at any width, every chain is slower "
        "than the same chain and draft without its middle levels, whatever the agreement"
    ),
    rule=_without_middle("funnel-truncate"),
    over="three models with every law in halves; random pools of three and four with any law, drafts up to 3",
    domain=st.sampled_from([3, 3, 4]).flatmap(
        lambda n: st.builds(Choice, pools(n, widths=False), plans(n, 3 if n == 3 else 2), plans(n, 1))
    ),
    every=_any_law(0),
    examples=40,
)
S24 = Claim(
    id="S24",
    source="consequence of S6 for SpecRouter's (2505.07680) chains of three",
    statement=S24_STATEMENT,
    expected="holds",
    because=(
        "By S6 the middle takes tokens away and adds none, and its own forward takes time. So Eq. 7 with "
        "single-token times, read as funnel-truncate, should never choose a third level: where one pays it "
        "is by the width of the target's forward, by the middle's own tokens (funnel-replace, nested), or "
        "not at all."
    ),
    broken=(
        S24_STATEMENT.but("The same under funnel-replace", _without_middle("funnel-replace")),
        S24_STATEMENT.but(
            "The same where forwards take longer for more tokens",
            _without_middle("funnel-truncate"),
            every=_any_law(4),
        ),
    ),
)

CLAIMS = (S7, *CELLS, S7_WIDE, S7_STEPS, S7B, S22, S23, S24)
