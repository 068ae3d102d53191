"""The TOML recipe of a recording: which models, which prompts, how much of each."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Literal, TypeVar

import msgspec
from msgspec import Meta

from simspec.errors import BadInput
from simspec.provenance import sha256_file

Count = Annotated[int, Meta(ge=1)]
Natural = Annotated[int, Meta(ge=0)]
Name = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
Read = TypeVar("Read", bound=msgspec.Struct)


class TargetRecipe(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The target.

    Attributes:
        source: where its weights are: a folder of safetensors; ``FILE.gguf``; ``hub:ORG/NAME`` (or
            ORG/NAME, where no such path exists); ``package:NAME``; ``random:PATH``, weights drawn
            from the seed for the config.json at PATH, for latency only.
        revision: of a hub model: branch, tag or commit.
    """

    source: str
    name: Name = "target"
    revision: str = ""


class LookupRecipe(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="prompt-lookup"
):
    """An n-gram drafter over the prompt and the text so far."""

    name: Name
    max_ngram: Count = 3
    min_ngram: Count = 2


class LayerSkipRecipe(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="layer-skip"
):
    """The target without ``count`` layers from layer ``first`` on, its weights shared."""

    name: Name
    first: Natural
    count: Count


class ModelRecipe(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="model"):
    """A model of its own with the target's tokens; ``source`` and ``revision`` as for the target."""

    name: Name
    source: str
    revision: str = ""


class BlockParallelRecipe(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="block-parallel"
):
    """A network that drafts several tokens in one forward, by filling in masked places.

    Attributes:
        source: as for the target, or the word ``target`` for the target's own weights.
        mask_token: what stands in a masked place: a token's id, or the token itself.
        block: tokens drafted by one forward: the one after the text, and ``block - 1`` masked.
        within: whether a masked place sees the masked places before it, or all of them. The
            text never sees a masked place, so what is kept of it does not depend on the block.
    """

    name: Name
    source: str
    mask_token: Natural | str
    block: Count
    within: Literal["causal", "full"]
    revision: str = ""


class PromptRecipe(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``count`` prompts of one category, drawn without repetition from a JSONL file (or .gz).

    ``field`` is a path of keys and indices to the text, such as ``turns.0``; ``where``
    keeps the rows whose field is one of the listed values; ``before`` is put in front.
    """

    category: Name
    file: str
    field: str
    id_field: str
    count: Count
    where: dict[str, list[str]] = {}
    before: str = ""


class LatencyRecipe(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The latency grid. ``repetitions`` up to batch ``many_up_to``, ``repetitions_above`` beyond."""

    batches: tuple[Count, ...] = (1, 2, 4, 8, 16, 32, 64)
    new_tokens: tuple[Count, ...] = (1, 2, 3, 4, 6, 8, 12, 17, 26)
    contexts: tuple[Count, ...] = (128, 512)
    repetitions: Count = 5
    repetitions_above: Count = 3
    many_up_to: Count = 16
    int8: tuple[str, ...] = ()


class SamplingRecipe(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How texts and drafts are drawn: at a temperature, from the least set of tokens that holds ``top_p``."""

    temperature: Annotated[float, Meta(gt=0, le=100)] = 1.0
    top_p: Annotated[float, Meta(gt=0, le=1)] = 1.0


class Recipe(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A whole recording. Lengths are in tokens.

    Attributes:
        device: ``cpu``, ``cuda``, ``cuda:N`` or ``mps``.
        dtype: how weights are held. ``int8-dynamic`` scales activations over a whole forward: a cost
            curve, since a token's logits then depend on its neighbours. ``int8-per-token`` scales
            each token's by its own. Both on the CPU only.
        attention: transformers' name for how attention is computed; empty for the model's default.
        trust_remote_code: whether code that comes with a model may be run here.
        sampling: of what is recorded; left out for the greedy texts and drafts that replay needs.
        alternatives: of each drafted place, tokens whose probabilities are kept, so that trees can be
            replayed; greedy recordings only.
    """

    name: Name
    target: TargetRecipe
    drafters: tuple[LookupRecipe | LayerSkipRecipe | ModelRecipe | BlockParallelRecipe, ...]
    prompts: tuple[PromptRecipe, ...]
    seed: Natural = 0
    output_tokens: Count = 128
    block_length: Count = 26
    context_limit: Count = 512
    device: str = "cpu"
    dtype: Literal["float32", "bfloat16", "float16", "int8-dynamic", "int8-per-token"] = "float32"
    attention: str = ""
    trust_remote_code: bool = False
    threads: Natural = 0
    latency: LatencyRecipe | None = None
    sampling: SamplingRecipe | None = None
    alternatives: Annotated[int, Meta(ge=0, le=64)] = 0


def read_toml(path: Path, kind: type[Read]) -> Read:
    """A recipe of the given kind.

    Raises:
        BadInput: when the file is missing, is no TOML, or has a field that does not fit.
    """
    try:
        return msgspec.convert(tomllib.loads(path.read_bytes().decode()), kind)
    except OSError as error:
        raise BadInput(f"cannot be read: {error.strerror}", where=path) from error
    except UnicodeDecodeError as error:
        raise BadInput("is not UTF-8 text", where=path) from error
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise BadInput(str(error), where=path) from error


def read_recipe(path: Path) -> tuple[Recipe, str]:
    """Read a recipe; returns it with the SHA-256 of its bytes.

    Raises:
        BadInput: when the file is missing, is no TOML, or has a field that does not fit.
    """
    recipe = read_toml(path, Recipe)
    names = [recipe.target.name, *(d.name for d in recipe.drafters)]
    twice = sorted({n for n in names if names.count(n) > 1})
    if twice:
        raise BadInput(f"model names used twice: {', '.join(twice)}", where=path)
    if recipe.output_tokens >= recipe.context_limit:
        raise BadInput(
            f"output_tokens {recipe.output_tokens} leaves no room for a prompt",
            where=path,
            allowed=f"less than context_limit, {recipe.context_limit}",
        )
    if recipe.alternatives and recipe.sampling:
        raise BadInput(
            f"field 'alternatives': {recipe.alternatives} with drawn texts",
            where=path,
            allowed="0, or no [sampling]: trees are replayed on greedy texts only",
        )
    if recipe.latency:
        strangers = [n for n in recipe.latency.int8 if n not in names]
        if strangers:
            raise BadInput(f"latency.int8 names no model: {', '.join(strangers)}", where=path)
        if recipe.latency.int8 and (recipe.dtype, recipe.device) != ("float32", "cpu"):
            raise BadInput(
                f"latency.int8 with dtype {recipe.dtype!r} on device {recipe.device!r}",
                where=path,
                allowed="dtype float32 on device cpu: torch's dynamic int8 takes nothing else",
            )
    return recipe, sha256_file(path)
