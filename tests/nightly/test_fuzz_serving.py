"""No scenario breaks an invariant: a few with every test run, 100,000 with `make nightly`."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Sequence

import pytest
from joblib import Parallel, delayed

from tests.invariants_serving import INVARIANTS
from tests.nightly.fuzzing import CHUNK, Found, search
from tests.nightly.kinds import KINDS

FEW = 200
# Of so many scenarios, at least one has each option, and at least one comes to each event.
ONE_IN = 2000


def test_a_few_scenarios():
    """So few do not come to everything, but to most of it."""
    found = search(0, FEW)
    _nothing_is_broken([found])
    assert found.scenarios == FEW
    assert len(set(KINDS) - set(found.counts)) < len(KINDS) / 5


@pytest.mark.nightly
def test_many_scenarios(capsys):
    """FUZZ_SCENARIOS of them (100,000) from seed FUZZ_FIRST on (0), in FUZZ_JOBS processes (one a core).

    Seeds are independent: a search that was stopped goes on from the first seed that was not done.
    """
    scenarios, first, jobs = (
        int(os.environ.get(f"FUZZ_{name}") or usual)
        for name, usual in (("SCENARIOS", 100_000), ("FIRST", 0), ("JOBS", -1))
    )
    seeds = range(first, first + -(-scenarios // CHUNK))
    found: list[Found] = []
    begun = time.perf_counter()
    for one in Parallel(n_jobs=jobs, return_as="generator_unordered")(delayed(search)(n) for n in seeds):
        found.append(one)
        with capsys.disabled():
            sys.stderr.write(_progress(found, seeds, time.perf_counter() - begun))
            if one.failure is not None:
                sys.stderr.write(told(one))
    counts, differ = sum((one.counts for one in found), Counter[str]()), _that_differ(found)
    with capsys.disabled():
        sys.stderr.write(f"{differ} scenarios that differ, {len(INVARIANTS)} invariants; scenarios with\n")
        sys.stderr.writelines(f"{counts[name]:8} {name}\n" for name in KINDS)
    _nothing_is_broken(found)
    total = sum(one.scenarios for one in found)
    assert {name: counts[name] for name in KINDS if counts[name] < total / ONE_IN} == {}
    assert differ > 0.8 * total


def told(one: Found) -> str:
    """What a seed's scenario breaks, and how to run it again."""
    assert one.failure is not None
    case, wrong = one.failure
    lines = [f"{name}: {how}" for name, hows in wrong.items() for how in hows[:4]]
    how = "again: tests.nightly.fuzzing.examine(tests.invariants.case.read(case)), where case is"
    return "\n".join([f"seed {one.seed} breaks", *lines, how, case, ""])


def _progress(found: Sequence[Found], seeds: range, seconds: float) -> str:
    done, total = {one.seed for one in found}, sum(one.scenarios for one in found)
    goes_on = next((n for n in seeds if n not in done), seeds.stop)
    broken = sum(one.failure is not None for one in found)
    return f"{total} scenarios, {broken} broken; {seconds:.0f} s; goes on from seed {goes_on}\n"


def _that_differ(found: Sequence[Found]) -> int:
    return len(set().union(*(one.hashes for one in found)))


def _nothing_is_broken(found: Sequence[Found]) -> None:
    failures = [told(one) for one in found if one.failure is not None]
    assert not failures, "\n".join(failures)
