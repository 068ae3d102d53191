"""Search for scenarios that break an invariant: one seed, so many scenarios, the same in every run."""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import blake2b

from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings

from simspec.serving.stride import Stride
from tests.invariants.case import Case, written
from tests.invariants.running import live
from tests.invariants_serving import broken
from tests.nightly.coverage import events, options
from tests.nightly.drawing import FUZZED

CHUNK = 250


@dataclass
class Found:
    """What a seed came to.

    Attributes:
        scenarios: examined before the first that breaks something, or all.
        hashes: of the scenarios, to count those that are alike once.
        counts: in how many of them an option was set, or something happened.
        failure: the smallest scenario that breaks something, as text that makes it again, and what it breaks.
    """

    seed: int
    scenarios: int = 0
    hashes: set[bytes] = field(default_factory=set)
    counts: Counter[str] = field(default_factory=Counter)
    failure: tuple[str, dict[str, list[str]]] | None = None


def examine(case: Case, counts: Counter[str] | None = None, part: int = 0) -> dict[str, list[str]]:
    """Invariants that a scenario breaks, and how; counts what it went through, where that is asked for.

    Schemas and figures after a warm-up are looked at in every fourth ``part``, bytes of files in every 20th.
    """
    try:
        with _strides() as together:
            life = live(case, thorough=part % 4 == 0)
        wrong = broken(life)
        if part % 20 == 0 and case.digest() != case.digest():
            wrong["same seed, same files"] = ["two runs wrote different bytes"]
    except Exception as error:
        return {"no exception": [repr(error), traceback.format_exc()]}
    if counts is not None:
        counts.update({*options(case), *events(life), *(["several steps at once"] if together else [])})
    return wrong


@contextmanager
def _strides() -> Iterator[list[int]]:
    """How many steps were computed at once, each time."""
    together: list[int] = []
    plainly = Stride.apply

    def apply(stride: Stride, *args: object) -> None:
        together.append(len(stride.ends))
        plainly(stride, *args)  # type: ignore[arg-type]

    Stride.apply = apply  # type: ignore[method-assign, assignment]
    try:
        yield together
    finally:
        Stride.apply = plainly  # type: ignore[method-assign]


def search(number: int, scenarios: int = CHUNK) -> Found:
    """Draw so many scenarios of a seed and examine them; the first that breaks something is made smaller."""
    found = Found(number)

    @seed(number)
    @settings(
        max_examples=scenarios,
        phases=[Phase.generate, Phase.shrink],
        database=None,
        deadline=None,
        derandomize=False,
        report_multiple_bugs=False,
        print_blob=False,
        verbosity=Verbosity.quiet,
        suppress_health_check=list(HealthCheck),
    )
    @given(FUZZED)
    def look(case: Case) -> None:
        text = written(case)
        if found.failure is None:
            number = blake2b(text.encode(), digest_size=8).digest()
            wrong = examine(case, found.counts, int.from_bytes(number))
            found.scenarios += 1
            found.hashes.add(number)
        else:  # it is being made smaller
            wrong = examine(case)
        if wrong:
            found.failure = text, wrong
            raise AssertionError("broken")

    with suppress(AssertionError):  # what it was is kept
        look()
    return found
