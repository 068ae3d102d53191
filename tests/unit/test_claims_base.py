"""How a statement is decided: every road to each verdict, and that each can be missed."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest
from hypothesis import strategies as st

from simspec.claims.all_claims import CLAIMS
from simspec.claims.base import UNMET, Claim, Effort, Outcome, Statement, against, decide
from simspec.claims.ledger import Entry, check, chosen, document, effort_of, entry
from simspec.claims.plain import number, plain, shown
from simspec.errors import BadInput


def small(x: int) -> Outcome:
    return None if x < 50 else against(f"{x} is at least 50")


WHOLE = Statement("every number is small", small, "0 to 99", every=lambda level: range(100))
DRAWN = Statement("every number is small", small, "0 to 1000", domain=st.integers(0, 1000))


def test_enumeration_stops_at_the_first_case_against() -> None:
    found = decide(WHOLE, Effort())
    assert (found.verdict, found.counterexample, found.cases, found.found_by) == (
        "refuted",
        50,
        51,
        "enumeration",
    )
    assert not found.exhaustive
    assert found.working == ("50 is at least 50",)


def test_search_shrinks_to_the_smallest_case_against() -> None:
    found = decide(DRAWN, Effort(), "x")
    assert (found.verdict, found.counterexample, found.found_by) == ("refuted", 50, "search")


def test_the_same_seed_tries_the_same_cases() -> None:
    seen: dict[int, list[int]] = {}
    for run, seed in enumerate((3, 3, 4)):
        kept = seen.setdefault(run, [])

        def look(x: int, kept: list[int] = kept) -> Outcome:
            kept.append(x)
            return None

        decide(DRAWN.but("seen", look), Effort(seed=seed), "x")
    assert seen[0] == seen[1]
    assert seen[0] != seen[2]


def test_holds_says_how_much_was_tried() -> None:
    found = decide(WHOLE.but("fine", lambda x: None), Effort())
    assert (found.verdict, found.cases, found.exhaustive, found.examples) == ("holds", 100, True, 0)
    found = decide(DRAWN.but("fine", lambda x: None), Effort(scale=0.5), "x")
    assert (found.verdict, found.cases, found.exhaustive, found.examples) == ("holds", 0, False, 150)


def test_a_pinned_case_is_tried_first_and_only_counts_if_it_still_speaks_against() -> None:
    assert decide(DRAWN, Effort(), "x", pinned=77).counterexample == 77
    found = decide(DRAWN, Effort(), "x", pinned=3)
    assert (found.counterexample, found.found_by) == (50, "search")


def test_a_premise_that_is_never_met_is_vacuous() -> None:
    found = decide(WHOLE.but("of giants", lambda x: UNMET), Effort())
    assert (found.verdict, found.unmet) == ("vacuous", 100)
    assert decide(WHOLE.but("of one", lambda x: UNMET if x else None), Effort()).verdict == "holds"


def test_what_holds_beyond_its_suppositions_too_is_vacuous() -> None:
    fine = DRAWN.but("less than 2000", lambda x: None if x < 2000 else against(str(x)))
    assert (
        decide(fine.but(fine.words, fine.rule, beyond=st.integers(1001, 1500)), Effort()).verdict == "vacuous"
    )
    assert (
        decide(fine.but(fine.words, fine.rule, beyond=st.integers(1001, 9000)), Effort()).verdict == "holds"
    )


def test_a_statement_without_cases_is_refused() -> None:
    with pytest.raises(ValueError, match="no cases"):
        Statement("nothing", small, "")


def claim(**changes: object) -> Claim:
    held: dict[str, object] = {
        "id": "X1",
        "source": "none",
        "statement": WHOLE.but("fine", lambda x: None),
        "expected": "holds",
        "because": "So.",
        "broken": (WHOLE,),
    }
    return Claim(**{**held, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"broken": ()}, "no broken variant"),
        ({"expected": "refuted", "pinned": 50}, "no repaired"),
        ({"expected": "refuted", "repaired": WHOLE}, "pins no counterexample"),
        ({"expected": "vacuous"}, "no repaired"),
    ],
)
def test_a_claim_that_could_not_come_out_otherwise_is_refused(changes: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        claim(**changes)


def complaints(**changes: object) -> tuple[str, ...]:
    found: Entry = entry(claim(**changes), Effort())
    return found.complaints


def test_an_entry_complains_of_all_that_is_not_as_the_claim_says() -> None:
    assert complaints() == ()
    assert complaints(statement=WHOLE) == ("expected holds, found refuted",)
    assert complaints(broken=(WHOLE.but("harmless", lambda x: None), WHOLE)) == ("not caught: harmless",)
    assert complaints(repaired=WHOLE) == ("the repaired statement: refuted",)
    vacuous = WHOLE.but("of giants", lambda x: UNMET)
    assert complaints(repaired=vacuous) == ("the repaired statement: vacuous",)


@pytest.mark.parametrize(
    ("budget", "level", "scale"), [("5s", 0, 1 / 12), ("1m", 1, 1.0), ("90s", 1, 1.5), ("1h", 2, 60.0)]
)
def test_a_budget_is_an_effort(budget: str, level: int, scale: float) -> None:
    found = effort_of(budget, 7)
    assert (found.level, found.seed) == (level, 7)
    assert found.scale == pytest.approx(scale)


@pytest.mark.parametrize("budget", ["", "5", "s", "0m", "-1s", "1.5m", "1d", "1m ", "9999999s"])
def test_a_budget_that_is_none_is_refused(budget: str) -> None:
    with pytest.raises(BadInput, match="budget"):
        effort_of(budget, 0)


def test_an_unknown_claim_is_refused_with_the_nearest() -> None:
    with pytest.raises(BadInput, match="did you mean 'S8b'"):
        chosen(["S8bb"])


def test_processes_do_not_change_what_is_found() -> None:
    picked = chosen(["S1", "S8b"])
    heard: list[str] = []

    def found(jobs: int) -> list[dict[str, object]]:
        entries = check(picked, Effort(0, 0.1), jobs, heard.append)
        return [{**e.as_json(), "seconds": 0, "repaired": None, "broken": None} for e in entries]

    assert found(1) == found(2)
    assert len(heard) == 4


def test_the_document_is_json_and_counts_mutants() -> None:
    entries = [
        entry(claim(), Effort()),
        entry(claim(id="X2", broken=(WHOLE.but("harmless", lambda x: None),)), Effort()),
    ]
    found = document(entries, "1m", 0)
    assert json.loads(json.dumps(found)) == found
    assert found["mutants"] == {"total": 2, "caught": 1}
    assert found["as_expected"] is False
    assert "hypothesis" in found["versions"]


def test_cases_are_written_as_they_are() -> None:
    case = {"p": (Fraction(1, 2), Fraction(2)), (0, 1): frozenset({3})}
    assert plain(case) == {"p": ["1/2", "2"], "(0, 1)": [3]}
    assert shown(case) == "p = (1/2, 2), (0, 1) = (3)"
    assert number(Fraction(5, 32)) == "5/32 = 0.15625"
    assert number(Fraction(3)) == "3"
    with pytest.raises(TypeError, match="cannot hold"):
        plain(lambda: 0)


def test_every_claim_can_be_named() -> None:
    assert chosen([c.id for c in CLAIMS]) == CLAIMS
