"""Figures of the calibration study."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from simspec.compare.libraspec.wrong_confidences import FAR
from simspec.report.style import BLACK, BLUE, COLOURS, GREY, LINES, MARKERS, ORANGE, bars, below, sheet

# Stretches of a block with fewer tokens are left out of the diagrams.
FEW = 100
BLIND, EXACT = ("libraspec", "libraspec-theorem"), "exact-marginal"


def reliability(found: dict[str, Any]) -> Figure:
    """Accepted share against mean confidence, by bins of equal counts, one line a stretch of the block."""
    names = list(found["drafters"])
    figure = sheet(4.2 * len(names) + 0.4, 4.9)
    every = figure.subplots(1, len(names), squeeze=False, sharey=True)[0]
    for axes, name in zip(every, names, strict=True):
        axes.plot([0, 1], [0, 1], color=GREY, linewidth=1.2)
        for k, places in enumerate(found["places"]):
            bins = found["drafters"][name]["bins"].get(places, [])
            # Every panel has every name, so that the first panel's legend is everybody's.
            enough = sum(b["tokens"] for b in bins) >= FEW
            shown = bins if enough else []
            y = [b["accepted"][0] for b in shown]
            error = [bars(b["accepted"][0], b["accepted"][1:]) for b in shown]
            axes.errorbar(
                [b["confidence"] for b in shown],
                y,
                yerr=np.array(error).T if error else None,
                label=f"place {places}",
                color=COLOURS[k % 6],
                marker=MARKERS[k % 6],
                linestyle=LINES[k % 6],
                linewidth=1.0,
                elinewidth=0.7,
                markersize=4,
            )
        axes.set_xlim(0, 1.02)
        axes.set_ylim(0, 1.02)
        axes.set_aspect("equal")
        axes.set_title(name)
        axes.set_xlabel("mean confidence of a bin")
    every[0].set_ylabel("accepted by the target (share)")
    below(figure, every[0], min(len(found["places"]), 6))
    return figure


def by_place(found: dict[str, Any]) -> Figure:
    """Bias, Brier score and AUROC over the stretches of the block, everywhere and where cycles begin."""
    figure = sheet(13.2, 4.6)
    panels = {
        "bias": "mean confidence - accepted share",
        "brier": "Brier score",
        "auroc": "AUROC",
    }
    every = figure.subplots(1, len(panels), squeeze=False)[0]
    stretches = found["places"]
    for axes, (figure_name, words) in zip(every, panels.items(), strict=True):
        for k, (name, drafter) in enumerate(found["drafters"].items()):
            for starts, filled, style in (("every", True, "-"), ("visited", False, ":")):
                cells = {
                    c["places"]: c
                    for c in drafter["cells"]
                    if c["starts"] == starts and c["task"] == "all" and c["tokens"] >= FEW
                }
                shown = [p for p in stretches if p in cells and cells[p][figure_name][0] is not None]
                values = [cells[p][figure_name] for p in shown]
                x = [stretches.index(p) + 0.1 * (k - 1) + (0.0 if filled else 0.05) for p in shown]
                axes.errorbar(
                    x,
                    [v[0] for v in values],
                    yerr=np.array([bars(v[0], v[1:]) for v in values]).T if values else None,
                    label=f"{name}, {'every start' if filled else 'visited'}",
                    color=COLOURS[k % 6],
                    marker=MARKERS[k % 6],
                    markerfacecolor=COLOURS[k % 6] if filled else "none",
                    linestyle=style,
                    linewidth=1.1,
                    markersize=5,
                    capsize=2,
                )
        axes.set_xticks(range(len(stretches)), stretches)
        axes.set_xlabel("place in the block")
        axes.set_ylabel(words)
    every[0].axhline(0.0, color=GREY, linewidth=1.2)
    below(figure, every[0], 3)
    return figure


def changes(found: dict[str, Any]) -> Figure:
    """Rounds by how much longer a length is when p-hat is told; the exact rule's under every cost."""
    drafters, costs = found["drafters"], {n: c for n, c in found["acting"].items() if c["drafters"]}
    figure = sheet(4.6 * len(drafters) + 0.4, 4.4)
    every = figure.subplots(1, len(drafters), squeeze=False, sharey=True)[0]
    for axes, name in zip(every, drafters, strict=True):
        mine = {n: c["drafters"][name]["rules"] for n, c in costs.items() if name in c["drafters"]}
        # Rules that are blind to costs do the same under all of them.
        shown = [(rule, mine[next(iter(mine))][rule] if mine else None) for rule in BLIND]
        shown += [(f"{EXACT}, {n}", mine.get(n, {}).get(EXACT)) for n in costs]
        width = 0.86 / len(shown)
        for k, (label, rule) in enumerate(shown):
            shares = rule["every"]["changes"] if rule else [np.nan] * (2 * FAR + 1)
            axes.bar(
                np.arange(-FAR, FAR + 1) + width * (k - (len(shown) - 1) / 2),
                shares,
                width=width,
                color=COLOURS[k % 6],
                label=label,
                hatch=("", "//", "..", "xx", "--", "++")[k % 6],
                alpha=0.85,
            )
        axes.set_xticks([-FAR, 0, FAR], [f"−{FAR} or less", "0", f"{FAR} or more"])
        axes.set_title(name)
        axes.set_xlabel("length told p-hat − length told q (tokens)")
    every[0].set_ylabel("rounds, %")
    below(figure, every[0], 3)
    return figure


def end_to_end(found: dict[str, Any]) -> Figure:
    """Time a token by q over that by p-hat, rule by rule, one panel a cost."""
    costs = {n: c for n, c in found["acting"].items() if c["drafters"]}
    rows = list(
        dict.fromkeys((d, r) for c in costs.values() for d, v in c["drafters"].items() for r in v["rules"])
    )
    figure = sheet(4.4 * len(costs) + 2.0, 0.3 * len(rows) + 1.9)
    every = figure.subplots(1, len(costs), squeeze=False, sharex=True, sharey=True)[0]
    for axes, (name, cost) in zip(every, costs.items(), strict=True):
        _end_to_end(axes, cost, rows)
        axes.set_title(f"cost {name}")
        axes.set_xlabel("time a token by q over by p-hat, %")
    below(figure, every[0], 2)
    return figure


def _end_to_end(axes: Axes, cost: dict[str, Any], rows: list[tuple[str, str]]) -> None:
    """Rows of drafters that the cost does not price stay empty."""
    mine = [(k, d, r) for k, (d, r) in enumerate(rows) if d in cost["drafters"]]
    for where, up, marker, colour in (("every", 0.14, "o", BLUE), ("visited", -0.14, "D", ORANGE)):
        values = [cost["drafters"][d]["rules"][r]["end_to_end"][where] for _, d, r in mine]
        axes.errorbar(
            [v[0] for v in values],
            [up - k for k, _, _ in mine],
            xerr=np.array([bars(v[0], v[1:]) for v in values]).T,
            label=f"p-hat fitted at {where} position{'s' if where == 'visited' else ''}",
            linestyle="none",
            marker=marker,
            color=colour,
            markersize=4.5,
            capsize=2,
        )
    axes.axvline(0.0, color=BLACK, linewidth=1.0)
    axes.set_yticks([-k for k in range(len(rows))], [f"{d}: {r}" for d, r in rows])
