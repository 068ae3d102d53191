"""From a model's files to a network that runs, or to a refusal that says what is in the way."""

from __future__ import annotations

import re
from typing import Any

import torch
from transformers import AttentionInterface, AutoConfig, AutoModelForCausalLM, AutoTokenizer

from simspec.errors import BadInput, unknown_name
from simspec.record.attention import FLOAT64_SUMS, offer_float64_sums
from simspec.record.quantize import quantize_in_place
from simspec.record.reads_target import FLAG as READS_TARGET
from simspec.record.reads_target import load_reading
from simspec.record.recipe import Recipe
from simspec.record.running import try_out
from simspec.record.sources import Source
from simspec.record.trimmed import FLAG, TrimmedOutput, trim_output
from simspec.streams import stream

_INT8 = ("int8-dynamic", "int8-per-token")


def check_device(recipe: Recipe) -> None:
    """Refuse a device, or a number format on it, that is not to be had here.

    Raises:
        BadInput: naming the field and what there is.
    """
    where, device = f"recipe {recipe.name}: device", recipe.device
    cards = torch.cuda.device_count() if torch.cuda.is_available() else 0
    metal = torch.backends.mps.is_available()
    here = ["cpu", *(["cuda", *(f"cuda:{n}" for n in range(cards))] if cards else []), *(["mps"] * metal)]
    if not re.fullmatch(r"cpu|mps|cuda(:[0-9]+)?", device):
        raise BadInput(f"{device!r} is no device", where=where, allowed="cpu, cuda, cuda:N, mps")
    if device not in here:
        raise BadInput(
            f"{device!r} is not to be had with this torch here", where=where, allowed=", ".join(here)
        )
    if recipe.dtype in _INT8 and device != "cpu":
        raise BadInput(
            f"{recipe.dtype!r} on device {device!r}", where=f"recipe {recipe.name}: dtype", allowed="cpu"
        )
    where, attention = f"recipe {recipe.name}: attention", recipe.attention
    known = {"eager", *(n for n in AttentionInterface() if "|" not in n)} - {FLOAT64_SUMS}
    if attention and attention not in known:
        # transformers would take ORG/NAME too, and fetch a kernel from the hub to run it.
        raise unknown_name("implementation", attention, known, where=where)
    if attention and recipe.dtype == "int8-per-token":
        raise BadInput(
            f"{attention!r} with dtype {recipe.dtype!r}, which brings its own", where=where, allowed="none"
        )
    if attention.startswith("flash") and (
        not device.startswith("cuda") or recipe.dtype not in ("bfloat16", "float16")
    ):
        raise BadInput(
            f"{attention!r} with dtype {recipe.dtype!r} on device {device!r}",
            where=where,
            allowed="bfloat16 or float16 on cuda",
        )


def load_tokenizer(source: Source, *, code: bool) -> Any:
    """The tokenizer beside a model's weights; None where weights are random and there is none.

    Raises:
        BadInput: when it cannot be loaded, or needs code to run that ``code`` does not allow.
    """
    extra = {"gguf_file": source.gguf} if source.gguf else {}
    if source.config and not any(source.folder.glob("tokenizer*")):
        return None
    try:
        return AutoTokenizer.from_pretrained(
            source.folder, trust_remote_code=code, local_files_only=True, **extra
        )
    except Exception as error:  # files of any origin fail in ways of any kind
        raise _refusal("the tokenizer cannot be loaded", error, source) from error


def load_network(source: Source, recipe: Recipe, name: str) -> tuple[Any, dict[str, object]]:
    """A network on the recipe's device, in its number format, and what to say about it.

    Args:
        name: of the model, which random weights depend on beside the recipe's seed.

    Raises:
        BadInput: when it cannot be loaded or run, lacks weights, or needs code to run that the
            recipe does not allow.
    """
    dtype = torch.float32 if recipe.dtype in _INT8 else getattr(torch, recipe.dtype)
    asked: dict[str, Any] = {"trust_remote_code": recipe.trust_remote_code}
    if recipe.dtype == "int8-per-token":
        offer_float64_sums()
        asked["attn_implementation"] = FLOAT64_SUMS
    elif recipe.attention:
        asked["attn_implementation"] = recipe.attention
    about: dict[str, object] = {"source": source.said}
    if source.gguf:
        about["file"] = source.gguf
    if source.commit:
        about["commit"] = source.commit
    about["sha256"] = source.sha256()
    if source.config:
        seed = int(stream(recipe.seed, "weights", name).integers(2**63))
        network = _draw(source, dtype, recipe.device, seed, asked)
        about["weights"] = "random"
    else:
        network, unused = _read(source, dtype, asked)
        if getattr(network.config, FLAG, False):
            trim_output(network, source.folder, source.where)
            about["output_ids"] = len(network.get_output_embeddings().ids)
        if getattr(network.config, READS_TARGET, False):
            load_reading(network, source.folder, source.where)
            about[READS_TARGET] = True
        network = network.to(recipe.device)
        if unused:
            about["unused_weights"] = unused
    network = network.eval()
    if not hasattr(network.config, "num_hidden_layers"):
        raise BadInput(
            f"{type(network).__name__} is more than a decoder of text",
            where=source.where,
            allowed="models whose configuration says num_hidden_layers",
        )
    about["architecture"] = type(network).__name__
    about["layers"] = int(network.config.num_hidden_layers)
    about["parameters"] = sum(p.numel() for p in network.parameters())
    about["attention"] = str(network.config._attn_implementation)
    if recipe.trust_remote_code:
        about["remote_code"] = type(network).__module__.startswith("transformers_modules")
    if getattr(network, "_is_stateful", False):
        raise BadInput(
            f"{type(network).__name__} keeps a running state, which cannot be rolled back",
            where=source.where,
            allowed="models whose every layer is attention over a cache of keys and values",
        )
    if recipe.dtype == "int8-per-token":
        _check_rows_apart(network, source.where)
    return network, about


