"""Sensitivity, shown: regret of picks against noise, correlation and the price of width."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter

from simspec.report.parts import Grid, Picture
from simspec.report.style import COLOURS, LINES, MARKERS, below, save, sheet
from simspec.report.words import NONE, listed

DRAWN = (
    "joint-by-row/visited",
    "exact/realised",
    "funnel/realised",
    "reach/realised",
    "reach/simscore",
    "polybasic/realised",
)
# Named by variant alone where all are told the same means.
MEANS = ("exact", "funnel", "nested", "reach-wide", "reach", "polybasic")
CASES = {
    "refused": "acceptance, on 1 - alpha",
    "rate": "acceptance, on alpha",
    "model": "latency, by model",
    "width": "latency, by model and width",
}
OURS, PRINTED, COUNTED = "exact/realised", "reach/simscore", "joint-by-row/visited"


def findings(found: dict[str, Any]) -> list[str]:
    most, said = f"{100 * found['levels'][-1]:.0f}%", []
    for case, what in (("refused", "on 1 - alpha"), ("rate", "on alpha"), ("width", "on latencies by width")):
        told = [
            f"{name} from {_mean(found, case, name, 0):.1f}% to {_mean(found, case, name, -1):.1f}% (a tenth "
            f"of draws above {_mean(found, case, name, -1, 'high'):.1f}%)"
            for name in (OURS, PRINTED, *([COUNTED] if case == "width" else []))
        ]
        said.append(
            f"Noise of {most} {what} moves the median regret, averaged over costs and batch sizes, of "
            f"{', of '.join(told)}."
        )
    by_model = _mean(found, "model", COUNTED, -1) - _mean(found, "model", COUNTED, 0)
    by_width = _mean(found, "width", COUNTED, -1) - _mean(found, "width", COUNTED, 0)
    said.append(
        f"It matters which latency errors: {most} shared by all widths of a model adds {by_model:.1f} points "
        f"of median regret to {COUNTED}, {most} from width to width {by_width:.1f}."
    )
    mixed = [v for cost in found["correlation"].values() for v in cost.values()]
    rhos = found["rhos"]
    exact, reach = (
        ", ".join(f"{np.mean([c[name]['median'][i] for c in mixed]):.1f}%" for i in range(len(rhos)))
        for name in ("exact", "reach")
    )
    said.append(
        "As levels and the whole block come to share an easy or hard state of the cycle (SYNTHETIC, mean "
        f"rates known without error), median regret at rho {', '.join(f'{r:g}' for r in rhos)} is {exact} "
        f"for exact and {reach} for reach."
    )
    changes = [
        (v[OURS]["decoupled"][0] - v[OURS]["trace"][0], f"{name}, batch {b}", v[OURS])
        for name, cost in found["decoupled"].items()
        for b, v in cost.items()
    ]
    _, where, both = max(changes, key=lambda c: abs(c[0]))
    same = sum(abs(c[0]) < 0.5 for c in changes)
    said.append(
        f"Shuffling the trace's levels apart leaves the regret of {OURS} within half a point in {same} of "
        f"{len(changes)} costs x batch sizes; most changes under {where}: "
        f"{_three(both['trace'])}% as recorded, {_three(both['decoupled'])}% apart."
    )
    sloped = [v for cost in found["slope"].values() for v in cost.values()]
    lines = []
    for name in ("reach/realised", OURS, COUNTED):
        by_slope = np.mean([[point[0] for point in cell[name]] for cell in sloped], axis=0)
        lines.append(f"{name} {', '.join(f'{v:.1f}%' for v in by_slope)}")
    said.append(
        "From flat to linear verification cost (SYNTHETIC costs, the trace's behaviour), regret averaged "
        f"over costs and batch sizes at s {', '.join(f'{x:g}' for x in found['slopes'])}: {listed(lines)}."
    )
    return said


def _mean(found: dict[str, Any], case: str, name: str, level: int, of: str = "median") -> float:
    """Over costs and batch sizes, at a level."""
    cells = [v[case][name] for cost in found["noise"].values() for v in cost.values()]
    return float(np.mean([c[of][level] for c in cells]))


def parts(found: dict[str, Any], figures: Path, said: str) -> Iterator[Picture | Grid]:
    band = f"line: median of {found['draws']} draws of noise, mean of both halves; band: middle 80%"
    for b in found["batches"]:
        save(_noise(found, str(b)), figures / f"sensitivity-noise-{b}.png")
        yield Picture(
            f"sensitivity-noise-{b}.png",
            f"Regret of the chain and length picked at batch {b}, as inputs get noisy: factor 1 + level z on "
            "1 - alpha or on alpha of every pair (within 0 and 1), exp(level z) on seconds of every model, "
            f"or of every model and width. Estimates from one half of {found['prompts']} prompts, regret on "
            f"the other; {band}. joint-by-row is told counts and no rates. Symlog axis. {said}.",
        )
    save(_by_rho(found), figures / "sensitivity-correlation.png")
    yield Picture(
        "sensitivity-correlation.png",
        "SYNTHETIC behaviour: each cycle is easy or hard for all its tokens and levels, rates alpha +- rho "
        "min(alpha, 1 - alpha); truth exact from the mixture, every reading told the mean rates. Rates: the "
        f"trace's, with 30% (log-normal) on 1 - alpha in each of {found['draws']} pools; line: median, band: "
        "middle 80% of pools; a batch whose rows do the same. Symlog axis.",
    )
    save(_by_slope(found), figures / "sensitivity-slope.png")
    yield Picture(
        "sensitivity-slope.png",
        "SYNTHETIC costs T(n) = T1 (1 - s + s n) for every model but look-ups, T1 of the cost named, rows "
        f"free: regret by s. {said}; one half of {found['prompts']} prompts predicts the other, 95% "
        f"intervals over {found['slope_draws']} draws of prompts. Symlog axis.",
    )
    yield Grid(
        "Regret % with the trace's levels as recorded, and shuffled apart within each text (verdicts of an "
        f"intermediate are of other places: SYNTHETIC); 95% over {found['draws']} draws of prompts. {said}.",
        *_apart(found),
    )
    yield Grid(
        f"Median regret % without noise and at {100 * found['levels'][-1]:.0f}%, every reading. {said}.",
        *_table(found),
        folded=True,
    )


def _look(every: Iterable[Axes]) -> None:
    """Once all is drawn: axes that are shared would keep the first one's limits."""
    for axes in every:
        axes.set_yscale("symlog", linthresh=1.0)
        axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}"))
        axes.set_ylim(bottom=0.0)
        top = axes.get_ylim()[1]
        axes.yaxis.set_major_locator(FixedLocator([t for t in (0, 1, 3, 10, 30, 100, 300) if t <= top]))


