"""What a trace's blocks and verdicts owe its texts and each other."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from simspec.traces import ragged
from simspec.traces.checked import Tables, refuse

_WHERE_BLOCKS = (
    "a block of every drafter at every start of a text; of an autoregressive one, where texts are greedy, "
    "only where its first token is not the text's"
)


def check_blocks(read: Tables, prompts: pd.DataFrame) -> None:
    blocks = read.frame("blocks")
    tokens = read.tables["blocks"].column("tokens")
    size = ragged.lengths(tokens)
    for column in ("confidence", "top1_prob", "top2_margin", "entropy"):
        other = ragged.lengths(read.tables["blocks"].column(column))
        bad = np.flatnonzero(other != size)
        if len(bad):
            refuse(read, "blocks", int(bad[0]), column, f"{other[bad[0]]} items", f"{size[bad[0]]}")
    kinds = {m: e.kind for m, e in read.manifest.models.items()}
    sampled = read.manifest.sampling is not None
    kind = blocks["drafter"].map(kinds)
    wanted = read.manifest.block_length
    bad = np.flatnonzero(np.where((kind != "prompt-lookup").to_numpy(), size != wanted, size > wanted))
    if len(bad):
        refuse(read, "blocks", int(bad[0]), "tokens", f"{size[bad[0]]} items", f"{wanted}")
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
            refuse(
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
        refuse(
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
        refuse(
            read,
            "blocks",
            int(bad_row["index"]),
            "tokens",
            int(bad_row["first"]),
            f"to begin with along.greedy_token, {int(bad_row['greedy_token'])}",
        )


def check_verdicts(read: Tables) -> None:
    verdicts = read.tables["verdicts"]
    keys = read.frame("verdicts")[["prompt_id", "start", "drafter", "verifier"]]
    blocks = read.frame("blocks")[["prompt_id", "start", "drafter"]]
    blocks["tokens_in_block"] = ragged.lengths(read.tables["blocks"].column("tokens"))
    joined = keys.merge(blocks, on=["prompt_id", "start", "drafter"], how="left")
    if joined["tokens_in_block"].isna().any():
        row = int(np.flatnonzero(joined["tokens_in_block"].isna())[0])
        refuse(read, "verdicts", row, "start", keys["start"][row], "a block of table blocks")
    block = joined["tokens_in_block"].to_numpy().astype(int)
    size = ragged.lengths(verdicts.column("greedy_token"))
    target = (keys["verifier"] == read.manifest.target).to_numpy()
    bad = np.flatnonzero(np.where(target, size > block + 1, size != block + 1) | (size < 1))
    if len(bad):
        row = int(bad[0])
        refuse(read, "verdicts", row, "greedy_token", f"{size[row]} items", f"{block[row] + 1}")
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
        refuse(
            read,
            "verdicts",
            int(bad_row["row"]),
            "verifier",
            bad_row["verifier"],
            "another model than the drafter, on a block that is not empty",
        )
    if len(missing):
        gone = missing.iloc[0]
        refuse(
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
        refuse(read, "verdicts", row, column, f"{found[row]} items", f"{wanted[row]}")
