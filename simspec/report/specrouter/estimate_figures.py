"""Figures of acceptance estimates: calibration, errors, and how averages follow a change."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from simspec.report.style import COLOURS, GREY, LINES, MARKERS, bars, below, sheet, whole_log2

BY_PAIR = ("simscore", "logistic", "greedy-correct", "realised")
SHOWN = ("simscore", "logistic", "isotonic", "greedy-correct", "realised")


def calibration(found: dict[str, Any], said: str) -> Figure:
    """Above: estimates of each pair; below: averages before each request, in bins of equal counts."""
    figure = sheet(12.6, 7.6)
    axes = figure.subplots(2, len(BY_PAIR), sharex=True, sharey=True)
    drafters = list(dict.fromkeys(p["drafter"] for p in found["by_pair"]))
    for panel, source in zip(axes[0], BY_PAIR, strict=True):
        _diagonal(panel, source)
        for k, drafter in enumerate(drafters):
            mine = [p for p in found["by_pair"] if (p["source"], p["drafter"]) == (source, drafter)]
            _points(panel, [p["estimated"] for p in mine], mine, k, f"drafts of {drafter}")
    for panel, (source, bins) in zip(axes[1], found["bins"].items(), strict=False):
        _diagonal(panel, f"{source}, moving by request (weight {found['ema_weight']:g})")
        _points(panel, [b["estimated"] for b in bins], bins, len(drafters), "bins of requests x pairs")
        panel.set_xlabel("estimated acceptance")
    for panel in axes[1, len(found["bins"]) :]:
        panel.set_axis_off()
    axes[0, -1].tick_params(labelbottom=True)
    axes[0, -1].set_xlabel("estimated acceptance")
    for row in axes:
        row[0].set_ylabel("realised acceptance")
    handles = dict(zip(*(axes[0, 0].get_legend_handles_labels()[::-1]), strict=True))
    handles |= dict(zip(*(axes[1, 0].get_legend_handles_labels()[::-1]), strict=True))
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=len(handles))
    many = sum(found["prompts"].values())
    figure.suptitle(f"{said}, {many} prompts, each half estimated from the other; bars: 95%", fontsize=11)
    return figure


def _diagonal(axes: Axes, title: str) -> None:
    axes.plot([0, 1], [0, 1], color=GREY, linewidth=1.2, label="calibrated")
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.set_aspect("equal")
    axes.set_title(title, fontsize=10)


def _points(axes: Axes, x: list[float], told: list[dict[str, Any]], k: int, label: str) -> None:
    y = [t["realised"] for t in told]
    error = [bars(t["realised"], t["realised_interval"]) for t in told]
    axes.errorbar(
        x,
        y,
        yerr=np.array(error).T,
        label=label,
        color=COLOURS[k % 6],
        marker=MARKERS[k % 6],
        markerfacecolor="none",
        linestyle="none",
        markersize=5.5,
        elinewidth=0.9,
    )


def errors(found: dict[str, Any], said: str) -> Figure:
    """Bias by task, place in the block and place in the text."""
    figure = sheet(12.6, 4.6)
    panels = figure.subplots(1, 3, sharey=True)
    titles = {"task": "task", "position": "place in the drafted block", "time": "place in the text (tokens)"}
    for axes, (by, title) in zip(panels, titles.items(), strict=True):
        axes.axhline(0.0, color=GREY, linewidth=1.2)
        cells = list(dict.fromkeys(e["cell"] for e in found["errors"] if e["by"] == by))
        for k, source in enumerate(SHOWN):
            mine = {e["cell"]: e for e in found["errors"] if (e["by"], e["source"]) == (by, source)}
            y = [mine[c]["bias"] for c in cells]
            axes.errorbar(
                np.arange(len(cells)) + 0.09 * (k - 2),
                y,
                yerr=np.array([bars(v, mine[c]["bias_interval"]) for v, c in zip(y, cells, strict=True)]).T,
                label=source,
                color=COLOURS[k],
                marker=MARKERS[k],
                # Tasks have no order.
                linestyle="none" if by == "task" else LINES[k],
                markersize=5,
                linewidth=1.1,
                capsize=2,
                elinewidth=0.9,
            )
        axes.set_xticks(range(len(cells)), cells)
        axes.set_xlabel(title)
    panels[0].set_ylabel("estimate - accepted share (bias)")
    below(figure, panels[0], len(SHOWN))
    figure.suptitle(f"{said}, fitted on one half, scored on the other; bars: 95%", fontsize=11)
    return figure


def _measures(found: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """What is drawn: measures of acceptance along the text, and seconds under the first measured cost."""
    shown = [
        (f"{name}, along the text", clocks["text"])
        for name, clocks in found["task_changes"]["measures"].items()
    ]
    for name, load in found["load_changes"].items():
        if load["measures"]:
            return [*shown, (f"seconds a forward, {name}", load["measures"]["seconds"]["forward"])]
    return shown


def tracking(found: dict[str, Any], said: str) -> Figure:
    """Share of the way that averages have come after a change."""
    shown = _measures(found)
    figure = sheet(4.2 * len(shown) + 0.4, 4.8)
    panels = figure.subplots(1, len(shown), squeeze=False, sharey=True)[0]
    for axes, (title, told) in zip(panels, shown, strict=True):
        for share in (0.5, 0.9, 1.0):
            axes.axhline(share, color=GREY, linewidth=0.8)
        for k, (weight, follows) in enumerate(told["weights"].items()):
            steps = np.arange(1, len(follows["come"]) + 1)
            axes.plot(steps, follows["come"], color=COLOURS[k], linestyle=LINES[k], label=f"weight {weight}")
            clean = 1.0 - (1.0 - float(weight)) ** steps
            axes.plot(steps, clean, color=COLOURS[k], linewidth=0.8, alpha=0.6)
        whole_log2(axes, [1, 2, 4, 8, 16, 32, 64, 128])
        axes.set_title(title, fontsize=10)
        axes.set_xlabel("observations after the change")
    panels[0].set_ylabel("share of the way come (least squares over changes)")
    panels[0].set_ylim(0.0, 1.6)
    below(figure, panels[0], 5)
    figure.suptitle(f"{said}; thin: a clean step, 1 - (1 - w)^n", fontsize=11)
    return figure


def trade_off(found: dict[str, Any], said: str) -> Figure:
    """Total error over a stretch after a change, against its length."""
    shown = _measures(found)
    figure = sheet(4.2 * len(shown) + 0.4, 4.8)
    panels = figure.subplots(1, len(shown), squeeze=False)[0]
    for axes, (title, told) in zip(panels, shown, strict=True):
        lengths = list(told["stretches"])
        for k, weight in enumerate(told["weights"]):
            cells = [told["stretches"][n]["weights"][weight] for n in lengths]
            y = [c["error"] for c in cells]
            axes.errorbar(
                [int(n) * 2 ** (0.06 * (k - 2)) for n in lengths],
                y,
                yerr=np.array([bars(v, c["error_interval"]) for v, c in zip(y, cells, strict=True)]).T,
                color=COLOURS[k],
                marker=MARKERS[k],
                linestyle=LINES[k],
                label=f"weight {weight}",
                markersize=5,
                capsize=2,
                elinewidth=0.9,
            )
        axes.axhline(told["apart"], color=GREY, linewidth=1.2, label="not moving at all")
        whole_log2(axes, [int(n) for n in lengths])
        axes.set_ylim(bottom=0.0)
        axes.set_title(title, fontsize=10)
        axes.set_xlabel("length of the stretch (observations)")
    panels[0].set_ylabel("root mean square error (bias and variance)")
    below(figure, panels[0], 6)
    figure.suptitle(f"{said}; bars: 95% over draws of prompts", fontsize=11)
    return figure
