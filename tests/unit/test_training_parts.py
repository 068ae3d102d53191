"""What training is made of, piece by piece, and the recipes that the project comes with."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.real_model  # needs torch


def test_divergence_is_the_whole_one_where_nothing_is_left_over():
    import torch

    from simspec.training.losses import divergence

    p, q = torch.tensor([[0.5, 0.3, 0.2]]), torch.tensor([[0.2, 0.2, 0.6]])
    whole = (p * (p / q).log()).sum()
    every = divergence(q.log(), torch.tensor([[0, 1, 2]]), p)
    assert float(every[0]) == pytest.approx(float(whole), abs=1e-4)
    some = divergence(q.log(), torch.tensor([[0, -1]]), torch.tensor([[0.5, 0.0]]))
    by_hand = 0.5 * np.log(0.5 / 0.2) + 0.5 * np.log(0.5 / 0.8)
    assert float(some[0]) == pytest.approx(by_hand, abs=1e-4)
    assert by_hand < float(whole)


def test_runs_of_agreement_are_counted_from_every_start():
    from simspec.training.measuring import _figures

    nan = float("nan")
    agreed = np.full((3, 16), nan)
    agreed[0, :3], agreed[1, :2], agreed[2, :1] = [1, 0, 1], [0, 1], [1]
    figures = _figures("all", [("x", 1.0, agreed)])
    assert figures.accepted[:2] == (pytest.approx(2 / 3), 0.0)


@pytest.mark.shared
def test_no_recorded_prompt_is_in_the_committed_training_texts():
    from simspec.record.prompts import choose_prompts
    from simspec.record.recipe import read_recipe, read_toml
    from simspec.training.prompts import asked_texts, kept_keys, key_of
    from simspec.training.recipe import TextsRecipe

    calibrate = Path(__file__).parents[2] / "calibrate"
    recipe = read_toml(calibrate / "smollm2-texts.toml", TextsRecipe)
    asked = {one.key for one in asked_texts(recipe, calibrate)}
    kept = kept_keys(recipe, calibrate)
    assert not asked & kept
    recordings = sorted(calibrate.glob("smollm2-*cpu.toml"))
    assert len(recordings) >= 2
    for path in recordings:
        recorded_recipe = read_recipe(path)[0]
        before = {part.category: part.before for part in recorded_recipe.prompts}
        for prompt in choose_prompts(recorded_recipe, calibrate):
            assert key_of(prompt.text.removeprefix(before[prompt.category])) in kept, (path.name, prompt)


def test_the_most_frequent_ids_are_taken():
    import torch

    from simspec.training.network import frequent_ids

    top_ids = np.array([[4, 1], [4, 7], [1, 4]], dtype=np.int32)
    log_probs = np.log(np.array([[0.6, 0.3], [0.5, 0.4], [0.8, 0.1]])).astype(np.float16)
    # Weights: 4 has 1.2, 1 has 1.1, 7 has 0.4; 2 is wanted whatever it weighs.
    assert frequent_ids(top_ids, log_probs, 3, (2,), torch.arange(9)).tolist() == [1, 2, 4]
    assert frequent_ids(top_ids, log_probs, 2, (), torch.arange(9)).tolist() == [1, 4]
    assert frequent_ids(top_ids, log_probs, 2, (2,), torch.tensor([1, 2, 7])).tolist() == [1, 2]
    assert frequent_ids(top_ids, log_probs, 0, (2,), torch.tensor([1, 2, 7])).tolist() == [1, 2, 7]
    # A table longer than any id that occurs.
    assert frequent_ids(top_ids, log_probs, 4, (), torch.arange(30)).tolist() == [0, 1, 4, 7]


def test_the_committed_recipes_are_read():
    from simspec.record.recipe import read_toml
    from simspec.training.recipe import TrainRecipe

    for name in ("student-4", "student-2", "block-16"):
        path = Path(__file__).parents[2] / "calibrate" / f"{name}.toml"
        recipe = read_toml(path, TrainRecipe)
        assert recipe.name == name
        assert (path.parent / recipe.texts).exists()
