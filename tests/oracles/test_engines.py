"""What we simulate of transformers' own speculative decoding is what it does, cycle by cycle."""

from __future__ import annotations

import numpy as np
import pytest

from tests.oracles.test_executor import generated, tiny_models

pytestmark = pytest.mark.real_model


class OneEach:
    """A second for the target's forward, a tenth for a drafter's: made up."""

    name = label = "made up"
    step_overhead_seconds = 0.0
    models = frozenset({"target", "near", "first-3"})

    def forward_seconds(self, model, shape):
        return np.full(np.shape(shape.rows), 1e-3 if model == "target" else 1e-4)


def test_cycles_of_three_engines():
    from simspec.record.engines import LOOKUP_TOKENS, Engine, compare_engines
    from simspec.record.models import skip_layers

    models = tiny_models(eos=())
    models.networks["first-3"] = skip_layers(models.networks["target"], 3, 1)
    generator = np.random.default_rng(0)
    prompts = [generator.integers(0, 8, n).astype(np.int32) for n in (9, 12, 30)]
    texts = [generated(models.networks["target"], p, 24, ()) for p in prompts]
    engines = [
        Engine("assisted", "near", 5),
        Engine("prompt lookup", None, LOOKUP_TOKENS),
        Engine("early exit", "first-3", 4, 3),
    ]
    before = models.networks["target"].forward
    found = compare_engines(
        models, engines, prompts[:1], prompts[1:], texts, OneEach(), 24, lambda line: None
    )
    assert [e["engine"] for e in found] == [e.name for e in engines]
    for entry in found:
        assert entry["same_text_as_target"]
        assert entry["target_widths_equal"], entry["engine"]
        assert entry["measured_seconds"] > 0
    # Nothing of the measuring is left on the networks.
    assert models.networks["target"].forward == before
    assert models.networks["near"].generation_config.num_assistant_tokens != 5
