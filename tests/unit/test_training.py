"""Training of drafters: tiny made-up networks, in folders; what is tested is the making, not a model."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from simspec.errors import BadInput
from tests import recorded

pytestmark = pytest.mark.real_model  # torch and transformers; the weights are made up

LETTERS = len(recorded.LETTERS)

TEXTS = """
name = "tiny-texts"
output_tokens = 20
context_limit = 64
top = 3
batch = 4
states = [0, 1]
kept_seed = 5
[target]
source = "target"
[[kept]]
category = "made-up"
file = "prompts.jsonl"
field = "text"
id_field = "line"
count = 2
[[collections]]
category = "made-up"
file = "more.jsonl"
field = "text"
id_field = "line"
count = 9
texts = 2
held_out = 2
"""

STUDENT = """
name = "student"
texts = "texts.toml"
steps = 24
rate = 0.003
batch_tokens = 120
measure_every = 8
save_minutes = 0.0
[drafter]
kind = "student"
layers = [0]
output_ids = 5
"""

BLOCK = """
name = "filler"
texts = "texts.toml"
steps = 10
rate = 0.01
batch_tokens = 160
measure_every = 10
hard = 0.5
[drafter]
kind = "block"
layers = [0, 1]
mask_token = "<mask>"
block = 4
within = "{within}"
blocks = 3
"""


@pytest.fixture(autouse=True)
def one_thread():
    """Tiny layers on several threads mostly wait for each other."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A target, prompts (some of which are the kept ones, put otherwise), and recipes."""
    root = recorded.networks(tmp_path_factory.mktemp("training"))
    generator = np.random.default_rng(3)
    more = ["".join(generator.choice(list("abcde"), 7)) for _ in range(12)]
    more += [f" {text.capitalize()} " for text in recorded.PROMPTS]
    (root / "more.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in more))
    (root / "texts.toml").write_text(TEXTS)
    (root / "student.toml").write_text(STUDENT)
    for within in ("causal", "full"):
        (root / f"{within}.toml").write_text(BLOCK.format(within=within))
    return root


def silent(line: str) -> None:
    pass


def run(recipe: Path, out: Path, say=silent) -> Path:
    from simspec.training.session import train

    return train(recipe, out, say)


@pytest.fixture(scope="module")
def student(folder) -> Path:
    return run(folder / "student.toml", folder / "cache")


def table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def weights(path: Path):
    from safetensors.torch import load_file

    return load_file(path)


def load(folder: Path, *drafters):
    from simspec.record.models import load_models
    from simspec.record.recipe import Recipe, TargetRecipe

    return load_models(Recipe("r", TargetRecipe("target"), tuple(drafters), ()), folder)


def test_texts_written_side_by_side_are_those_written_alone(folder):
    import torch

    from simspec.record.observe import decode_greedy, read_along
    from simspec.training.writing import write_texts

    models = load(folder)
    target = models.networks["target"]
    prompts = [np.array([int(c) for c in word], dtype=np.int32) for word in ("0123", "4", "20413", "33")]
    # A token that some of the texts reach, so that rows leave at different times.
    end = int(decode_greedy(target, torch.tensor(prompts[0][None]), 20)[7])
    target.generation_config.eos_token_id = target.config.eos_token_id = end
    written = write_texts(target, prompts, [None] * 4, 20, (end,), 3)
    lengths = set()
    for prompt, text in zip(prompts, written, strict=True):
        alone = decode_greedy(target, torch.tensor(prompt[None]), 20)
        np.testing.assert_array_equal(text.tokens, alone)
        lengths.add(len(alone))
        best = read_along(target, torch.tensor(prompt[None]), alone).log_probs[: len(alone)].topk(3)
        np.testing.assert_array_equal(text.top_ids, best.indices.numpy())
        np.testing.assert_allclose(text.top_log_probs, best.values.numpy(), atol=5e-3)
    assert len(lengths) > 1  # or no row has left before another


def test_a_drawn_text_depends_on_its_own_luck_alone(folder):
    from simspec.streams import stream
    from simspec.training.writing import write_texts

    target = load(folder).networks["target"]
    prompts = [np.array([1, 2], dtype=np.int32), np.array([0, 3, 3], dtype=np.int32)]

    def drawn(some):
        luck = [stream(0, "draw", i) for i in some]
        return [t.tokens for t in write_texts(target, [prompts[i] for i in some], luck, 20, (), 3)]

    both = drawn([0, 1])
    np.testing.assert_array_equal(both[1], drawn([1])[0])
    assert (both[0] != write_texts(target, prompts[:1], [None], 20, (), 3)[0].tokens).any()


def test_kept_and_held_out_prompts_are_never_trained_on(folder):
    from simspec.record.recipe import read_toml
    from simspec.training.prompts import asked_texts, kept_keys, key_of
    from simspec.training.recipe import TextsRecipe

    recipe = read_toml(folder / "texts.toml", TextsRecipe)
    asked = asked_texts(recipe, folder)
    kept = kept_keys(recipe, folder)
    held = {one.key for one in asked if one.held_out}
    trained = {one.key for one in asked if not one.held_out}
    assert (len(kept), len(held), len(trained)) == (2, 2, 9)
    assert not kept & held
    assert not kept & trained
    assert not held & trained
    # Each kept prompt is in the other file too, in capitals and with blanks.
    more = {key_of(json.loads(line)["text"]) for line in (folder / "more.jsonl").read_text().splitlines()}
    assert kept <= more


def test_the_loss_falls(student):
    measured = [row for row in table(student / "held-out.csv") if row["category"] == "all"]
    assert [int(row["step"]) for row in measured] == [0, 8, 16, 24]
    losses = [float(row["loss"]) for row in table(student / "loss.csv")]
    assert len(losses) == 24
    assert np.mean(losses[-6:]) < 0.5 * np.mean(losses[:2]), losses


@pytest.mark.parametrize("killed_at", ["step 8", "step 16"])
def test_a_run_that_was_killed_ends_in_the_same_weights(folder, student, tmp_path, killed_at):
    class Killed(BaseException):
        pass

    def say(line: str) -> None:
        if killed_at in line:
            raise Killed

    with pytest.raises(Killed):
        run(folder / "student.toml", tmp_path, say)
    said: list[str] = []
    again = run(folder / "student.toml", tmp_path, said.append)
    assert any("goes on after step" in line for line in said)
    for name in ("checkpoint.safetensors", "model.safetensors", "trimmed_output.safetensors"):
        ours, theirs = weights(again / name), weights(student / name)
        assert ours.keys() == theirs.keys()
        assert all((ours[key] == theirs[key]).all() for key in ours)
    for name in ("loss.csv", "held-out.csv"):
        ours, theirs = table(again / name), table(student / name)
        for row in ours + theirs:
            row.pop("seconds", None)
        assert ours == theirs


def test_another_recipe_is_refused_in_the_same_folder(folder, student, tmp_path):
    other = folder / "student-other.toml"
    other.write_text(STUDENT.replace("0.003", "0.002"))
    with pytest.raises(BadInput, match="another recipe"):
        run(other, student.parent)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("rate = 0.003", "rate = inf", "rate"),
        ("rate = 0.003", "rate = nan", "rate"),
        ("steps = 24", 'steps = 24\nbegin = "hub:some/model"', "begin"),
        ("steps = 24", 'steps = 24\nbegin = "../student"', "begin"),
        ("rate = 0.003", "rate = 1e6", "the loss is nan at step"),
    ],
)
def test_recipes_that_cannot_train_are_refused(folder, student, tmp_path, old, new, says):
    (folder / "bad.toml").write_text(STUDENT.replace(old, new).replace('"student"\ntexts', '"bad"\ntexts'))
    with pytest.raises(BadInput, match=says):
        run(folder / "bad.toml", student.parent)


