"""The experiment, shown: regrets of every reading of Eq. 7, and what one chain for all tasks loses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from simspec.report.parts import Grid, Picture
from simspec.report.scores import scores_table
from simspec.report.style import COLOURS, LINES, MARKERS, below, save, sheet, whole_log2
from simspec.report.words import chain_name, listed, span, with_span

# Ours first, then what the papers print and what others make of it.
SHOWN = (
    "joint-drained/visited",
    "joint-by-row/visited",
    "funnel/realised",
    "reach/realised",
    "reach/simscore",
    "product/simscore",
)
OURS, FULL, PRINTED = "joint-drained/visited", "joint-by-row/visited", "reach/simscore"


def findings(found: dict[str, Any]) -> list[str]:
    said = []
    for name, cost in found["costs"].items():
        summary = cost["tasks"]["all"]["summary"]
        ours, printed, tuned = summary[OURS], summary[PRINTED], cost["tasks"]["all"]["tuned"]
        said.append(
            f"Cost {name}: over {ours['of']} rankings (batch sizes x halves) of {found['candidates']} chains "
            f"x lengths, {OURS} loses {_regret(ours)} to the replayed best, {FULL}, which takes batches as "
            f"always full, {_regret(summary[FULL])}, and {PRINTED}, the printed reading, {_regret(printed)}. "
            f"Where the two fastest chains differ by more than their interval, they take the right one in "
            f"{ours['clear_top1']}, {summary[FULL]['clear_top1']} and {printed['clear_top1']} of "
            f"{ours['clear']}. Taking what replay finds fastest on the other half, as well as any estimate "
            f"can know, loses {tuned['median_regret']:.2f}% in the median, {tuned['mean_regret']:.2f}% on "
            f"average, and is right in {tuned['clear_top1']}."
        )
        wrong = [100 * summary[n]["median_abs_error"] for n in (OURS, FULL, PRINTED)]
        said.append(
            f"Cost {name}: a ranking is not a forecast. The times that they predict are wrong by "
            f"{wrong[0]:.0f}, {wrong[1]:.0f} and {wrong[2]:.0f}% in the median."
        )
        cells = [(b, t, v) for b, tasks in cost["one_chain"].items() for t, v in tasks.items()]
        lost = [c for c in cells if c[2]["clear"] and c[2]["loss"] > 0]
        if cells:
            b, t, most = max(cells, key=lambda c: float(c[2]["loss"]))
            said.append(
                f"Cost {name}: serving every task with the chain tuned on all loses time for certain in "
                f"{len(lost)} of {len(cells)} batch sizes x tasks"
                + (f" ({listed(sorted({c[1] for c in lost}))})" if lost else "")
                + f"; the most is {with_span(most['loss'], most['loss_interval'], 1, '%')}, {t} at batch {b}."
            )
    return said


def _regret(summary: dict[str, Any]) -> str:
    median = with_span(summary["median_regret"], summary["median_regret_interval"], 2, "%")
    mean, worst = summary["mean_regret"], summary["worst_regret"]
    return f"{median} in the median, {mean:.2f}% on average, {worst:.1f}% at worst"


def parts(found: dict[str, Any], figures: Path, said: str) -> Iterator[Picture | Grid]:
    save(_regrets(found), figures / "regret.png")
    tasks = listed(f"{n} of {task}" for task, n in found["prompts"].items())
    yield Picture(
        "regret.png",
        f"Regret of the chain that each reading picks, over the replayed best, by batch size: mean of both "
        f"halves, each predicted from the other; symlog axis. Prompts: {tasks}. {said}.",
    )
    for name, cost in found["costs"].items():
        yield Grid(
            f"Fastest chains, as told by replay of either half, all tasks. {_of(name, cost, said)}",
            *_best(cost),
        )
        yield Grid(
            f"What serving a task with the chain tuned on all tasks loses over its own tuned chain, %, both "
            f"tuned on the half that is not scored. {_of(name, cost, said)}",
            *_one_chain(cost),
        )
        for task, of_task in cost["tasks"].items():
            yield Grid(
                f"Every reading with every source of acceptance, {task}: one half predicts the other, over "
                f"batch sizes and both halves. {_of(name, cost, said)}",
                *scores_table(of_task["summary"]),
                folded=True,
            )


def _of(name: str, cost: dict[str, Any], said: str) -> str:
    return f"Cost {name} ({cost['label']}); {said}."


def _regrets(found: dict[str, Any]) -> Figure:
    costs = found["costs"]
    figure = sheet(4.6 * len(costs) + 0.6, 4.8)
    every = figure.subplots(1, len(costs), squeeze=False, sharey=True)[0]
    for axes, (name, cost) in zip(every, costs.items(), strict=True):
        batches = cost["tasks"]["all"]["batches"]
        x = [int(b) for b in batches]
        for k, reading in enumerate(r for r in SHOWN if r in next(iter(batches.values()))[0]["regret"]):
            y = [float(np.mean([half["regret"][reading] for half in halves])) for halves in batches.values()]
            axes.plot(x, y, label=reading, color=COLOURS[k], marker=MARKERS[k], linestyle=LINES[k])
        whole_log2(axes, x)
        axes.set_yscale("symlog", linthresh=1.0)
        axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}"))
        axes.set_ylim(bottom=0.0)
        axes.set_title(name)
        axes.set_xlabel("batch size")
    every[0].set_ylabel("regret over the replayed best, %")
    below(figure, every[0], 3)
    return figure


def _best(cost: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    rows = []
    for batch, halves in cost["tasks"]["all"]["batches"].items():
        for i, half in enumerate(halves):
            rows.append(
                [
                    batch,
                    str(2 - i),
                    chain_name(half["best"]),
                    f"{half['speedup']:.3f}",
                    span(half["speedup_interval"], 3),
                    f"{half['lead']:.1f}",
                    span(half["lead_interval"], 1),
                    f"{half['regret'][OURS]:.1f}",
                    f"{half['regret'][PRINTED]:.1f}",
                ]
            )
    header = ["batch", "half scored", "fastest", "speedup", "95%", "second slower by %", "95%"]
    return [*header, f"regret % of {OURS}", f"of {PRINTED}"], rows


def _one_chain(cost: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    rows = []
    tasks: list[str] = []
    for batch, of in cost["one_chain"].items():
        tasks = list(of)
        rows.append([batch, *(f"{v['loss']:.1f} ({span(v['loss_interval'], 1)})" for v in of.values())])
    return ["batch", *tasks], rows
