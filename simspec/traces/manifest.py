"""A trace's manifest: who made it, from what, in which units."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from simspec.errors import BadInput

FORMAT_VERSION = 1
MANIFEST_NAME = "manifest.json"

Hash = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}$")]
Count = Annotated[int, Meta(ge=1)]
Natural = Annotated[int, Meta(ge=0)]


class TableEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A Parquet file of the trace."""

    file: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]+\.parquet$")]
    rows: Natural
    sha256: Hash


class ModelEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A model of the trace.

    ``kind`` decides how its blocks are stored and what drafting costs:
    ``autoregressive`` (one forward a token; only blocks whose first token leaves the
    text are stored) or ``prompt-lookup`` (one look-up a block; every block is stored).
    ``about`` holds what else is known: source, file hash, layers, parameters.
    """

    kind: Literal["autoregressive", "prompt-lookup"]
    about: dict[str, Any] = {}


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a trace says of itself.

    Attributes:
        origin: ``measured`` for real models, ``synthetic`` for made-up ones; shown
            wherever the trace is.
        near_ties: positions where the target's wide forward named another token than its
            own decoding did, with the greatest logit margin there: floating point's doing,
            and the bound within which replay can differ from a real run.
        behaviour_sha256: hash over every table but the latencies, which no two runs share.
    """

    format: Literal[1]
    name: str
    origin: Literal["measured", "synthetic"]
    created: str
    command: list[str]
    recipe: dict[str, Any]
    recipe_sha256: Hash
    target: str
    models: dict[str, ModelEntry]
    tokenizer_sha256: Hash
    vocabulary: Count
    eos_tokens: list[int]
    output_tokens: Count
    block_length: Count
    context_limit: Count
    seed: Natural
    device: str
    dtype: str
    machine: dict[str, Any]
    versions: dict[str, str]
    units: dict[str, str]
    near_ties: dict[str, float]
    recording_seconds: dict[str, float]
    behaviour_sha256: Hash
    tables: dict[str, TableEntry]
    notes: list[str] = []


def read_manifest(folder: Path) -> Manifest:
    """Read ``folder``'s manifest; raises :class:`BadInput` naming the field that does not fit."""
    path = folder / MANIFEST_NAME
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise BadInput(
            f"cannot be read: {error.strerror}",
            where=path,
            hint="a trace is a folder with a manifest.json; make one with: simspec record",
        ) from error
    try:
        manifest = msgspec.json.decode(raw, type=Manifest)
    except (msgspec.ValidationError, msgspec.DecodeError) as error:
        raise BadInput(str(error), where=path) from error
    if manifest.target not in manifest.models:
        raise BadInput(
            f"field 'target': {manifest.target!r} is not in 'models'",
            where=path,
            allowed=", ".join(manifest.models),
        )
    return manifest
