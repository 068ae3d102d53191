"""What a trace's tables owe each other, beyond what each owes its own schema."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from simspec.errors import BadInput
from simspec.traces import ragged
from simspec.traces.manifest import Manifest

_WHERE_BLOCKS = (
    "a block of every drafter at every start of a text; of an autoregressive one, where texts are greedy, "
    "only where its first token is not the text's"
)

# A wide forward and one-token forwards add in another order. In float32 on the models
# recorded so far the logits moved by less than this; a target that names another token
# than its own text by more than it did not write that text.
NEAR_TIE_LOGITS = {"float32": 5e-3, "bfloat16": 0.5, "float16": 0.1}


@dataclass(frozen=True)
class Tables:
    """A trace's checked tables, as Arrow tables by name, with its manifest."""

    folder: Path
    manifest: Manifest
    tables: dict[str, pa.Table]

    def frame(self, name: str) -> pd.DataFrame:
        """A table as a pandas frame."""
        frame: pd.DataFrame = self.tables[name].to_pandas()
        return frame


def check_together(read: Tables) -> None:
    """Refuse tables that do not fit each other; raises :class:`BadInput` naming file, row and column."""
    manifest = read.manifest
    prompts = read.frame("prompts")
    if not len(prompts):
        _refuse(read, "prompts", None, "prompt_id", "no prompts", "at least one")
    bad = np.flatnonzero(prompts["prompt_id"].to_numpy() != np.arange(len(prompts)))
    if len(bad):
        row = int(bad[0])
        _refuse(read, "prompts", row, "prompt_id", prompts["prompt_id"][row], f"{row}: 0, 1, 2, ...")
    over = np.flatnonzero(prompts["output_tokens"].to_numpy() > manifest.output_tokens)
    if len(over):
        row = int(over[0])
        _refuse(
            read,
            "prompts",
            row,
            "output_tokens",
            prompts["output_tokens"][row],
            f"at most {manifest.output_tokens}",
        )
    _check_texts(read, prompts)
    _check_names(read)
    _check_vocabulary(read)
    _check_along(read, prompts)
    _check_blocks(read, prompts)
    _check_verdicts(read)


def _check_texts(read: Tables, prompts: pd.DataFrame) -> None:
    texts = read.frame("texts")
    wanted_prompt = np.repeat(np.arange(len(prompts)), prompts["output_tokens"])
    wanted_position = np.concatenate([np.arange(n) for n in prompts["output_tokens"]])
    same = len(texts) == len(wanted_prompt)
    if (
        not same
        or (texts["prompt_id"].to_numpy() != wanted_prompt).any()
        or (texts["position"].to_numpy() != wanted_position).any()
    ):
        found = len(texts)
        row = (
            found
            if not same
            else int(
                np.flatnonzero(
                    (texts["prompt_id"].to_numpy() != wanted_prompt)
                    | (texts["position"].to_numpy() != wanted_position)
                )[0]
            )
        )
        _refuse(
            read,
            "texts",
            row,
            "position",
            "rows out of step with prompts.output_tokens",
            "each prompt's positions 0..output_tokens-1, in order",
        )
    token = texts["token"].to_numpy()
    high = np.flatnonzero(token >= read.manifest.vocabulary)
    if len(high):
        _refuse(
            read,
            "texts",
            int(high[0]),
            "token",
            token[high[0]],
            f"below the vocabulary, {read.manifest.vocabulary}",
        )
    ends = np.cumsum(prompts["output_tokens"].to_numpy()) - 1
    inside = np.isin(token, read.manifest.eos_tokens)
    inside[ends] = False
    if inside.any():
        row = int(np.flatnonzero(inside)[0])
        _refuse(
            read,
            "texts",
            row,
            "token",
            token[row],
            f"one of {read.manifest.eos_tokens} only where the text ends",
        )
    ended = np.isin(token[ends], read.manifest.eos_tokens)
    wrong = np.flatnonzero(ended != (prompts["finish"] == "eos").to_numpy())
    if len(wrong):
        row = int(wrong[0])
        _refuse(
            read,
            "prompts",
            row,
            "finish",
            prompts["finish"][row],
            f"'eos' where the text ends in one of {read.manifest.eos_tokens}",
        )

    short = (prompts["finish"] == "length") & (prompts["output_tokens"] < read.manifest.output_tokens)
    if short.any():
        row = int(np.flatnonzero(short)[0])
        _refuse(
            read,
            "prompts",
            row,
            "output_tokens",
            prompts["output_tokens"][row],
            f"{read.manifest.output_tokens} where the text was cut by its length",
        )


