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


# What tells models of one name apart, where both entries say it.
_FACTS = (
    "sha256",
    "layers",
    "skipped_first",
    "skipped_count",
    "block",
    "reads_target",
    "max_ngram",
    "min_ngram",
)


class ModelEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A model of the trace.

    ``kind`` decides how its blocks are stored and what drafting costs:
    ``autoregressive`` (one forward a token; only blocks whose first token leaves the
    text are stored), ``block-parallel`` (``about.block`` tokens a forward; every block is
    stored, and what it puts first at every position) or ``prompt-lookup`` (one look-up a
    block; every block is stored). Only autoregressive models can verify.
    ``about`` holds what else is known: source, file hash, layers, parameters.
    """

    kind: Literal["autoregressive", "block-parallel", "prompt-lookup"]
    about: dict[str, Any] = {}

    @property
    def tokens_a_forward(self) -> int:
        """Tokens that one forward of it drafts; 1 for a look-up, which has no forwards."""
        return int(self.about["block"]) if self.kind == "block-parallel" else 1

    @property
    def reads_target(self) -> bool:
        """Whether it sees the target's hidden states at the tokens that the target has read."""
        return self.about.get("reads_target") is True

    def unlike(self, other: ModelEntry) -> str | None:
        """What tells this model from ``other``, in words; None where nothing that both say does."""
        if self.kind != other.kind:
            return f"kind {other.kind}, not {self.kind}"
        mine, theirs = self.about, other.about
        for fact in _FACTS:
            if fact in mine and fact in theirs and mine[fact] != theirs[fact]:
                return f"{fact} {theirs[fact]}, not {mine[fact]}"
        return None


class SamplingEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How texts and drafts were drawn: at a temperature, from the least set that holds ``top_p``."""

    temperature: Annotated[float, Meta(gt=0)]
    top_p: Annotated[float, Meta(gt=0, le=1)]


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a trace says of itself.

    Attributes:
        origin: ``measured`` for real models, ``synthetic`` for made-up ones; shown
            wherever the trace is.
        sampling: how texts and drafts were drawn; null where they are greedy. In a sampled trace
            every drafter's block is stored from every start, and all probabilities are of the
            distributions that were drawn from.
        near_ties: positions where the target's wide forward named another token than its
            own decoding did, with the greatest logit margin there: floating point's doing,
            and the bound within which replay can differ from a real run.
        behaviour_sha256: hash over every table but the latencies, which no two runs share.
        alternatives: most probable tokens of each drafted place whose probabilities are kept, in table
            ``choices``; 0 for none, and no such table.
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
    sampling: SamplingEntry | None = None
    alternatives: Natural = 0

    def refuse_sampled(self, where: Path) -> None:
        """Raise :class:`BadInput` for a trace that cannot be replayed cycle by cycle."""
        if self.sampling is None:
            return
        raise BadInput(
            f"field 'sampling': texts were drawn at temperature {self.sampling.temperature:g}, top_p "
            f"{self.sampling.top_p:g}, and replay is exact only for greedy texts: after a refused draft "
            "another text would have been drawn than the recorded one",
            where=where / MANIFEST_NAME,
            allowed="greedy traces (sampling null)",
            hint="simspec inspect shows a sampled trace, simspec lengths replays it in distribution",
        )


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
    for name, entry in manifest.models.items():
        size = entry.about.get("block")
        if entry.kind == "block-parallel" and (type(size) is not int or size < 1):
            raise BadInput(
                f"field 'models.{name}.about.block': {size!r}", where=path, allowed="a whole number from 1"
            )
    if manifest.models[manifest.target].kind != "autoregressive":
        raise BadInput(
            f"field 'target': {manifest.target!r} is {manifest.models[manifest.target].kind}",
            where=path,
            allowed="a model that can verify: autoregressive",
        )
    return manifest
