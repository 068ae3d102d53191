"""Which length rules keep rejection sampling lossless: criterion and first stops (L16, L16a, L16b, L16d)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from simspec.claims.base import Claim, Outcome, Statement, against
from simspec.claims.lossless.chance import LOSSLESS, OneByOne, Rule, difference
from simspec.claims.lossless.length_cases import (
    EVEN,
    THIRDS,
    UNEVEN,
    Case,
    cases_of,
    first_text_tokens,
    lossless,
    texts_of,
)
from simspec.claims.lossless.length_rules import first_uncertain, first_weak_top, stop_after, stop_before
from simspec.strategies.distributions import Distribution, normalised
from simspec.strategies.models import Table, Text

_STOPS = "confidence stops (Kangaroo, SpecDec++, HF's assistant) under rejection sampling"


def _every_threshold(level: int) -> Iterator[Case]:
    """Drafters that see the last token, blocks of 2; an even target, and one that is not."""
    for least in (Fraction(5, 8), Fraction(1))[: max(level, 1)]:
        for target in (EVEN, UNEVEN)[: level + 1]:
            for values in product(THIRDS, repeat=3):
                yield Case(least, 2, 3, OneByOne(Table(2, 1, values)), target)


OVER_THRESHOLDS = (
    "all drafters over 2 tokens that see the last one, in halves and thirds, two targets, threshold 5/8, "
    "blocks of 2; random models over 2 and 3 tokens that see up to 2, thresholds 3/8 to 1, blocks of 1 to 3"
)

# L16a, L16b

L16A_STATEMENT = Statement(
    words=(
        "Stopping after the first token that was drawn with a low probability, and submitting that token "
        "too, is lossless"
    ),
    formula=LOSSLESS,
    rule=lossless(stop_after),
    over=OVER_THRESHOLDS,
    domain=cases_of("threshold"),
    every=_every_threshold,
    examples=60,
)
L16A = Claim(
    id="L16a",
    source=_STOPS,
    statement=L16A_STATEMENT,
    expected="holds",
    because=(
        "Whether place i is submitted depends on the probabilities of the tokens drawn before it: it is "
        "settled when its own token is drawn. So the token there is an honest draw from q, and L16's "
        "reason applies."
    ),
    broken=(L16A_STATEMENT.but("... and so is stopping before it", lossless(stop_before)),),
)
L16B = Claim(
    id="L16b",
    source=_STOPS,
    statement=L16A_STATEMENT.but(
        "Stopping before the first token that was drawn with a low probability is lossless",
        lossless(stop_before),
    ),
    expected="refuted",
    because=(
        "A weak token is never verified: it is dropped, and the target draws anew at its place. The "
        "drafter's strong tokens get a second chance there."
    ),
    pinned=Case(Fraction(3, 4), 1, 2, OneByOne(UNEVEN), EVEN),
    repaired=L16A_STATEMENT,
    plot=first_text_tokens(stop_before),
)


# L16d


def _both_stops(case: Case) -> Outcome:
    return lossless(first_weak_top)(case) or lossless(first_uncertain)(case)


def _weak_itself(least: Fraction) -> Rule:
    """A stop by the greatest probability that also drops a drawn token which is not the greatest."""

    def rule(tokens: Text, rows: Sequence[Distribution]) -> int:
        stop = first_weak_top(least)(tokens, rows)
        return next((i for i in range(stop) if rows[i][tokens[i]] < max(rows[i])), stop)

    return rule


def _last_place(least: Fraction) -> Rule:
    """Submit all of the block if its last place is confident, nothing otherwise."""
    return lambda tokens, rows: len(tokens) if rows and max(rows[-1]) >= least else 0


L16D_STATEMENT = Statement(
    words=(
        "Stopping before the first place whose greatest probability is low, or whose entropy is high, is "
        "lossless"
    ),
    formula=LOSSLESS,
    rule=_both_stops,
    over=OVER_THRESHOLDS + "; entropies in floats, which only say where to stop",
    domain=cases_of("threshold"),
    every=_every_threshold,
    examples=50,
)
L16D = Claim(
    id="L16d",
    source="stops by top-1 probability or entropy (SVIP, CaDDTree 2606.01813) under rejection sampling",
    statement=L16D_STATEMENT,
    expected="holds",
    because=(
        "A place's distribution is a function of the tokens before it, and so is any number made of it. A "
        "first stop looks at the places up to i, not beyond."
    ),
    broken=(
        L16D_STATEMENT.but(
            "... also if a token that is not its place's most probable one is dropped",
            lossless(_weak_itself),
        ),
        L16D_STATEMENT.but("... also if the last place decides for the whole block", lossless(_last_place)),
    ),
)


# L16: the criterion


@dataclass(frozen=True)
class Lengths:
    """A rule for two drafts over two tokens: how many are submitted of the blocks 00, 01, 10, 11."""

    submitted: tuple[int, ...]

    def of(self, tokens: Text) -> int:
        # A block that the text's end has cut to one token is left alone.
        return self.submitted[2 * tokens[0] + tokens[1]] if len(tokens) == 2 else len(tokens)


# Drafters that see the token before, and one that does not: enough to tell every unsafe rule.
_WITNESSES = tuple(
    (OneByOne(Table(2, 1, tuple(map(normalised, drafter)))), Table(2, 1, tuple(map(normalised, target))))
    for drafter, target in (
        (((1, 1), (1, 1), (1, 1)), ((1, 1), (1, 1), (1, 1))),
        (((1, 1), (1, 0), (0, 1)), ((1, 1), (1, 1), (1, 1))),
        (((1, 1), (3, 1), (1, 2)), ((2, 1), (1, 3), (1, 1))),
        (((2, 1), (1, 1), (1, 0)), ((1, 2), (2, 1), (1, 1))),
    )
)


def _by_tokens_before(rule: Lengths) -> bool:
    """Whether place 1 is submitted never depends on the block, and place 2 on the first token only."""
    first = {n >= 1 for n in rule.submitted}
    second = [{n >= 2 for n in rule.submitted[2 * token : 2 * token + 2]} for token in range(2)]
    return len(first) == 1 and all(len(one) == 1 for one in second)


def _by_tokens_to(rule: Lengths) -> bool:
    """The same with the place's own token among those that may settle it."""
    return all(len({n >= 1 for n in rule.submitted[2 * t : 2 * t + 2]}) == 1 for t in range(2))