def test_texts_without_a_prompt_to_train_on_are_refused(folder, tmp_path):
    (folder / "none.toml").write_text(TEXTS.replace("held_out = 2", "held_out = 99"))
    (folder / "of-none.toml").write_text(STUDENT.replace("texts.toml", "none.toml"))
    with pytest.raises(BadInput, match="no prompt is left"):
        run(folder / "of-none.toml", tmp_path)


def test_files_that_are_no_checkpoint_or_shard_are_refused(folder, student, tmp_path):
    from simspec.training.texts import read_shard

    (tmp_path / "student").mkdir()
    (tmp_path / "student" / "checkpoint.safetensors").write_bytes(b"no")
    with pytest.raises(BadInput, match="is no checkpoint"):
        run(folder / "student.toml", tmp_path)
    with pytest.raises(BadInput, match="is no shard"):
        read_shard(tmp_path / "student" / "checkpoint.safetensors")


def test_a_trimmed_output_says_what_was_trained_at_the_full_ids(folder, student):
    import torch

    from simspec.record.observe import read_along
    from simspec.record.recipe import ModelRecipe

    loaded = load(folder, ModelRecipe("student", str(student)))
    assert loaded.described["student"]["output_ids"] == 5
    assert "unused_weights" not in loaded.described["student"]
    ids = weights(student / "trimmed_output.safetensors")["ids"]
    assert recorded.END in ids.tolist()
    text = np.array([0, 2, 1, 4, 3], dtype=np.int32)
    said = read_along(loaded.networks["student"], torch.tensor([[3, 1]]), text).log_probs
    assert said.shape == (6, LETTERS + 2)
    left_out = sorted(set(range(LETTERS + 2)) - set(ids.tolist()))
    assert len(left_out) == 2
    assert (said[:, left_out] == -torch.inf).all()
    # The same by hand: the network's hidden states against the stored rows.
    network = loaded.networks["student"]
    rows = weights(student / "trimmed_output.safetensors")["weight"]
    with torch.inference_mode():
        hidden = network.model(torch.tensor([[3, 1, *text.tolist()]])).last_hidden_state[0, 1:]
    torch.testing.assert_close(said[:, ids], (hidden @ rows.T).log_softmax(-1))