def _check_vocabulary(read: Tables) -> None:
    for name, column in (
        ("along", "greedy_token"),
        ("blocks", "tokens"),
        ("verdicts", "greedy_token"),
    ):
        values = read.tables[name].column(column)
        flat = pc.list_flatten(values) if pa.types.is_list(values.type) else values
        bad = np.flatnonzero(flat.to_numpy() >= read.manifest.vocabulary)
        if len(bad):
            item = int(bad[0])
            row = pc.list_parent_indices(values)[item].as_py() if flat is not values else item
            _refuse(read, name, row, column, flat[item], f"below the vocabulary, {read.manifest.vocabulary}")


def _check_names(read: Tables) -> None:
    known = set(read.manifest.models)
    for name, columns in {
        "along": ("model",),
        "pairs": ("model_a", "model_b"),
        "blocks": ("drafter",),
        "verdicts": ("drafter", "verifier"),
        "latency": ("model",),
    }.items():
        for column in columns:
            values = read.tables[name].column(column).to_pandas()
            bad = np.flatnonzero(~values.isin(known).to_numpy())
            if len(bad):
                _refuse(read, name, int(bad[0]), column, values.iloc[bad[0]], ", ".join(sorted(known)))


def _check_along(read: Tables, prompts: pd.DataFrame) -> None:
    along = read.frame("along")
    models = [m for m, e in read.manifest.models.items() if e.kind != "prompt-lookup"]
    wanted = int(prompts["output_tokens"].sum()) * len(models)
    if len(along) != wanted:
        _refuse(
            read,
            "along",
            len(along),
            "model",
            f"{len(along)} rows",
            f"{wanted}: every position under every model",
        )
    joined = along.reset_index().merge(read.frame("texts"), on=["prompt_id", "position"], how="left")
    if joined["token"].isna().any():
        bad = joined[joined["token"].isna()].iloc[0]
        _refuse(read, "along", int(bad["index"]), "position", bad["position"], "a place in the text")
    if read.manifest.sampling is not None:
        return  # a drawn text need not be the target's most probable one
    ours = joined[joined["model"] == read.manifest.target]
    limit = NEAR_TIE_LOGITS.get(read.manifest.dtype, 0.0)
    off = ours[(ours["greedy_token"] != ours["token"]) & (ours["top2_margin"] > limit)]
    if len(off):
        bad = off.iloc[0]
        _refuse(
            read,
            "along",
            int(bad["index"]),
            "greedy_token",
            int(bad["greedy_token"]),
            f"the text's own token {int(bad['token'])}, or a near tie within {limit} logits",
        )


def _check_blocks(read: Tables, prompts: pd.DataFrame) -> None:
    blocks = read.frame("blocks")
    tokens = read.tables["blocks"].column("tokens")
    size = ragged.lengths(tokens)
    for column in ("confidence", "top1_prob", "top2_margin", "entropy"):
        other = ragged.lengths(read.tables["blocks"].column(column))
        bad = np.flatnonzero(other != size)
        if len(bad):
            _refuse(read, "blocks", int(bad[0]), column, f"{other[bad[0]]} items", f"{size[bad[0]]}")
    kinds = {m: e.kind for m, e in read.manifest.models.items()}
    sampled = read.manifest.sampling is not None
    kind = blocks["drafter"].map(kinds)
    wanted = read.manifest.block_length
    bad = np.flatnonzero(np.where((kind != "prompt-lookup").to_numpy(), size != wanted, size > wanted))
    if len(bad):
        _refuse(read, "blocks", int(bad[0]), "tokens", f"{size[bad[0]]} items", f"{wanted}")
    # Where a drafter that shares suffixes leaves the text, there is a block, and nowhere else.
    along = read.frame("along").merge(read.frame("texts"), on=["prompt_id", "position"])
    drafters = [m for m, k in kinds.items() if k == "autoregressive" and m != read.manifest.target]
    everywhere = [m for m, k in kinds.items() if k != "autoregressive"]
    if sampled:
        drafters, everywhere = [], drafters + everywhere
    leaves = along[(along["greedy_token"] != along["token"]) & along["model"].isin(drafters)]
    needed = set(zip(leaves["prompt_id"], leaves["position"], leaves["model"], strict=True))
    cut = prompts[prompts["finish"] == "length"]
    for p, n in zip(cut["prompt_id"], cut["output_tokens"], strict=True):
        needed |= {(p, n, m) for m in drafters}
    for p, n in zip(prompts["prompt_id"], prompts["output_tokens"], strict=True):
        needed |= {(p, t, m) for m in everywhere for t in range(n)}
    found = list(zip(blocks["prompt_id"], blocks["start"], blocks["drafter"], strict=True))
    for row, key in enumerate(found):
        if key not in needed:
            _refuse(
                read,
                "blocks",
                row,
                "start",
                key[1],
                _WHERE_BLOCKS,
            )
    missing = needed - set(found)
    if missing:
        p, t, m = min(missing)
        _refuse(
            read,
            "blocks",
            None,
            "start",
            f"no block of {m!r} at prompt {p}, start {t}",
            _WHERE_BLOCKS,
        )
    first = ragged.pad(tokens, 1, -1)[:, 0]
    rows = blocks[["prompt_id", "start", "drafter"]].assign(first=first)
    # A greedy block begins with what along has there: whoever has rows in it and drafts.
    heads = along if not sampled else along[:0]
    rows = rows.reset_index().merge(
        heads, left_on=["prompt_id", "start", "drafter"], right_on=["prompt_id", "position", "model"]
    )
    off = rows[rows["first"] != rows["greedy_token"]]
    if len(off):
        bad_row = off.iloc[0]
        _refuse(
            read,
            "blocks",
            int(bad_row["index"]),
            "tokens",
            int(bad_row["first"]),
            f"to begin with along.greedy_token, {int(bad_row['greedy_token'])}",
        )


