"""Block-parallel drafters: replay of a fresh recording against networks decoded for real, cycle by cycle.

The networks are tiny and made up; what is compared is bookkeeping, not a model.
"""

from __future__ import annotations

import numpy as np
import pytest

from simspec.replay.trajectories import run
from simspec.speculation.chains import Chain
from simspec.speculation.lengths import LibraSpec, Static
from simspec.speculation.schedulers import Schedule
from simspec.traces.index import load_trace
from tests import recorded

pytestmark = pytest.mark.real_model  # torch and transformers; the weights are made up

# A tiny network's near tie: what separates two logits of order 1 in float32.
NEAR_TIE = 1e-4

CASES = [
    (Chain(("causal", "target")), Static(2)),
    (Chain(("causal", "target")), Static(7)),
    (Chain(("full", "target")), Static(4)),
    (Chain(("full", "target")), Static(9)),
    (Chain(("full", "target")), LibraSpec(alpha=2.2, block=1, longest=8)),
    (Chain(("causal", "near", "target"), "funnel-truncate"), Static(5)),
    (Chain(("full", "near", "target"), "funnel-replace"), Static(5)),
    (Chain(("reading-causal", "target")), Static(2)),
    (Chain(("reading-causal", "target")), Static(8)),
    (Chain(("reading-full", "target")), Static(3)),
    (Chain(("reading-full", "target")), LibraSpec(alpha=2.2, block=1, longest=8)),
    (Chain(("reading-causal", "near", "target"), "funnel-truncate"), Static(7)),
    (Chain(("reading-full", "near", "target"), "funnel-replace"), Static(5)),
    (Chain(("near", "target")), Static(5)),
    (Chain(("ngram", "target")), Static(5)),
]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    import torch

    from simspec.record.models import load_models
    from simspec.record.recipe import read_recipe
    from simspec.record.session import encode_prompt, record

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    folder = recorded.networks(tmp_path_factory.mktemp("tiny"))
    grid = "batches = [1, 2], new_tokens = [1, 4, 8], contexts = [8], repetitions = 1"
    end = recorded.reading(folder)
    path = recorded.recipe(folder, more=f"latency = {{ {grid} }}", end=end)
    record(path, folder / "trace", ["test"])
    recipe = read_recipe(path)[0]
    models = load_models(recipe, folder)
    from simspec.record.prompts import choose_prompts

    prompts = [encode_prompt(models, recipe, text) for text in choose_prompts(recipe, folder)]
    yield load_trace(folder / "trace"), models, [p[0].numpy().astype(np.int32) for p in prompts], path
    torch.set_num_threads(before)


@pytest.mark.parametrize(("chain", "rule"), CASES, ids=[f"{c} {c.semantics} {r}" for c, r in CASES])
def test_replay_equals_a_real_run(made, chain, rule):
    from simspec.record.decoded import Settings
    from simspec.record.executor import decode

    trace, models, prompts, _ = made
    settings = Settings(trace.manifest.output_tokens, trace.manifest.block_length, margins=True)
    decoded = decode(models, [Schedule(chain, rule)], prompts, settings)
    replayed = run(trace, chain, rule, trace.offsets[:-1])
    # Width of the drafter's forwards, from the log of a batch of one request each.
    full_blocks = 0
    for r in range(len(prompts)):
        assert min(c.margin for c in decoded.cycles[r]) > NEAR_TIE, "choose other weights: a near tie"
        assert replayed.active[r].sum() == len(decoded.cycles[r])
        text = trace.tokens[trace.offsets[r] : trace.offsets[r + 1]]
        assert decoded.texts[r].tolist() == text.tolist()
        for c, real in enumerate(decoded.cycles[r]):
            ours = (
                replayed.drafted[r, c],
                replayed.lag[r, c],
                replayed.submitted[r, c],
                tuple(int(m[r, c]) for m in replayed.middle),
                replayed.width[r, c],
                replayed.accepted[r, c],
                replayed.emitted[r, c],
            )
            assert ours == (
                real.drafted,
                real.lag,
                real.submitted,
                real.middle,
                real.width,
                real.accepted,
                real.emitted,
            ), c
            full_blocks += real.accepted == real.submitted > 0
    if chain.drafter != "ngram":
        assert full_blocks > 0  # or the lag after a full acceptance was never put to the test


