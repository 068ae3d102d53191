"""Which length rules keep rejection sampling lossless (L16)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product

from hypothesis import strategies as st

from simspec.claims.base import Against, Claim, Outcome, Statement, against
from simspec.claims.lossless.chance import LOSSLESS, parting
from simspec.claims.lossless.cycles import MakeJudge, OneByOne, Rule
from simspec.claims.lossless.faulty_judges import hidden
from simspec.claims.lossless.length_cases import Case, lossless, texts_of
from simspec.speculation.verify import RejectionJudge
from simspec.strategies.distributions import normalised
from simspec.strategies.models import Chances, Table, Text, contexts


@dataclass(frozen=True)
class Lengths:
    """A rule that goes by the drafted tokens alone.

    Attributes:
        vocabulary, drafts: tokens, and places of a block.
        submitted: how many are submitted of each block, blocks in the order of their tokens: of 0 .. 0,
            then of 0 .. 1, and so on.
    """

    vocabulary: int
    drafts: int
    submitted: tuple[int, ...]

    def of(self, tokens: Text) -> int:
        # A block that the text's end has cut short is left alone.
        return dict(self.blocks())[tokens] if len(tokens) == self.drafts else len(tokens)

    def blocks(self) -> Iterator[tuple[Text, int]]:
        return zip(product(range(self.vocabulary), repeat=self.drafts), self.submitted, strict=True)

    def settled(self, place: int, seen: int) -> bool:
        """Whether the first ``seen`` tokens settle that ``place`` (1 ..) is submitted."""
        said: dict[Text, set[bool]] = {}
        for block, n in self.blocks():
            said.setdefault(block[:seen], set()).add(n >= place)
        return all(len(one) == 1 for one in said.values())


# A criterion: does it call the rule safe?
Criterion = Callable[[Lengths], bool]


def by_tokens_before(rule: Lengths) -> bool:
    """Whether each place's submission is settled by the tokens before it."""
    return all(rule.settled(i, i - 1) for i in range(1, rule.drafts + 1))


def _by_tokens_to(rule: Lengths) -> bool:
    """The same with the place's own token among those that may settle it."""
    return all(rule.settled(i, i) for i in range(1, rule.drafts + 1))


def _by_nothing(rule: Lengths) -> bool:
    return len(set(rule.submitted)) == 1


def _first_place(rule: Lengths) -> bool:
    return rule.settled(1, 0)


# Models that tell.

_PRIMES = (3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43)


def _prime(vocabulary: int, sees: int) -> Chances:
    """After each text another prime number for the probabilities' denominator; none of them is 0."""
    rest = vocabulary - 1
    return Table(
        vocabulary,
        sees,
        tuple(normalised((prime - rest,) + (1,) * rest) for prime in _PRIMES[: contexts(vocabulary, sees)]),
    )


def _refusing(vocabulary: int, sees: int) -> tuple[tuple[Chances, Chances], ...]:
    """Drafters that are often wrong: one that always says the last token, one that never says the first."""
    target = Table(vocabulary, 0, (normalised((2,) + (1,) * (vocabulary - 1)),))
    last = normalised((0,) * (vocabulary - 1) + (1,))
    one = Table(vocabulary, 0, (last,))
    size = contexts(vocabulary, sees) - 1
    weights = [tuple(1 + (k + t) % 3 for t in range(vocabulary)) for k in range(size)]
    other = Table(vocabulary, sees, (last, *map(normalised, weights)))
    return (one, target), (other, target)


def witnesses(rule: Lengths) -> Iterator[tuple[Chances, Chances]]:
    """Drafters and targets: one that tells every unsafe rule, and some that refuse drafts."""
    sees = rule.drafts - 1
    prime = _prime(rule.vocabulary, sees)
    yield prime, prime
    yield from _refusing(rule.vocabulary, sees)


def _tells(criterion: Criterion, judged: MakeJudge = RejectionJudge) -> Callable[[Lengths], Outcome]:
    def rule(lengths: Lengths) -> Outcome:
        made = Rule(lambda tokens, rows: lengths.of(tokens))
        lost: Case | None = None
        for drafter, target in witnesses(lengths):
            case = Case(None, lengths.drafts, lengths.drafts + 1, OneByOne(drafter), target)
            if parting(texts_of(case, made, judged), case.own) is not None:
                lost = case
                break
        if criterion(lengths) == (lost is None):
            return None
        worked = None if lost is None else lossless(lambda setting: made, judged)(lost)
        blocks = ", ".join(f"{n} of {''.join(map(str, block))}" for block, n in lengths.blocks())
        said = "safe" if criterion(lengths) else "unsafe"
        told = worked.working if isinstance(worked, Against) else ("lossless for all models tried",)
        return against(f"submitted: {blocks}; called {said}", *told)

    return rule


