"""How a drafter's training went, from the two tables that it leaves."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray

from simspec.report.style import COLOURS, LINES, MARKERS, drawing, save, sheet

# Of a training's steps, how many points of the smoothed loss are drawn at most.
_POINTS = 100


def draw_curves(folder: Path) -> Path:
    """Draw ``curves.png`` into a drafter's folder, from its ``loss.csv`` and ``held-out.csv``."""
    with drawing():
        figure = curves(pd.read_csv(folder / "loss.csv"), pd.read_csv(folder / "held-out.csv"))
        save(figure, folder / "curves.png")
    return folder / "curves.png"


def curves(loss: pd.DataFrame, held_out: pd.DataFrame) -> Figure:
    """Loss in training and on held-out texts, and tokens a target's pass gives there, over steps.

    Args:
        loss: columns step and loss, a row a step.
        held_out: columns step, category, loss and emitted_8, a row a category and measurement; may be empty.
    """
    figure = sheet(11.0, 4.4)
    left, right = figure.subplots(1, 2)
    steps, means = _smoothed(loss["step"].to_numpy(), loss["loss"].to_numpy())
    left.plot(steps, means, color=COLOURS[0], label=f"training, means of {-(-len(loss) // _POINTS)} steps")
    whole = held_out[held_out["category"] == "all"]
    left.plot(whole["step"], whole["loss"], color=COLOURS[1], marker="o", label="held out")
    left.set_ylabel("loss, nats a token")
    # The first steps' losses are several times the later ones, which are what is to be seen.
    seen = np.concatenate([means[len(means) // 20 :], whole["loss"].to_numpy()[1:]])
    if len(seen):
        left.set_ylim(0.0, 1.15 * float(seen.max()))
    for k, (category, rows) in enumerate(held_out.groupby("category", sort=False)):
        k %= len(COLOURS)
        right.plot(
            rows["step"],
            rows["emitted_8"],
            color=COLOURS[k],
            linestyle=LINES[k],
            marker=MARKERS[k],
            label=str(category),
        )
    right.set_ylabel("tokens a target's pass at length 8, held out")
    for axes in (left, right):
        axes.set_xlabel("step")
        if axes.lines:
            axes.legend()
    return figure


def _smoothed(
    steps: NDArray[np.int64], values: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    size = -(-len(values) // _POINTS) if len(values) else 1
    ends = [slice(first, first + size) for first in range(0, len(values), size)]
    return np.array([steps[e][-1] for e in ends]), np.array([values[e].mean() for e in ends])