@pytest.mark.parametrize(
    ("within", "reads"), [("causal", ()), ("full", ()), ("causal", (1,)), ("full", (1, 0))]
)
def test_packed_blocks_say_what_a_recording_would_read_alone(folder, tmp_path, within, reads):
    import torch
    from safetensors.torch import save_file

    from simspec.record.budget import Budget
    from simspec.record.chained_blocks import draft_chained
    from simspec.record.observe import read_along
    from simspec.record.reads_target import shifted, states_width
    from simspec.record.recipe import BlockParallelRecipe
    from simspec.training.batches import Blocks, pack
    from simspec.training.network import Trained
    from simspec.training.recipe import BlockRecipe
    from simspec.training.texts import Text

    models = load(folder)
    ids = torch.tensor([0, 1, 2, 4, 5])
    target = models.networks["target"]
    width = states_width(target, reads)
    network = Trained(target, (0, 1), ids, recorded.MASK, width, reads)
    if reads:
        assert not network.reading.weight.any()  # it begins as one that reads nothing
        torch.nn.init.normal_(network.reading.weight, std=0.05, generator=torch.Generator().manual_seed(4))
    network.export(tmp_path, models.tokenizer)
    generator = np.random.default_rng(1)

    def text(prompt: int, n: int) -> Text:
        tokens = generator.integers(0, LETTERS, prompt + n).astype(np.int32)
        empty = np.zeros((n, 1), np.int32), np.zeros((n, 1), np.float16)
        first = sum(len(part) for part in stored)
        along = read_along(target, torch.tensor(tokens[None, :prompt]), tokens[prompt:], keep_states=(0, 1))
        stored.append(shifted(along.states)[0])
        return Text(tokens, prompt, *empty, "x", "x", 0, (tmp_path / "states.safetensors", first, (0, 1)))

    stored: list[torch.Tensor] = []
    texts = [text(3, 9), text(2, 6)]
    save_file({"states": torch.cat(stored)}, tmp_path / "states.safetensors")
    starts = [np.array([0, 2, 5]), np.array([1, 3])]
    # Of drawn length in training, where that of a later block must not matter to an earlier one.
    masks = [np.array([3, 1, 2]), np.array([2, 3])]
    recipe = BlockRecipe((0, 1), "<mask>", block=4, within=within, reads_target=reads)
    if within == "full":  # masks that see all of a block are of a block of that size
        masks = [np.full(len(some), 3) for some in masks]
    packed = pack(texts, recipe, [Blocks(s, m) for s, m in zip(starts, masks, strict=True)])
    with torch.inference_mode():
        logits = network(packed).log_softmax(-1)
    kind = load(
        folder, BlockParallelRecipe("filler", str(tmp_path), recorded.MASK, block=4, within=within)
    ).blocks["filler"]
    compared = 0
    for r, one in enumerate(texts):
        prompt, after = one.tokens[: one.prompt_tokens], one.tokens[one.prompt_tokens :]
        prompt_ids = torch.tensor(prompt[None])
        seen = read_along(target, prompt_ids, after, keep_states=reads)
        along = read_along(kind.network, prompt_ids, after, target=seen)
        drafts = draft_chained(kind, along, after, starts[r].tolist(), 4, None, Budget())
        for start, some, (_, words) in zip(starts[r], masks[r], drafts, strict=True):
            for j in range(min(1 + some, len(after) - start)):
                here = (packed.text == r) & (packed.output == start + j) & (packed.depth == j)
                if j:  # places of other blocks may speak of the same token
                    here &= (
                        np.asarray(packed.positions[packed.row, packed.place]) == len(prompt) + start + j - 1
                    )
                (index,) = np.flatnonzero(here)
                torch.testing.assert_close(logits[index], words.log_probs[j, ids], rtol=1e-4, atol=1e-5)
                compared += 1
    assert compared == (4 + 4 + 4 + 4 + 3 if within == "full" else 4 + 2 + 3 + 3 + 3)


