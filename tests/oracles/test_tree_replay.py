"""Replay of drafted trees against networks that draft and verify them, by the plainest loop.

The networks are tiny and made up; what is compared is bookkeeping, not a model. Nothing of the recorder's or
of the trees' own code drafts, chooses or verifies here: whole forwards without a cache, and a sorted list.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from simspec.errors import BadInput
from simspec.replay.trees import offered, replay_trees, settle
from simspec.speculation.tree_sizes import fixed
from simspec.speculation.trees import best_first, by_place
from simspec.traces.index import index_tables, load_trace
from simspec.traces.reader import read_tables
from tests import recorded

pytestmark = pytest.mark.real_model  # torch and transformers; the weights are made up

KEPT, OUTPUT, BLOCK = 4, 24, 10
SHAPES = {
    "spine": lambda chance: best_first(chance, 12, spine=True),
    "top-2": lambda chance: by_place(chance, 8, 2),
    "products": lambda chance: best_first(chance, 12, spine=False),
}
CASES = [
    ("near", "spine", 5),
    ("near", "top-2", 4),
    ("near", "spine", 1),
    ("causal", "products", 6),
    ("causal", "spine", 7),
    ("full", "products", 12),
]


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
    path = recorded.recipe(folder, output_tokens=OUTPUT, block_length=BLOCK, more=f"alternatives = {KEPT}")
    record(path, folder / "trace", ["test"])
    recipe = read_recipe(path)[0]
    models = load_models(recipe, folder)
    prompts = [encode_prompt(models, recipe, t)[0].tolist() for t in choose_prompts(recipe, folder)]
    yield load_trace(folder / "trace"), models, prompts, folder / "trace"
    torch.set_num_threads(before)


def probabilities(network, tokens, last=1, open_tail=0):
    import torch
    from transformers import DynamicCache

    from simspec.record.models import forward

    size = len(tokens)
    mask = torch.ones(size, size, dtype=torch.bool).tril()
    if open_tail:
        mask[-open_tail:, -open_tail:] = True
    ids, places = torch.tensor([tokens]), torch.arange(size)[None]
    return forward(network, ids, places, DynamicCache(), mask[None, None])[0, -last:].softmax(-1).numpy()


def draft(models, drafter, seen, most):
    """Tokens by falling probability, and these, at each place of the drafter's own block."""
    block, places = [], []
    kind = models.blocks.get(drafter)
    while len(block) < most and not (block and block[-1] == recorded.END):
        if kind is None:
            said = probabilities(models.networks[drafter], [*seen, *block])
        else:
            masks = [kind.mask_token] * (kind.block - 1)
            tail = len(masks) if kind.within == "full" else 0
            said = probabilities(kind.network, [*seen, *block, *masks], kind.block, tail)
        for here in said:
            if len(block) == most or (block and block[-1] == recorded.END):
                break
            order = np.argsort(-here, kind="stable")[:KEPT]
            block.append(int(order[0]))
            places.append([(int(t), float(np.float16(here[t]))) for t in order])
    return block, places, 1 if kind is None else kind.block


def chosen(shape, nodes, places, at_once):
    """The tree as token paths, and the places that had to be drafted for it."""
    if shape == "top-2":
        paths = [
            (*(p[0][0] for p in places[:j]), token) for j, at in enumerate(places) for token, _ in at[:2]
        ][:nodes]
        return paths, max(len(p) for p in paths)
    within = places[:at_once] if shape == "products" else places
    block = [p[0][0] for p in within]
    worth, front = {}, {(): 1.0}
    for j, at in enumerate(within):
        front = {(*p, t): v * q for p, v in front.items() for t, q in at}
        worth |= front
        if shape == "spine":
            front = {p: v for p, v in front.items() if list(p) == block[: j + 1]}
    ranked = sorted(worth.items(), key=lambda item: -item[1])[: nodes + 1]
    values = [v for _, v in ranked]
    assert len(set(values)) == len(values), "choose other weights: a tie"
    paths = [p for p, _ in ranked[:nodes]]
    followed = sum(list(p) == block[: len(p)] for p in paths[:-1])
    return paths, min(1 + followed, len(within))


