"""Figures of the case study."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from simspec.compare.libraspec.case import ACCEPTED, HINDSIGHT, PROGRAM
from simspec.report.style import (
    BLACK,
    BLUE,
    COLOURS,
    GREY,
    LINES,
    MARKERS,
    ORANGE,
    bars,
    below,
    plain_log,
    sheet,
)
from simspec.report.words import span

EXPECTED = "long-run-expected"
ORDER = ("myopic-expected", EXPECTED, HINDSIGHT, "long-run-hindsight", PROGRAM, ACCEPTED)


def along(texts: list[dict[str, Any]], cost: dict[str, Any]) -> Figure:
    """Submitted and wanted lengths, cycle by cycle: a row a text, a column a rule."""
    shown = cost["shown"]
    figure = sheet(3.4 * len(shown) + 0.4, 2.0 * len(texts) + 0.8)
    every = figure.subplots(len(texts), len(shown), squeeze=False, sharey=True, sharex="row")
    for row, text, chosen in zip(every, texts, cost["along"], strict=True):
        for axes, rule in zip(row, shown, strict=True):
            _panel(axes, chosen[rule])
            axes.set_title(f"{rule}: MAD {chosen[rule]['mad'][HINDSIGHT]:.2f}", fontsize=10, loc="left")
        row[0].set_ylabel(f"{text['category']}\ntokens")
    # Only once all panels are drawn, since they share the axis.
    every[0, 0].set_ylim(bottom=-0.5)
    for axes in every[-1]:
        axes.set_xlabel("position in the text")
    below(figure, every[0, 0], 2)
    return figure


def _panel(axes: Axes, chosen: dict[str, Any]) -> None:
    position, wanted = chosen["position"], chosen["wanted"][HINDSIGHT]
    axes.vlines(position, 0, wanted, color="#c9c9c9", linewidth=2.0)
    none: dict[str, Any] = {"linestyle": "none"}
    oracle = f"{HINDSIGHT} (oracle)"
    axes.plot(position, wanted, marker="_", color=GREY, markeredgewidth=2, label=oracle, **none)
    look = {"marker": "o", "markersize": 4, "color": BLUE, "markerfacecolor": "none", **none}
    axes.plot(position, chosen["submitted"], label="submitted", **look)
    axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.margins(x=0.02)


def deviations(found: dict[str, Any]) -> Figure:
    """The shown rules' deviation from each oracle, a panel a cost, and the published ones."""
    costs = found["costs"]
    figure = sheet(4.8 * len(costs) + 0.6, 5.0)
    every = figure.subplots(1, len(costs), squeeze=False, sharey=True)[0]
    for axes, (name, cost) in zip(every, costs.items(), strict=True):
        for k, rule in enumerate(cost["shown"]):
            mads = cost["rules"][rule]["mad"]
            error = np.array([bars(mads[o], mads[f"{o}_interval"]) for o in ORDER]).T
            axes.errorbar(
                np.arange(len(ORDER)) + 0.14 * (k - (len(cost["shown"]) - 1) / 2),
                [mads[o] for o in ORDER],
                yerr=error,
                linestyle="none",
                marker=MARKERS[k],
                color=COLOURS[k],
                label=_label(rule, cost),
                capsize=2,
            )
        for k, (rule, value) in enumerate(found["published"].items()):
            axes.axhline(value, color=GREY, linestyle=LINES[k + 1], label=f"published, {rule}")
        axes.set_xticks(range(len(ORDER)), [o.replace("-", "\n") for o in ORDER], fontsize=8)
        axes.set_title(f"{name}, {cost['drafter']}")
    every[0].set_ylim(bottom=0)
    every[0].set_ylabel("mean absolute deviation, tokens")
    below(figure, every[0], 3)
    return figure


def ranks(found: dict[str, Any]) -> Figure:
    """Time against deviation, a point a rule: a column a cost, a row an oracle."""
    costs = found["costs"]
    figure = sheet(4.8 * len(costs) + 0.6, 7.6)
    every = figure.subplots(2, len(costs), squeeze=False)
    for column, (name, cost) in zip(every.T, costs.items(), strict=True):
        times = [1000 * r["seconds_per_token"] for r in cost["rules"].values()]
        for axes, oracle in zip(column, (HINDSIGHT, EXPECTED), strict=True):
            _scatter(axes, cost, oracle)
            of = cost["oracles"][oracle]
            tau = "" if of["tau"] is None else f", tau {of['tau']:.2f} ({span(of['tau_interval'], 2)})"
            axes.set_title(f"{name}, {cost['drafter']}{tau}", fontsize=10)
            axes.set_xlabel(f"deviation from {oracle}, tokens")
            axes.set_ylabel("ms a token")
            plain_log(axes, min(times) / 1.05, max(times) * 1.05, "y")
    below(figure, every[0, 0], 5)
    return figure


def _scatter(axes: Axes, cost: dict[str, Any], oracle: str) -> None:
    shown = cost["shown"]
    points = [([r for r in cost["rules"] if r not in shown], GREY, ".", "other rules")]
    for k, (rule, colour) in enumerate(zip(shown, (BLACK, ORANGE, BLUE, COLOURS[4]), strict=True)):
        points.append(([rule], colour, MARKERS[k], _label(rule, cost)))
    for rules, colour, marker, label in points:
        x = [cost["rules"][r]["mad"][oracle] for r in rules]
        y = [1000 * cost["rules"][r]["seconds_per_token"] for r in rules]
        axes.plot(x, y, linestyle="none", marker=marker, color=colour, label=label)


def _label(rule: str, cost: dict[str, Any]) -> str:
    return "best static" if rule == cost["static"] else rule
