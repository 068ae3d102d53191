"""Invariants of the serving simulator: no column of its tables is free, and each of them can fail."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import pytest

from simspec.serving.recorder import EMISSIONS, OUTAGES, REQUESTS, STEPS
from tests.invariants.case import read, written
from tests.invariants.life import Life
from tests.invariants.running import live
from tests.invariants_serving import INVARIANTS, broken
from tests.nightly.drawing import FAMILIES, drawn

TABLES = {
    table.name: [column.name for column in table.columns] for table in (STEPS, EMISSIONS, REQUESTS, OUTAGES)
}
COUNTERS = ("arrived", "request_ns", "ended_at", "drafters_ns")
# Of an emission, replica and step say which step it is of: a run has that as its row.
TABLES["emissions"] = ["row", *TABLES["emissions"][2:]]
COLUMNS = [(table, column) for table, columns in TABLES.items() for column in columns]
EACH = 36
RICH = ("clusters", "scarce memory", "varied", "drafters apart", "long answers", "clusters that stay up")


@lru_cache
def lives() -> list[Life]:
    """Runs of several families in turn, in which something is done."""
    families = [[live(case) for case in drawn(family, EACH)[6:]] for family in RICH]
    return [life for turn in zip(*families, strict=True) for life in turn if len(life.steps) > 3]


def bumped(life: Life, table: str, column: str) -> Iterator[Life]:
    """The run with one value a little, or much, otherwise, in one of a few rows."""
    rows = getattr(life, table)
    for place in sorted({0, len(rows) // 2, len(rows) - 1} & set(range(len(rows)))):
        row = rows[place]
        for value in _others(row[column]):
            changed = [*rows[:place], row | {column: value}, *rows[place + 1 :]]
            yield dataclasses.replace(life, **{table: changed})


def _others(value: Any) -> list[Any]:
    if isinstance(value, str):
        return [name for name in ("finished", "rejected", "timed_out", "unfinished", "lost") if name != value]
    return [0, 1] if value is None else [value + by for by in (1, -1, 1000) if value + by >= 0]


def counted_wrong(life: Life) -> Iterator[Life]:
    """The run with a counter that is one more, or a result that is otherwise."""
    for name in COUNTERS:
        yield dataclasses.replace(life, **{name: getattr(life, name) + 1})
    yield dataclasses.replace(life, changed=["something"])
    yield dataclasses.replace(life, undeclared=["something"])
    for measured in _wrong(life.measured):
        yield dataclasses.replace(life, measured=measured, without_emissions=life.measured["itl_seconds"])


def _wrong(held: Any) -> Iterator[Any]:
    """A document with one of its numbers otherwise."""
    if isinstance(held, dict):
        for name, value in held.items():
            yield from (held | {name: wrong} for wrong in _wrong(value))
    elif isinstance(held, list):
        for place, value in enumerate(held):
            yield from ([*held[:place], wrong, *held[place + 1 :]] for wrong in _wrong(value))
    elif isinstance(held, int | float) and not isinstance(held, bool):
        yield from (held * 1.5 + 1, -held - 1)


def breaks(life: Life, laws: dict[str, Callable[[Life], list[str]]]) -> set[str]:
    """Laws that a record breaks; those that cannot even read it say nothing."""
    found = set()
    for name, law in laws.items():
        try:
            if law(life):
                found.add(name)
        except (LookupError, TypeError, ValueError):
            continue
    return found


def test_a_record_as_it_is_breaks_nothing():
    assert [(life.case, wrong) for life in lives() if (wrong := broken(life))] == []


@pytest.mark.parametrize(("table", "column"), COLUMNS)
def test_no_column_is_free(table, column):
    assert any(breaks(other, INVARIANTS) for life in lives() for other in bumped(life, table, column))


@pytest.mark.parametrize("counter", COUNTERS)
def test_no_counter_is_free(counter):
    life = next(life for life in lives() if life.drafters_ns == 0)
    assert breaks(dataclasses.replace(life, **{counter: getattr(life, counter) + 1}), INVARIANTS)


def test_every_invariant_can_fail():
    left = dict(INVARIANTS)
    for life in lives():
        others = (other for table, column in COLUMNS for other in bumped(life, table, column))
        for other in (*others, *counted_wrong(life)):
            for name in breaks(other, left):
                del left[name]
        if not left:
            return
    assert not left


@pytest.mark.parametrize("family", FAMILIES)
def test_a_case_is_written_as_it_is_read(family):
    for case in drawn(family, EACH):
        again = read(written(case))
        assert written(again) == written(case)
    assert again.serve().steps.equals(case.serve().steps)
