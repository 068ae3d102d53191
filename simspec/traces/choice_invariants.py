"""What a trace's choices, of which drafted trees are made, owe its blocks and texts."""

from __future__ import annotations

import numpy as np
import pandas as pd

from simspec.traces import ragged
from simspec.traces.checked import Tables, refuse

# Half floats of the same probability are the same; a sum of k of them is off by less than this.
ROUNDING = 2e-3

_KEY = ["prompt_id", "start", "drafter"]


def check_choices(read: Tables, prompts: pd.DataFrame) -> None:
    """Refuse choices that do not fit; raises :class:`BadInput` naming file, row and column."""
    choices, data = read.frame("choices")[_KEY], read.tables["choices"]
    blocks = _blocks(read, prompts)
    both = choices.reset_index(names="row").merge(blocks, on=_KEY, how="outer", indicator=True)
    extra, missing = both[both["_merge"] == "left_only"], both[both["_merge"] == "right_only"]
    wanted = "one row of every drafter but look-ups at every start"
    if len(extra):
        refuse(read, "choices", int(extra.iloc[0]["row"]), "start", extra.iloc[0]["start"], wanted)
    if len(missing):
        p, t, m = missing.iloc[0][_KEY]
        refuse(read, "choices", None, "start", f"none of {m!r} at prompt {p}, start {t}", wanted)
    both = both.sort_values("row")
    places, left = both["places"].to_numpy(), both["left"].to_numpy()
    k = read.manifest.alternatives
    for column, size in (("confidence", k * places), ("text_rank", np.minimum(places, left))):
        found = ragged.lengths(data.column(column))
        bad = np.flatnonzero(found != size)
        if len(bad):
            refuse(read, "choices", int(bad[0]), column, f"{found[bad[0]]} items", f"{size[bad[0]]}")
    deepest = int(places.max(initial=1))
    confidence = ragged.pad(data.column("confidence"), deepest * k, 0.0).astype(np.float64)
    confidence = confidence.reshape(len(both), deepest, k)
    rising = np.diff(confidence, axis=2) > ROUNDING
    over = confidence.sum(axis=2) > 1.0 + ROUNDING
    first = np.stack([np.resize(t, deepest) for t in both["top1"]]) if len(both) else confidence[..., 0]
    other = np.abs(confidence[..., 0] - first) > ROUNDING
    other &= np.arange(deepest) < places[:, None]
    for wrong, allowed in (
        (rising.any(axis=2), "probabilities that fall within a place"),
        (over, "probabilities of at most 1 together"),
        (other, "each place's first to be its top1_prob"),
    ):
        if wrong.any():
            row, place = (int(i) for i in np.argwhere(wrong)[0])
            told = confidence[row, place].round(4).tolist()
            refuse(read, "choices", row, "confidence", f"{told} at place {place + 1}", allowed)
    _check_ranks(read, both)


def _blocks(read: Tables, prompts: pd.DataFrame) -> pd.DataFrame:
    """What there must be a row for: its key, places, tokens, top1_prob, and the text's tokens left."""
    tables = read.tables["blocks"].select([*_KEY, "tokens", "top1_prob"])
    stored = tables.to_pandas()
    kinds = {m: e.kind for m, e in read.manifest.models.items()}
    stored = stored[stored["drafter"].map(kinds) != "prompt-lookup"]
    along = read.frame("along")[["prompt_id", "position", "model", "greedy_token", "top1_prob"]]
    drafters = [m for m, kind in kinds.items() if kind == "autoregressive" and m != read.manifest.target]
    along = along[along["model"].isin(drafters)]
    along.columns = pd.Index([*_KEY, "tokens", "top1_prob"])
    stored_at = pd.MultiIndex.from_frame(stored[_KEY])
    along = along[~pd.MultiIndex.from_frame(along[_KEY]).isin(stored_at)]
    along["tokens"] = [[t] for t in along["tokens"]]
    along["top1_prob"] = [[p] for p in along["top1_prob"]]
    every: pd.DataFrame = pd.concat([stored, along], ignore_index=True)
    every = every.rename(columns={"top1_prob": "top1"})
    every["places"] = every["tokens"].map(len).astype(np.int64)
    every["left"] = prompts["output_tokens"].to_numpy()[every["prompt_id"]] - every["start"]
    return every


def _check_ranks(read: Tables, both: pd.DataFrame) -> None:
    """Rank 0 is the drafted token."""
    texts = read.frame("texts")["token"].to_numpy()
    size = read.frame("prompts")["output_tokens"].to_numpy()
    begins = (np.cumsum(size) - size)[both["prompt_id"]] + both["start"].to_numpy()
    ranks = read.tables["choices"].column("text_rank").to_pylist()
    for row, (rank, tokens, at) in enumerate(zip(ranks, both["tokens"], begins, strict=True)):
        own = texts[at : at + len(rank)] == np.asarray(tokens)[: len(rank)]
        if (own != (np.asarray(rank) == 0)).any():
            place = int(np.flatnonzero(own != (np.asarray(rank) == 0))[0])
            refuse(
                read,
                "choices",
                row,
                "text_rank",
                f"{rank[place]} at place {place + 1}",
                "0 where, and only where, the drafted token is the text's",
            )
        high = np.flatnonzero(np.asarray(rank) >= read.manifest.vocabulary)
        if len(high):
            allowed = f"below the vocabulary, {read.manifest.vocabulary}"
            refuse(read, "choices", row, "text_rank", rank[int(high[0])], allowed)
