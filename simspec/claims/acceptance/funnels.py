"""What a middle model does to the tokens that the target accepts of a block (S6, S20, S21)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import product

import numpy as np
from hypothesis import strategies as st

from simspec.claims.acceptance.cases import Triple, alike
from simspec.claims.base import Claim, Outcome, Statement, against
from simspec.claims.plain import number, shown
from simspec.speculation.chains import Semantics
from simspec.speculation.cycle import Cycle, Verifier, run_cycle
from simspec.speculation.verify import Tokens as Words
from simspec.speculation.verify import surviving
from simspec.strategies.distributions import Distribution, all_distributions, overlap

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


def _sampled(corrected: bool, sign: int) -> Callable[[Triple], Outcome]:
    def rule(case: Triple) -> Outcome:
        p, middle, q = case
        both, alone = both_accept(p, middle, q, corrected), overlap(p, q)
        if (both - alone) * sign >= 0:
            return None
        return against(
            f"drafter {shown(q)}, middle {shown(middle)}, target {shown(p)}",
            f"through both: {number(both)}; through the target alone: {number(alone)}",
        )

    return rule


def _threes(level: int) -> Iterator[Triple]:
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
    domain=alike(3),
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

CLAIMS = (S6, S20, S21)
