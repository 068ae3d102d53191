"""Figures of batches of unequal rows, and of drafting that stops or is only cut."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from simspec.report.style import BLUE, COLOURS, GREY, LINES, MARKERS, ORANGE, bars, below, plain_log, sheet

LAYOUTS = ("padded", "packed")
# Of symlog axes, %.
TICKS = (-100.0, -30.0, -10.0, -3.0, -1.0, 0.0, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)


def joint_figure(found: dict[str, Any]) -> Figure:
    """One length for all over row by row, by the slope of the target's forward."""
    figure = sheet(11.0, 5.4)
    every = figure.subplots(1, 2, sharey=True)
    slopes = [one["slope"] for cost in found["costs"].values() for one in cost["joint"]]
    for axes, layout in zip(every, LAYOUTS, strict=True):
        axes.axhline(0.0, color=GREY, linewidth=1.2)
        for k, (name, cost) in enumerate(found["costs"].items()):
            for key, filled, words in (
                ("one_length", True, "stops drafting"),
                ("one_length_in_blocks", False, "in blocks"),
            ):
                values = [(one["slope"], one["layouts"][layout]) for one in cost["joint"]]
                values = [(x, v) for x, v in values if v[key] is not None]
                _points(
                    axes,
                    [x for x, _ in values],
                    [v[key] for _, v in values],
                    [v[f"{key}_interval"] for _, v in values],
                    label=f"{name}, {words}",
                    color=COLOURS[k],
                    marker=MARKERS[k],
                    markerfacecolor=COLOURS[k] if filled else "none",
                )
        axes.set_title(f"rows {layout}")
        axes.set_xlabel("a token more in every row, % of a forward of one")
        if slopes and min(slopes) > 0.0:
            plain_log(axes, 0.8 * min(slopes), 1.25 * max(slopes), "x")
        elif slopes:  # by the noise of a latency table, wider forwards can look quicker
            _symlog(axes, "x", 1.0)
        _symlog(axes, "y", 1.0)
    every[0].set_ylabel("one length over row by row, % more time")
    below(figure, every[0], 3)
    return figure


def arms_figure(found: dict[str, Any], name: str) -> Figure:
    """Every rule over ours, one panel a batch size and drafter."""
    joint = found["costs"][name]["joint"]
    columns = min(len(joint), 3)
    lines = -(-len(joint) // columns)
    figure = sheet(3.6 * columns + 2.2, 3.9 * lines + 0.6)
    every = figure.subplots(lines, columns, squeeze=False, sharey=True, sharex=True)
    arms = list(dict.fromkeys(a for one in joint for a in one["layouts"]["padded"]["arms"]))[::-1]
    for axes in every.flat[len(joint) :]:
        axes.set_axis_off()
    for axes, one in zip(every.flat, joint, strict=False):
        axes.axvline(0.0, color=GREY, linewidth=1.2)
        for layout, colour, marker, off in (("padded", BLUE, "s", 0.15), ("packed", ORANGE, "o", -0.15)):
            for y, arm in enumerate(arms):
                value = one["layouts"][layout]["arms"].get(arm)
                if value is None:
                    continue
                low, high = bars(value["over_ours"], value["over_ours_interval"])
                axes.errorbar(
                    [value["over_ours"]],
                    [y + off],
                    xerr=[[low], [high]],
                    color=colour,
                    marker=marker,
                    linestyle="none",
                    markersize=5,
                    capsize=2,
                    label=None
                    if f"rows {layout}" in axes.get_legend_handles_labels()[1]
                    else f"rows {layout}",
                )
        axes.set_yticks(range(len(arms)), arms)
        _symlog(axes, "x", 3.0)
        axes.set_title(f"batch {one['batch']}, {one['drafter']}, slope {one['slope']:.1f}%", fontsize=10)
        axes.set_xlabel("% more time than ours")
        axes.xaxis.set_tick_params(labelbottom=True)
    below(figure, every.flat[0], 2)
    return figure


def stopping_figure(found: dict[str, Any], name: str) -> Figure:
    """Only cutting over stopping, by the block that is drafted; one panel a batch size."""
    cells = found["costs"][name]["stopping"]
    batches = list(dict.fromkeys(one["batch"] for one in cells))
    drafters = list(dict.fromkeys(one["drafter"] for one in cells))
    figure = sheet(3.7 * len(batches) + 0.8, 4.9)
    every = figure.subplots(1, len(batches), squeeze=False, sharey=True)[0]
    for axes, batch in zip(every, batches, strict=True):
        axes.axhline(0.0, color=GREY, linewidth=1.2)
        for one in (c for c in cells if c["batch"] == batch):
            k = drafters.index(one["drafter"])
            for key, filled in (("exact", True), ("ours", False)):
                rule = found["names"][key]
                if rule not in one["rules"]:
                    continue
                blocks = sorted(one["rules"][rule]["blocks"].items(), key=lambda item: int(item[0]))
                _points(
                    axes,
                    [int(n) for n, _ in blocks],
                    [v["over_stop"] for _, v in blocks],
                    [v["over_stop_interval"] for _, v in blocks],
                    label=f"{one['drafter']}, {rule}",
                    color=COLOURS[k],
                    marker=MARKERS[k],
                    linestyle=LINES[k] if filled else "none",
                    markerfacecolor=COLOURS[k] if filled else "none",
                )
        axes.set_title(f"batch {batch}")
        axes.set_xscale("log", base=2)
        shown = sorted({float(n) for c in cells for r in c["rules"].values() for n in r["blocks"]})
        axes.xaxis.set_major_locator(FixedLocator(shown))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:.0f}"))
        axes.set_xlabel("tokens drafted every cycle")
        _symlog(axes, "y", 3.0)
    every[0].set_ylabel("only cutting over stopping, % more time")
    below(figure, every[-1], 4)
    return figure


def _points(axes: Axes, x: list[float], y: list[float], spans: list[Any], **looks: Any) -> None:
    ends = [bars(value, interval) for value, interval in zip(y, spans, strict=True)]
    looks = {"linestyle": "none", "markersize": 6, "capsize": 2, "linewidth": 1.2, **looks}
    axes.errorbar(x, y, yerr=[[low for low, _ in ends], [high for _, high in ends]], **looks)


def _symlog(axes: Axes, which: str, linear: float) -> None:
    (axes.set_yscale if which == "y" else axes.set_xscale)("symlog", linthresh=linear)
    axis = axes.yaxis if which == "y" else axes.xaxis
    # Beside each other names of ticks take more room than over each other.
    axis.set_major_locator(
        FixedLocator(TICKS if which == "y" else [t for t in TICKS if abs(t) not in (3, 30, 300)])
    )
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
