"""What a trace's tables owe each other, beyond what each owes its own schema."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from simspec.traces.block_invariants import check_blocks, check_verdicts
from simspec.traces.checked import Tables, refuse
from simspec.traces.choice_invariants import check_choices

# A wide forward and one-token forwards add in another order. In float32 on the models
# recorded so far the logits moved by less than this; a target that names another token
# than its own text by more than it did not write that text.
NEAR_TIE_LOGITS = {"float32": 5e-3, "bfloat16": 0.5, "float16": 0.1}


def check_together(read: Tables) -> None:
    """Refuse tables that do not fit each other; raises :class:`BadInput` naming file, row and column."""
    manifest = read.manifest
    prompts = read.frame("prompts")
    if not len(prompts):
        refuse(read, "prompts", None, "prompt_id", "no prompts", "at least one")
    bad = np.flatnonzero(prompts["prompt_id"].to_numpy() != np.arange(len(prompts)))
    if len(bad):
        row = int(bad[0])
        refuse(read, "prompts", row, "prompt_id", prompts["prompt_id"][row], f"{row}: 0, 1, 2, ...")
    over = np.flatnonzero(prompts["output_tokens"].to_numpy() > manifest.output_tokens)
    if len(over):
        row = int(over[0])
        refuse(
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
    check_blocks(read, prompts)
    check_verdicts(read)
    if manifest.alternatives:
        check_choices(read, prompts)


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
        refuse(
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
        refuse(
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
        refuse(
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
        refuse(
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
        refuse(
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
            refuse(read, name, row, column, flat[item], f"below the vocabulary, {read.manifest.vocabulary}")


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
                refuse(read, name, int(bad[0]), column, values.iloc[bad[0]], ", ".join(sorted(known)))


def _check_along(read: Tables, prompts: pd.DataFrame) -> None:
    along = read.frame("along")
    models = [m for m, e in read.manifest.models.items() if e.kind != "prompt-lookup"]
    wanted = int(prompts["output_tokens"].sum()) * len(models)
    if len(along) != wanted:
        refuse(
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
        refuse(read, "along", int(bad["index"]), "position", bad["position"], "a place in the text")
    if read.manifest.sampling is not None:
        return  # a drawn text need not be the target's most probable one
    ours = joined[joined["model"] == read.manifest.target]
    limit = NEAR_TIE_LOGITS.get(read.manifest.dtype, 0.0)
    off = ours[(ours["greedy_token"] != ours["token"]) & (ours["top2_margin"] > limit)]
    if len(off):
        bad = off.iloc[0]
        refuse(
            read,
            "along",
            int(bad["index"]),
            "greedy_token",
            int(bad["greedy_token"]),
            f"the text's own token {int(bad['token'])}, or a near tie within {limit} logits",
        )
