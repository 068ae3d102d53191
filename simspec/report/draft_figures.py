"""Figures of drafters: how far drafts survive, and whether confidence says so. No cost enters."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from simspec.report.study import Study
from simspec.report.style import BLACK, COLOURS, GREY, LINES, MARKERS, bars, below, sheet


def survival(study: Study) -> Figure:
    """Share of starts whose first j drafts are all accepted, against j."""
    figure = sheet(7.6, 5.0)
    axes = figure.add_subplot()
    for k, (name, found) in enumerate(study.survival.items()):
        shares = found.estimates()
        x = np.arange(1, len(shares) + 1) + 0.08 * (k - (len(study.survival) - 1) / 2)
        y = [s.value or 0.0 for s in shares]
        error = np.array([bars(v, (s.low, s.high)) for v, s in zip(y, shares, strict=True)]).T
        axes.errorbar(
            x,
            y,
            yerr=error,
            label=name,
            color=COLOURS[k % 6],
            marker=MARKERS[k % 6],
            linestyle=LINES[k % 6],
            markersize=5,
            linewidth=1.3,
            capsize=2,
            elinewidth=0.9,
        )
    axes.set_ylim(0, 1)
    axes.set_xlabel("j (tokens drafted)")
    axes.set_ylabel("share of starts with the first j accepted")
    axes.set_title(f"{study.trace.manifest.name}, {study.behaviour}; bars: 95% Wilson intervals")
    below(figure, axes, 4)
    return figure


def reliability(study: Study) -> Figure:
    """Accepted share against mean confidence, by bins of equal counts."""
    names = list(study.calibration)
    columns = min(3, len(names))
    rows = -(-len(names) // columns)
    figure = sheet(3.9 * columns + 0.4, 4.3 * rows + 0.8)
    every = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
    for axes in every.ravel()[len(names) :]:
        axes.set_visible(False)
    for k, (name, found) in enumerate(study.calibration.items()):
        axes = every.ravel()[k]
        axes.plot([0, 1], [0, 1], color=GREY, linewidth=1.2, label="calibrated")
        shares = [b.estimate() for b in found.bins]
        y = [s.value or 0.0 for s in shares]
        error = np.array([bars(v, (s.low, s.high)) for v, s in zip(y, shares, strict=True)]).T
        axes.errorbar(
            [b.mean_confidence for b in found.bins],
            y,
            yerr=error,
            color=BLACK,
            marker="o",
            linestyle="--",
            linewidth=1.0,
            markersize=5,
            capsize=2.5,
            label="observed",
        )
        axes.set_xlim(0, 1.02)
        axes.set_ylim(0, 1.02)
        axes.set_aspect("equal")
        axes.set_title(f"{name}: ECE {found.expected_error:.3f}")
        if k >= len(names) - columns:
            axes.tick_params(labelbottom=True)
            axes.set_xlabel("mean confidence of a bin")
        if k % columns == 0:
            axes.set_ylabel("accepted by the target (share)")
    title = f"{study.trace.manifest.name}, {study.behaviour}; bars: 95% Wilson intervals"
    figure.suptitle(title, fontsize=11)
    below(figure, every[0, 0], 2)
    return figure