def decoded(models, drafter, shape, nodes, prompt):
    """Cycles as (drafted, lag, nodes, width, accepted, emitted), and the text."""
    text, cycles, read = [], [], len(prompt) - 1
    while len(text) < OUTPUT and recorded.END not in text:
        seen = [*prompt, *text]
        block, places, at_once = draft(models, drafter, seen, min(BLOCK, OUTPUT - len(text) - 1))
        paths, looked = chosen(shape, nodes, places, at_once) if block else ([], 0)
        drafted = min(-(-looked // at_once) * at_once, len(block))
        path = ()
        while True:
            own = int(probabilities(models.networks["target"], [*seen, *path])[0].argmax())
            if (*path, own) not in paths:
                break
            path = (*path, own)
        new = [*path] if path and path[-1] == recorded.END else [*path, own]
        lag = len(seen) - read if drafted else 0
        if drafted:
            kept = 0
            while kept < len(path) and path[kept] == block[kept]:
                kept += 1
            read = len(seen) + min(kept, (-(-drafted // at_once) - 1) * at_once)
        cycles.append((drafted, lag, len(paths), len(paths) + 1, len(path), len(new)))
        text += new
    return cycles, text


@pytest.mark.parametrize(("drafter", "shape", "nodes"), CASES)
def test_replay_equals_trees_that_were_drafted_and_verified(made, drafter, shape, nodes):
    trace, models, prompts, _ = made
    offer = offered(trace, drafter)
    if shape == "products":
        offer = offer.shallow(offer.at_once)
    trees = settle(offer, fixed(SHAPES[shape](offer.chance), nodes))
    runs = replay_trees(trace, offer, trees, trace.offsets[:-1])
    off_block = Counter()
    for r, prompt in enumerate(prompts):
        cycles, text = decoded(models, drafter, shape, nodes, prompt)
        assert text == trace.tokens[trace.offsets[r] : trace.offsets[r + 1]].tolist()
        assert runs.active[r].sum() == len(cycles)
        for c, real in enumerate(cycles):
            ours = (runs.drafted, runs.lag, runs.submitted, runs.width, runs.accepted, runs.emitted)
            assert tuple(int(v[r, c]) for v in ours) == real, (r, c)
            matched = trace.drafters[drafter].matched[runs.flat[r, c]]
            off_block[bool(real[4] > matched)] += 1
    if nodes > 1:
        assert off_block[True] > 0  # or no alternative was ever taken


def test_two_best_by_margins_are_those_recorded(made):
    """What a trace without alternatives tells of an autoregressive drafter."""
    trace, _, _, folder = made
    read = read_tables(folder)
    import msgspec

    bare = replace(
        read,
        manifest=msgspec.structs.replace(read.manifest, alternatives=0),
        tables={n: t for n, t in read.tables.items() if n != "choices"},
    )
    old = index_tables(bare)
    told, known = old.drafters["near"].choices, trace.drafters["near"].choices
    assert told.confidence.shape[2] == 2
    assert np.allclose(told.confidence, known.confidence[..., :2], atol=2e-3)
    assert np.array_equal(np.minimum(told.text_rank, 2), np.minimum(known.text_rank, 2))
    assert {1} <= set(known.text_rank[:, 0].tolist())
    assert old.drafters["causal"].choices is None
    with pytest.raises(BadInput, match=r"does not tell what 'causal' chose among.*near"):
        offered(old, "causal")


def test_ranks_count_what_is_more_probable(made):
    """Table ``choices`` row by row, from whole forwards of the drafter that sees tokens only."""
    _, models, prompts, folder = made
    read = read_tables(folder)
    texts = read.frame("texts")
    for row in read.tables["choices"].to_pylist():
        if row["drafter"] != "near" or row["prompt_id"] != 0:
            continue
        text = texts[texts["prompt_id"] == 0]["token"].tolist()
        seen, block = [*prompts[0], *text[: row["start"]]], []
        for place in range(len(row["confidence"]) // KEPT):
            said = probabilities(models.networks["near"], [*seen, *block])[0]
            best = np.sort(said)[::-1][:KEPT]
            assert np.allclose(row["confidence"][place * KEPT : (place + 1) * KEPT], best, atol=1e-3)
            if row["start"] + place < len(text):
                own = text[row["start"] + place]
                assert row["text_rank"][place] == int((said > said[own]).sum())
            block.append(int(said.argmax()))


def test_the_drafted_token_comes_first_of_equals():
    """Rounding can make a tie of what the logits told apart."""
    import torch

    from simspec.record.block_rows import BlockRows
    from simspec.record.observe import Read

    said = Read(torch.tensor([[0.4, 0.2, 0.4], [0.3, 0.4, 0.3]]).log(), torch.zeros(2))
    for text, ranks in (([0, 2], [1, 2]), ([1, 0], [2, 1]), ([2, 1], [0, 0])):
        rows = BlockRows(0, np.array(text, dtype=np.int32), 2)
        rows.add_choices("near", 0, np.array([2, 1], dtype=np.int32), said)
        row = rows.finish()["choices"].to_pylist()[0]
        assert row["text_rank"] == ranks
        assert np.allclose(row["confidence"], [0.4, 0.4, 0.4, 0.3], atol=1e-3)
