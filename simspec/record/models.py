"""A recipe's models, loaded and fitted to each other.

A model here answers one question: given tokens, their positions, a mask and a
cache, what are the logits? Everything else in this room is arrangement.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from transformers.utils import logging as transformers_logging

from simspec.errors import BadInput
from simspec.record.loading import (
    check_device,
    check_embedded,
    finish_network,
    load_network,
    load_tokenizer,
    output_rows,
)
from simspec.record.quantize import quantize_int8 as quantize_int8
from simspec.record.reads_target import check_reads, reads_target, same_layers
from simspec.record.recipe import BlockParallelRecipe, LayerSkipRecipe, LookupRecipe, ModelRecipe, Recipe
from simspec.record.running import crop as crop
from simspec.record.running import forward as forward
from simspec.record.running import takes_masks
from simspec.record.skips import skip_layers as skip_layers
from simspec.record.sources import Source, find_source
from simspec.record.tokenizers import check_ids_fit, check_same_tokens, mask_token_id, vocabulary_hash
from simspec.speculation.drafters import PromptLookup


@dataclass(frozen=True)
class BlockParallel:
    """A drafter that fills in several places in one forward.

    Given a text, it reads what is new of it and ``block - 1`` mask tokens. The logits at the last
    token of text are of the first drafted token, those at the j-th mask of the (j + 1)-th; its
    confidence in each is the softmax's probability of the drafted token. The masks are then rolled
    back. Text is read in causal order and sees no mask; masks see the text and, by ``within``, the
    masks before them (``causal``) or all of them (``full``). What it drafted itself comes without the
    target's states (:mod:`simspec.record.reads_target`), so a drafter that reads those reads it again
    once the target has.
    """

    network: Any
    mask_token: int
    block: int
    within: Literal["causal", "full"]

    @property
    def reads_target(self) -> bool:
        """Whether it sees the target's hidden states."""
        return reads_target(self.network)


@dataclass(frozen=True)
class LoadedModels:
    """The recipe's models, ready to run.

    Attributes:
        tokenizer: the target's; None where its weights are random and none came with them.
        networks: that draft or verify one token after another: the target first.
        lookups: that draft without a network.
        blocks: that draft several tokens in one forward.
        described: what the manifest says of each model.
        vocabulary: token ids that all networks know; every network's logits end there.
        read_layers: of the target, whose states drafters read.
        latency_only: why what these models say is not to be recorded; empty where it is.
    """

    tokenizer: Any
    target: str
    networks: dict[str, torch.nn.Module]
    lookups: dict[str, PromptLookup]
    blocks: dict[str, BlockParallel]
    described: dict[str, dict[str, object]]
    tokenizer_hash: str
    eos_ids: tuple[int, ...]
    vocabulary: int
    read_layers: tuple[int, ...] = ()
    latency_only: tuple[str, ...] = ()

    def check_behaviour(self) -> None:
        """Raise :class:`BadInput` when these models are for latency only."""
        if self.latency_only:
            raise BadInput(
                f"for latency only: {'; '.join(self.latency_only)}",
                where="models",
                hint="to time them: simspec calibrate",
            )