# Rules.


def safe_rules(vocabulary: int, drafts: int) -> Iterator[Lengths]:
    """Every rule whose places are settled by the tokens before them."""
    prefixes = [p for n in range(drafts) for p in product(range(vocabulary), repeat=n)]
    seen = set()
    for goes_on in product((False, True), repeat=len(prefixes)):
        on = dict(zip(prefixes, goes_on, strict=True))
        submitted = tuple(
            next((n for n in range(drafts) if not on[block[:n]]), drafts)
            for block in product(range(vocabulary), repeat=drafts)
        )
        if submitted not in seen:
            seen.add(submitted)
            yield Lengths(vocabulary, drafts, submitted)


_SAFE = {kind: tuple(safe_rules(*kind)) for kind in ((2, 3), (3, 2))}


def _every_rule(level: int) -> Iterator[Lengths]:
    # Two safe rules for long blocks first: what goes wrong with verification shows in them.
    yield from _SAFE[2, 3][-2:]
    yield from (Lengths(2, 2, submitted) for submitted in product(range(3), repeat=4))
    if level > 0:
        yield from _SAFE[2, 3][:-2]
        yield from _SAFE[3, 2]
    if level > 1:
        yield from (Lengths(3, 2, submitted) for submitted in product(range(3), repeat=9))


@st.composite
def _rules(draw: st.DrawFn) -> Lengths:
    """Any rule for three drafts over two tokens or two over three: a safe one but for some blocks."""
    safe = draw(st.sampled_from(_SAFE[draw(st.sampled_from(tuple(_SAFE)))]))
    changed = draw(
        st.dictionaries(st.integers(0, len(safe.submitted) - 1), st.integers(0, safe.drafts), max_size=4)
    )
    submitted = tuple(changed.get(i, n) for i, n in enumerate(safe.submitted))
    return Lengths(safe.vocabulary, safe.drafts, submitted)


L16_STATEMENT = Statement(
    words=(
        "A rule that submits some of a drafted block, going by the drafted tokens, keeps rejection sampling "
        "lossless for all models if and only if whether place i is submitted is settled by the tokens "
        "before place i"
    ),
    formula=f"{LOSSLESS}  <=>  [submitted >= i] is a function of x_1 .. x_{{i-1}}",
    rule=_tells(by_tokens_before),
    over=(
        "all 81 rules for two drafts over two tokens; all safe ones for three drafts over two tokens and for "
        "two over three (fewer at the smallest budget), and random others of these kinds; each against three "
        "pairs of models"
    ),
    domain=_rules(),
    every=_every_rule,
    examples=40,
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
        "that learn from accepted lengths are covered. Only if: take the least i with [submitted >= i] not "
        "settled by the tokens before place i, and such tokens x_1 .. x_{i-1}. Let drafter and target say "
        "the same, so that all that is submitted is accepted. Places before i are settled and, for these "
        "tokens, submitted; so the text begins with them only if they were drafted. With g(x) = "
        "P(submitted >= i | x_1 .. x_{i-1}, x), x follows with p(x) g(x) from the block and with p(x) (1 - "
        "mean g) from the target, in all p(x) (1 + g(x) - mean g): the target's only if g is constant. Let "
        "the probabilities after each text have a prime number of its own for their denominator, none of "
        "them 0. Then g(x) is a whole number over a product of primes that no other g(y) shares, so g is "
        "constant only if all g(x) are 0 or all are 1: if the place was settled. So one pair of models "
        "tells all unsafe rules, for any number of drafts and tokens."
    ),
    broken=(
        L16_STATEMENT.but(
            "... is settled by the tokens up to and including place i", _tells(_by_tokens_to), formula=""
        ),
        L16_STATEMENT.but("... does not depend on any drawn token", _tells(_by_nothing), formula=""),
        L16_STATEMENT.but("... if and only if that is so of place 1", _tells(_first_place), formula=""),
        *hidden(L16_STATEMENT, lambda judged: _tells(by_tokens_before, judged)),
    ),
)

CLAIMS = (L16,)
