"""Networks of a few thousand random weights, in folders as a recipe names them.

Made up, all of it: they say nothing of any model. Torch is imported inside, so that tests
marked ``real_model`` can be collected without it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

WORDS = tuple("abcdefghijklmnopqrstuvwxyz .,\n")
SPECIAL = ("<end>", "<mask>")
SIZES = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "bos_token_id": None,
    "eos_token_id": None,
    "pad_token_id": None,
}


def tokenizer(
    words: tuple[str, ...] = WORDS,
    merges: tuple[tuple[str, str], ...] = (),
    special: tuple[str, ...] = SPECIAL,
) -> Any:
    """Byte-pair tokens: the words, then what the merges make, then the special ones."""
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    tokens = [*words, *sorted({a + b for a, b in merges})]
    made = Tokenizer(models.BPE({t: i for i, t in enumerate(tokens)}, list(merges)))
    fast = PreTrainedTokenizerFast(tokenizer_object=made, eos_token=special[0] if special else None)
    if special[1:]:
        fast.add_special_tokens({"additional_special_tokens": list(special[1:])})
    return fast


def config(rows: int = len(WORDS) + len(SPECIAL), kind: str = "Llama", **changes: Any) -> Any:
    """A tiny configuration with ``rows`` token ids."""
    import transformers

    return getattr(transformers, f"{kind}Config")(vocab_size=rows, **{**SIZES, **changes})


def network(made: Any, seed: int = 0) -> Any:
    """A network of a configuration, its weights drawn wide enough for it to have opinions."""
    import torch
    from transformers import AutoModelForCausalLM

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        net = AutoModelForCausalLM.from_config(made)
        for weight in net.parameters():
            if weight.ndim > 1:
                torch.nn.init.normal_(weight, std=0.3)
        net.tie_weights()
    return net.eval()


def folder(path: Path, net: Any, tokens: Any = None) -> Path:
    """The network as safetensors, and its tokenizer beside it."""
    net.save_pretrained(path)
    if tokens is not None:
        tokens.save_pretrained(path)
    return path
