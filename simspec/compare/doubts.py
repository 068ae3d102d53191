"""What in a trace should make a reader doubt its figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from simspec.compare.inspection import CELL, Acceptance

FEW_PROMPTS = 20
MANY_DRAFTS = 1000
# With so many chances and no success, the true rate is below 0.12 (Wilson, 95%).
ENOUGH_CHANCES = 30
UNSURE_TOP1_PROB = 0.15
UNSURE_ENTROPY_SHARE = 0.70
UNORDERED_AUROC = 0.55
WIDE_SPREAD, WIDE_SPREAD_SHARE = 3.0, 0.10
# A smaller fall of the median from one width to the next is taken for noise.
FALL_SHARE = 0.05


@dataclass(frozen=True)
class Doubt:
    """A reason to doubt the trace: a short name and a sentence with its numbers."""

    kind: str
    text: str


def prompt_doubts(prompts: pd.DataFrame, target_along: pd.DataFrame, vocabulary: int) -> Iterator[Doubt]:
    """Doubts about the prompts and texts.

    Args:
        prompts: the trace's prompts.
        target_along: rows of table ``along`` for the target.
        vocabulary: tokens of the vocabulary.
    """
    count = len(prompts)
    if count < FEW_PROMPTS:
        yield Doubt("few-prompts", f"Only {count} prompts, fewer than {FEW_PROMPTS}: intervals are wide.")
    repeated = int(prompts["prompt_hash"].duplicated().sum())
    if repeated:
        groups = int((prompts["prompt_hash"].value_counts() > 1).sum())
        yield Doubt(
            "repeated-prompts",
            f"{repeated} of {count} prompts repeat an earlier one ({groups} prompts occur more than once): "
            "they add no evidence, and intervals are too narrow.",
        )
    if (prompts["finish"] == "length").all():
        yield Doubt(
            "all-cut",
            f"All {count} texts were cut by length, none ended itself: how requests end is not in the trace.",
        )
    means = target_along.groupby("prompt_id")[["top1_prob", "entropy"]].mean()
    most = float(np.log(vocabulary))
    for rule, unsure in (
        (f"its mean top-1 probability is below {UNSURE_TOP1_PROB}", means["top1_prob"] < UNSURE_TOP1_PROB),
        (
            f"its mean entropy is above {UNSURE_ENTROPY_SHARE:.0%} of ln(vocabulary) = {most:.2f} nats",
            means["entropy"] > UNSURE_ENTROPY_SHARE * most,
        ),
    ):
        if unsure.any():
            yield Doubt(
                "random-prompts",
                f"The target is unsure of its own text in {int(unsure.sum())} of {count} prompts "
                f"({_some(means.index[unsure])}): {rule}. Were they made of random tokens?",
            )


def drafter_doubts(found: Acceptance) -> Iterator[Doubt]:
    """Doubts about one drafter."""
    name, at = found.drafter, {p.position: p for p in found.positions if p.drafts}
    if not at:
        yield Doubt("no-drafts", f"Drafter {name!r} drafted nothing at any of {found.starts} starts.")
        return
    drafts, first, second = at[1].drafts, at[1].survival.value, at.get(2)
    if first == 0.0:
        yield Doubt("never-accepted", f"Drafter {name!r}: not one of {drafts} blocks has an accepted draft.")
    elif all(p.survival.value == 1.0 for p in at.values()):
        yield Doubt(
            "always-accepted",
            f"Drafter {name!r}: every draft of {drafts} blocks is accepted at every position: "
            "is it the target itself?",
        )
    elif second is not None and second.drafts > MANY_DRAFTS and second.survival.value == 0.0:
        verdict = (
            "that is a broken drafter, not a hard workload"
            if second.chances >= ENOUGH_CHANCES
            else "too few to tell a broken drafter from a hard workload"
        )
        yield Doubt(
            "second-never-accepted",
            f"Drafter {name!r}: position 2 was never accepted in {second.drafts} drafts, in "
            f"{second.chances} of which position 1 was: {verdict}.",
        )
    if found.confidence_auroc is not None and found.confidence_auroc < UNORDERED_AUROC:
        yield Doubt(
            "unordered-confidence",
            f"Drafter {name!r}: confidence does not order acceptance (AUROC {found.confidence_auroc:.3f}, "
            f"below {UNORDERED_AUROC}): length rules that trust it have nothing to go by.",
        )


def latency_doubts(latency: pd.DataFrame, models: Sequence[str]) -> Iterator[Doubt]:
    """Doubts about the latency table; ``models`` are those that should be in it."""
    if not len(latency):
        yield Doubt("no-latency", "There are 0 latency rows: nothing can be priced by this trace's device.")
        return
    if absent := [m for m in models if m not in set(latency["model"])]:
        yield Doubt(
            "no-latency", f"{len(absent)} of {len(models)} models have no latency row: {', '.join(absent)}."
        )
    cells = latency.groupby(CELL, sort=False)["seconds"].agg(["min", "max", "size", "median"])
    several = cells[cells["size"] > 1]
    if len(several):
        wide = int((several["max"] > WIDE_SPREAD * several["min"]).sum())
        if wide > WIDE_SPREAD_SHARE * len(several):
            yield Doubt(
                "latency-spread",
                f"In {wide} of {len(several)} latency cells ({wide / len(several):.0%}) the slowest "
                f"repetition took over {WIDE_SPREAD:g} times as long as the fastest: was the machine busy?",
            )
    # A look-up takes microseconds, where the clock's noise decides.
    medians = cells["median"][cells.index.get_level_values("dtype") != "none"].sort_index()
    line = [c for c in CELL if c != "new_tokens"]
    before = medians.groupby(level=line).shift(1)
    change = (medians / before - 1).where(before > 0).dropna()
    falls = change[change < -FALL_SHARE]
    if len(falls):
        cell: Any = falls.idxmin()
        worst = dict(zip(CELL, cell, strict=True))
        yield Doubt(
            "latency-not-monotone",
            f"In {len(falls)} of {len(change)} steps to the next width the wider forward is over "
            f"{FALL_SHARE:.0%} faster; the most, {-falls.min():.0%}, is {worst['model']!r} "
            f"({worst['dtype']}) reaching {worst['new_tokens']} new tokens at batch {worst['batch']}, "
            f"context {worst['context']}.",
        )


def _some(ids: pd.Index) -> str:
    shown = ", ".join(str(i) for i in ids[:5])
    return f"prompt {shown}" + (", ..." if len(ids) > 5 else "")
