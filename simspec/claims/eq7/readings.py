"""The exact time per token of a chain, and what each reading of Eq. 7 says it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from simspec.strategies.chains import Plan, Pool, Semantics
from simspec.strategies.outcomes import Expected, expected
from simspec.theory import chains as theory
from simspec.theory import exact_chains


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


def reach(reached: theory.Reach, *, wide: bool = False, direct: bool = False) -> Reading:
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


def nested(pool: Pool, plan: Plan, semantics: Semantics) -> Fraction:
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


def exact(pool: Pool, plan: Plan, semantics: Semantics) -> Fraction:
    """The repaired formula: the block's length followed as a Markov chain."""
    given = Inputs.of(pool, plan)
    told = (given.draft, given.verify)
    if len(plan.models) == 3 and semantics == "nested":
        return exact_chains.exact_collected(given.alphas, plan.drafts, plan.rounds * (plan.drafts + 1), *told)
    if len(plan.models) == 3 and semantics == "rounds":
        return exact_chains.exact_rounds(given.alphas, plan.drafts, plan.rounds, *told)
    return exact_chains.exact(given.alphas, plan.drafts, *told, replace=semantics == "funnel-replace")


READINGS: dict[str, Reading] = {
    "reach-any": reach("any"),
    "reach-all": reach("all"),
    "reach-always": reach("always"),
    "reach-direct": reach("any", direct=True),
    "funnel-truncate": _funnel(False),
    "funnel-replace": _funnel(True),
    "nested": nested,
    "polybasic": _polybasic,
    "product": _product,
}
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


def says(reading: Reading, pool: Pool, plan: Plan, semantics: Semantics) -> Fraction | None:
    """The target alone takes its own time; other chains what the reading says."""
    return pool.levels[-1].forward(1) if not plan.drafts else reading(pool, plan, semantics)
