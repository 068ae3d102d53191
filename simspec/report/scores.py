"""The table of what predictions pick, for every page that shows one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simspec.report.words import NONE, span

_HEADER = [
    "variant/source",
    "median regret %",
    "95%",
    "mean",
    "worst",
    "mean tau",
    "top-1",
    "where clear",
    "time wrong by %",
]


def scores_table(
    summary: Mapping[str, Any], more: Mapping[str, Mapping[str, str]] | None = None
) -> tuple[list[str], list[list[str]]]:
    """Header and rows, the least regret first.

    Args:
        summary: by prediction, as :func:`simspec.compare.rankings.summary` has it.
        more: columns of one's own by their headings, a cell for each prediction.
    """
    more = more or {}
    rows = []
    for name in sorted(summary, key=lambda n: (summary[n]["median_regret"], summary[n]["mean_regret"])):
        s = summary[name]
        rows.append(
            [
                name,
                f"{s['median_regret']:.2f}",
                span(s["median_regret_interval"], 2),
                f"{s['mean_regret']:.2f}",
                f"{s['worst_regret']:.1f}",
                NONE if s["mean_kendall_tau"] is None else f"{s['mean_kendall_tau']:.2f}",
                f"{s['top1']} of {s['of']}",
                f"{s['clear_top1']} of {s['clear']}",
                f"{100 * s['median_abs_error']:.0f}",
                *(cells[name] for cells in more.values()),
            ]
        )
    return [*_HEADER, *more], rows