def test_trained_drafters_are_recorded(folder, student):
    from simspec.record.session import record
    from simspec.traces.index import load_trace

    cache = student.parent
    filler = run(folder / "causal.toml", cache)
    trained = f"""
[[drafters]]
kind = "model"
name = "student"
source = "{student}"
[[drafters]]
kind = "block-parallel"
name = "filler"
source = "{filler}"
mask_token = "<mask>"
block = 4
within = "causal"
"""
    path = recorded.recipe(folder, "trained.toml", prompts=2)
    path.write_text(path.read_text().replace("[[prompts]]", trained + "[[prompts]]"))
    record(path, folder / "trace", ["test"])
    trace = load_trace(folder / "trace")
    assert {"student", "filler"} <= set(trace.manifest.models)


def test_a_drafter_begins_as_one_that_was_trained(folder, student):
    path = folder / "second.toml"
    path.write_text(
        BLOCK.format(within="causal")
        .replace('"filler"', '"second"')
        .replace("layers = [0, 1]", "layers = [0]")
    )
    text = path.read_text().replace('texts = "texts.toml"', 'texts = "texts.toml"\nbegin = "student"')
    path.write_text(text.replace("steps = 10", "steps = 1").replace("rate = 0.01", "rate = 1e-30"))
    second = run(path, student.parent)
    for file, name in (
        ("model", "model.layers.0.mlp.up_proj.weight"),
        ("trimmed_output", "ids"),
        ("trimmed_output", "weight"),
    ):
        ours, theirs = (weights(f / f"{file}.safetensors")[name] for f in (second, student))
        assert (ours == theirs).all()


