"""Length rules row by row: requests that begin together are a lock-step batch, in engine and replay."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from simspec.compare.costs import open_cost
from simspec.cost.models import AffineCost, read_affine
from simspec.replay.lockstep import price
from simspec.replay.pricing import two_level_seconds
from simspec.replay.trajectories import run
from simspec.serving.arrivals import OpenLoop
from simspec.serving.config import Serving, Speculation
from simspec.serving.pricing import Costs
from simspec.serving.request import Request
from simspec.serving.row_policies import ByRule
from simspec.serving.simulate import simulate
from simspec.serving.verdicts import Blocks, Recorded, Verdicts, _Texts
from simspec.speculation.chains import Chain
from simspec.speculation.lengths import G4, ExactMarginal, LengthRule, Static
from simspec.traces.index import Trace, load_trace

PROJECT = Path(__file__).parents[2]
TOKENS = 40
H100 = read_affine(PROJECT / "calibrate" / "h100-llama-3.1-8b.toml")


@pytest.fixture(scope="module")
def trace() -> Trace:
    return load_trace(PROJECT / "traces" / "smollm2-cpu").shortened(TOKENS)


@dataclass(frozen=True)
class InOrder:
    """The recorded verdicts of some prompts, request i at the beginning of the i-th."""

    recorded: Recorded
    unconfident = None

    def open(self, slots: int, seed: int) -> Verdicts:
        texts = _Texts(self.recorded, slots, seed)
        texts._first = lambda request_id: int(self.recorded.offsets[request_id])  # type: ignore[method-assign]
        return texts


def cut(trace: Trace, drafter: str, prompts: np.ndarray) -> Recorded:
    """Some prompts' texts, of TOKENS tokens each."""
    whole = Recorded.of_trace(trace, drafter)
    assert whole.blocks is not None
    flat = np.concatenate([whole.offsets[p] + np.arange(TOKENS) for p in prompts])
    blocks = Blocks(*(part[flat] for part in whole.blocks))
    offsets = np.arange(len(prompts) + 1) * TOKENS
    return Recorded(offsets, whole.matched[flat], whole.available[flat], blocks)


RULES: list[tuple[LengthRule, int]] = [(Static(3), 3), (G4(2, 2, 1, 8), 8), (ExactMarginal(8), 8)]


@pytest.mark.parametrize("drafter", ["skip-2", "skip-6", "ngram"])
@pytest.mark.parametrize(("rule", "longest"), RULES, ids=lambda x: type(x).__name__)
def test_lock_step(trace, drafter, rule, longest):
    """Tokens drafted, submitted and emitted in every step, and their time.

    The rule that weighs cost is tried in batches of one: there replay's price of a cycle, of rows all alike,
    is the engine's.
    """
    sizes = np.diff(trace.offsets)
    prompts = np.flatnonzero(sizes >= TOKENS)[:12]
    groups = [[p] for p in prompts] if isinstance(rule, ExactMarginal) else [prompts]
    lookup = trace.is_lookup(drafter)
    chain = Chain((drafter, trace.target))
    dearer = AffineCost(**{n: getattr(H100, n) for n in H100.__struct_fields__} | {"token_seconds": 1e-3})
    for cost in (open_cost(trace, "float32"), H100, dearer):
        seconds = two_level_seconds(trace, chain, cost, 1)
        widths = set()
        for group in groups:
            prompt_tokens = trace.context[trace.offsets[group]]
            serving = Serving(
                Costs(cost, trace.target, drafter, lookup=lookup),
                slots=len(group),
                speculation=Speculation(ByRule(rule, longest), InOrder(cut(trace, drafter, np.array(group)))),
                token_budget=1 << 20,
            )
            load = [(0, Request(i, int(n), TOKENS)) for i, n in enumerate(prompt_tokens)]
            steps = simulate(serving, OpenLoop(load), 0).steps.to_pandas()
            decoding = steps[steps["decoding_requests"] > 0]
            # The engine's prompts give the first token, which replay's first cycle would.
            runs = run(trace, chain, rule, trace.offsets[group] + 1, seconds)
            assert decoding["decoding_requests"].tolist() == runs.active.sum(axis=0).tolist()
            for name in ("drafted", "submitted", "emitted", "context"):
                theirs = getattr(runs, name).sum(axis=0, dtype=int).tolist()
                assert decoding[f"{name}_tokens"].tolist() == theirs
            widths.update(runs.submitted[runs.active].tolist())
            times = price(runs, np.arange(len(group))[None], [cost], lookup=lookup)[0]
            parts = decoding[["draft_ns", "verify_ns", "overhead_ns"]].to_numpy().sum()
            # Each forward and each overhead is rounded to a whole nanosecond.
            assert abs(parts - times.seconds[0] * 1e9) <= (2 + longest) * len(decoding)
        assert len(widths) > 1
