"""Each cycle's own best ratio against the long run, for cycles of several kinds (L17, L17b)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from itertools import combinations_with_replacement, product

from simspec.claims.base import Claim, Outcome, Plot, Statement, against
from simspec.claims.plain import number, shown
from simspec.claims.scheduling.kinds import ONE, Kinds, kinds_grid, random_kinds, told
from simspec.strategies.costs import affine
from simspec.theory import renewal


def _chosen(worth: list[list[Fraction]]) -> Iterator[tuple[int, ...]]:
    """Every policy that takes one of each kind's best lengths."""
    return product(*([d for d, w in enumerate(row) if w == max(row)] for row in worth))


def _own_ratio(case: Kinds) -> Outcome:
    ratios = [
        [x / t for x, t in zip(*row, strict=True)] for row in zip(case.tokens, case.curves, strict=True)
    ]
    # Where ratios tie, the rule may take the luckiest.
    found, lengths = max((case.rate(choice), choice) for choice in _chosen(ratios))
    best, policy = case.best()
    if found == best:
        return None
    rows = [
        f"{one}; best ratio at {d}, {number(x[d] / t[d])} tokens a second"
        for one, x, t, d in zip(told(case), case.tokens, case.curves, lengths, strict=True)
    ]
    return against(
        *rows,
        f"lengths {shown(lengths)}, each the best of its kind, make {number(found)} tokens a second in the "
        "long run",
        f"lengths {shown(policy)} make {number(best)}",
    )


def _one_step(case: Kinds) -> Fraction:
    """The rate after one step of Dinkelbach's iteration from plain decoding."""
    first = case.rate((0,) * len(case.weights))
    return case.rate(renewal.choices_at(first, case.tokens, case.curves))


def _dinkelbach(case: Kinds) -> Fraction:
    return renewal.best_rate(case.weights, case.tokens, case.curves)


def _static_rate(case: Kinds) -> Fraction:
    return case.best_static()[0]


def _least_price(case: Kinds) -> Fraction:
    """The least price of a second at which the best policy is still among the choices.

    A longer length then ties in some kind; 0 where nothing longer is worth anything.
    """
    turns = [
        (x[longer] - x[d]) / (t[longer] - t[d])
        for x, t, d in zip(case.tokens, case.curves, case.best()[1], strict=True)
        for longer in range(len(x))
        if t[longer] > t[d]
    ]
    return max(turns, default=Fraction(0))


def _priced(
    case: Kinds,
    priced_at: Callable[[Kinds], Fraction] | None = None,
    iterated: Callable[[Kinds], Fraction] = _dinkelbach,
) -> Outcome:
    """Whether every choice at the price makes the best rate, and the iteration finds that rate.

    Args:
        priced_at: what a second is taken to be worth; the best rate by default.
        iterated: the rate that an iteration ends at.
    """
    best, policy = case.best()
    price = best if priced_at is None else priced_at(case)
    worth = [
        [x - price * t for x, t in zip(*row, strict=True)]
        for row in zip(case.tokens, case.curves, strict=True)
    ]
    rates = {case.rate(choice) for choice in _chosen(worth)}
    if rates == {best} and iterated(case) == best:
        return None
    return against(
        *told(case),
        f"lengths {shown(policy)} make {number(best)} tokens a second, the most of all",
        f"with a second priced at {number(price)} tokens, the lengths chosen make "
        f"{', or '.join(number(rate) for rate in sorted(rates))}; the iteration ends at "
        f"{number(iterated(case))}",
    )


def _unseen(case: Kinds, mean_of_ratios: bool = False, change: Fraction = Fraction(0)) -> Outcome:
    """One length for all kinds, against every mixture of lengths over up to four cycles.

    Args:
        mean_of_ratios: chooses the length by E[X / T].
        change: part of its seconds that a cycle takes less if its length is not the last one's.
    """
    kinds = range(len(case.weights))
    lengths = range(len(case.accepted[0]) + 1)
    total = sum(case.weights)

    def mean(values: list[Fraction]) -> Fraction:
        return sum((w * v for w, v in zip(case.weights, values, strict=True)), Fraction(0)) / total

    tokens = [mean([case.tokens[i][d] for i in kinds]) for d in lengths]
    seconds = [mean([case.curves[i][d] for i in kinds]) for d in lengths]
    if mean_of_ratios:
        judged = [mean([case.tokens[i][d] / case.curves[i][d] for i in kinds]) for d in lengths]
    else:
        judged = [x / t for x, t in zip(tokens, seconds, strict=True)]
    chosen = judged.index(max(judged))

    def rate(cycles: tuple[int, ...]) -> Fraction:
        taken = sum((seconds[d] for d in cycles), Fraction(0))
        if change:
            # In turn, over and over: the first one follows the last.
            turned = zip((cycles[-1], *cycles[:-1]), cycles, strict=True)
            taken -= change * sum(seconds[d] for last, d in turned if last != d)
        return sum((tokens[d] for d in cycles), Fraction(0)) / taken

    best, mixture = max(
        (rate(cycles), cycles) for n in range(1, 5) for cycles in combinations_with_replacement(lengths, n)
    )
    if tokens[chosen] / seconds[chosen] == best:
        return None
    return against(
        f"mean tokens {shown(tuple(tokens))}, mean seconds {shown(tuple(seconds))}",
        f"chosen length {chosen}: {number(tokens[chosen] / seconds[chosen])} tokens a second",
        f"lengths {shown(mixture)} in turn: {number(best)}",
    )