@pytest.mark.parametrize(
    ("drafter", "length"), [("causal", 7), ("full", 9), ("reading-causal", 8), ("near", 4)]
)
def test_drafting_is_priced_at_the_widths_that_ran(made, drafter, length):
    """Every drafting forward of a lone request: how many there were of each width."""
    from simspec.record.decoded import Settings
    from simspec.record.executor import decode
    from simspec.replay.lockstep import price

    trace, models, prompts, _ = made
    chain, rule = Chain((drafter, "target")), Static(length)
    replayed = run(trace, chain, rule, trace.offsets[:-1])
    settings = Settings(trace.manifest.output_tokens, trace.manifest.block_length)
    for r, prompt in enumerate(prompts):
        decoded = decode(models, [Schedule(chain, rule)], [prompt], settings)
        ran = [f.width for f in decoded.forwards if f.model == drafter and f.cycle >= 0]
        widths = range(1, max(ran) + 2)
        counts = price(replayed, np.array([[r]]), [_OneEach(drafter, w) for w in widths], lookup=False)
        assert {w: int(c.seconds[0]) for w, c in zip(widths, counts, strict=True)} == {
            w: ran.count(w) for w in widths
        }


class _OneEach:
    """A cost that counts a model's forwards of one width."""

    name = label = "counts"
    step_overhead_seconds = 0.0

    def __init__(self, model, width):
        self.model, self.width = model, width
        self.models = frozenset({model, "target"})

    def forward_seconds(self, model, shape):
        return ((shape.width == self.width) & (model == self.model)) * 1.0


def test_recorded_blocks_are_what_the_drafter_drafts(made):
    """From every start, by the plainest loop: a whole forward without a cache or a mask of ours."""
    import torch
    from transformers import DynamicCache

    from simspec.record.models import forward

    trace, models, prompts, _ = made
    kind = models.blocks["causal"]
    blocks = _rows(made, "blocks", "causal")
    prompt, text = prompts[0], trace.tokens[: trace.offsets[1]]
    for start in range(0, len(text), 3):
        seen = [*prompt.tolist(), *text[:start].tolist()]
        drafted, sure = [], []
        while len(drafted) < trace.manifest.block_length:
            ids = torch.tensor([[*seen, *drafted, *[kind.mask_token] * (kind.block - 1)]])
            places = torch.arange(ids.shape[1])[None]
            probs = forward(kind.network, ids, places, DynamicCache())[0, -kind.block :].softmax(-1)
            drafted += probs.argmax(-1).tolist()
            sure += probs.max(-1).values.tolist()
        block = blocks[0, start]
        most = trace.manifest.block_length
        assert block["tokens"] == drafted[:most]
        assert np.allclose(block["confidence"], sure[:most], atol=1e-5)


def test_blocks_of_a_drafter_that_reads_the_target_are_what_it_drafts(made):
    """Likewise: each text token's embedding plus what two of the target's layers thought before it."""
    import torch

    trace, models, prompts, _ = made
    kind, target = models.blocks["reading-causal"], models.networks["target"]
    blocks, blind = _rows(made, "blocks", "reading-causal"), _rows(made, "blocks", "causal")
    text, differ = trace.tokens[: trace.offsets[1]], 0
    for start in range(0, len(text), 3):
        seen = torch.tensor([[*prompts[0].tolist(), *text[:start].tolist()]])
        drafted: list[int] = []
        with torch.inference_mode():
            inner = target.model(input_ids=seen, output_hidden_states=True).hidden_states
            early = inner[1] / inner[1].square().mean(-1, keepdim=True).sqrt()
            late = inner[2] / target.model.norm.weight  # the norm divides by the root mean square too
            states = torch.cat([early, late], dim=-1)
            matrix = kind.network.from_target.weight
            while len(drafted) < trace.manifest.block_length:
                more = torch.tensor([[*drafted, *[kind.mask_token] * (kind.block - 1)]])
                read = kind.network.model.embed_tokens(torch.cat([seen, more], dim=1))
                read[:, 1 : seen.shape[1]] += states[:, :-1] @ matrix.T
                drafted += kind.network(inputs_embeds=read).logits[0, -kind.block :].argmax(-1).tolist()
        most = trace.manifest.block_length
        assert blocks[0, start]["tokens"] == drafted[:most]
        differ += blocks[0, start]["tokens"] != blind[0, start]["tokens"]
    assert differ  # or the states say nothing


