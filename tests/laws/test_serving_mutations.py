"""Engines and clusters that go wrong in one thing each: invariants notice, without a twin beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from simspec.serving.recorder import Steps
from tests import faulty_clusters, faulty_serving
from tests.faulty_serving import Patch, wrapped
from tests.invariants.case import read
from tests.invariants.running import live
from tests.invariants_serving import broken
from tests.nightly.drawing import drawn
from tests.nightly.fuzzing import examine, search

MOST_STEPS, CASES = 3000, 60
FAULTS = faulty_serving.FAULTS | faulty_clusters.FAULTS


def noticed(family: str, cases: int = CASES) -> Iterator[str]:
    """Invariants that are broken, scenario after scenario; crashes say nothing."""
    for case in drawn(family, CASES)[:cases]:
        try:
            wrong = broken(live(case))
        except Exception:
            continue
        yield from wrong


@pytest.fixture(autouse=True)
def bounded(monkeypatch: Patch) -> None:
    """An engine that goes wrong may go on for ever."""

    def add(rightly: Any, steps: Steps, *row: Any) -> None:
        if steps.count > MOST_STEPS:
            raise RuntimeError("it does not end")
        rightly(steps, *row)

    wrapped(monkeypatch, Steps, "add", add)


@pytest.mark.parametrize("family", sorted({*FAULTS.values()}))
def test_nothing_is_noticed_of_the_engine_as_it_is(family: str) -> None:
    assert list(noticed(family, 20)) == []


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_it_is_noticed(fault: Callable[[Patch], None], monkeypatch: Patch) -> None:
    family = FAULTS[fault]
    drawn(family, CASES)  # drawn by the engine as it is
    fault(monkeypatch)
    assert next(noticed(family), None) is not None


def test_a_search_makes_what_it_finds_smaller_and_writes_it_down(monkeypatch: Patch) -> None:
    faulty_serving.preempts_the_oldest(monkeypatch)
    found = search(5, 100)
    assert found.failure is not None
    case, wrong = found.failure
    again = read(case)
    assert len(again.sizes) == 2
    assert set(examine(again)) == set(wrong) == {"the_oldest_keeps_its_place"}