def load_models(recipe: Recipe, folder: Path | None = None) -> LoadedModels:
    """Load target and drafters.

    What can be refused is refused before any weights are read.

    Args:
        folder: the recipe's, where relative paths are looked up before the working folder.

    Raises:
        BadInput: when a model is missing, cannot be run as the recipe asks, or does not fit the target.
    """
    transformers_logging.disable_progress_bar()
    if recipe.threads:
        torch.set_num_threads(recipe.threads)
    check_device(recipe)
    target_name = recipe.target.name
    sources = _find_sources(recipe, folder)
    tokenizers = {
        name: load_tokenizer(source, code=recipe.trust_remote_code)
        for name, source in sources.items()
        if name == target_name or not source.config  # a random drafter's tokens are the target's
    }
    tokenizer = tokenizers[target_name]
    masks = {
        d.name: mask_token_id(
            d.mask_token, tokenizers.get(d.name, tokenizer), f"recipe {recipe.name}: {d.name}"
        )
        for d in recipe.drafters
        if isinstance(d, BlockParallelRecipe)
    }
    for name, other in tokenizers.items():
        if name != target_name and tokenizer is not None:
            own = [masks[name]] if name in masks else []
            check_same_tokens(tokenizer, other, sources[name].where, own=own)

    loaded: dict[str, Any] = {}
    described: dict[str, dict[str, object]] = {}
    for name, source in sources.items():
        loaded[name], described[name] = load_network(source, recipe, name)
    rows = {name: output_rows(network, sources[name].where) for name, network in loaded.items()}
    vocabulary = min(rows.values())
    check_ids_fit(tokenizer, rows)
    for name, source in sources.items():
        described[name] |= finish_network(loaded[name], vocabulary, recipe, source.where)

    target = loaded[target_name]
    networks: dict[str, torch.nn.Module] = {target_name: target}
    lookups: dict[str, PromptLookup] = {}
    blocks: dict[str, BlockParallel] = {}
    about: dict[str, dict[str, object]] = {target_name: {"kind": "autoregressive", **described[target_name]}}
    for drafter in recipe.drafters:
        name = drafter.name
        match drafter:
            case LookupRecipe():
                lookups[name] = PromptLookup(drafter.max_ngram, drafter.min_ngram)
                about[name] = {
                    "kind": "prompt-lookup",
                    "max_ngram": drafter.max_ngram,
                    "min_ngram": drafter.min_ngram,
                }
            case LayerSkipRecipe():
                networks[name] = skip_layers(target, drafter.first, drafter.count)
                about[name] = {
                    "kind": "autoregressive",
                    "form": "layer-skip",
                    "parent": target_name,
                    "layers": int(target.config.num_hidden_layers) - drafter.count,
                    "skipped_first": drafter.first,
                    "skipped_count": drafter.count,
                }
            case ModelRecipe():
                if reads_target(loaded[name]):
                    raise BadInput(
                        "reads the target's states",
                        where=sources[name].where,
                        allowed="as a drafter of kind block-parallel",
                    )
                networks[name] = loaded[name]
                about[name] = {"kind": "autoregressive", **described[name]}
            case BlockParallelRecipe():
                network = loaded.get(name, target)
                check_embedded(masks[name], network, f"recipe {recipe.name}: mask_token of {name}")
                check_reads(network, target, f"recipe {recipe.name}: {name}")
                blocks[name] = BlockParallel(network, masks[name], drafter.block, drafter.within)
                about[name] = _about_block(blocks[name], target_name, described.get(name))
    return LoadedModels(
        tokenizer=tokenizer,
        target=target_name,
        networks=networks,
        lookups=lookups,
        blocks=blocks,
        described=about,
        tokenizer_hash=vocabulary_hash(tokenizer.get_vocab() if tokenizer else {}),
        eos_ids=_eos_ids(target, tokenizer),
        vocabulary=vocabulary,
        read_layers=same_layers((kind.network for kind in blocks.values()), f"recipe {recipe.name}"),
        latency_only=tuple(_latency_only(recipe, sources, loaded)),
    )


def _find_sources(recipe: Recipe, folder: Path | None) -> dict[str, Source]:
    """The files of every model that has weights of its own, the target's first."""
    named: list[tuple[str, str, str, str]] = [
        (recipe.target.name, "target", recipe.target.source, recipe.target.revision)
    ]
    for drafter in recipe.drafters:
        match drafter:
            case ModelRecipe():
                named.append((drafter.name, f"drafter {drafter.name}", drafter.source, drafter.revision))
            case BlockParallelRecipe() if drafter.source != "target":
                named.append((drafter.name, f"drafter {drafter.name}", drafter.source, drafter.revision))
            case _:
                pass
    return {
        name: find_source(
            source,
            f"recipe {recipe.name}: source of {what}",
            folder=folder,
            revision=revision,
            code=recipe.trust_remote_code,
        )
        for name, what, source, revision in named
    }


def _about_block(
    drafter: BlockParallel, target: str, described: dict[str, object] | None
) -> dict[str, object]:
    return {
        "kind": "block-parallel",
        **(described or {"parent": target}),
        "mask_token": drafter.mask_token,
        "block": drafter.block,
        "within": drafter.within,
    }


def _latency_only(
    recipe: Recipe, sources: Mapping[str, Source], networks: Mapping[str, Any]
) -> Iterator[str]:
    """Reasons why what the models say would be no record of them."""
    for name, source in sources.items():
        if source.config:
            yield f"the weights of {name} are random"
    if recipe.dtype == "int8-dynamic":
        yield "with dtype int8-dynamic a token's logits depend on what else is in the forward"
    for name, network in networks.items():
        if not takes_masks(network):
            yield f"the attention of {name}, {network.config._attn_implementation}, takes no masks"
        window = _window(network.config)
        if window and window < recipe.context_limit:
            # The masks of recording say what a token sees; they know of no window.
            yield f"{name} sees {window} tokens back at most, context_limit is {recipe.context_limit}"


def _window(config: Any) -> int | None:
    """The fewest tokens that some layer sees back, None where all see everything."""
    kinds = getattr(config, "layer_types", None)
    sizes = [
        getattr(config, size, None)
        for kind, size in (
            ("sliding_attention", "sliding_window"),
            ("chunked_attention", "attention_chunk_size"),
        )
        if kinds is None or kind in kinds
    ]
    return min((size for size in sizes if size), default=None)


def _eos_ids(network: Any, tokenizer: Any) -> tuple[int, ...]:
    eos = getattr(getattr(network, "generation_config", None), "eos_token_id", None)
    if eos is None and tokenizer is not None:
        eos = tokenizer.eos_token_id
    if eos is None:
        return ()
    return tuple(sorted(eos)) if isinstance(eos, list) else (int(eos),)
