"""Figures of a sweep: latency and throughput against load, gains, and where a token's time goes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from simspec.report.serving_tables import GAIN_WORDS, of_series, plain_at
from simspec.report.style import BLACK, COLOURS, GREY, LINES, MARKERS, bars, below, sheet

PANELS = (
    ("throughput_tokens_per_second", "output tokens a second", 1.0),
    ("tpot_seconds_mean", "mean TPOT (ms)", 1e3),
    ("tpot_seconds_p99", "p99 TPOT (ms)", 1e3),
    ("ttft_seconds_p99", "p99 TTFT (ms), log", 1e3),
)
# Whether less of a figure is better.
LESS = {"tpot_seconds_mean": True, "throughput_tokens_per_second": False}
STACK = ("verify", "draft", "prefill", "swap", "overhead", "idle")
HATCHES = ("", "///", "...", "xx", "\\\\\\", "")

Interval = tuple[float, float | None, float | None]
Point = Callable[[dict[str, Any]], Interval | None]


def against_load(found: dict[str, Any]) -> Figure:
    """Four figures of merit against load, a line for each policy."""
    figure = sheet(9.6, 7.4)
    panels = figure.subplots(2, 2)
    for axes, (name, label, scale) in zip(panels.ravel(), PANELS, strict=True):

        def value(cell: dict[str, Any], name: str = name, scale: float = scale) -> Interval | None:
            return _scaled(cell["figures"][name], scale)

        _lines(axes, found, list(found["policies"]), value)
        axes.set_ylabel(label)
        if name.startswith("ttft"):
            axes.set_yscale("log")
        else:
            axes.set_ylim(bottom=0)
    figure.suptitle(f"{found['name']}; bars: 95% over {len(found['seeds'])} replications", fontsize=11)
    below(figure, panels[0, 0], 3)
    return figure


def gains(found: dict[str, Any]) -> Figure:
    """What each policy gains over plain decoding, in % of it, with crossovers marked."""
    figure = sheet(9.6, 4.9)
    panels = figure.subplots(1, 2)
    policies = [policy for policy in found["policies"] if policy != "off"]
    for axes, (name, less) in zip(panels, LESS.items(), strict=True):
        axes.axhline(0, color=GREY, linewidth=1.2)

        def gain(cell: dict[str, Any], name: str = name, less: bool = less) -> Interval | None:
            base = plain_at(found, cell["load"])["figures"][name]["value"]
            return _scaled(cell["differences"][name], (-100 if less else 100) / base) if base else None

        _lines(axes, found, policies, gain)
        for crossing in found["crossovers"]:
            if (crossing["figure"], crossing["verdicts"]) == (name, "own") and crossing["load"] is not None:
                colour = COLOURS[_place(found, crossing["policy"]) % len(COLOURS)]
                axes.plot(
                    [crossing["load"]], [0], marker="|", markersize=18, markeredgewidth=2.5, color=colour
                )
                if crossing["low"] is not None:
                    axes.plot(
                        [crossing["low"], crossing["high"]], [0, 0], color=colour, linewidth=5, alpha=0.5
                    )
        axes.set_ylabel(f"gain in {GAIN_WORDS[name]} over off (%)")
    figure.suptitle(f"{found['name']}; bars: 95%, paired; upright marks: crossovers", fontsize=11)
    below(figure, panels[0], 3)
    return figure


def decomposition(found: dict[str, Any], view: str) -> Figure:
    """Time an emitted token by part: plain decoding beside each policy, at every load."""
    policies = [policy for policy in found["policies"] if policy != "off"]
    figure = sheet(9.6, 3.2 * len(policies) + 0.8)
    panels = figure.subplots(len(policies), 1, squeeze=False, sharex=True, sharey=True)[:, 0]
    loads = found["load"]["values"]
    parts = [part for part in STACK if view == "engine" or part != "idle"]
    for axes, policy in zip(panels, policies, strict=True):
        for shift, name in ((-0.21, "off"), (0.21, policy)):
            bottom = np.zeros(len(loads))
            for k, part in enumerate(parts):
                height = np.array([_a_token(cell, view, part) for cell in of_series(found, name)])
                axes.bar(
                    np.arange(len(loads)) + shift,
                    height,
                    0.38,
                    bottom=bottom,
                    color=(*COLOURS[1:], "#ffffff")[k],
                    edgecolor=BLACK,
                    linewidth=0.5,
                    hatch=HATCHES[k],
                    label=part if shift > 0 else None,
                )
                bottom += height
        axes.set_title(f"left: off; right: {policy}", loc="left")
        axes.set_ylabel("ms a token")
        axes.set_xticks(range(len(loads)), [f"{load:g}" for load in loads])
    panels[-1].set_xlabel(found["load"]["unit"])
    below(figure, panels[0], 6)
    return figure


def _lines(axes: Axes, found: dict[str, Any], policies: list[str], point: Point) -> None:
    for policy in policies:
        k = _place(found, policy)
        shown = [(c["load"], p) for c in of_series(found, policy) if (p := point(c)) is not None]
        if not shown:
            continue
        error = np.array([bars(value, (low, high)) for _, (value, low, high) in shown]).T
        axes.errorbar(
            [load for load, _ in shown],
            [p[0] for _, p in shown],
            yerr=error,
            label=policy,
            color=COLOURS[k % len(COLOURS)],
            marker=MARKERS[k % len(MARKERS)],
            linestyle=LINES[k % len(LINES)],
            markersize=5,
            linewidth=1.3,
            capsize=2.5,
            elinewidth=1.0,
        )
    axes.set_xlabel(found["load"]["unit"])


def _scaled(estimate: dict[str, Any], scale: float) -> Interval | None:
    if estimate["value"] is None:
        return None
    low, high = (None if estimate[end] is None else scale * estimate[end] for end in ("low", "high"))
    if low is not None and high is not None:
        low, high = min(low, high), max(low, high)
    return scale * estimate["value"], low, high


def _a_token(cell: dict[str, Any], view: str, part: str) -> float:
    spent, tokens = (cell["figures"][f"{view}.{name}"]["value"] for name in (part, "tokens"))
    return 0.0 if spent is None or not tokens else 1e3 * spent / tokens


def _place(found: dict[str, Any], policy: str) -> int:
    return list(found["policies"]).index(policy)
