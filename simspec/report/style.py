"""One look for every figure, and bytes that do not depend on when or where it was drawn."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

# Colours of Okabe and Ito, taken so that their greys differ too; markers and line styles
# carry the same distinction.
BLACK, BLUE, ORANGE, GREEN, GREY = "#000000", "#0072B2", "#D55E00", "#009E73", "#8c8c8c"
COLOURS = (BLACK, BLUE, ORANGE, GREEN, "#CC79A7", "#56B4E9")
MARKERS = ("o", "s", "^", "D", "v", "P")
LINES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (1, 1)))

_SETTINGS: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 11,
    "axes.titlesize": 11,
    "axes.labelsize": 11,
    "legend.fontsize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "savefig.dpi": 130,
}


@contextmanager
def drawing() -> Iterator[None]:
    """The defaults that matplotlib comes with and then ours, whatever the reader's own settings are."""
    with mpl.rc_context():
        mpl.rcdefaults()
        for name, value in _SETTINGS.items():
            mpl.rcParams[name] = value
        yield


def sheet(width: float, height: float) -> Figure:
    """An empty figure, in inches, laid out so that nothing overlaps."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def save(figure: Figure, path: Path) -> None:
    """Write a PNG that says neither when it was made nor by which version."""
    figure.savefig(path, format="png", metadata={"Software": None})


def below(figure: Figure, axes: Axes, columns: int) -> None:
    """The legend of ``axes`` under the whole figure, where it covers no data."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=columns)


def whole_log2(axes: Axes, batches: list[int]) -> None:
    """A log2 x axis that names the batch sizes shown."""
    axes.set_xscale("log", base=2)
    shown = batches if len(batches) <= 10 else batches[:: -(-len(batches) // 10)]
    axes.xaxis.set_major_locator(FixedLocator([float(b) for b in shown]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:.0f}"))


def plain_log(axes: Axes, low: float, high: float, which: str = "both") -> None:
    """Log axes labelled with plain numbers, from ``low`` to ``high``."""
    ticks = _nice(low, high)
    for name in ("x", "y") if which == "both" else (which,):
        axis = axes.xaxis if name == "x" else axes.yaxis
        (axes.set_xscale if name == "x" else axes.set_yscale)("log")
        (axes.set_xlim if name == "x" else axes.set_ylim)(low, high)
        axis.set_major_locator(FixedLocator(ticks))
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))


def _nice(low: float, high: float) -> list[float]:
    """Round numbers inside [low, high]: enough to read a scale by, not so many that they touch."""
    powers = 10.0 ** np.arange(np.floor(np.log10(low)), np.ceil(np.log10(high)) + 1)
    scales: tuple[tuple[float, ...], ...] = ((1,), (1, 3), (1, 2, 5), (1, 1.5, 2, 3, 5, 7))
    for steps in scales:
        ticks = [float(f"{s * p:.6g}") for p in powers for s in steps]
        ticks = [t for t in ticks if low <= t <= high]
        if len(ticks) >= 3:
            return ticks
    # Less than a factor of two or so: evenly spaced will do.
    even = MaxNLocator(5).tick_values(low, high)
    return [float(f"{t:.6g}") for t in even if low <= t <= high]


def bars(
    value: float, interval: list[float | None] | tuple[float | None, float | None]
) -> tuple[float, float]:
    """Lengths of error bars under and over ``value``; none where there is no interval."""
    low, high = interval
    if low is None or high is None:
        return 0.0, 0.0
    # A figure on all prompts can lie outside the middle 95% of its draws.
    return max(value - low, 0.0), max(high - value, 0.0)
