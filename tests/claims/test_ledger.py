"""Every claim of the ledger: its verdict, its repaired statement, its broken variants, its pinned case."""

from __future__ import annotations

import importlib
import os
import pkgutil

import pytest

from simspec import claims
from simspec.claims.all_claims import CLAIMS
from simspec.claims.base import Against, Claim, Effort, decide
from simspec.claims.ledger import entry
from simspec.claims.plain import plain

# The smallest enumerations, which hold every broken variant's undoing; `simspec check` tries more.
EFFORT = Effort(0, 0.5) if os.environ.get("CI", "").lower() == "true" else Effort(0, 0.1)


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.id)
def test_the_ledger_is_as_expected(claim: Claim) -> None:
    found = entry(claim, EFFORT)
    assert found.complaints == ()
    assert found.found.verdict == claim.expected
    assert found.as_json()["as_expected"]


@pytest.mark.parametrize("claim", [c for c in CLAIMS if c.pinned is not None], ids=lambda claim: claim.id)
def test_a_pinned_case_still_speaks_against_its_claim(claim: Claim) -> None:
    outcome = claim.statement.rule(claim.pinned)
    assert isinstance(outcome, Against)
    assert outcome.working, "a counterexample is worked through"
    plain(claim.pinned)


@pytest.mark.parametrize("claim", [c for c in CLAIMS if c.expected == "refuted"], ids=lambda claim: claim.id)
def test_a_refuted_claim_is_refuted_without_its_pinned_case(claim: Claim) -> None:
    """So that the counterexample is found by search, not only remembered."""
    assert decide(claim.statement, EFFORT, claim.id).verdict == "refuted"


def test_ids_are_unique_and_every_claim_is_told_apart() -> None:
    ids = [claim.id for claim in CLAIMS]
    assert len(set(ids)) == len(ids)
    words = [claim.statement.words for claim in CLAIMS]
    assert len(set(words)) == len(words)


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.id)
def test_a_claim_says_where_it_comes_from_and_why(claim: Claim) -> None:
    assert claim.source
    assert claim.because.endswith(".")
    assert not claim.statement.words.endswith(".")
    assert claim.statement.over


def test_no_module_keeps_a_claim_to_itself() -> None:
    listed = {id(claim) for claim in CLAIMS}
    for found in pkgutil.walk_packages(claims.__path__, "simspec.claims."):
        if found.name.startswith("simspec.claims.empirical"):
            continue
        module = importlib.import_module(found.name)
        own = [held for held in vars(module).values() if isinstance(held, Claim)]
        assert {claim.id for claim in own if id(claim) not in listed} == set(), found.name
