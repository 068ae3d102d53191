"""Expected tokens of a cycle, and what a third level does to them (S3, S3b and its parts, S6, S20, S21).

alpha = acceptance rate, gamma = draft length, E(alpha, gamma) = (1 - alpha^(gamma+1)) / (1 - alpha)
(Leviathan et al., arXiv 2211.17192). What is true is counted by running the rules of a cycle
(:mod:`simspec.speculation.cycle`) on every outcome.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement, product

import numpy as np
from hypothesis import strategies as st

from simspec.claims.base import Claim, Outcome, Plot, Statement, against
from simspec.claims.plain import number, shown
from simspec.speculation.chains import Semantics
from simspec.speculation.cycle import Cycle, Verifier, run_cycle
from simspec.speculation.verify import Tokens as Words
from simspec.speculation.verify import surviving
from simspec.strategies.distributions import Distribution, all_distributions, distributions, overlap
from simspec.strategies.survivals import Conditional, chances, grid
from simspec.theory.acceptance import emitted_tokens

Sequence = tuple[bool, ...]


@cache
def counted(agreed: Sequence) -> int:
    """Tokens that a cycle emits where the target has the drafted token at these places of the block."""
    words = np.array([*(int(not a) for a in agreed), 1], dtype=np.int32)
    drafted = np.zeros(len(agreed), dtype=np.int32)
    return len(run_cycle(drafted, [lambda block: words], "none", len(agreed) + 1, ()).emitted)


def mean_over_outcomes(p: Conditional, of: Callable[[Sequence], int]) -> Fraction:
    """Expectation of ``of`` over every sequence of agreements, place k agreeing with probability p_k."""
    total = Fraction(0)
    for agreed in product((True, False), repeat=len(p)):
        chance = Fraction(1)
        for a, rate in zip(agreed, p, strict=True):
            chance *= rate if a else 1 - rate
        total += chance * of(agreed) if chance else 0
    return total


# S3


def _formula(shift: int = 0, bonus: int = 0) -> Callable[[Conditional], Outcome]:
    def rule(p: Conditional) -> Outcome:
        mean = sum(p, Fraction(0)) / len(p)
        said, truth = emitted_tokens(mean, len(p) + shift) + bonus, mean_over_outcomes(p, counted)
        if said == truth:
            return None
        return against(
            f"places are accepted with probability {shown(p)}, whatever happened before",
            f"over all {2 ** len(p)} outcomes a cycle emits {number(truth)} tokens on average",
            f"the formula says {number(said)}",
        )

    return rule


def _constant(rate: Fraction, size: int) -> Conditional:
    return (rate,) * size


def _constants(level: int) -> Iterator[Conditional]:
    for size in range(1, 6 + level):
        for rate in grid(4 + 4 * level):
            yield _constant(rate, size)


S3_STATEMENT = Statement(
    words=(
        "If every drafted token is accepted with probability alpha, independently, a cycle that drafts gamma "
        "emits (1 - alpha^(gamma+1)) / (1 - alpha) tokens on average, the target's own one included"
    ),
    formula="E[tokens] = sum_{j=0}^{gamma} alpha^j = (1 - alpha^(gamma+1)) / (1 - alpha)",
    rule=_formula(),
    over="alpha = 0, 1/8, .., 1 and gamma up to 6 (more at larger budgets); random alpha, gamma up to 6",
    domain=st.builds(_constant, chances(), st.integers(1, 6)),
    every=_constants,
    beyond=st.tuples(chances(6), chances(6)).filter(lambda p: len(set(p)) > 1),
    examples=100,
)
S3 = Claim(
    id="S3",
    source="Leviathan et al. (2211.17192) Eq. 1; the denominator of SpecRouter's (2505.07680) Eq. 7",
    statement=S3_STATEMENT,
    expected="holds",
    because=(
        "At least j drafts are accepted exactly if the first j are: probability alpha^j. A mean is the sum "
        "of such probabilities over j = 1 .. gamma; the target's own token is the term j = 0. Where the "
        "rate changes along the block the formula at the mean rate is wrong, so the supposition is needed."
    ),
    broken=(
        S3_STATEMENT.but("The same for one token fewer (the bonus is forgotten)", _formula(shift=-1)),
        S3_STATEMENT.but("The same for accepted drafts, which leave the bonus out", _formula(bonus=-1)),
        S3_STATEMENT.but("The same for one token more", _formula(shift=1)),
    ),
)

# S3b: requests with different rates, each independent within itself.

Requests = tuple[tuple[Fraction, ...], int]


@cache
def _tokens(rate: Fraction, drafts: int) -> Fraction:
    return mean_over_outcomes((rate,) * drafts, counted)


def mean(values: list[Fraction]) -> Fraction:
    return sum(values, Fraction(0)) / len(values)


def by_cycles(rates: tuple[Fraction, ...], drafts: int) -> Fraction:
    """Tokens a cycle where each request runs as many cycles as any other."""
    return mean([_tokens(a, drafts) for a in rates])


def by_outputs(rates: tuple[Fraction, ...], drafts: int) -> Fraction:
    """Tokens a cycle, in the long run, where each request emits as many tokens as any other."""
    return 1 / mean([1 / _tokens(a, drafts) for a in rates])


def pooled_rate(rates: tuple[Fraction, ...], drafts: int) -> Fraction:
    """Drafts accepted over drafts tested (those up to the first refusal), equal cycles: what a log gives."""

    def tested(agreed: Sequence) -> int:
        return min(counted(agreed), len(agreed))

    accepted = by_cycles(rates, drafts) - 1
    return accepted / mean([mean_over_outcomes((a,) * drafts, tested) for a in rates])


Sides = Callable[[tuple[Fraction, ...], int], tuple[Fraction, Fraction]]


def _against_mean(
    truth: Callable[[tuple[Fraction, ...], int], Fraction],
) -> Sides:
    return lambda rates, drafts: (truth(rates, drafts), emitted_tokens(mean(list(rates)), drafts))


def _cycles_against_pooled(rates: tuple[Fraction, ...], drafts: int) -> tuple[Fraction, Fraction]:
    return by_cycles(rates, drafts), emitted_tokens(pooled_rate(rates, drafts), drafts)


def _compared(sides: Sides, sign: int, linear: int) -> Callable[[Requests], Outcome]:
    """The truth is above (1), below (-1) or at (0) the formula; exactly at it where nothing can differ.

    Args:
        linear: largest gamma at which different rates make no difference.
    """

    def rule(case: Requests) -> Outcome:
        rates, drafts = case
        truth, said = sides(rates, drafts)
        wanted = sign if len(set(rates)) > 1 and drafts > linear else 0
        if (truth > said) - (truth < said) == wanted:
            return None
        return against(
            f"requests accept with rates {shown(rates)}, {drafts} drafted",
            f"tokens a cycle: {number(truth)}",
            f"(1 - a^{drafts + 1}) / (1 - a) at the one rate: {number(said)}",
        )

    return rule


def _sandwich(case: Requests) -> Outcome:
    rates, drafts = case
    at_mean = emitted_tokens(mean(list(rates)), drafts)
    numbers = (
        by_outputs(rates, drafts),
        at_mean,
        by_cycles(rates, drafts),
        emitted_tokens(pooled_rate(rates, drafts), drafts),
    )
    if list(numbers) == sorted(numbers):
        return None
    return against(f"rates {shown(rates)}, {drafts} drafted: not rising: {shown(numbers)}")


def _mixes(level: int) -> Iterator[Requests]:
    for size in (2, 3):
        for drafts in range(1, 4 + level):
            for rates in combinations_with_replacement(grid(3 + level), size):
                yield rates, drafts


def _curve(case: Requests) -> Plot:
    """Tokens a cycle over the rate: convex, so that a mean of it lies above it."""
    rates, drafts = case
    steps = [Fraction(k, 20) for k in range(21)]
    low, high = min(rates), max(rates)
    ends = [emitted_tokens(a, drafts) for a in (low, high)]
    chord = [
        float(ends[0] + (ends[1] - ends[0]) * (a - low) / (high - low)) if low <= a <= high else float("nan")
        for a in steps
    ]
    return Plot(
        f"Tokens a cycle, {drafts} drafted",
        "line",
        "acceptance rate",
        "tokens",
        tuple(map(float, steps)),
        {
            "one rate for all": tuple(float(emitted_tokens(a, drafts)) for a in steps),
            "half of the cycles at each end": tuple(chord),
        },
    )


CYCLES = Statement(
    words=(
        "Where requests differ in their acceptance rate and each runs as many cycles, a cycle emits more "
        "tokens on average than at the mean rate"
    ),
    formula="mean E(a_i, gamma) >= E(mean a_i, gamma), strictly for gamma >= 2 and rates that differ",
    rule=_compared(_against_mean(by_cycles), 1, 1),
    over="2 and 3 requests with rates in quarters, gamma 1 to 4 (finer at larger budgets); random ones",
    domain=st.tuples(st.lists(chances(), min_size=2, max_size=4).map(tuple), st.integers(1, 5)),
    every=_mixes,
    examples=60,
)
OUTPUTS = CYCLES.but(
    "Where each request emits as many tokens instead, cycles emit fewer tokens on average than at the "
    "mean rate",
    _compared(_against_mean(by_outputs), -1, 0),
    formula="1 / mean(1 / E(a_i, gamma)) <= E(mean a_i, gamma), strictly for rates that differ",
)
POOLED = CYCLES.but(
    "With as many cycles each, cycles emit fewer tokens on average than at the pooled conditional rate "
    "(drafts accepted over drafts tested)",
    _compared(_cycles_against_pooled, -1, 1),
    formula=(
        "mean E(a_i, gamma) <= E(r, gamma), r = sum a_i w_i / sum w_i, w_i = E(a_i, gamma - 1); strictly for "
        "gamma >= 2 and rates that differ"
    ),
)
CONVEX = (
    "1/E is convex: for u = 1 + a + .. + a^g the coefficient of a^(s-2) in 2 u'^2 - u u'' is the sum of "
    "3ij - (s^2 - s)/2 over i + j = s, i, j <= g, which is 0 for s <= g (all i from 0 to s) and at least 0 "
    "beyond, since what is left out then has i and j furthest apart and ij smallest. "
)
S3B = Claim(
    id="S3b",
    source="Leviathan et al. (2211.17192) Eq. 1, used with a mean acceptance rate",
    statement=CYCLES.but(
        "The formula still holds with the mean rate where the acceptance rate varies between requests",
        _compared(_against_mean(by_cycles), 0, 0),
        formula="mean E(a_i, gamma) = E(mean a_i, gamma)",
    ),
    expected="refuted",
    because=(
        "E bends in the rate, and which mean is meant decides to which side: S3b-cycles, S3b-outputs and "
        "S3b-pooled state the three. Only at one drafted token and equal cycles is nothing lost."
    ),
    pinned=((Fraction(0), Fraction(1)), 2),
    repaired=CYCLES.but(
        "Equal outputs give at most the formula at the mean rate, equal cycles at least that, and the "
        "formula at the pooled conditional rate at least as much again",
        _sandwich,
        formula="1 / mean(1 / E(a_i)) <= E(mean a_i) <= mean E(a_i) <= E(pooled rate)",
    ),
    plot=_curve,
)
S3B_CYCLES = Claim(
    id="S3b-cycles",
    source="convexity of Leviathan et al.'s (2211.17192) Eq. 1",
    statement=CYCLES,
    expected="holds",
    because="E(a) = 1 + a + .. + a^gamma is convex, and strictly so from gamma = 2 on: Jensen's inequality.",
    broken=(CYCLES.but("It emits fewer", _compared(_against_mean(by_cycles), -1, 1)),),
)
S3B_OUTPUTS = Claim(
    id="S3b-outputs",
    source="as S3b-cycles, weighed by output",
    statement=OUTPUTS,
    expected="holds",
    because=(
        "A request with rate a needs 1/E(a) cycles a token in the long run, so the mean is harmonic. "
        + CONVEX
    ),
    broken=(OUTPUTS.but("They emit more", _compared(_against_mean(by_outputs), 1, 0)),),
)
S3B_POOLED = Claim(
    id="S3b-pooled",
    source="as S3b-cycles, against the rate that a log of verdicts gives",
    statement=POOLED,
    expected="holds",
    because=(
        "Let w(a) = E(a, gamma - 1), the drafts tested a cycle, so that E = 1 + a w and the pooled rate r is "
        "the mean of a weighed by w. Under those weights the mean of 1/w is 1 / mean(w), and by convexity of "
        "1/w it is at least 1/w(r). Hence mean(w) <= w(r), and mean(a w) = r mean(w) <= r w(r). " + CONVEX
    ),
    broken=(
        POOLED.but(
            "The pooled rate gives the tokens a cycle exactly", _compared(_cycles_against_pooled, 0, 0)
        ),
    ),
)

# S6, S20: one block, what the middle and the target would say along it (one past its end included).

Tokens = tuple[int, ...]
Block = tuple[Tokens, Tokens, Tokens]


def _says(words: Words) -> Verifier:
    return lambda given: words[: len(given) + 1]


def _ran(block: Tokens, verifiers: list[Tokens], semantics: Semantics) -> Cycle:
    """A cycle in which each verifier says the given words, also one past the end of what it reads."""
    words = [np.array((*v, 0), dtype=np.int32) for v in verifiers]
    return run_cycle(
        np.array(block, dtype=np.int32),
        [_says(said) for said in words],
        semantics,
        len(block) + 3,
        (),
    )


def _passes(semantics: Semantics, without: Semantics, sign: int) -> Callable[[Block], Outcome]:
    """Tokens that the target accepts in one pass: with a middle under ``semantics``, against ``without``
    (``none``: the same block without the middle)."""

    def rule(case: Block) -> Outcome:
        block, middle, target = case
        with_it = _ran(block, [middle, target], semantics).accepted
        other = _ran(block, [target] if without == "none" else [middle, target], without).accepted
        if (with_it - other) * sign >= 0:
            return None
        return against(
            f"the drafter says {shown(block)}, the middle {shown(middle)}, the target {shown(target)}",
            f"the target accepts {with_it} under {semantics}",
            f"and {other} " + ("without the middle" if without == "none" else f"under {without}"),
        )

    return rule


def _words_along(level: int) -> Iterator[Block]:
    """Greedy verdicts see only which models agree, so the drafter may say 0 everywhere."""
    for size in range(1, 3 + level):
        said = tuple(product(range(3), repeat=size + 1))
        for middle, target in product(said, repeat=2):
            if middle[-1] < 2 and target[-1] < 2 and max(middle) < 2:
                yield (0,) * size, middle, target


def _blocks() -> st.SearchStrategy[Block]:
    def lists(size: int) -> st.SearchStrategy[Block]:
        one = [st.lists(st.integers(0, 2), min_size=n, max_size=n).map(tuple) for n in (size, size + 1)]
        return st.tuples(one[0], one[1], one[1])

    return st.integers(1, 8).flatmap(lists)


S6_STATEMENT = Statement(
    words=(
        "Under funnel-truncate, putting a model between drafter and target never raises the tokens that the "
        "target accepts of a given block, whatever the three models say"
    ),
    formula="accepted(M1 > M2 > target) = min(survived M2, accepted(M1 > target)) <= accepted(M1 > target)",
    rule=_passes("funnel-truncate", "none", -1),
    over=(
        "blocks of 1 to 3 (4 at larger budgets): at each place the drafter says 0, the middle 0 or 1, the "
        "target 0, 1 or 2; random blocks of up to 8 over three tokens"
    ),
    domain=_blocks(),
    every=_words_along,
    examples=100,
)
S6 = Claim(
    id="S6",
    source="funnel-truncate, a reading of what SpecRouter's (2505.07680) intermediate levels pass upward",
    statement=S6_STATEMENT,
    expected="holds",
    because=(
        "The target reads a beginning of the same block and accepts the leading tokens that are its own; a "
        "shorter beginning cannot have more of them. So a third level can pay only by what it saves on the "
        "target's width, never by tokens (with forwards that cost the same at any width, never at all)."
    ),
    broken=(
        S6_STATEMENT.but(
            "The same under funnel-replace, where the middle's own token is passed on",
            _passes("funnel-replace", "none", -1),
        ),
        S6_STATEMENT.but("It never lowers them either", _passes("funnel-truncate", "none", 1)),
    ),
)
S20_STATEMENT = S6_STATEMENT.but(
    "Given the same block, the target accepts at least as many tokens a pass under funnel-replace as under "
    "funnel-truncate",
    _passes("funnel-replace", "funnel-truncate", 1),
    formula="accepted under funnel-replace >= accepted under funnel-truncate",
)
S20 = Claim(
    id="S20",
    source="the two lossless readings of a funnel, compared",
    statement=S20_STATEMENT,
    expected="holds",
    because=(
        "The target reads the same surviving tokens and one more, which it may accept if it accepted all of "
        "them. What that costs is one token more of width in every pass."
    ),
    broken=(
        S20_STATEMENT.but("At most as many", _passes("funnel-replace", "funnel-truncate", -1)),
        S20_STATEMENT.but(
            "funnel-replace never does worse than leaving the middle out",
            _passes("funnel-replace", "none", 1),
        ),
    ),
)

# S21: the same by rejection sampling, one place.

Three = tuple[Distribution, Distribution, Distribution]


def both_accept(p: Distribution, middle: Distribution, q: Distribution, corrected: bool = True) -> Fraction:
    """A token drawn from q comes through the middle and then the target, over every draw.

    The target weighs a survivor against what it is a draw of, min(middle, q) made to sum to 1 (S5c), or,
    if not ``corrected``, against q.
    """
    if not overlap(middle, q):
        return Fraction(0)
    drawn_from = surviving(np.array(middle, dtype=object), np.array(q, dtype=object)) if corrected else q
    total = Fraction(0)
    for token, chance in enumerate(q):
        if chance and middle[token]:
            through = chance * min(Fraction(1), middle[token] / chance)
            total += through * min(Fraction(1), p[token] / drawn_from[token])
    return total


def _sampled(corrected: bool, sign: int) -> Callable[[Three], Outcome]:
    def rule(case: Three) -> Outcome:
        p, middle, q = case
        both, alone = both_accept(p, middle, q, corrected), overlap(p, q)
        if (both - alone) * sign >= 0:
            return None
        return against(
            f"drafter {shown(q)}, middle {shown(middle)}, target {shown(p)}",
            f"through both: {number(both)}; through the target alone: {number(alone)}",
        )

    return rule


def _threes(level: int) -> Iterator[Three]:
    for size, parts in ((2, 4 + 2 * level), (3, 2 + level)):
        yield from product(all_distributions(size, parts), repeat=3)


S21_STATEMENT = Statement(
    words=(
        "The same by rejection sampling: at each place, a drafted token comes through middle and target no "
        "more often than through the target alone"
    ),
    formula="sum min(s p, min(q1, q2)) <= sum min(p, q1), s = sum min(q1, q2) (drafter q1, middle q2)",
    rule=_sampled(True, -1),
    over="all triples over 2 and 3 tokens with small denominators; random ones over 2 to 4 tokens",
    domain=st.integers(2, 4).flatmap(lambda n: st.tuples(*[distributions(n)] * 3)),
    every=_threes,
    examples=100,
)
S21 = Claim(
    id="S21",
    source="as S6, with the corrected proposal of S5c",
    statement=S21_STATEMENT,
    expected="holds",
    because=(
        "A token x survives the middle with probability m(x) = min(q1(x), q2(x)) and is then accepted with "
        "min(1, p(x) s / m(x)), so it comes through with min(m(x), s p(x)) <= min(q1(x), p(x)), as s <= 1."
    ),
    broken=(
        S21_STATEMENT.but("No less often", _sampled(True, 1)),
        S21_STATEMENT.but("No less often, survivors weighed against the drafter", _sampled(False, 1)),
    ),
)

CLAIMS = (S3, S3B, S3B_CYCLES, S3B_OUTPUTS, S3B_POOLED, S6, S20, S21)