def finish_network(network: Any, vocabulary: int, recipe: Recipe, where: str) -> dict[str, object]:
    """Cut the output layer to the common vocabulary, quantise where asked, and try the network out.

    Done in place, and once for all models that share the weights. Returns what to say about it.

    Raises:
        BadInput: when the output layer is of an unknown kind, or a trial forward fails.
    """
    about: dict[str, object] = {}
    rows = output_rows(network, where)
    if rows > vocabulary:
        network.set_output_embeddings(_first_rows(network.get_output_embeddings(), vocabulary))
        about["padded_ids"] = rows - vocabulary
    if recipe.dtype in _INT8:
        about["int8_layers"] = quantize_in_place(network, recipe.dtype)
    try_out(network, vocabulary, where)
    return about


def _first_rows(head: torch.nn.Linear | TrimmedOutput, vocabulary: int) -> torch.nn.Module:
    """The first rows of the same weights: what is beyond can then never be drafted."""
    if isinstance(head, TrimmedOutput):
        return head.first(vocabulary)
    short = torch.nn.Linear(head.in_features, vocabulary, bias=head.bias is not None, device="meta")
    short.weight = torch.nn.Parameter(head.weight.detach()[:vocabulary], requires_grad=False)
    if head.bias is not None:
        short.bias = torch.nn.Parameter(head.bias.detach()[:vocabulary], requires_grad=False)
    return short


def output_rows(network: Any, where: str) -> int:
    """Token ids that a network tells apart; its input table must hold as many.

    Raises:
        BadInput: when there is no plain linear output layer.
    """
    head, table = network.get_output_embeddings(), network.get_input_embeddings()
    if not isinstance(head, torch.nn.Linear | TrimmedOutput) or not isinstance(table, torch.nn.Embedding):
        raise BadInput(f"{type(network).__name__} has no linear output layer over token ids", where=where)
    return min(head.out_features, table.num_embeddings)


def check_embedded(token: int, network: Any, where: str) -> None:
    """Refuse a token id that a network has no row for in its input table."""
    rows = network.get_input_embeddings().num_embeddings
    if token >= rows:
        raise BadInput(
            f"{token} is no token id of {type(network).__name__}", where=where, allowed=f"0 to {rows - 1}"
        )


def _read(source: Source, dtype: torch.dtype, asked: dict[str, Any]) -> tuple[Any, int]:
    """A network with its weights, and how many of those found it has no use for."""
    extra = {"gguf_file": source.gguf} if source.gguf else {}
    try:
        loaded: Any = AutoModelForCausalLM.from_pretrained(
            source.folder,
            dtype=dtype,
            use_safetensors=True,
            local_files_only=True,
            output_loading_info=True,
            **asked,
            **extra,
        )
    except Exception as error:  # files of any origin fail in ways of any kind
        raise _refusal("cannot be loaded", error, source) from error
    network, found = loaded
    missing = sorted(found["missing_keys"])
    if missing:
        # transformers would go on with random numbers in their place.
        raise BadInput(f"lacks {len(missing)} weights, first {missing[0]!r}", where=source.where)
    return network, len(found["unexpected_keys"])


def _draw(source: Source, dtype: torch.dtype, device: str, seed: int, asked: dict[str, Any]) -> Any:
    """A network of random weights; the same ones for the same seed, device and versions."""
    where = torch.device(device)
    cards = [where] if where.type == "cuda" else []
    try:
        config = AutoConfig.from_pretrained(
            source.folder / source.config,
            trust_remote_code=asked["trust_remote_code"],
            local_files_only=True,
        )
        with torch.random.fork_rng(devices=cards), where:
            torch.manual_seed(seed)
            return AutoModelForCausalLM.from_config(config, dtype=dtype, **asked)
    except Exception as error:  # files of any origin fail in ways of any kind
        raise _refusal("no network can be made of it", error, source) from error


def _check_rows_apart(network: Any, where: str) -> None:
    """Refuse int8-per-token where something else would still make a row depend on its neighbours."""
    kind = type(network).__name__
    if not getattr(network, "_supports_attention_backend", False):
        raise BadInput(f"{kind} has an attention of its own, unknown to dtype 'int8-per-token'", where=where)
    plain = {
        f"{name}.{part}" if name else part
        for name, module in network.named_modules()
        if isinstance(module, torch.nn.Linear | torch.nn.Embedding)
        for part, _ in module.named_parameters(recurse=False)
    }
    other = [name for name, weight in network.named_parameters() if weight.ndim > 1 and name not in plain]
    if other:
        raise BadInput(
            f"{kind} has weights that dtype 'int8-per-token' leaves as they are, such as {other[0]!r}",
            where=where,
            allowed="models of linear layers only",
        )


def _refusal(problem: str, error: Exception, source: Source) -> BadInput:
    text = str(error)
    if "trust_remote_code" in text:
        return BadInput(
            "comes with code of its own, which would have to be run here",
            where=source.where,
            hint="say trust_remote_code = true in the recipe if you have read and trust it",
        )
    return BadInput(f"{problem}: {text or type(error).__name__}", where=source.where)
