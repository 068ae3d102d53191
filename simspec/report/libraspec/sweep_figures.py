"""Figures of Algorithm 1's constants."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, SymmetricalLogLocator

from simspec.report.style import BLACK, COLOURS, GREY, LINES, MARKERS, bars, below, plain_log, sheet

# Average speedups at temperature 0 by alpha, as published (arXiv 2608.08721), on the paper's own models.
PUBLISHED_ALPHAS = (1.8, 1.9, 2.0, 2.1, 2.2)
PUBLISHED = {"Fast-dLLM v2": (2.95, 3.01, 3.04, 2.96, 2.87), "DFlash": (4.86, 4.95, 5.02, 5.09, 5.11)}
AT = 2.0
READINGS = {"folded": "T/(tau c), drafting in c", "verifying": "T/(tau c), verification", "average": "d/tau"}
SYMLOG = 10.0


def _drafters(found: dict[str, Any]) -> list[str]:
    return list(dict.fromkeys(d for cost in found["costs"].values() for d in cost["drafters"]))


def _costs(found: dict[str, Any]) -> dict[str, Any]:
    return {name: cost for name, cost in found["costs"].items() if cost["drafters"]}


def shown(found: dict[str, Any], cost: str) -> str:
    """The cost's drafter of the greatest speedup with any alpha, at the least batch size."""
    least = str(min(found["batches"]))

    def fastest(drafter: str) -> float:
        tried = found["costs"][cost]["drafters"][drafter][least]["policies"]
        return max(float(p["speedup"]) for p in tried.values() if "over_paper" in p)

    drafters: dict[str, Any] = found["costs"][cost]["drafters"]
    return max(drafters, key=fastest)


def _published(axes: Axes) -> None:
    for k, (name, speedup) in enumerate(PUBLISHED.items()):
        axes.plot(
            PUBLISHED_ALPHAS,
            np.array(speedup) / speedup[PUBLISHED_ALPHAS.index(AT)],
            label=f"{name}, published, other models",
            color=GREY,
            linestyle="none",
            marker=("*", "X")[k],
            markersize=8,
            zorder=3,
        )


def alphas(found: dict[str, Any], batch: str) -> Figure:
    """Speedup against alpha, relative to alpha 2.0; rows are block sizes, columns costs."""
    return _curves(found, batch, 0.45, 16.5, "speedup / that at alpha 2.0")


def near_published(found: dict[str, Any], batch: str) -> Figure:
    """The same from 1.8 to 2.2."""
    return _curves(found, batch, 1.75, 2.26, "speedup / that at alpha 2.0")


def _curves(found: dict[str, Any], batch: str, low: float, high: float, label: str) -> Figure:
    costs, drafters = _costs(found), _drafters(found)
    figure = sheet(4.2 * len(costs) + 0.8, 3.0 * len(found["blocks"]) + 1.0)
    rows = figure.subplots(len(found["blocks"]), len(costs), squeeze=False, sharex=True, sharey="row")
    inside = [k for k, a in enumerate(found["alphas"]) if low <= a <= high]
    x = np.array(found["alphas"])[inside]
    for row, n in zip(rows, found["blocks"], strict=True):
        for axes, (name, cost) in zip(row, costs.items(), strict=True):
            for drafter, batches in cost["drafters"].items():
                k = drafters.index(drafter)
                curve = batches[batch]["curves"][str(n)]
                y, ends = (np.array(curve[name], dtype=float) for name in ("relative", "relative_interval"))
                style = {"color": COLOURS[k % 6], "marker": MARKERS[k % 6], "linestyle": LINES[k % 6]}
                axes.plot(x, y[inside], label=drafter, markersize=4, **style)
                if high > 5:
                    axes.fill_between(x, *ends[inside].T, color=COLOURS[k % 6], alpha=0.12, linewidth=0)
            _published(axes)
            plain_log(axes, low, high, "x")
            axes.set_title(f"cost {name}, n {n}")
        row[0].set_ylabel(label)
    for axes in rows[-1]:
        axes.set_xlabel("alpha")
    below(figure, max(rows[0], key=lambda a: len(a.get_legend_handles_labels()[1])), 3)
    return figure


