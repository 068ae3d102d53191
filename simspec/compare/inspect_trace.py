"""A trace's figures and the doubts about them, as one document."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pandas as pd

from simspec.compare.doubts import Doubt, drafter_doubts, latency_doubts, prompt_doubts
from simspec.compare.drafter_figures import cost_ratios, drafter_figures
from simspec.compare.inspection import (
    TableError,
    acceptance,
    latency_grid,
    pair_similarities,
    table_errors,
    width_curves,
)
from simspec.compare.sampled import mean_overlap
from simspec.errors import BadInput
from simspec.traces.checked import Tables
from simspec.traces.index import Trace, index_tables, outline


def inspect_tables(read: Tables) -> dict[str, Any]:
    """All figures and doubts of a trace, greedy or sampled; keys as for :func:`inspect_trace`."""
    along, drawn = read.frame("along"), read.manifest.sampling
    if drawn is None:
        return inspect_trace(index_tables(read), along)
    return inspect_trace(outline(read), along) | {
        "sampling": {"temperature": drawn.temperature, "top_p": drawn.top_p},
        "overlap": mean_overlap(read),
    }


def inspect_trace(trace: Trace, along: pd.DataFrame) -> dict[str, Any]:
    """All figures and doubts of a trace as plain values that JSON can hold.

    Args:
        trace: the indexed trace, or the outline of a sampled one.
        along: its table ``along``.

    Returns:
        keys as documented in :mod:`simspec.cli.inspect`, all but ``provenance``.
    """
    manifest, prompts = trace.manifest, trace.prompts
    accepted = [
        acceptance(name, index, trace.remaining, trace.is_lookup(name))
        for name, index in trace.drafters.items()
    ]
    doubts = list(prompt_doubts(prompts, along[along["model"] == trace.target], manifest.vocabulary))
    for each in accepted:
        doubts += drafter_doubts(each)
    doubts += latency_doubts(trace.latency, list(manifest.models))
    errors: list[TableError] = []
    try:
        errors = table_errors(trace.latency)
    except BadInput as error:
        doubts.append(Doubt("latency-table", f"The latency table cannot be interpolated: {error}."))
    finish, category = prompts["finish"], prompts["category"]
    return {
        "name": manifest.name,
        "origin": manifest.origin,
        "created": manifest.created,
        "machine": manifest.machine,
        "device": manifest.device,
        "dtype": manifest.dtype,
        "versions": manifest.versions,
        "target": trace.target,
        "models": [
            {
                "name": name,
                "kind": entry.kind,
                "layers": entry.about.get("layers"),
                "parameters": entry.about.get("parameters"),
            }
            for name, entry in manifest.models.items()
        ],
        "prompts": {
            "count": len(prompts),
            "by_category": {str(k): int(v) for k, v in category.value_counts(sort=False).items()},
            "ended_by": {k: int((finish == k).sum()) for k in ("eos", "length")},
            "positions": len(trace.tokens),
        },
        "block_length": manifest.block_length,
        "sampling": None,
        "overlap": [],
        "near_ties": manifest.near_ties,
        "acceptance": [asdict(a) for a in accepted],
        "drafters": [_with_names(asdict(d)) for d in drafter_figures(trace)],
        "pairs": [asdict(p) for p in pair_similarities(trace)],
        "latency": {
            "grid": latency_grid(trace.latency),
            "batch_1": [
                {**asdict(c), "ratios": {str(n): r for n, r in c.ratios.items()}}
                for c in width_curves(trace.latency)
            ],
            "cost_ratios": [asdict(c) for c in cost_ratios(trace)],
            "leave_one_out": [asdict(e) for e in errors],
        },
        "doubts": [asdict(d) for d in doubts],
    }


def _with_names(figures: dict[str, Any]) -> dict[str, Any]:
    """JSON's keys are words."""
    return {
        key: {str(k): v for k, v in value.items()} if isinstance(value, dict) else value
        for key, value in figures.items()
    }
