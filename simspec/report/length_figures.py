"""Figures of length rules: along a text, and against each other."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from simspec.compare.along import LengthsAlongText
from simspec.compare.lengths import LengthStudy
from simspec.report.study import CostStudy, Study, bound_over_static
from simspec.report.style import BLACK, BLUE, GREY, ORANGE, bars, below, plain_log, sheet


def along_text(study: Study, cost: CostStudy) -> Figure:
    """Submitted length cycle by cycle, and what the myopic hindsight oracle wanted there."""
    figure = sheet(9.6, 2.1 * len(cost.along) + 0.9)
    every = figure.subplots(len(cost.along), 1, squeeze=False, sharey=True)[:, 0]
    for axes, text in zip(every, cost.along, strict=True):
        _along(axes, text)
        prompt = next(iter(text.values())).prompt
        axes.set_title(study.prompt_name(prompt), fontsize=10, loc="left")
        axes.set_ylabel("tokens")
    every[-1].set_xlabel("position in the text at a cycle's start (tokens)")
    drafter = cost.along_drafter
    figure.suptitle(
        f"cost {cost.cost.name}, {study.behaviour}; length submitted, drafter {drafter}, batch 1", fontsize=11
    )
    below(figure, every[0], 3)
    return figure


def _along(axes: Axes, text: dict[str, LengthsAlongText]) -> None:
    position = np.concatenate([a.position for a in text.values()])
    wanted = np.concatenate([a.hindsight for a in text.values()])
    position, first = np.unique(position, return_index=True)
    axes.vlines(position, 0, wanted[first], color="#c9c9c9", linewidth=2.5)
    axes.plot(
        position,
        wanted[first],
        linestyle="none",
        marker="_",
        markersize=7,
        markeredgewidth=2,
        color=GREY,
        label="myopic hindsight (oracle)",
    )
    for name, marker, colour in (("libraspec", "o", BLACK), ("exact-marginal", "x", ORANGE)):
        axes.plot(
            text[name].position,
            text[name].chosen,
            label=name,
            marker=marker,
            color=colour,
            linestyle="none",
            markersize=6,
            markerfacecolor="none",
            markeredgewidth=1.2,
        )
    axes.set_ylim(bottom=-0.5)
    axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.margins(x=0.01)


def rules(study: CostStudy, behaviour: str) -> Figure:
    """Time per token over that of the best static length, rule by rule."""
    figure = sheet(5.3 * len(study.lengths) + 0.6, 6.4)
    every = figure.subplots(1, len(study.lengths), squeeze=False)[0]
    for axes, lengths in zip(every, study.lengths.values(), strict=True):
        _rules(axes, lengths)
    figure.suptitle(f"cost {study.cost.name}, {behaviour}; bars: 95% over draws of prompts", fontsize=11)
    below(figure, every[0], 3)
    return figure


def _rules(axes: Axes, lengths: LengthStudy) -> None:
    found = lengths.as_json()
    rows = [("rule", n, r) for n, r in found["rules"].items()]
    rows += [("oracle", n, r) for n, r in found["oracles"].items()]
    reach = [1.0]
    for kind, marker, colour in (("rule", "o", BLUE), ("oracle", "D", ORANGE)):
        mine = [(k, r) for k, (what, _, r) in enumerate(rows) if what == kind]
        value = [1 + r["regret_best_static"] / 100 for _, r in mine]
        error = []
        for v, (_, r) in zip(value, mine, strict=True):
            low, high = r["regret_best_static_interval"]
            ends = (None, None) if low is None else (1 + low / 100, 1 + high / 100)
            error.append(bars(v, ends))
            reach += [v - error[-1][0], v + error[-1][1]]
        axes.errorbar(
            value,
            [-k for k, _ in mine],
            xerr=np.array(error).T,
            label=kind,
            linestyle="none",
            marker=marker,
            color=colour,
            markersize=6,
            capsize=2.5,
            markerfacecolor="none" if kind == "oracle" else colour,
        )
    axes.axvline(1.0, color=GREY, linewidth=1.2, label="best static length")
    bound = bound_over_static(lengths)
    if bound is not None:
        at = [None if b is None else 1 + b / 100 for b in bound]
        assert at[0] is not None
        axes.axvline(at[0], color=BLACK, linestyle="--", label="bound (dynamic program), 95%")
        reach.append(at[0])
        if at[1] is not None and at[2] is not None:
            axes.axvspan(at[1], at[2], color=BLACK, alpha=0.12, linewidth=0)
            reach.append(at[1])
    plain_log(axes, min(reach) / 1.06, max(reach) * 1.06, "x")
    axes.set_yticks([-k for k in range(len(rows))], [n for _, n, _ in rows])
    axes.set_xlabel("seconds per token / best static's (times)")
    axes.set_title(f"batch {lengths.settings.batch}, {lengths.drafter}; best static: {lengths.best_static}")