def _check_verdicts(read: Tables) -> None:
    verdicts = read.tables["verdicts"]
    keys = read.frame("verdicts")[["prompt_id", "start", "drafter", "verifier"]]
    blocks = read.frame("blocks")[["prompt_id", "start", "drafter"]]
    blocks["tokens_in_block"] = ragged.lengths(read.tables["blocks"].column("tokens"))
    joined = keys.merge(blocks, on=["prompt_id", "start", "drafter"], how="left")
    if joined["tokens_in_block"].isna().any():
        row = int(np.flatnonzero(joined["tokens_in_block"].isna())[0])
        _refuse(read, "verdicts", row, "start", keys["start"][row], "a block of table blocks")
    block = joined["tokens_in_block"].to_numpy().astype(int)
    size = ragged.lengths(verdicts.column("greedy_token"))
    target = (keys["verifier"] == read.manifest.target).to_numpy()
    bad = np.flatnonzero(np.where(target, size > block + 1, size != block + 1) | (size < 1))
    if len(bad):
        row = int(bad[0])
        _refuse(read, "verdicts", row, "greedy_token", f"{size[row]} items", f"{block[row] + 1}")
    for column in ("top1_prob", "top2_margin"):
        _check_size(read, column, size)
    for column in ("drafted_prob", "overlap"):
        _check_size(read, column, np.minimum(size, block))
    # An empty block has no verdicts; any other has one of every other model that can verify.
    filled = blocks[blocks["tokens_in_block"] > 0]
    verifiers = [m for m, e in read.manifest.models.items() if e.kind == "autoregressive"]
    needed = filled.merge(pd.DataFrame({"verifier": verifiers}), how="cross")
    needed = needed[needed["verifier"] != needed["drafter"]]
    both = needed.merge(
        keys.assign(row=np.arange(len(keys))),
        on=["prompt_id", "start", "drafter", "verifier"],
        how="outer",
        indicator=True,
    )
    extra, missing = both[both["_merge"] == "right_only"], both[both["_merge"] == "left_only"]
    if len(extra):
        bad_row = extra.iloc[0]
        _refuse(
            read,
            "verdicts",
            int(bad_row["row"]),
            "verifier",
            bad_row["verifier"],
            "another model than the drafter, on a block that is not empty",
        )
    if len(missing):
        gone = missing.iloc[0]
        _refuse(
            read,
            "verdicts",
            None,
            "verifier",
            f"no verdict of {gone['verifier']!r} on the block of {gone['drafter']!r} at prompt "
            f"{gone['prompt_id']}, start {gone['start']}",
            "one of every other model on every block that is not empty",
        )


def _check_size(read: Tables, column: str, wanted: NDArray[np.int64]) -> None:
    found = ragged.lengths(read.tables["verdicts"].column(column))
    bad = np.flatnonzero(found != wanted)
    if len(bad):
        row = int(bad[0])
        _refuse(read, "verdicts", row, column, f"{found[row]} items", f"{wanted[row]}")


def _refuse(read: Tables, table: str, row: int | None, column: str, value: object, allowed: str) -> None:
    place = f"row {row}, column {column!r}" if row is not None else f"column {column!r}"
    raise BadInput(f"{place}: {value}", where=read.folder / read.manifest.tables[table].file, allowed=allowed)
