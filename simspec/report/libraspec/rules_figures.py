"""Figures of all length rules."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from simspec.compare.lengths import OURS, TUNED
from simspec.report.style import (
    BLACK,
    COLOURS,
    GREY,
    LINES,
    MARKERS,
    ORANGE,
    bars,
    below,
    plain_log,
    sheet,
    whole_log2,
)

# By what a line is: a rule, an oracle.
SHOWN = (OURS, TUNED, "exact-marginal", "libraspec-n1", "vllm-goodput", "dspark")


def over_batches(found: dict[str, Any]) -> Figure:
    """Time over the best static length's by batch size, one panel a cost."""
    costs = found["costs"]
    figure = sheet(4.8 * len(costs) + 0.6, 5.4)
    every = figure.subplots(1, len(costs), squeeze=False, sharey=True)[0]
    reach = [1.0]
    for axes, (name, cost) in zip(every, costs.items(), strict=True):
        studies = sorted((s for s in cost["studies"] if s["fastest"]), key=lambda s: int(s["batch"]))
        reach += _lines(axes, studies, found)
        axes.set_title(name)
    for axes in every:
        plain_log(axes, min(reach) / 1.05, max(reach) * 1.05, "y")
    every[0].set_ylabel("seconds a token / best static's (times)")
    below(figure, every[0], 4 if len(costs) > 1 else 2)
    return figure


def _lines(axes: Axes, studies: list[dict[str, Any]], found: dict[str, Any]) -> list[float]:
    x = [int(s["batch"]) for s in studies]
    reach: list[float] = []

    def line(values: list[float], **look: Any) -> None:
        reach.extend(values)
        axes.plot(x, values, **look)

    rules = [r for r in SHOWN if all(r in s["rules"] for s in studies)]
    for k, rule in enumerate(rules):
        values = [1 + s["rules"][rule]["regret_best_static"] / 100 for s in studies]
        width = 2.4 if rule == OURS else 1.3
        line(values, label=rule, color=COLOURS[k], marker=MARKERS[k], linestyle=LINES[k], linewidth=width)
    for oracle, marker in ((found["oracle"], "x"), (found["told"], "+")):
        values = [1 + s["oracles"][oracle]["regret_best_static"] / 100 for s in studies]
        line(values, label=f"oracle {oracle}", color=GREY, marker=marker, linestyle="--")
    bound = [1 / (1 + s["rules"][s["best_static"]]["regret_lower_bound"] / 100) for s in studies]
    line(bound, label="bound", color=BLACK, linestyle=":", marker="_")
    axes.axhline(1.0, color=GREY, linewidth=1.0)
    whole_log2(axes, x)
    axes.set_xlabel("batch size")
    runs = [(d, [s["batch"] for s in some]) for d, some in groupby(studies, key=lambda s: str(s["drafter"]))]
    drafters = ", ".join(f"{d} at {b[0]}" + (f" to {b[-1]}" if b[1:] else "") for d, b in runs)
    axes.text(0.02, 0.02, drafters, transform=axes.transAxes, fontsize=8)
    return reach


def closed(found: dict[str, Any]) -> Figure:
    """Shares of the gap at batch 1, a row for each cost and drafter."""
    rows = [(c, s) for c, cost in found["costs"].items() for s in cost["studies"] if s["batch"] == 1]
    rows = [(c, s) for c, s in rows if s["verdict"]["closed"] is not None]
    figure = sheet(8.6, 0.55 * len(rows) + 1.9)
    axes = figure.subplots()
    for k, (key, label, colour) in enumerate(
        (
            ("closed", OURS, BLACK),
            ("closed_by_told", found["told"], ORANGE),
            ("closed_by_oracle", f"oracle {found['oracle']}", GREY),
        )
    ):
        value = [s["verdict"][key] for _, s in rows]
        error = [bars(s["verdict"][key], s["verdict"][f"{key}_interval"]) for _, s in rows]
        axes.errorbar(
            value,
            [-i - 0.2 * (k - 1) for i in range(len(rows))],
            xerr=np.array(error).reshape(-1, 2).T,
            linestyle="none",
            marker=MARKERS[k],
            color=colour,
            label=label,
            capsize=2.5,
        )
    # Where hardly any gap is, shares of it run off the page.
    left, right = axes.get_xlim()
    axes.set_xlim(max(left, -1.0), max(right, 0.55))
    axes.axvline(0.0, color=GREY, linewidth=1.2)
    axes.axvline(0.5, color=GREY, linestyle="--", label="aim: half")
    axes.set_yticks([-i for i in range(len(rows))], [f"{c}, {s['drafter']}" for c, s in rows])
    axes.set_xlabel("share of the gap closed")
    below(figure, axes, 2)
    return figure
