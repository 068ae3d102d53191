"""Figures of Table 2's shape."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from simspec.report.style import BLACK, BLUE, COLOURS, GREEN, GREY, ORANGE, bars, below, sheet, whole_log2

NAMES = {
    "second": "best static pair",
    "third": "best static triple",
    "vanilla": "vanilla three levels",
    "reach": "SpecRouter (reach)",
    "ours": "our best router",
    "bound_of_two": "bound, pair and triple only",
    "bound": "bound, every chain",
}
_LOOK = {
    "second": (BLUE, "s", "--"),
    "third": (GREEN, "D", ":"),
    "vanilla": (COLOURS[4], "v", ":"),
    "reach": (ORANGE, "^", "-."),
    "ours": (BLACK, "o", "-"),
    "bound_of_two": (GREY, "1", "--"),
    "bound": (GREY, "*", "-"),
}


def speedups(found: dict[str, Any], said: str) -> Figure:
    """A panel a cost."""
    costs = found["costs"]
    columns = min(3, len(costs))
    rows = -(-len(costs) // columns)
    figure = sheet(4.6 * columns + 0.4, 4.0 * rows + 0.8)
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes in panels[len(costs) :]:
        axes.set_axis_off()
    for axes, (name, cost) in zip(panels, costs.items(), strict=False):
        _panel(axes, cost, found["theory"])
        axes.set_title(f"{'derived: ' if cost['derived'] else ''}{name}", fontsize=10)
        axes.set_xlabel("batch size (requests in lock-step)")
    panels[0].set_ylabel("speedup over plain decoding")
    figure.suptitle(f"{said}, {found['prompts']} prompts; bars: 95% over draws of prompts", fontsize=11)
    below(figure, panels[0], 4)
    return figure


def _panel(axes: Axes, cost: dict[str, Any], theory: dict[str, Any]) -> None:
    axes.axhline(1.0, color=GREY, linewidth=0.8)
    for k, (scheme, label) in enumerate(NAMES.items()):
        shown = [(int(b), s[scheme]) for b, s in cost["batches"].items() if scheme in s]
        colour, marker, line = _LOOK[scheme]
        y = [s["speedup"] for _, s in shown]
        axes.errorbar(
            [b * 2 ** (0.05 * (k - 3)) for b, _ in shown],
            y,
            yerr=np.array([bars(s["speedup"], s["interval"]) for _, s in shown]).reshape(-1, 2).T,
            label=label,
            color=colour,
            marker=marker,
            linestyle=line,
            markersize=5,
            linewidth=1.2,
            elinewidth=0.8,
        )
    if cost["derived"]:
        for goal, scheme in (("second", "second"), ("third", "third"), ("adaptive", "reach")):
            axes.plot(
                [theory["batch"]],
                [theory["published"][goal]],
                marker="x",
                color=_LOOK[scheme][0],
                markersize=10,
                markeredgewidth=2,
                linestyle="none",
            )
    whole_log2(axes, sorted(int(b) for b in cost["batches"]))
    axes.set_ylim(bottom=0.0)


def alphas(theory: dict[str, Any]) -> Figure:
    """A panel a device: the best triple over adjacent acceptance."""
    goal = theory["published"]["adaptive"]
    figure = sheet(5.6 * len(theory["devices"]) + 0.4, 6.2)
    panels = figure.subplots(1, len(theory["devices"]), squeeze=False, sharey=True)[0]
    for axes, (name, device) in zip(panels, theory["devices"].items(), strict=True):
        at = device["mapped"]
        plain = axes.contour(at, at, device["independent"], levels=[1.0, 1.2, 1.5, 2.5, 4.0], colors=GREY)
        axes.clabel(plain, fmt="%g", fontsize=9)
        axes.contour(at, at, device["independent"], levels=[goal], colors=ORANGE, linewidths=2.6)
        axes.contour(
            at, at, device["favourable"], levels=[goal], colors=ORANGE, linewidths=1.6, linestyles="--"
        )
        alone = device["needs"]["adaptive"]["middle"]
        if alone is not None:
            axes.axvline(alone, color=BLUE, linewidth=1.6)
        both = [p for p in device["at_once"] if p["possible"]]
        axes.plot([p["upper"] for p in both], [p["lower"] for p in both], "o", color=BLACK, markersize=4)
        axes.set_title(f"{name}, batch {theory['batch']}", fontsize=10)
        axes.set_xlabel("acceptance of 1.1B by 7b")
        axes.set_aspect("equal")
    panels[0].set_ylabel("acceptance of 68m by 1.1B")
    handles = [
        Line2D([], [], color=ORANGE, linewidth=2.6, label=f"triple = {goal}, agreements independent"),
        Line2D(
            [], [], color=ORANGE, linewidth=1.6, linestyle="--", label="all three agree as often as can be"
        ),
        Line2D([], [], color=BLUE, linewidth=1.6, label=f"pair 1.1B > 7b = {goal}"),
        Line2D([], [], color=GREY, label="triple, other speedups"),
        Line2D([], [], color=BLACK, marker="o", linestyle="none", label="both published static speedups"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=2)
    figure.suptitle("SYNTHETIC acceptance, roofline costs: speedup of the best triple", fontsize=11)
    return figure


def sweeps(theory: dict[str, Any]) -> Figure:
    """What 1.91 needs as costs change."""
    titles = {
        "draft": "drafter's forward, times",
        "forward_ms": "framework's time a forward (ms)",
        "layer_us": "framework's time a layer (us)",
    }
    looks = {
        "small": ("pair 68m > 7b: its alpha", BLUE, "s"),
        "middle": ("pair 1.1B > 7b: its alpha", GREEN, "D"),
        "triple": ("triple: both adjacent alphas", ORANGE, "^"),
        "favourable": ("triple, agreeing as often as can be", BLACK, "v"),
    }
    figure = sheet(12.6, 4.8)
    panels = figure.subplots(1, len(titles), sharey=True)
    for axes, (kind, title) in zip(panels, titles.items(), strict=True):
        for line, device in zip(("-", "--"), theory["devices"].values(), strict=False):
            values = list(device["sweeps"][kind])
            for name, (label, colour, marker) in looks.items():
                y = [device["sweeps"][kind][v][name] for v in values]
                axes.plot(
                    range(len(values)),
                    [np.nan if v is None else v for v in y],
                    color=colour,
                    marker=marker,
                    linestyle=line,
                    markersize=5,
                    markerfacecolor=colour if line == "-" else "none",
                    label=label if line == "-" else None,
                )
        axes.set_xticks(range(len(values)), values)
        axes.set_xlabel(title)
        axes.set_ylim(0.0, 1.03)
    panels[0].set_ylabel(f"least acceptance for {theory['published']['adaptive']}")
    below(figure, panels[0], 4)
    figure.suptitle(
        f"SYNTHETIC acceptance, roofline costs, batch {theory['batch']}; solid, dashed: "
        + ", ".join(theory["devices"]),
        fontsize=11,
    )
    return figure
