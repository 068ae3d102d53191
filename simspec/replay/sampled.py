"""Replay of sampled recordings: luck is laid on the recorded text. In distribution only.

p = the target's distribution, q = the drafter's, y = the recorded token, a draw from p. Under speculative
sampling (arXiv 2211.17192) a drafted token is accepted and equals y with min(p, q)(y), and y stands after a
refusal with (p - q)+(y): it is y with p(y) whoever drafts, and given y (and the text before it) it was an
accepted draft with probability min(1, q(y) / p(y)). So each place of a recorded text gets one uniform
number, fixed by the seed, that says whether a draft offered there is accepted; whatever the rule, a place
is offered at most once while a text is decoded, so all rules and drafters meet the same luck. A look-up's q
is certain: its draft is accepted where it is y.

Exact in distribution: texts, accepted and emitted tokens, and what a rule sees up to the first refused draft
(top-1 probability and entropy along the text). After a refusal the recorded text goes on: it is a text that
the target could have drawn there, not the one that it would have drawn in one run with the drafter's draws.

Approximate: what a rule sees of a block past its first refused draft, and with it how much is drafted and
submitted in vain by rules that look at confidences. That is taken from the block recorded at the place of
the refusal, whose first token is a draw from q, where it should be one that the target refused, (q - p)+.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from simspec.errors import BadInput
from simspec.speculation.chains import Chain
from simspec.streams import stream
from simspec.tables import BLOCKS
from simspec.traces.checked import Tables
from simspec.traces.drafters import Base, drafters_of
from simspec.traces.index import Trace, index_tables, outline
from simspec.traces.reader import read_tables

Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]

IN_DISTRIBUTION = (
    "sampled texts are replayed in distribution: after a refused draft the recorded text goes on, and past a "
    "block's first refused draft a rule sees the block recorded there"
)
UNSAFE = (
    "how many drafts it submits is settled after later ones were seen, so what is drawn would not be the "
    "target's any more"
)


class Rule(Protocol):
    @property
    def sampling_safe(self) -> bool: ...


R = TypeVar("R", bound=Rule)


def load_any(folder: Path, seed: int = 0) -> Trace:
    """The trace in ``folder`` for replay: exact of greedy texts, :func:`in_distribution` of sampled ones.

    Raises:
        BadInput: when something in it does not hold, or it cannot be replayed.
    """
    read = read_tables(folder)
    return index_tables(read) if read.manifest.sampling is None else in_distribution(read, seed)


def in_distribution(read: Tables, seed: int) -> Trace:
    """A sampled recording with a luck, as a record that pairs of a drafter and the target are replayed on.

    ``confidence`` is the top-1 probability, and a draft that is to be refused leaves the text. Drafters that
    fill in masked places are left out: their q along the text is not recorded.

    Raises:
        BadInput: when the texts are greedy, or no drafter is left.
    """
    manifest = read.manifest
    if manifest.sampling is None:
        raise BadInput(
            "field 'sampling' is null: texts are greedy", where=read.folder, allowed="sampled texts"
        )
    able = {m: e for m, e in manifest.models.items() if e.kind != "block-parallel"}
    if len(able) < 2:
        raise BadInput(
            "field 'models': no drafter that sampled texts can be replayed with",
            where=read.folder,
            allowed="autoregressive drafters and look-ups: others' probabilities along a text are not kept",
        )
    manifest = msgspec.structs.replace(manifest, models=able, alternatives=0)
    trace = replace(outline(read), manifest=manifest)
    trace = replace(trace, owns={trace.target: np.ones(len(trace.tokens), dtype=bool)})
    chance, top1, entropy = _along(read, trace)
    luck = acceptance_luck(seed, len(trace.tokens))
    kept = _refused_blocks(read, trace, {m: ~(luck < c) for m, c in chance.items()})
    read = replace(read, tables={**read.tables, "blocks": kept, "verdicts": read.tables["verdicts"][:0]})
    size = trace.prompts["output_tokens"].to_numpy().astype(np.int64)
    base = Base(
        manifest, trace.offsets, trace.prompt, trace.position, size, trace.tokens, trace.owns, top1, entropy
    )
    return replace(trace, drafters=drafters_of(base, read))


def acceptance_chance(p: Any, q: Any) -> Any:
    """min(1, q / p): how likely it is that a token y of a text was an accepted draft, from p(y) and q(y).

    Arrays of floats or of fractions. A drawn token has p > 0, which float32 may have rounded away.
    """
    sure = p <= q
    return np.where(sure, 1, q / np.where(sure, 1, p))


def acceptance_luck(seed: int, positions: int) -> Floats:
    """One uniform number for each flat position, (N,)."""
    return stream(seed, "replay", "acceptance").random(positions)


def acceptance_chances(read: Tables) -> dict[str, Floats]:
    """For each network but the target, min(1, q(y) / p(y)) at every position, (N,): see the module."""
    return _along(read, outline(read))[0]


def _along(
    read: Tables, trace: Trace
) -> tuple[dict[str, Floats], dict[str, NDArray[np.float32]], dict[str, NDArray[np.float32]]]:
    """Acceptance chances, top-1 probabilities and entropies of each network along the texts, (N,)."""
    along = read.frame("along")
    along["flat"] = trace.offsets[along["prompt_id"]] + along["position"]
    rows = {m: each.sort_values("flat") for m, each in along.groupby("model", sort=False)}
    text = {m: each["text_prob"].to_numpy().astype(np.float64) for m, each in rows.items()}
    networks = [m for m in trace.verifiers if m != trace.target]
    chance = {m: acceptance_chance(text[trace.target], text[m]) for m in networks}
    top1, entropy = (
        {m: rows[m][name].to_numpy() for m in trace.verifiers} for name in ("top1_prob", "entropy")
    )
    return chance, top1, entropy


def _refused_blocks(read: Tables, trace: Trace, refused: Mapping[str, Flags]) -> pa.Table:
    """Blocks in the form of greedy traces: a network's only where its draft is refused; look-ups' all."""
    blocks = read.tables["blocks"]
    flat = trace.offsets[blocks.column("prompt_id").to_numpy()] + blocks.column("start").to_numpy()
    drafter = np.asarray(blocks.column("drafter").to_pylist(), dtype=object)
    keep = np.zeros(len(flat), dtype=bool)
    for model in trace.manifest.models:
        mine = drafter == model
        keep[mine] = refused[model][flat[mine]] if model in refused else True
    place = blocks.column_names.index("confidence")
    top1 = pc.cast(blocks.column("top1_prob"), BLOCKS.schema.field("confidence").type)
    return blocks.set_column(place, BLOCKS.schema.field("confidence"), top1).filter(pa.array(keep))


def usable(trace: Trace, rules: Mapping[str, R]) -> dict[str, R]:
    """The rules that the trace can be replayed with: on sampled texts, those that do not change them."""
    return {n: r for n, r in rules.items() if trace.manifest.sampling is None or r.sampling_safe}


def refuse_unsafe(trace: Trace, chain: Chain, rules: Mapping[str, Rule]) -> None:
    """Refuse what a sampled trace cannot be replayed with: intermediates, and rules that change the text.

    Raises:
        BadInput: naming the first of them and why (claim L16).
    """
    if trace.manifest.sampling is None:
        return
    if chain.intermediates:
        raise BadInput(f"{chain} on sampled texts", where=trace.folder, allowed="a drafter and the target")
    for name, rule in rules.items():
        if not rule.sampling_safe:
            raise BadInput(
                f"rule {name} cannot be used with rejection sampling: {UNSAFE}",
                where=trace.folder,
                allowed="rules whose every step is settled by the tokens before it (sampling_safe)",
            )
