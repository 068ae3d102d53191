"""Tokens a cycle of sampled decoding, by real models and by replay of their recording.

python calibrate/sampled_replay.py calibrate/smollm2-sampled-cpu.toml traces/smollm2-sampled-cpu skip-10
"""

import argparse
import json
from pathlib import Path

from simspec.experiments.sampled import compare_sampled
from simspec.record.models import load_models
from simspec.record.prompts import choose_prompts
from simspec.record.recipe import read_recipe
from simspec.record.session import encode_prompt
from simspec.speculation.lengths import Static
from simspec.speculation.lengths_thresholds import WeakToken
from simspec.traces.reader import read_tables

RULES = {f"static-{n}": Static(n) for n in (1, 2, 4, 8)} | {"weak-token-0.4": WeakToken(0.4)}


def main(path: Path, folder: Path, drafter: str, seeds: int, lucks: int, out: Path | None) -> None:
    recipe, _ = read_recipe(path)
    models = load_models(recipe, path.parent)
    prompts = [encode_prompt(models, recipe, p)[0].numpy() for p in choose_prompts(recipe, path.parent)]
    read = read_tables(folder)
    found = compare_sampled(
        models,
        read,
        prompts,
        drafter,
        RULES,
        seeds=seeds,
        lucks=lucks,
        progress=lambda s: print(s, flush=True),
    )
    for rule, figures in found.items():
        for name, f in figures.items():
            low, high = f["off_interval"]
            print(
                f"{drafter} {rule} {name}: measured {f['measured']:.3f} over {f['cycles']} cycles, replayed "
                f"{f['replayed']:.3f}, off {f['off']:+.1f}% ({low:+.1f} to {high:+.1f})"
            )
    if out:
        about = {"trace": folder.name, "drafter": drafter, "seeds": seeds, "lucks": lucks}
        out.write_text(json.dumps({**about, "rules": found}, indent=1) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recipe", type=Path)
    parser.add_argument("trace", type=Path)
    parser.add_argument("drafter")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--lucks", type=int, default=20)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    main(given.recipe, given.trace, given.drafter, given.seeds, given.lucks, given.json)
