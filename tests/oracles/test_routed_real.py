"""Routed replay of a fresh recording against networks that are decoded by turns, forward by forward.

The networks are tiny and made up; what is compared is bookkeeping, not a model.
"""

from __future__ import annotations

import numpy as np
import pytest

from simspec.cost.shape import StepShape
from simspec.replay.candidates import tabulate
from simspec.replay.routed import route
from simspec.speculation.chains import Chain
from simspec.speculation.lengths import Static
from simspec.speculation.routing import OneByOne
from simspec.speculation.schedulers import Schedule, TakeTurns
from simspec.traces.index import load_trace
from tests import recorded

pytestmark = pytest.mark.real_model  # torch and transformers; the weights are made up

CANDIDATES = [
    (Chain(("target",)), 0),
    (Chain(("near", "target")), 4),
    (Chain(("ngram", "target")), 5),
    (Chain(("full", "target")), 6),
    (Chain(("causal", "near", "target"), "funnel-truncate"), 5),
    (Chain(("ngram", "near", "target"), "funnel-replace"), 3),
    (Chain(("near", "target")), 2),
]


class Weighed:
    """Forwards priced so that rows, width and tokens all count, unlike for every model; look-ups are free."""

    name = label = "weighed"
    step_overhead_seconds = 0.0
    weights = {"target": 1.0, "near": 0.31, "ngram": 0.0, "causal": 0.17, "full": 0.23}  # noqa: RUF012
    models = frozenset(weights)

    def forward_seconds(self, model: str, shape: StepShape) -> np.ndarray:
        each = 1.0 + 0.37 * shape.rows + 0.11 * shape.width**2 + 0.013 * shape.tokens
        return np.asarray(self.weights[model] * each)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    from simspec.record.models import load_models
    from simspec.record.prompts import choose_prompts
    from simspec.record.recipe import read_recipe
    from simspec.record.session import encode_prompt, record

    folder = recorded.networks(tmp_path_factory.mktemp("tiny"))
    grid = "batches = [1, 2], new_tokens = [1, 4, 8], contexts = [8], repetitions = 1"
    path = recorded.recipe(folder, more=f"latency = {{ {grid} }}")
    record(path, folder / "trace", ["test"])
    recipe = read_recipe(path)[0]
    models = load_models(recipe, folder)
    prompts = [encode_prompt(models, recipe, text) for text in choose_prompts(recipe, folder)]
    return load_trace(folder / "trace"), models, [p[0].numpy().astype(np.int32) for p in prompts]


@pytest.mark.parametrize("every", [1, 2])
def test_turns_are_what_real_decoding_lives_through(made, every: int) -> None:
    from simspec.record.decoded import Settings
    from simspec.record.executor import decode

    trace, models, prompts = made
    table = tabulate(trace, CANDIDATES)
    schedules = [Schedule(c, Static(n) if n else None) for c, n in CANDIDATES]
    settings = Settings(trace.manifest.output_tokens, trace.manifest.block_length)
    done = decode(models, schedules, prompts, settings, scheduler=TakeTurns(every))
    cost, router = Weighed(), OneByOne(TakeTurns(every))
    starts = trace.offsets[:-1][None]
    found = route(table, cost, router, starts, split=True, drafts_together="candidate", keep=True)
    for p, cycles in enumerate(done.cycles):
        assert done.texts[p].tolist() == trace.tokens[trace.offsets[p] : trace.offsets[p + 1]].tolist()
        mine = [
            tuple(
                int(getattr(c, n)[0, p])
                for n in ("candidate", "drafted", "lag", "middle", "width", "emitted")
            )
            for c in found.log
            if c.active[0, p]
        ]
        wanted = [(c.schedule, c.drafted, c.lag, sum(c.middle), c.width, c.emitted) for c in cycles]
        assert mine == wanted
    assert max(c.lag.max() for c in found.log) > 2, "nobody had to catch up"
    # Forward by forward: rows, widest row and tokens.
    lived = 0.0
    for f in done.forwards:
        if f.cycle >= 0:
            lived += float(
                cost.forward_seconds(f.model, StepShape(*map(np.array, (f.rows, f.width, f.tokens, 0, 0))))
            )
    assert found.seconds[0] == pytest.approx(lived, rel=1e-9)