def test_verdicts_are_what_a_verifier_says_of_each_token(made):
    """Of the block-parallel drafter that opens its masks, by whole forwards of the verifier."""
    import torch
    from transformers import DynamicCache

    from simspec.record.models import forward

    trace, models, prompts, _ = made
    blocks, verdicts = _rows(made, "blocks", "full"), _rows(made, "verdicts", "full", "near")
    text = trace.tokens[: trace.offsets[1]]
    for start in range(0, len(text), 3):
        tokens = blocks[0, start]["tokens"]
        seen = [*prompts[0].tolist(), *text[:start].tolist()]
        ids = torch.tensor([[*seen, *tokens]])
        logits = forward(models.networks["near"], ids, torch.arange(ids.shape[1])[None], DynamicCache())
        probs = logits[0, len(seen) - 1 :].softmax(-1)
        said = verdicts[0, start]
        assert said["greedy_token"] == probs.argmax(-1).tolist()
        mine = [float(probs[i, t]) for i, t in enumerate(tokens)]
        assert np.allclose(said["drafted_prob"], mine, atol=1e-3)
        # A block's own distribution is not the verifier's: the overlap is at most either's mass.
        assert all(0 <= o <= 1 for o in said["overlap"])


def test_the_target_as_its_own_block_drafter_overlaps_wholly_at_the_first_place(made):
    """Its first token's distribution is the target's own: nothing of the masks may show in it."""
    first = [row["overlap"][0] for row in _rows(made, "verdicts", "full", "target").values()]
    assert np.allclose(first, 1.0, atol=1e-3)
    second = [r["overlap"][1] for r in _rows(made, "verdicts", "full", "near").values()]
    assert np.mean(second) < 0.999


def test_block_parallel_drafters_are_ranked_and_studied(made):
    """They draft and never verify, and no rule beats the bound."""
    from simspec.compare.costs import open_cost
    from simspec.compare.length_runs import LengthSettings
    from simspec.compare.lengths import study_lengths
    from simspec.compare.rank import RankSettings, rank

    trace = made[0]
    cost = open_cost(trace, "float32")
    (ranking,) = rank(trace, [cost], RankSettings(batches=(1, 2), lengths=(2, 5), draws=3))
    chains = {chain for chain, _ in ranking.candidates}
    assert Chain(("causal", "target")) in chains
    assert Chain(("full", "near", "target"), "funnel-replace") in chains
    assert not any({"causal", "full"} & set(chain.levels[1:]) for chain in chains)
    assert all(np.isfinite(b.replayed).all() for b in ranking.batches)
    study = study_lengths(trace, "full", cost, LengthSettings(batch=1, draws=3))
    assert study.bound is not None
    for name, result in study.rules.items():
        assert result.seconds_per_token[0] >= study.bound[0] * (1 - 1e-9), name


def _rows(made, table, drafter, verifier=None):
    from simspec.traces.reader import read_tables

    read = read_tables(made[0].folder)
    return {
        (row["prompt_id"], row["start"]): row
        for row in read.tables[table].to_pylist()
        if row["drafter"] == drafter and verifier in (None, row.get("verifier"))
    }