def _by_nothing(rule: Lengths) -> bool:
    return len(set(rule.submitted)) == 1


def _tells(criterion: Callable[[Lengths], bool]) -> Callable[[Lengths], Outcome]:
    def rule(lengths: Lengths) -> Outcome:
        lost: tuple[str, ...] = ()
        for drafter, target in _WITNESSES:
            case = Case(None, 2, 3, drafter, target)
            parted = difference(texts_of(case, lambda tokens, rows: lengths.of(tokens)), case.own)
            if parted:
                lost = (*case.lines()[1:], *parted)
                break
        if criterion(lengths) == (not lost):
            return None
        blocks = ", ".join(
            f"{n} of {a}{b}" for n, (a, b) in zip(lengths.submitted, product(range(2), repeat=2), strict=True)
        )
        said = "safe" if criterion(lengths) else "unsafe"
        return against(f"submitted: {blocks}; called {said}", *(lost or ("lossless for all models tried",)))

    return rule


L16_STATEMENT = Statement(
    words=(
        "A length rule keeps rejection sampling lossless for all models if and only if whether place i is "
        "submitted is settled by the tokens before place i"
    ),
    formula=f"{LOSSLESS}  <=>  [submitted >= i] is a function of x_1 .. x_{{i-1}}",
    rule=_tells(_by_tokens_before),
    over="all 81 rules for two drafts over two tokens, each against four pairs of models",
    every=lambda level: (Lengths(submitted) for submitted in product(range(3), repeat=4)),
)
L16 = Claim(
    id="L16",
    source=(
        "rejection sampling (2211.17192) with any rule that reads a drafted block, such as LibraSpec's "
        "(2608.08721)"
    ),
    statement=L16_STATEMENT,
    expected="holds",
    because=(
        "If: take place i, reached with tokens x_1 .. x_{i-1} emitted. Whether its draft is submitted is "
        "settled by them (and by luck that was drawn before it or apart from it), so given that it is, the "
        "draft is an honest draw from q, and accepting with min(1, p/q), else drawing from (p - q)+, emits "
        "a draw from p (S5). Given that it is not, the target draws from p. p either way; by induction the "
        "joint distribution is the target's. What happened in earlier cycles is settled before, so rules "
        "that learn from accepted lengths are covered. Only if: each of the 76 other rules submits some "
        "place depending on the token at it or, through a later one that depends on it, on what comes "
        "after; tokens that are dropped are drawn anew from p, so the favoured one comes out too often. "
        "One of four small pairs of models shows it for each rule."
    ),
    broken=(
        L16_STATEMENT.but(
            "... is settled by the tokens up to and including place i", _tells(_by_tokens_to), formula=""
        ),
        L16_STATEMENT.but("... does not depend on any drawn token", _tells(_by_nothing), formula=""),
    ),
)

CLAIMS = (L16, L16A, L16B, L16D)
