"""Same seed, same files, and what a policy can see (M9), beside the claims M5b to M5d and M34."""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from joblib import Parallel, delayed

from simspec.serving.arrivals import ClosedLoop, Gamma, Poisson, Sizes, open_loop
from simspec.serving.config import Serving, Speculation
from simspec.serving.policies import Fixed, Goodput, View
from simspec.serving.pricing import Costs
from simspec.serving.request import Request
from simspec.serving.simulate import simulate
from simspec.serving.verdicts import Mean, Rates, Recorded
from simspec.strategies.serving import TEXTS
from simspec.strategies.small_engines import made_up_cost

COSTS = Costs(made_up_cost("device"), "target", "small")
RATES = Rates((0.8, 0.5, 0.3, 0.1))
RECORDED = TEXTS.map(lambda texts: texts.source())


def digest(seed: int) -> str:
    """Hash of the files that a simulation leaves."""
    serving = Serving(COSTS, 4, Speculation(Goodput(4), RATES))
    load = open_loop(Gamma(20.0, 2.0), Sizes.alike(30, 20, 40), seed)
    with tempfile.TemporaryDirectory() as folder:
        simulate(serving, load, seed, folder=Path(folder), emissions=True)
        files = sorted(Path(folder).iterdir())
        assert [f.name for f in files] == ["emissions.parquet", "requests.parquet", "steps.parquet"]
        return hashlib.sha256(b"".join(f.read_bytes() for f in files)).hexdigest()


def test_same_seed_same_bytes_whatever_the_number_of_workers():
    here = [digest(seed) for seed in (1, 2)]
    assert here == Parallel(n_jobs=2)(delayed(digest)(seed) for seed in (1, 2))
    assert here[0] != here[1]


def test_a_closed_loop_follows_completions():
    requests = [Request(i, 10, 10) for i in range(9)]
    runs = []
    for speculation in (None, Speculation(Fixed(3), Rates((1.0, 1.0, 1.0)))):
        table = simulate(Serving(COSTS, 2, speculation), ClosedLoop(2, requests), 0).requests
        runs.append(table["arrived_at_ns"].to_pylist())
    # Nine decoding steps against three that cost little more: the last request is sent much sooner.
    assert runs[1][-1] < 0.6 * runs[0][-1]


@given(st.integers(0, 1000), st.integers(0, 50), st.one_of(st.just(RATES), RECORDED))
def test_luck_belongs_to_the_place_in_the_text(seed, request_id, source):
    """However a request gets to a position, and in whatever slot, its drafts are worth the same there."""
    output = 12
    walked, seated = source.open(3, seed), source.open(5, seed)
    walked.seat(2, request_id, 1, output)
    most = np.full(5, 99)
    for position in range(1, output - 1):
        seated.seat(4, request_id, position, output)
        assert seated.accepted(most)[4] == walked.accepted(most[:3])[2]
        assert seated.available()[4] == walked.available()[2]
        walked.move(np.array([0, 0, 1]))


@given(st.integers(0, 1000), st.one_of(st.just(RATES), st.just(Mean((0.9, 0.4))), RECORDED))
def test_what_a_policy_sees_first_does_not_depend_on_the_verdict(seed, source):
    """M9: before anything was accepted, a policy sees the same whatever will be; afterwards it does not."""

    seen: list[list[tuple[object, ...]]] = []

    class Spy(Fixed):
        def length(self, view: View, state: int) -> tuple[int, int]:
            seen[-1].append((*view[:-1], *view.seconds(2)))
            return super().length(view, state)

    for other in (source, Rates((1.0, 1.0)), Rates((0.0, 0.0))):
        seen.append([])
        load = open_loop(Poisson(50.0), Sizes.alike(4, 5, 9), seed)
        simulate(Serving(COSTS, 2, Speculation(Spy(2), other)), load, seed)
    assert seen[0][0] == seen[1][0] == seen[2][0]
    assert seen[1] != seen[2]


@pytest.mark.parametrize("source", [RATES, Mean(RATES.survival)])
def test_sources_have_the_acceptance_that_they_are_given(source):
    """Mean emitted tokens a pass. Null: 1 + the rates. |z| < 3.3, a false alarm in 1,000."""
    serving = Serving(COSTS, 16, Speculation(Fixed(4), source))
    records = simulate(serving, open_loop(Poisson(1e4), Sizes.alike(200, 5, 60), 3), 3, emissions=True)
    rows = records.emissions.to_pandas()
    tokens = rows[rows["drafted_tokens"] == 4]["emitted_tokens"].to_numpy()
    assert len(tokens) > 3000
    assert abs(tokens.mean() - (1 + sum(RATES.survival))) < 3.3 * tokens.std() / len(tokens) ** 0.5
    if isinstance(source, Rates):
        for j, rate in enumerate(RATES.survival):
            assert abs((tokens > j + 1).mean() - rate) < 3.5 * (rate * (1 - rate) / len(tokens)) ** 0.5


def test_recorded_requests_are_not_in_phase():
    texts = Recorded.of_lengths([np.arange(40) % 5 + 1, np.ones(60)], 4).open(200, 7)
    for number in range(200):
        texts.seat(number, number, 0, 10)
    places, counts = np.unique(texts.place, return_counts=True)
    # 200 draws from 100 places: 86.6 of them met in expectation, standard deviation 3.1.
    assert len(places) > 74
    assert counts.max() < 12
