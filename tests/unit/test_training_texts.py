"""Texts that a target writes to train on: drawn as asked, begun where asked, with the states asked for."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests import recorded

pytestmark = pytest.mark.real_model  # torch and transformers; the weights are made up


class Given:
    """A generator of numbers that were given."""

    def __init__(self, *numbers: float) -> None:
        self.numbers = list(numbers)

    def random(self) -> float:
        return self.numbers.pop(0)


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    from simspec.record.models import load_models
    from simspec.record.recipe import Recipe, TargetRecipe

    root = recorded.networks(tmp_path_factory.mktemp("texts"))
    return load_models(Recipe("r", TargetRecipe("target"), (), ()), root)


@pytest.mark.parametrize("temperature", [1.0, 0.5, 2.0])
def test_tokens_are_drawn_with_the_probabilities_of_the_temperature(temperature):
    import torch

    from simspec.training.writing import _choose

    logits = torch.tensor([[0.3, 2.0, -1.0, 1.0, 0.0, -3.0], [1.0, 0.0, 0.0, 0.0, 0.0, 5.0]])
    log_probs = logits.log_softmax(-1)
    wanted = (logits[0] / temperature).softmax(-1).numpy()
    best = log_probs.topk(2, dim=-1)
    points = (np.arange(4000) + 0.5) / 4000
    drawn = [_choose(log_probs, best, [Given(p), None], temperature) for p in points]
    shares = np.bincount([first for first, _ in drawn], minlength=6) / len(points)
    np.testing.assert_allclose(shares, wanted, atol=1e-3)
    assert {second for _, second in drawn} == {5}  # a greedy text beside a drawn one


def test_a_draw_at_the_end_of_rounding_is_a_token_with_a_chance():
    import torch

    from simspec.training.writing import _choose

    log_probs = torch.tensor([[0.0, -1.0, -200.0]]).log_softmax(-1)
    assert _choose(log_probs, log_probs.topk(1, dim=-1), [Given(1.0)], 1.0) == [1]


def test_a_text_that_is_begun_goes_on_past_the_end_of_the_users_words(models):
    from simspec.training.writing import write_texts

    target = models.networks["target"]
    prompts = [np.array([0, 1], dtype=np.int32), np.array([3], dtype=np.int32)]

    def written(turns, ends):
        return write_texts(target, prompts, [None, None], 20, ends, 3, turns=turns)

    whole = written([1, 1], ())[0].tokens.tolist()
    end = whole[4]
    places = [i for i, token in enumerate(whole) if token == end]
    assert len(places) > 1
    once, twice = (written([turns, 1], (end,)) for turns in (1, 2))
    assert once[0].tokens.tolist() == whole[: places[0] + 1]
    assert twice[0].tokens.tolist() == whole[: places[1] + 1]
    np.testing.assert_array_equal(once[1].tokens, twice[1].tokens)


def test_states_are_those_that_reading_the_text_gives(models):
    import torch

    from simspec.record.observe import read_along
    from simspec.record.reads_target import shifted
    from simspec.training.writing import write_texts

    target = models.networks["target"]
    prompts = [np.array(p, dtype=np.int32) for p in ([0, 1, 4], [3], [2, 2])]
    # A token at which some texts end before others.
    end = int(write_texts(target, prompts, [None] * 3, 12, (), 3)[1].tokens[5])
    for prompt, text in zip(
        prompts, write_texts(target, prompts, [None] * 3, 12, (end,), 3, layers=(1, 0)), strict=True
    ):
        along = read_along(target, torch.tensor(prompt[None]), text.tokens, keep_states=(1, 0))
        torch.testing.assert_close(text.states, shifted(along.states)[0], rtol=1e-4, atol=1e-5)
        assert not text.states[0].any()


def test_a_prompt_is_begun_with_its_first_words(models):
    from simspec.training.texts import _beginning

    models.tokenizer.chat_template = "b{{ messages[0]['content'] }}{% if true %}d{% endif %}"
    said = models.tokenizer.decode(_beginning(models, "ac"))
    assert said.replace(" ", "") == "bac"


def test_collections_with_words_hold_drawn_texts_of_prompts_that_are_free(tmp_path):
    from simspec.record.recipe import TargetRecipe
    from simspec.training.prompts import asked_texts
    from simspec.training.recipe import CollectionRecipe, TextsRecipe

    lines = [f"  word{n}  and\nmore {n} here" for n in range(8)] + ["short"]
    (tmp_path / "p.jsonl").write_text("".join(json.dumps({"t": line}) + "\n" for line in lines))
    common = {"category": "c", "file": "p.jsonl", "field": "t", "before": "Do: ", "id_field": "line"}
    recipe = TextsRecipe(
        "t",
        TargetRecipe("target"),
        (),
        (
            CollectionRecipe(**common, count=9, held_out=3),
            CollectionRecipe(**common, count=9, words=3, texts=2),
        ),
    )
    asked = asked_texts(recipe, tmp_path)
    held = {one.key for one in asked if one.held_out}
    begun = [one for one in asked if one.opens]
    assert len(held) == 3
    assert len(begun) == 2 * (9 - 3)
    assert not held & {one.key for one in begun}
    assert {one.draw for one in begun} == {1, 2}  # none is greedy
    texts = {one.prompt.text for one in begun}
    assert texts <= {f"Do: word{n}  and\nmore" for n in range(8)} | {"Do: short"}
    assert len(texts) == 6


def test_blocks_in_training_go_on_as_their_fading_says():
    from simspec.training.batches import drawn_blocks, usual_masks
    from simspec.training.recipe import BlockRecipe
    from simspec.training.texts import Text

    recipe = BlockRecipe((0,), "<mask>", block=6, blocks=20, fading=3.0)
    n = 60
    text = Text(
        np.zeros(n + 4, np.int32), 4, np.zeros((n, 1), np.int32), np.zeros((n, 1), np.float16), "x", "x", 0
    )
    masks = []
    for step in range(150):
        (blocks,) = drawn_blocks([text], recipe, 0, step)
        assert (np.diff(blocks.starts) > 0).all()
        assert blocks.starts.max() < n - 1
        masks.append(blocks.masks)
    every = np.concatenate(masks)
    assert every.min() == 1
    assert every.max() == 5
    longer = [(every > d).mean() for d in range(5)]
    np.testing.assert_allclose(longer, np.exp(-np.arange(5) / 3.0), atol=0.03)
    assert usual_masks(recipe) == pytest.approx(20 * every.mean(), rel=0.05)
