"""Requests that begin together are a lock-step batch: engine and replay agree on cycles and their time."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from simspec.compare.costs import open_cost
from simspec.cost.models import read_affine
from simspec.replay.lockstep import price
from simspec.replay.trajectories import run
from simspec.serving.arrivals import OpenLoop
from simspec.serving.config import Serving, Speculation
from simspec.serving.policies import Fixed
from simspec.serving.pricing import Costs
from simspec.serving.request import Request
from simspec.serving.simulate import simulate
from simspec.serving.verdicts import Recorded, _Texts
from simspec.speculation.chains import Chain
from simspec.speculation.lengths import Static
from simspec.traces.index import load_trace

PROJECT = Path(__file__).parents[2]
TOKENS = 40


@pytest.fixture(scope="module")
def trace():
    return load_trace(PROJECT / "traces" / "smollm2-cpu").shortened(TOKENS)


@dataclass(frozen=True)
class InOrder:
    """The recorded verdicts of some prompts, request i at the beginning of the i-th."""

    recorded: Recorded

    def open(self, slots: int, seed: int) -> _Texts:
        texts = _Texts(self.recorded, slots, seed)
        texts._first = lambda request_id: int(self.recorded.offsets[request_id])  # type: ignore[method-assign]
        return texts


def cut(trace, drafter: str, prompts: np.ndarray) -> Recorded:
    """Some prompts' texts, of TOKENS tokens each."""
    whole = Recorded.of_trace(trace, drafter)
    flat = np.concatenate([whole.offsets[p] + np.arange(TOKENS) for p in prompts])
    return Recorded(np.arange(len(prompts) + 1) * TOKENS, whole.matched[flat], whole.available[flat])


@pytest.mark.parametrize("cost_name", ["float32", "h100"])
@pytest.mark.parametrize(("drafter", "length"), [("skip-6", 0), ("skip-6", 1), ("skip-6", 4), ("ngram", 6)])
def test_lock_step(trace, cost_name, drafter, length):
    sizes = np.diff(trace.offsets)
    prompts = np.flatnonzero(sizes >= TOKENS)[:16]
    assert len(prompts) == 16
    cost = (
        open_cost(trace, "float32")
        if cost_name == "float32"
        else read_affine(PROJECT / "calibrate" / "h100-llama-3.1-8b.toml")
    )
    lookup = trace.is_lookup(drafter)
    serving = Serving(
        Costs(cost, trace.target, drafter, lookup=lookup),
        slots=len(prompts),
        speculation=Speculation(Fixed(length), InOrder(cut(trace, drafter, prompts))),
        token_budget=1 << 20,
    )
    prompt_tokens = trace.context[trace.offsets[prompts]]
    load = [(0, Request(i, int(n), TOKENS)) for i, n in enumerate(prompt_tokens)]
    steps = simulate(serving, OpenLoop(load), 0).steps.to_pandas()
    decoding = steps[steps["decoding_requests"] > 0]

    # The engine's prompts give the first token, which replay's first cycle would.
    chain = Chain((drafter, trace.target)) if length else Chain((trace.target,))
    runs = run(trace, chain, Static(length) if length else None, trace.offsets[prompts] + 1)
    assert decoding["decoding_requests"].tolist() == runs.active.sum(axis=0).tolist()
    for ours, theirs in (("drafted", "drafted"), ("emitted", "emitted"), ("context", "context")):
        assert decoding[f"{ours}_tokens"].tolist() == getattr(runs, theirs).sum(axis=0, dtype=int).tolist()
    times = price(runs, np.arange(len(prompts))[None], [cost], lookup=lookup)[0]
    parts = decoding[["draft_ns", "verify_ns", "overhead_ns"]].to_numpy().sum()
    # Each forward and each overhead is rounded to a whole nanosecond.
    rounded = (2 + length) * len(decoding)
    assert abs(parts - times.seconds[0] * 1e9) <= rounded
