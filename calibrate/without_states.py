"""What a block-parallel drafter makes of the target's states: held-out texts with them, and with zeros.

It was trained with states, so this does not tell what one trained without them would do.

    python calibrate/without_states.py calibrate/block-16.toml ~/.cache/simspec
"""

import argparse
import dataclasses
import tempfile
from pathlib import Path

import msgspec
import torch
from safetensors.torch import save_file

from simspec.record.models import load_models
from simspec.record.recipe import read_toml
from simspec.training.measuring import measure
from simspec.training.recipe import BlockRecipe, TextsRecipe, TrainRecipe
from simspec.training.session import begin_network
from simspec.training.texts import make_texts


def main(recipe_path: Path, folder: Path) -> None:
    recipe = read_toml(recipe_path, TrainRecipe)
    texts_path = recipe_path.parent / recipe.texts
    texts_recipe = read_toml(texts_path, TextsRecipe)
    models = load_models(texts_recipe.recording(), texts_path.parent)
    _, held_out = make_texts(texts_recipe, texts_path.parent, folder, models, print)
    assert isinstance(recipe.drafter, BlockRecipe), "a recipe of a block-parallel drafter"
    layers = tuple(range(len(recipe.drafter.layers)))
    trained = msgspec.structs.replace(
        recipe,
        begin=recipe.name,
        drafter=msgspec.structs.replace(recipe.drafter, layers=layers, output_ids=0),
    )
    network = begin_network(trained, texts_recipe, folder, models, held_out)
    longest = max(len(text.tokens) for text in held_out)
    width = held_out[0].read_states(recipe.drafter.reads_target).shape[1]
    zeros = Path(tempfile.mkdtemp()) / "zeros.safetensors"
    save_file({"states": torch.zeros((longest, width))}, zeros)
    blind = [dataclasses.replace(t, states=(zeros, 0, recipe.drafter.reads_target)) for t in held_out]
    for name, texts in (("with states", held_out), ("with zeros", blind)):
        for found in measure(network, texts, recipe.drafter):
            accepted = ", ".join(f"{share:.3f}" for share in found.accepted)
            print(f"{name}, {found.category}: accepted {accepted}; at length 8 {found.emitted[1]:.2f} tokens")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("recipe", type=Path)
    parser.add_argument("folder", type=lambda text: Path(text).expanduser(), help="where it was trained")
    words = parser.parse_args()
    main(words.recipe, words.folder)