def _line(axes: Axes, k: int, label: str, x: list[float], values: tuple[Any, Any, Any]) -> None:
    low, mid, high = values
    axes.fill_between(x, low, high, color=COLOURS[k], alpha=0.12, linewidth=0)
    axes.plot(x, mid, label=label, color=COLOURS[k], marker=MARKERS[k], linestyle=LINES[k], markersize=4)


def _noise(found: dict[str, Any], batch: str) -> Figure:
    costs = found["noise"]
    figure = sheet(3.3 * len(CASES) + 0.6, 2.7 * len(costs) + 0.9)
    grid = figure.subplots(len(costs), len(CASES), squeeze=False, sharex=True, sharey="row")
    x = [100 * level for level in found["levels"]]
    for row, (name, by_batch) in zip(grid, costs.items(), strict=True):
        for axes, (case, what) in zip(row, CASES.items(), strict=True):
            for k, estimator in enumerate(DRAWN):
                one = by_batch[batch][case].get(estimator)
                if one is not None:
                    # Without draws there is no noise to show.
                    shown = x[: len(one["median"])]
                    _line(axes, k, estimator, shown, (one["low"], one["median"], one["high"]))
            axes.set_title(what, fontsize=10)
        row[0].set_ylabel(f"{name}\nregret, %")
        _look(row)
    for axes in grid[-1]:
        axes.set_xlabel("noise, %")
    below(figure, grid[0][-1], 3)
    return figure


def _panels(found: dict[str, Any], key: str) -> tuple[Figure, list[tuple[Axes, dict[str, Any]]]]:
    """One panel a cost and batch size."""
    costs = found[key]
    figure = sheet(4.2 * len(costs) + 0.6, 2.9 * len(found["batches"]) + 0.8)
    grid = figure.subplots(len(found["batches"]), len(costs), squeeze=False, sharex=True, sharey="row")
    panels = []
    for row, b in zip(grid, found["batches"], strict=True):
        for axes, (name, by_batch) in zip(row, costs.items(), strict=True):
            axes.set_title(f"{name}, batch {b}", fontsize=10)
            panels.append((axes, by_batch[str(b)]))
        row[0].set_ylabel("regret, %")
    return figure, panels


def _by_rho(found: dict[str, Any]) -> Figure:
    figure, panels = _panels(found, "correlation")
    for axes, here in panels:
        for k, name in enumerate(MEANS):
            one = here[name]
            _line(axes, k, name, found["rhos"], (one["low"], one["median"], one["high"]))
        axes.set_xlabel("rho")
    _look([axes for axes, _ in panels])
    below(figure, panels[0][0], len(MEANS))
    return figure


def _by_slope(found: dict[str, Any]) -> Figure:
    figure, panels = _panels(found, "slope")
    for axes, here in panels:
        for k, name in enumerate(DRAWN):
            value, low, high = zip(*here[name], strict=True)
            none = [v is None for v in low]
            _line(
                axes,
                k,
                name,
                found["slopes"],
                tuple(v if any(none) else e for v, e in ((value, low), (value, value), (value, high))),  # type: ignore[arg-type]
            )
        axes.set_xlabel("s: 0 flat, 1 linear")
    _look([axes for axes, _ in panels])
    below(figure, panels[0][0], 3)
    return figure


def _apart(found: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    rows = []
    for name, by_batch in found["decoupled"].items():
        for b, here in by_batch.items():
            for estimator in DRAWN:
                both = here[estimator]
                rows.append([name, b, estimator, _three(both["trace"]), _three(both["decoupled"])])
    return ["cost", "batch", "reading", "as recorded", "shuffled apart"], rows


def _three(values: list[float | None]) -> str:
    value, low, high = values
    if low is None or high is None:
        return f"{value:.1f}"
    return f"{value:.1f} ({low:.1f} to {high:.1f})"


def _table(found: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    rows = []
    for name, by_batch in found["noise"].items():
        for b, cases in by_batch.items():
            for estimator, clean in cases["model"].items():
                row = [name, b, estimator, f"{clean['median'][0]:.1f}"]
                for case in CASES:
                    one = cases[case][estimator]
                    row.append(
                        NONE
                        if one is None
                        else f"{one['median'][-1]:.1f} ({one['low'][-1]:.1f} to {one['high'][-1]:.1f})"
                    )
                rows.append(row)
    return ["cost", "batch", "reading", "no noise", *CASES.values()], rows
