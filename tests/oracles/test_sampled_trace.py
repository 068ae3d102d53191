"""Sampled recordings of tiny made-up networks, held against whole forwards without a cache."""

from __future__ import annotations

import json

import numpy as np
import pytest

from simspec.cli import main
from simspec.compare.inspect_trace import inspect_tables
from simspec.errors import BadInput
from simspec.replay.sampled import acceptance_luck, load_any
from simspec.speculation.sampling import Sampling
from simspec.speculation.verify import draw
from simspec.streams import stream
from simspec.traces.index import load_trace
from simspec.traces.reader import read_tables
from tests import recorded

pytestmark = pytest.mark.real_model  # torch and transformers; the weights are made up

SAMPLING = Sampling(temperature=0.8, top_p=0.9)
SEED, LENGTH, DEPTH = 5, 12, 6


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    import torch

    from simspec.record.models import load_models
    from simspec.record.prompts import choose_prompts
    from simspec.record.recipe import read_recipe
    from simspec.record.session import encode_prompt, record

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    folder = recorded.networks(tmp_path_factory.mktemp("tiny"))
    more = "sampling = {temperature = 0.8, top_p = 0.9}"
    path = recorded.recipe(folder, more=more, prompts=3, output_tokens=LENGTH, block_length=DEPTH)
    record(path, folder / "trace", ["test"])
    recipe = read_recipe(path)[0]
    models = load_models(recipe, folder)
    prompts = [encode_prompt(models, recipe, text)[0].tolist() for text in choose_prompts(recipe, folder)]
    yield read_tables(folder / "trace"), models, prompts
    torch.set_num_threads(before)


def distributions(network, tokens):
    """What a network would draw after each token, by one whole forward, shape (tokens, vocabulary)."""
    import torch
    from transformers import DynamicCache

    from simspec.record.models import forward
    from simspec.record.words import adjusted

    places = torch.arange(len(tokens))[None]
    logits = forward(network, torch.tensor([tokens]), places, DynamicCache())[0]
    return adjusted(logits, SAMPLING).numpy()


def texts(read):
    found: dict[int, list[int]] = {}
    for row in read.tables["texts"].to_pylist():
        found.setdefault(row["prompt_id"], []).append(row["token"])
    return found


def test_texts_are_drawn_by_each_prompts_own_luck(made):
    read, models, prompts = made
    for index, prompt in enumerate(prompts):
        luck, text = stream(SEED, "record", "text", index), []
        while len(text) < LENGTH and recorded.END not in text:
            probs = distributions(models.networks["target"], [*prompt, *text])[-1]
            text.append(draw(probs, luck.random()))
        assert texts(read)[index] == text
    greedy = [
        np.argmax(distributions(models.networks["target"], [*p, *texts(read)[i]])[len(p) - 1 : -1], axis=1)
        for i, p in enumerate(prompts)
    ]
    assert any(g.tolist() != texts(read)[i] for i, g in enumerate(greedy))  # or nothing was drawn


def test_blocks_are_drawn_from_every_start_and_judged_by_what_they_were_drawn_from(made):
    read, models, prompts = made
    text, near, target = texts(read), models.networks["near"], models.networks["target"]
    blocks = [b for b in read.tables["blocks"].to_pylist() if b["drafter"] == "near"]
    verdicts = {
        (v["prompt_id"], v["start"]): v
        for v in read.tables["verdicts"].to_pylist()
        if (v["drafter"], v["verifier"]) == ("near", "target")
    }
    assert len(blocks) == sum(len(t) for t in text.values())
    cut = 0
    for block in blocks[::3]:
        p, start, tokens = block["prompt_id"], block["start"], block["tokens"]
        seen = [*prompts[p], *text[p][:start]]
        luck = stream(SEED, "record", "draft", "near", p, start).random(DEPTH)
        q = distributions(near, [*seen, *tokens])[len(seen) - 1 :]
        want = distributions(target, [*seen, *tokens])[len(seen) - 1 :]
        assert tokens == [draw(q[j], luck[j]) for j in range(DEPTH)]
        mine = [q[j, t] for j, t in enumerate(tokens)]
        assert np.allclose(block["confidence"], mine, atol=1e-5)
        said = verdicts[p, start]
        assert len(said["greedy_token"]) == DEPTH + 1  # to the end: where it cuts is a matter of luck
        assert np.allclose(said["drafted_prob"], [want[j, t] for j, t in enumerate(tokens)], atol=1e-3)
        assert np.allclose(said["overlap"], np.minimum(q, want).sum(axis=1)[:DEPTH], atol=1e-3)
        cut += int((want == 0).any())
    assert cut  # or top_p took nothing away