def test_a_drafter_that_reads_the_target_begins_as_one_that_does_not(folder, student):
    """And once more as one that does: layers, mask and matrix are taken over."""
    first = run(folder / "causal.toml", student.parent)
    text = BLOCK.format(within="causal").replace("blocks = 3", "blocks = 3\nreads_target = [1]")
    text = text.replace("steps = 10", "steps = 1").replace("rate = 0.01", "rate = {rate}")
    made = {}
    for name, begin, rate in (
        ("still", "filler", "1e-30"),
        ("moved", "filler", "1e-2"),
        ("again", "moved", "1e-30"),
    ):
        path = folder / f"{name}.toml"
        lines = text.format(rate=rate).replace('"filler"', f'"{name}"')
        path.write_text(lines.replace('texts = "texts.toml"', f'texts = "texts.toml"\nbegin = "{begin}"'))
        made[name] = run(path, student.parent)
    matrix = {name: weights(f / "reads_target.safetensors")["weight"] for name, f in made.items()}
    assert matrix["still"].abs().max() < 1e-20
    assert matrix["moved"].abs().max() > 1e-5
    assert (matrix["again"] == matrix["moved"]).all()
    rows = {
        n: weights(f / "model.safetensors")["model.embed_tokens.weight"]
        for n, f in (*made.items(), ("first", first))
    }
    assert (rows["still"][recorded.MASK] == rows["first"][recorded.MASK]).all()
    assert (rows["again"][recorded.MASK] == rows["moved"][recorded.MASK]).all()
    assert (rows["moved"][recorded.MASK] != rows["first"][recorded.MASK]).any()


def test_a_target_in_bfloat16_rounds_nothing_of_a_drafter(folder, student, tmp_path):
    """The drafter's weights, and what one that begins as it takes over, are float32 all the same."""
    import torch

    text = TEXTS.replace("batch = 4", 'batch = 4\ndtype = "bfloat16"').replace("tiny-texts", "low-texts")
    (folder / "low.toml").write_text(text)
    first = folder / "low-student.toml"
    first.write_text(STUDENT.replace("texts.toml", "low.toml"))
    begun = folder / "low-reading.toml"
    text = BLOCK.format(within="causal").replace("blocks = 3", "blocks = 3\nreads_target = [0, 1]")
    text = text.replace('texts = "texts.toml"', 'texts = "low.toml"\nbegin = "student"').replace(
        "[0, 1]", "[0]"
    )
    begun.write_text(text.replace("steps = 10", "steps = 1").replace("rate = 0.01", "rate = 1e-30"))
    made = run(first, tmp_path)
    again = run(begun, tmp_path)
    for file in ("model", "trimmed_output"):
        ours, theirs = weights(again / f"{file}.safetensors"), weights(made / f"{file}.safetensors")
        for name in set(ours) - {"model.embed_tokens.weight", "ids"}:
            assert ours[name].dtype == torch.float32
            assert (ours[name] == theirs[name]).all(), name
            assert (ours[name] != ours[name].bfloat16().float()).any() or "norm" in name, name


def test_the_command_trains_and_leaves_a_finished_drafter_alone(folder, student, capsys):
    from simspec.cli import main

    before = {path.name: path.read_bytes() for path in student.iterdir()}
    with pytest.raises(SystemExit) as ended:
        main(["train", str(folder / "student.toml"), str(student.parent)])
    assert ended.value.code == 0
    assert "goes on after step 24" in capsys.readouterr().err
    after = {path.name: path.read_bytes() for path in student.iterdir()}
    assert after.pop("curves.png").startswith(b"\x89PNG")
    assert after == before
    with pytest.raises(SystemExit) as ended:
        main(["train", str(folder / "nothing.toml"), str(student.parent)])
    assert ended.value.code == 2
    assert "nothing.toml" in capsys.readouterr().err
