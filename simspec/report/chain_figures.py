"""Figures of chains: speedup against batch size, predicted against replayed time."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from simspec.report.study import PICKED_BY, CostStudy, two_of
from simspec.report.style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    bars,
    below,
    plain_log,
    sheet,
    whole_log2,
)

_KINDS = (
    ("target alone", "*", BLACK),
    ("pair", "o", BLUE),
    ("triple, truncate", "^", ORANGE),
    ("triple, replace", "v", GREEN),
)


def speedup(study: CostStudy, behaviour: str) -> Figure:
    """Speedup over plain decoding against batch size, by who chose the chain."""
    batches = study.batches
    figure = sheet(7.6, 5.2)
    axes = figure.add_subplot()
    axes.axhline(1.0, color=GREY, linewidth=1.2)
    series: list[tuple[str, list[dict[str, Any] | None], str, str, str, float]] = [
        ("fastest by replay", [study.best(b) for b in batches], BLACK, "o", "-", 9.0),
        ("best pair", [study.best(b, 2) for b in batches], BLUE, "s", "--", 5.5),
        ("best triple", [study.best(b, 3) for b in batches], GREEN, "D", ":", 5.5),
        (f"picked by Eq. 7 ({PICKED_BY})", [study.pick(b) for b in batches], ORANGE, "^", "-.", 6.0),
    ]
    for k, (label, chains, colour, marker, line, size) in enumerate(series):
        shown = [(b, c) for b, c in zip(batches, chains, strict=True) if c is not None]
        if not shown:
            continue
        # Moved apart sideways, or equal choices would hide each other's intervals.
        x = [b * 2 ** (0.07 * (k - 1.5)) for b, _ in shown]
        y = [c["speedup"] for _, c in shown]
        error = np.array([bars(c["speedup"], c["speedup_interval"]) for _, c in shown]).T
        axes.errorbar(
            x,
            y,
            yerr=error,
            label=label,
            color=colour,
            marker=marker,
            linestyle=line,
            markersize=size,
            markerfacecolor="none" if k == 0 else colour,
            linewidth=1.4,
            capsize=2.5,
            elinewidth=1.0,
        )
    axes.plot(
        [1],
        [study.bound_speedup],
        linestyle="none",
        marker="*",
        markersize=13,
        color="#CC79A7",
        markeredgecolor=BLACK,
        label="bound at batch 1 (dynamic program)",
    )
    whole_log2(axes, batches)
    axes.set_xlabel("batch size (requests in lock-step)")
    axes.set_ylabel("speedup over plain decoding (times)")
    axes.set_title(f"cost {study.cost.name}, {behaviour}; bars: 95% over draws of prompts")
    axes.set_ylim(bottom=0.0)
    below(figure, axes, 2)
    return figure


def predicted(study: CostStudy, behaviour: str) -> Figure:
    """Eq. 7's time against replay's, every chain and length a point."""
    panels = two_of(tuple(study.batches))
    figure = sheet(4.9 * len(panels) + 0.4, 6.0)
    every = figure.subplots(1, len(panels), squeeze=False)[0]
    for axes, batch in zip(every, panels, strict=True):
        _points(axes, study, batch)
    figure.suptitle(f"cost {study.cost.name}, {behaviour}; Eq. 7 read as {PICKED_BY}", fontsize=11)
    below(figure, every[0], 5)
    return figure


def _points(axes: Axes, study: CostStudy, batch: int) -> None:
    found = study.found["batches"][str(batch)]
    chains, said = found["chains"], found["predicted"][PICKED_BY]
    for label, marker, colour in _KINDS:
        mine = [c for c in chains if _kind(c) == label]
        x = [1000 * c["replay_seconds_per_token"] for c in mine]
        error = np.array(
            [[1000 * e for e in bars(c["replay_seconds_per_token"], c["replay_interval"])] for c in mine]
        )
        axes.errorbar(
            x,
            [1000 * t for c, t in zip(chains, said, strict=True) if _kind(c) == label],
            xerr=error.T if mine else None,
            label=label,
            linestyle="none",
            marker=marker,
            markersize=11 if marker == "*" else 5.5,
            color=colour,
            markerfacecolor=colour if marker == "*" else "none",
            ecolor="#bbbbbb",
            elinewidth=0.8,
            zorder=3 if marker == "*" else 2,
        )
    times = [1000 * t for t in (*(c["replay_seconds_per_token"] for c in chains), *said)]
    low, high = min(times) / 1.15, max(times) * 1.15
    axes.plot([low, high], [low, high], color=GREY, linewidth=1.2, label="predicted = replayed")
    plain_log(axes, low, high)
    axes.set_aspect("equal")
    axes.set_xlabel("replayed (ms per token)")
    axes.set_ylabel("predicted (ms per token)")
    score = study.score(batch)
    low_tau, high_tau = score["kendall_tau_interval"]
    tau = f"Kendall tau {score['kendall_tau']:.2f}" if score["kendall_tau"] is not None else "no Kendall tau"
    if low_tau is not None:
        tau += f" (95% {low_tau:.2f} to {high_tau:.2f})"
    axes.set_title(f"batch {batch}: {tau}")


def _kind(chain: dict[str, Any]) -> str:
    if chain["semantics"]:  # the page ranks up to three levels
        return f"triple, {chain['semantics'].removeprefix('funnel-')}"
    return "pair" if len(chain["chain"]) > 1 else "target alone"