def test_a_sampled_trace_is_shown_but_not_replayed_as_it_is(made, capsys):
    read, _, _ = made
    with pytest.raises(BadInput, match=r"manifest.json: field 'sampling': .*temperature 0.8, top_p 0.9"):
        load_trace(read.folder)
    with pytest.raises(SystemExit) as stop:
        main(["rank", str(read.folder)])
    assert stop.value.code == 2
    assert "another text would have been drawn" in capsys.readouterr().err
    with pytest.raises(SystemExit) as stop:
        main(["inspect", str(read.folder), "--json"])
    assert stop.value.code == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["sampling"] == {"temperature": 0.8, "top_p": 0.9}
    assert shown["acceptance"] == []


def test_in_distribution_a_refused_draft_leaves_the_text(made):
    """Luck against both models' own words, by whole forwards; where it refuses, the recorded block."""
    read, models, prompts = made
    trace, text = load_any(read.folder, 4), texts(read)
    assert list(trace.drafters) == ["near", "ngram"]  # what fills in masked places cannot be replayed
    index, luck = trace.drafters["near"], acceptance_luck(4, len(trace.tokens))
    blocks = {
        (b["prompt_id"], b["start"]): b for b in read.tables["blocks"].to_pylist() if b["drafter"] == "near"
    }
    refusals = 0
    for p, prompt in enumerate(prompts):
        whole, own = [*prompt, *text[p]], text[p]
        q, want = (distributions(models.networks[m], whole)[len(prompt) - 1 : -1] for m in ("near", "target"))
        chance = [min(1.0, q[t, y] / want[t, y]) for t, y in enumerate(own)]
        good = [bool(luck[trace.offsets[p] + t] < c) for t, c in enumerate(chance)]
        for t in range(len(own)):
            flat = trace.offsets[p] + t
            run_of = next((j for j, g in enumerate(good[t:]) if not g), len(own) - t)
            assert index.matched[flat] == min(run_of, DEPTH)
            seen = [q[t + j].max() for j in range(min(run_of, DEPTH))]
            if t + run_of < len(own):
                block = blocks[p, t + run_of]
                seen += block["top1_prob"]
                refusals += 1
                if recorded.END in block["tokens"]:
                    seen = seen[: run_of + block["tokens"].index(recorded.END) + 1]
            seen = seen[:DEPTH]
            assert index.length[flat] == len(seen)
            assert np.allclose(index.confidence[flat, : len(seen)], seen, atol=2e-3)
            assert (index.confidence[flat, len(seen) :] == 0).all()
    assert 0 < refusals < len(trace.tokens)


def test_mean_overlap_by_place(made):
    read, _, _ = made
    rows = [
        v["overlap"]
        for v in read.tables["verdicts"].to_pylist()
        if (v["drafter"], v["verifier"]) == ("causal", "target")
    ]
    found = inspect_tables(read)["overlap"]
    (mine,) = (f for f in found if (f["drafter"], f["verifier"]) == ("causal", "target"))
    assert [p["drafts"] for p in mine["positions"]] == [len(rows)] * DEPTH
    assert np.allclose([p["overlap"] for p in mine["positions"]], np.mean(rows, axis=0), atol=1e-6)