def _rates_by_length(case: Kinds) -> Plot:
    lengths = range(len(case.accepted[0]) + 1)
    series = {
        f"kind {i + 1} alone": tuple(float(x[d] / t[d]) for d in lengths)
        for i, (x, t) in enumerate(zip(case.tokens, case.curves, strict=True))
    }
    series["best long-run rate"] = tuple(float(case.best()[0]) for _ in lengths)
    return Plot(
        "Tokens per second of a cycle by its length",
        "line",
        "drafts",
        "tokens per second",
        tuple(lengths),
        series,
    )


OVER_KINDS = (
    "two equally likely kinds, acceptance in fifths, up to 2 drafts, affine cost; random ones: up to 3 "
    "kinds, 3 drafts, any weights and rising costs; all policies of each"
)
L17_STATEMENT = Statement(
    words=(
        "Choosing in each cycle the length of best expected tokens per second in it maximises long-run "
        "tokens per second"
    ),
    formula="d_i = argmax_d X_i(d) / T(d) maximises sum w_i X_i(d_i) / sum w_i T(d_i)",
    rule=_own_ratio,
    over=OVER_KINDS,
    domain=random_kinds(),
    every=kinds_grid,
    examples=100,
)
L17_REPAIRED = L17_STATEMENT.but(
    "Choosing in each cycle a length that maximises E[tokens] - lambda T, any of them where several do, "
    "maximises long-run tokens per second, if lambda is the best long-run rate; Dinkelbach's iteration finds "
    "that",
    _priced,
    formula="d_i = argmax_d X_i(d) - lambda T(d), lambda = max over policies of sum w_i X_i / sum w_i T",
)
L17 = Claim(
    id="L17",
    source="the objective of LibraSpec (2608.08721) Eq. 2 and of its oracle, taken cycle by cycle",
    statement=L17_STATEMENT,
    expected="refuted",
    because=(
        "A second is worth what it would make elsewhere: the long-run rate. In a poor cycle the best own "
        "ratio is below that, so its drafts cost more than they bring; in a rich one above it, so it stops "
        "too early. The repaired statement: every policy has sum w_i (X_i - lambda T_i) <= 0, and the best "
        "one 0; a choice that maximises each term reaches 0, and is therefore as fast."
    ),
    pinned=Kinds((ONE, ONE), ((ONE,), (Fraction(2, 5),)), (affine(Fraction(3), ONE, 1),)),
    repaired=L17_REPAIRED,
    broken=(
        L17_REPAIRED.but(
            "... with lambda the best rate of one length for all", partial(_priced, priced_at=_static_rate)
        ),
        L17_REPAIRED.but(
            "... with lambda any price at which the best policy is among the choices, also one where another "
            "ties with it",
            partial(_priced, priced_at=_least_price),
        ),
        L17_REPAIRED.but(
            "... with lambda what one step of Dinkelbach's iteration finds from plain decoding",
            partial(_priced, iterated=_one_step),
        ),
    ),
    plot=_rates_by_length,
)
L17B_STATEMENT = Statement(
    words=(
        "Where cycles cannot be told apart, one length for all, of best mean tokens over mean time, is as "
        "fast as any mixture of lengths"
    ),
    formula="max_d E[X(d)] / E[T(d)] >= sum_c E[X(d_c)] / sum_c E[T(d_c)] for all d_1 .. d_n",
    rule=_unseen,
    over=f"{OVER_KINDS}, each with its own costs; mixtures over up to 4 cycles",
    domain=random_kinds(own_costs=True),
    every=lambda level: kinds_grid(min(level, 1) - 1, curves=2),
    examples=60,
)
L17B = Claim(
    id="L17b",
    source="L17 for cycles that are i.i.d. and indistinguishable",
    statement=L17B_STATEMENT,
    expected="holds",
    because=(
        "A mixture's rate is a mediant of the single lengths' rates, so it lies between the least and the "
        "greatest."
    ),
    broken=(
        L17B_STATEMENT.but(
            "... of best mean of tokens over time, E[X/T]", partial(_unseen, mean_of_ratios=True)
        ),
        L17B_STATEMENT.but(
            "... even if a cycle takes a tenth less when its length is not the last one's",
            partial(_unseen, change=Fraction(1, 10)),
        ),
    ),
)


CLAIMS = (L17, L17B)