def best_alphas(found: dict[str, Any]) -> Figure:
    """Where the best alpha lies, and where theory would have it."""
    costs = _costs(found)
    names = [(c, d, b) for c, cost in costs.items() for d, each in cost["drafters"].items() for b in each]
    figure = sheet(5.2 * len(found["blocks"]) + 2.4, 0.27 * len(names) + 1.6)
    every = figure.subplots(1, len(found["blocks"]), squeeze=False, sharey=True)[0]
    reach = list(found["alphas"])
    for axes, n in zip(every, found["blocks"], strict=True):
        curves = [costs[c]["drafters"][d][b]["curves"][str(n)] for c, d, b in names]
        for i, curve in enumerate(curves):
            of_parts = [p["best"] for p in curve["parts"]]
            axes.plot(
                of_parts,
                [-i] * len(of_parts),
                color=GREY,
                marker="|",
                markersize=9,
                linestyle="none",
                label="a half, all tasks or one" if i == 0 else None,
            )
        best = [c["best"] for c in curves]
        axes.errorbar(
            best,
            [-i for i in range(len(best))],
            xerr=np.array([bars(c["best"], c["best_interval"]) for c in curves]).T,
            color=BLACK,
            marker="o",
            linestyle="none",
            markersize=5,
            label="best alpha, all prompts",
        )
        for k, (reading, label) in enumerate(READINGS.items()):
            kept = [(c["readings"][reading], -i) for i, c in enumerate(curves) if c["readings"][reading]]
            reach += [value for value, _ in kept]
            axes.plot(
                [value for value, _ in kept],
                [place - 0.22 for _, place in kept],
                color=COLOURS[k + 1],
                marker=MARKERS[k + 1],
                linestyle="none",
                markerfacecolor="none",
                markersize=5,
                label=label,
            )
        axes.axvspan(2.0, 2.2, color=GREY, alpha=0.3, linewidth=0, label="the paper's 2.0 to 2.2")
        axes.set_title(f"n {n}")
        axes.set_xlabel("alpha")
    for axes in every:
        plain_log(axes, min(reach) / 1.15, max(reach) * 1.15, "x")
    every[0].set_yticks([-i for i in range(len(names))], [f"{c}, {d}, batch {b}" for c, d, b in names])
    below(figure, every[0], 3)
    return figure


def policies(found: dict[str, Any]) -> Figure:
    """Time over the tuned static length's; rows are batch sizes, columns costs."""
    costs = _costs(found)
    some = next(iter(next(iter(costs.values()))["drafters"].values()))
    names = [p for p in some[str(found["batches"][0])]["policies"] if p != "static"]
    figure = sheet(4.2 * len(costs) + 1.8, 0.27 * len(names) + 1.8)
    every = figure.subplots(1, len(costs), squeeze=False, sharey=True)[0]
    for axes, cost in zip(every, costs, strict=True):
        drafter = shown(found, cost)
        for k, (batch, cell) in enumerate(costs[cost]["drafters"][drafter].items()):
            values = [cell["policies"][name] for name in names]
            axes.errorbar(
                [v["over_static"] for v in values],
                [-i - 0.2 * (k - 1) for i in range(len(names))],
                xerr=np.array([bars(v["over_static"], v["over_static_interval"]) for v in values]).T,
                label=f"batch {batch}",
                linestyle="none",
                marker=MARKERS[k % 6],
                color=COLOURS[k % 6],
                markersize=5,
                capsize=2,
            )
        axes.axvline(0.0, color=GREY, linewidth=1.2)
        axes.set_xscale("symlog", linthresh=SYMLOG)
        axes.xaxis.set_major_locator(SymmetricalLogLocator(base=10, linthresh=SYMLOG))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
        axes.set_title(f"cost {cost}, {drafter}")
        axes.set_xlabel("time over tuned static's, %")
    every[0].set_yticks([-i for i in range(len(names))], names)
    below(figure, every[0], 3)
    return figure


def n_and_longest(found: dict[str, Any], batch: str) -> Figure:
    """Speedup against d_max, a line for each n, at alpha 2.2."""
    costs = _costs(found)
    figure = sheet(4.0 * len(costs) + 0.8, 4.0)
    every = figure.subplots(1, len(costs), squeeze=False)[0]
    for axes, cost in zip(every, costs, strict=True):
        drafter = shown(found, cost)
        grid = costs[cost]["drafters"][drafter][batch]["grid"]["2.2"]
        for k, (n, speedup) in enumerate(zip(grid["blocks"], grid["speedup"], strict=True)):
            style = {"color": COLOURS[k % 6], "marker": MARKERS[k % 6], "linestyle": LINES[k % 6]}
            axes.plot(grid["longest"], speedup, label=f"n {n}", **style)
        axes.axhline(1.0, color=GREY, linewidth=1.2)
        axes.set_ylim(bottom=0.0)
        axes.set_title(f"cost {cost}, {drafter}")
        axes.set_xlabel("d_max")
    every[0].set_ylabel("speedup over plain decoding")
    below(figure, every[0], 5)
    return figure
