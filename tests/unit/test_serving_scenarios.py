"""Small serving scenarios: that drawing and listing them reaches what is to be tested."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import Phase, given, settings

from simspec.claims.plain import plain
from simspec.scenario.itl import ends_of
from simspec.serving.config import Serving
from simspec.serving.pricing import Costs
from simspec.serving.request import Outcome
from simspec.serving.simulate import Records
from simspec.serving.stride import Stride
from simspec.strategies.serving import (
    TEXTS,
    all_scenarios,
    impatient,
    long_answers,
    scarce_memory,
    scenarios,
)
from simspec.strategies.small_engines import Scenario, Setup, made_up_cost, serve


def total(records: Records, column: str) -> int:
    """Sum of a column of steps."""
    return sum(records.steps[column].to_pylist())


def starts(records: Records) -> list[int]:
    """Instants at which steps begin."""
    found: list[int] = records.steps["started_at_ns"].to_pylist()
    return found


REACHED = {
    "preempts a row": lambda r: total(r, "preempted_requests") > 0,
    "swaps": lambda r: total(r, "swap_ns") > 0,
    "rejects": lambda r: r.outcomes[Outcome.REJECTED] > 0,
    "times out": lambda r: r.outcomes[Outcome.TIMED_OUT] > 0,
    "stops in the middle": lambda r: r.outcomes[Outcome.UNFINISHED] > 0,
    "stands idle": lambda r: any(a > b for a, b in zip(starts(r)[1:], ends_of(r.steps), strict=False)),
    "accepts drafts": lambda r: total(r, "accepted_tokens") > 0,
    "refuses drafts": lambda r: total(r, "accepted_tokens") < total(r, "drafted_tokens"),
    "reads prompts while others decode": lambda r: any(
        a and b
        for a, b in zip(
            r.steps["decoding_requests"].to_pylist(), r.steps["prefilling_requests"].to_pylist(), strict=True
        )
    ),
}
REACHED_BY_CHANCE = REACHED | {
    "accepts many drafts": lambda r: total(r, "accepted_tokens") > 3,
    "refuses many drafts": lambda r: total(r, "accepted_tokens") < total(r, "drafted_tokens") - 3,
    "drafts, then does not": lambda r: len(set(r.steps["draft_length_tokens"].to_pylist())) > 2,
    "has the drafter's memory full": lambda r: max(r.steps["drafter_blocks"].to_pylist(), default=0) > 8,
}


@pytest.fixture(scope="module")
def reached() -> set[str]:
    """What 1,000 scenarios at most come to; which are drawn hangs on the modules that are loaded."""
    found: set[str] = set()

    @settings(max_examples=1000, derandomize=True, database=None, phases=[Phase.generate])
    @given(scenarios())
    def look(scenario: Scenario) -> None:
        if len(found) == len(REACHED_BY_CHANCE):
            return
        records = serve(scenario)
        found.update(what for what, happened in REACHED_BY_CHANCE.items() if happened(records))

    look()
    return found


@pytest.mark.parametrize("what", REACHED_BY_CHANCE)
def test_scenarios_reach(reached: set[str], what: str) -> None:
    assert what in reached


@pytest.mark.parametrize("what", REACHED)
def test_listed_scenarios_reach(what: str) -> None:
    assert any(REACHED[what](serve(s)) for s in all_scenarios(0))


@pytest.mark.parametrize("level", [0, 1, 2])
def test_listed_scenarios_come_once_and_few_requests_first(level: int) -> None:
    found = list(all_scenarios(level))
    assert len(set(found)) == len(found)
    special = len(list(scarce_memory(level))) + len(list(impatient(level)))
    counts = [len(s.sizes) for s in found[:-special]]
    assert counts == sorted(counts)
    assert counts[0] == 1
    assert counts[-1] == (3 if level == 2 else 2)


@given(scenarios(open_loop=True, memory=False))
def test_bounds_are_kept(scenario: Scenario) -> None:
    engine = scenario.setup
    assert (scenario.clients, scenario.until) == (0, None)
    assert (engine.queue_limit, engine.patience_ns) == (None, None)
    assert (engine.memory.target_blocks, engine.memory.drafter_blocks) == (None, None)


def test_most_long_answers_are_computed_several_steps_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    together: list[int] = []
    plainly = Stride.apply
    monkeypatch.setattr(Stride, "apply", lambda s, *a: (together.append(len(s.ends)), plainly(s, *a)))
    strided: list[bool] = []

    @settings(max_examples=60, derandomize=True, database=None, phases=[Phase.generate])
    @given(long_answers())
    def look(scenario: Scenario) -> None:
        together.clear()
        serve(scenario)
        strided.append(max(together, default=0) > 3)

    look()
    assert sum(strided) > len(strided) / 2


@given(scenarios())
def test_a_scenario_is_data(scenario: Scenario) -> None:
    assert plain(scenario)["sizes"] == [list(size) for size in scenario.sizes]
    assert hash(scenario) == hash(scenario)
    assert str(scenario.setup.slots) in str(scenario)


def test_an_engine_that_is_ready_made_is_no_data() -> None:
    ready = Scenario(Serving(Costs(made_up_cost("ticks"), "target"), 1), 0, ((1, 1),), (0,))
    assert ready.serving.slots == 1
    with pytest.raises(ValueError, match="not data"):
        _ = ready.setup
    assert ready.on(Setup(3)).setup.slots == 3


@given(TEXTS)
def test_texts_become_verdicts(texts) -> None:
    source = texts.source()
    assert source.offsets[-1] == sum(len(t) for t in texts.emitted)


def test_listing_scenarios_loads_no_tables() -> None:
    code = (
        "import sys, simspec.strategies.serving as s; list(s.all_scenarios(0)); "
        "print(*({'pandas', 'pyarrow'} & set(sys.modules)))"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert loaded.stdout.split() == []
