"""What a chain takes a token, exactly, under independent acceptance: what the readings of Eq. 7 approximate.

Symbols as in :mod:`simspec.theory.chains`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from simspec.theory.acceptance import emitted_tokens
from simspec.theory.numbers import Number, like, number, width_of


def exact(
    alphas: Sequence[Number],
    gamma: int,
    draft_seconds: Number,
    verify: Callable[[int, Number], Number],
    *,
    replace: bool = False,
) -> Number:
    """Expected seconds a token of a funnel under independent acceptance, widths priced one by one.

    The length of the block is followed as a Markov chain from level to level: of n tokens M_{i+1}
    keeps m < n with probability alpha^m (1 - alpha) and all with alpha^n, and adds one if ``replace``.
    Conventions of :mod:`simspec.speculation.cycle`: an intermediate that is handed nothing stays
    idle, the target always runs. Arguments as for :func:`simspec.theory.chains.reach`.
    """
    rates = [number(a) for a in alphas]
    total = gamma * number(draft_seconds)
    given = handed_up(rates, gamma, replace=replace)
    for i, lengths in enumerate(given, 2):
        for n, chance in lengths.items():
            if n or i == len(rates) + 1:
                total = total + chance * verify(i, width_of(rates[0], n + 1))
    return number(total / expected_tokens(rates[-1], given[-1]))


def handed_up(alphas: Sequence[Number], gamma: int, *, replace: bool = False) -> list[dict[int, Number]]:
    """The law of the block's length that each verifier M_2 .. M_N is handed: chances by length."""
    given = [{gamma: like(alphas[0], 1)}]
    for rate in alphas[:-1]:
        given.append(_passed_on(given[-1], rate, int(replace)))
    return given


def expected_tokens(alpha: Number, lengths: dict[int, Number]) -> Number:
    """Tokens that the target emits on average, its own one included, over the law of its block's length."""
    tokens = like(alpha, 0)
    for n, chance in lengths.items():
        tokens = tokens + chance * emitted_tokens(alpha, n)
    return tokens


def exact_rounds(
    alphas: Sequence[Number],
    gamma: int,
    rounds: int,
    draft_seconds: Number,
    verify: Callable[[int, Number], Number],
) -> Number:
    """As :func:`exact`, for three levels of which the target reads what ``rounds`` rounds made."""
    inner, outer = number(alphas[0]), number(alphas[1])
    made = _passed_on({gamma: like(inner, 1)}, inner, 1)
    lengths = {0: like(inner, 1)}
    for _ in range(rounds):
        longer: dict[int, Number] = {}
        for n, chance in lengths.items():
            for more, also in made.items():
                longer[n + more] = longer.get(n + more, like(inner, 0)) + chance * also
        lengths = longer
    total = rounds * (gamma * number(draft_seconds) + verify(2, width_of(inner, gamma + 1)))
    tokens = like(inner, 0)
    for n, chance in lengths.items():
        total = total + chance * verify(3, width_of(inner, n + 1))
        tokens = tokens + chance * emitted_tokens(outer, n)
    return number(total / tokens)


def exact_collected(
    alphas: Sequence[Number],
    gamma: int,
    collect: int,
    draft_seconds: Number,
    verify: Callable[[int, Number], Number],
) -> Number:
    """As :func:`exact`, for three levels nested as the decoder does: rounds until ``collect`` tokens.

    The last rounds draft no more than is still wanted less one. What the target reads is the
    middle's own text, so how much of it is accepted does not depend on M_1 at all.
    """
    inner, outer = number(alphas[0]), number(alphas[1])
    # Expected seconds until so many tokens are there.
    until = [like(inner, 0)]
    for left in range(1, collect + 1):
        drafts = min(gamma, left - 1)
        cost = drafts * number(draft_seconds) + verify(2, width_of(inner, drafts + 1))
        for more, chance in _passed_on({drafts: like(inner, 1)}, inner, 1).items():
            cost = cost + chance * until[left - more]
        until.append(cost)
    total = until[collect] + verify(3, width_of(inner, collect + 1))
    return number(total / emitted_tokens(outer, collect))


def _passed_on(lengths: dict[int, Number], alpha: Number, own: int) -> dict[int, Number]:
    """The law of what a verifier passes on, given the law of what it reads; ``own`` tokens are added."""
    found: dict[int, Number] = {}
    for n, chance in lengths.items():
        for kept in range(n + 1):
            share = chance * alpha**kept
            if kept < n:
                share = share * (1 - alpha)
            found[kept + own] = found.get(kept + own, like(alpha, 0)) + share
    return found
