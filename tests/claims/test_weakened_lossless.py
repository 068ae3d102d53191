"""Claims on losslessness notice when their rules are weakened.

A rule that compares less than it says must let a broken variant through, or leave a refuted statement
unrefuted: otherwise the ledger would be as content with the weaker rule as with the rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction

import pytest

from simspec.claims.base import Claim, Effort, decide
from simspec.claims.lossless import (
    acting,
    chance,
    early_emit,
    greedy,
    greedy_cases,
    intermediates,
    length_certain,
    length_criterion,
    length_learning,
    length_safety,
    length_scans,
    sampling,
    surviving,
)
from simspec.claims.lossless.chance import Texts, beginnings
from simspec.strategies.models import Text
from tests.weakened import Weakening

QUICK = Effort(0, 0.1)


def complaints(claim: Claim, likely: str) -> Iterable[str]:
    """What is not as the claim says; variants with the words ``likely`` come first."""
    for i, variant in sorted(enumerate(claim.broken), key=lambda one: likely not in one[1].words):
        if decide(variant, QUICK, f"{claim.id} broken {i}").verdict != "refuted":
            yield f"not caught: {variant.words}"
    if decide(claim.statement, QUICK, claim.id, claim.pinned).verdict != claim.expected:
        yield "another verdict"
    if claim.repaired is not None and decide(claim.repaired, QUICK, claim.id).verdict != "holds":
        yield "the repaired statement does not hold"


def content(claims: Iterable[Claim], likely: str = "") -> list[str]:
    """Claims that do not notice."""
    return [claim.id for claim in claims if next(iter(complaints(claim, likely)), None) is None]


# Whole texts are compared.

Chosen = Callable[[Text, Fraction, Fraction], bool]

# Whether a beginning counts as different, given its probability and the right one; and the variants that
# should go unnoticed. They do so as well where less still is compared, such as the first token alone.
LESS: dict[str, tuple[Chosen, str]] = {
    "only the first two tokens": (
        lambda text, ours, theirs: len(text) <= 2 and ours != theirs,
        "third place",
    ),
    "only the text of zeros": (
        lambda text, ours, theirs: not any(text) and ours != theirs,
        "do not begin with a 0",
    ),
    "with a tolerance of 1/20": (
        lambda text, ours, theirs: abs(ours - theirs) > Fraction(1, 20),
        "one block in a thousand",
    ),
}

# Those whose repaired statement is another claim's, with its variants, are left out.
COMPARING = [
    claim
    for module in (sampling, acting, length_safety, length_scans, length_certain, length_learning)
    for claim in module.CLAIMS
    if claim.id not in ("S5b", "L16b", "L16c")
]


def parting_by(differs: Chosen) -> Callable[[Texts, Texts], Text | None]:
    """``chance.parting`` with less of a comparison."""

    def parting(found: Texts, truth: Texts) -> Text | None:
        for length in range(1, max(map(len, (*found, *truth))) + 1):
            here, there = beginnings(found, length), beginnings(truth, length)
            for text in sorted({*here, *there}):
                if differs(text, here.get(text, Fraction(0)), there.get(text, Fraction(0))):
                    return text
        return None

    return parting


@pytest.mark.parametrize("less", LESS)
def test_every_claim_notices_when_texts_are_compared_less(less, monkeypatch):
    differs, likely = LESS[less]
    for module in (chance, acting, length_criterion):
        monkeypatch.setattr(module, "parting", parting_by(differs))
    assert content(COMPARING, likely) == []


def test_the_comparison_above_is_the_right_one_where_it_is_not_weakened(monkeypatch):
    for module in (chance, acting, length_criterion):
        monkeypatch.setattr(module, "parting", parting_by(lambda text, ours, theirs: ours != theirs))
    some = (acting.S32, early_emit.S34, length_safety.L16A)
    assert content(some) == [claim.id for claim in some]


# What else rules look at.

GREEDY = "if ours == case.own:"
TEXT = "if ours != case.own:"
COUNT = "if alone - one.accepted != cost(one):"
PASSES = "if found >= alone + more:"
TOLD = "if (lost is None) == safe(handed):"
SAID = "if criterion(lengths) == (lost is None):"
REACHED = "if ours == said and theirs == said_alone and ours <= most:"
STOPS = "return lambda case: by_top(case) or by_entropy(case)"
SURE = "return by_sample or compared(_step(case, rejected), own, case.lines)"

# (the module with the rule, a line of it, what is made of that line, the module of the claims, the claims)
WEAKER = [
    (greedy_cases, GREEDY, "if ours[:1] == case.own[:1]:", greedy, "S4 S4b"),
    (greedy_cases, GREEDY, "if ours[-1:] == case.own[-1:]:", greedy, "S4 S4b"),
    (greedy_cases, GREEDY, "if len(ours) == len(case.own):", greedy, "S4 S4b"),
    (greedy, "len(said) == 1 and said != {case.own[place]}", "said != {case.own[place]}", greedy, "S4b"),
    (intermediates, TEXT, "if False:", intermediates, "S4c"),
    (intermediates, COUNT, "if False:", intermediates, "S4c"),
    (intermediates, COUNT, "if alone < one.accepted:", intermediates, "S4c"),
    (intermediates, PASSES, "if found >= alone + more - 1:", intermediates, "S30"),
    (acting, TOLD, "if lost is None or not safe(handed):", acting, "S32"),
    (acting, TOLD, "if lost is not None or safe(handed):", acting, "S32"),
    (length_criterion, SAID, "if criterion(lengths) or lost:", length_criterion, "L16"),
    (length_criterion, SAID, "if not criterion(lengths) or not lost:", length_criterion, "L16"),
    (surviving, REACHED, REACHED.replace("ours == said and ", ""), surviving, "S35"),
    (surviving, REACHED, REACHED.replace(" and theirs == said_alone", ""), surviving, "S35"),
    (surviving, REACHED, REACHED.replace(" and ours <= most", ""), surviving, "S35"),
    (length_safety, STOPS, "return by_top", length_safety, "L16d"),
    (length_safety, STOPS, "return by_entropy", length_safety, "L16d"),
    (length_certain, SURE, "return by_sample", length_certain, "L16g"),
    (length_certain, SURE, SURE.replace("by_sample or ", ""), length_certain, "L16g"),
]


@pytest.mark.parametrize(
    ("module", "old", "new", "of", "ids"),
    WEAKER,
    ids=[f"{ids}: {old} becomes {new}" for _, old, new, _, ids in WEAKER],
)
def test_a_claim_notices_when_its_rule_is_weakened(module, old, new, of, ids, monkeypatch):
    assert content(Weakening("", module, old, new, ids, (of,)).claims(monkeypatch)) == []


def test_a_claim_is_content_with_its_own_rule(monkeypatch):
    """So that what is noticed above is the change, not the way it is made; one rule of each way."""
    for module, old, of, ids in (
        (greedy_cases, GREEDY, greedy, "S4 S4b"),
        (surviving, REACHED, surviving, "S35"),
    ):
        with monkeypatch.context() as patch:
            assert content(Weakening("", module, old, old, ids, (of,)).claims(patch)) == ids.split()
