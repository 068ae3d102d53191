"""Figures of Algorithm 1 against its theorems."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, SymmetricalLogLocator

from simspec.report.style import BLUE, COLOURS, GREY, MARKERS, ORANGE, bars, below, sheet

STATEMENTS = {
    "3.2-printed": (
        "3.2 with 3.3's gain",
        "longer pays iff the gain from place d on, over its cost, beats eta",
    ),
    "3.4-extend": ("3.4, longer", "wherever min eps_i is longer, it raises eta"),
    "3.4-truncate": ("3.4, shorter", "wherever min eps_i is shorter, it raises eta"),
    "3.5-one-peak": ("3.5, one peak", "eta, once it has fallen, never rises again"),
    "3.5-marginal": (
        "3.5, marginal",
        "eta rises from d to d + 1 iff S_{d+1} > c eta_d, c fitted to the round",
    ),
    "3.6-iteration": ("3.6, by min eps_i", "moves to min eps_i end at the greatest eta"),
    "3.6-steps": ("3.6, steps of 1", "steps of one token that raise eta end at the greatest eta"),
    "first-stop": ("CaDDTree's stop", "the first length that the next one does not beat is the best"),
    "1-optimal": ("Algorithm 1: best", "it ends at the greatest eta"),
    "1-passes": ("Algorithm 1: passes", "every pass that moves raises eta"),
    "1-within": ("Algorithm 1: d_max", "it never goes beyond d_max"),
    "1-block": ("Algorithm 1: any n", "begun with one token it ends alike"),
    "1-theorem": ("Algorithm 1: eps", "the theorems' eps in its loop end alike"),
}
CHANCES = {"q": "q", "p": "p-hat"}
CURVES = ("measured", "affine")
REFERENCE, BEST, PLAIN = "marginal", "argmax-p", "plain"
KINDS = {"alone": "only what is submitted is drafted", "run": "with the rule's own drafting"}


def of_found(found: dict[str, Any], name: str) -> tuple[float, list[float | None]]:
    """A figure and its interval."""
    return found[name], found[f"{name}_interval"]


def fastest(drafter: dict[str, Any]) -> float:
    """Least seconds per token of the rules as run."""
    return min(float(r["seconds_per_token"]) for r in drafter["replay"]["run"].values())


def shown(cost: dict[str, Any]) -> str:
    """The cost's fastest drafter, by the fastest rule of each."""
    drafters: dict[str, Any] = cost["drafters"]
    return min(drafters, key=lambda d: fastest(drafters[d]))


def apart(drafter: dict[str, Any], title: str) -> Figure:
    """On what share of rounds lengths differ, all starts above the diagonal, visited ones below."""
    names = list(drafter["lengths"])
    share = np.full((len(names), len(names)), np.nan)
    for i, one in enumerate(names):
        for j, other in enumerate(names):
            if i != j:
                where = "starts" if j > i else "visited"
                share[i, j] = 100 * (drafter["apart"][where][one][other]["differ"] or 0.0)
    figure = sheet(8.2, 6.4)
    axes = figure.subplots()
    axes.imshow(share, cmap="Greys", vmin=0, vmax=130)
    for i, j in np.argwhere(~np.isnan(share)):
        dark = share[i, j] > 75
        axes.text(
            j, i, f"{share[i, j]:.0f}", ha="center", va="center", fontsize=9, color="w" if dark else "k"
        )
    axes.set_xticks(range(len(names)), names, rotation=45, ha="right")
    axes.set_yticks(range(len(names)), names)
    axes.grid(visible=False)
    axes.set_title(title)
    return figure


def end_to_end(costs: dict[str, Any]) -> Figure:
    """Time over the marginal rule's, kind by kind and cost by cost."""
    first = next(iter(next(iter(costs.values()))["drafters"].values()))
    names = {kind: [r for r in first["replay"][kind] if r != REFERENCE] for kind in KINDS}
    heights = [len(each) for each in names.values()]
    figure = sheet(4.2 * len(costs) + 1.6, 0.3 * sum(heights) + 2.2)
    every = figure.subplots(
        2, len(costs), squeeze=False, sharey="row", sharex="col", gridspec_kw={"height_ratios": heights}
    )
    drafters = list(dict.fromkeys(d for cost in costs.values() for d in cost["drafters"]))
    for row, (kind, rules) in zip(every, names.items(), strict=True):
        for axes, (name, cost) in zip(row, costs.items(), strict=True):
            for drafter, each in cost["drafters"].items():
                k = drafters.index(drafter)
                values = [each["replay"][kind][r] for r in rules]
                axes.errorbar(
                    [v["over"] for v in values],
                    [-i - 0.2 * (k - 1) for i in range(len(rules))],
                    xerr=np.array([bars(*of_found(v, "over")) for v in values]).T,
                    label=drafter,
                    linestyle="none",
                    marker=MARKERS[k % len(MARKERS)],
                    color=COLOURS[k % len(COLOURS)],
                    markersize=5,
                    capsize=2,
                )
            axes.axvline(0.0, color=GREY, linewidth=1.2)
            axes.set_xscale("symlog", linthresh=10.0)
            axes.xaxis.set_major_locator(SymmetricalLogLocator(base=10, linthresh=10))
            axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
            axes.set_yticks([-i for i in range(len(rules))], rules)
            axes.set_title(f"cost {name}; {KINDS[kind]}", fontsize=9)
    for axes in every[-1]:
        axes.set_xlabel("time over the marginal rule's, %")
    below(figure, max(every[0], key=lambda a: len(a.get_legend_handles_labels()[1])), 4)
    return figure


def failures(costs: dict[str, Any]) -> Figure:
    """On what share of rounds each statement is false."""
    figure = sheet(3.8 * len(costs) + 2.2, 0.36 * len(STATEMENTS) + 1.6)
    every = figure.subplots(1, len(costs), squeeze=False, sharey=True)[0]
    for axes, (name, cost) in zip(every, costs.items(), strict=True):
        drafter = shown(cost)
        _failing(axes, cost["drafters"][drafter]["statements"])
        axes.set_title(f"cost {name}, {drafter}")
        axes.set_xlabel("rounds on which it is false, %")
        axes.set_xlim(-3, 103)
    every[0].set_yticks([-i for i in range(len(STATEMENTS))], [short for short, _ in STATEMENTS.values()])
    below(figure, every[0], 4)
    return figure


def _failing(axes: Axes, found: dict[str, Any]) -> None:
    for i, chances in enumerate(CHANCES):
        for j, curve in enumerate(CURVES):
            cells = [found[name][chances][curve] for name in STATEMENTS]
            kept = [(k, c) for k, c in enumerate(cells) if c["share"] is not None]
            ends = [bars(100 * c["share"], _percent(c["share_interval"])) for _, c in kept]
            axes.errorbar(
                [100 * c["share"] for _, c in kept],
                [-k + 0.27 - 0.18 * (2 * i + j) for k, _ in kept],
                xerr=np.array(ends).reshape(-1, 2).T,
                label=f"{CHANCES[chances]}, {curve}",
                linestyle="none",
                marker=MARKERS[j],
                color=(BLUE, ORANGE)[j],
                markerfacecolor="none" if i else None,
                markersize=4.5,
                capsize=1.5,
            )


def _percent(interval: list[float | None]) -> list[float | None]:
    return [None if end is None else 100 * end for end in interval]
