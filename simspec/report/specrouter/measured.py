"""The falsifier, shown: predictions of every reading against measured time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from simspec.compare.foretold import DRAINED, REPLAYED
from simspec.compare.specrouter.measured import SIMULATED
from simspec.report.parts import Grid, Picture
from simspec.report.scores import scores_table
from simspec.report.specrouter.ranking import FULL as OURS
from simspec.report.specrouter.ranking import PRINTED, SHOWN
from simspec.report.style import (
    COLOURS,
    GREY,
    LINES,
    MARKERS,
    bars,
    below,
    plain_log,
    save,
    sheet,
    whole_log2,
)
from simspec.report.words import NONE, chain_name, listed, span, with_span


def findings(found: dict[str, Any]) -> list[str]:
    """What a reader must take away."""
    if found["why"]:
        return [f"Not measured: {found['why']}."]
    about, batches, summary = found["about"], found["batches"], found["summary"]
    drained, ours, printed, replayed = (summary[name] for name in (DRAINED, OURS, PRINTED, REPLAYED))
    configurations = sum(len(b["configurations"]) for b in batches.values())
    said = [
        f"Over batch sizes {listed(batches)} ({configurations} chains x lengths x batch sizes decoded for "
        f"real), {DRAINED} loses to the measured best {_regret(drained)}, and takes the fastest itself in "
        f"{drained['top1']} of {drained['of']}; {OURS}, which takes batches as always full where these "
        f"drain, loses {_regret(ours)}, and takes it in {ours['top1']}; {PRINTED}, the printed reading, "
        f"loses {_regret(printed)}, and takes it in {printed['top1']}. Taking what full replay of other "
        f"prompts finds fastest loses {_regret(replayed)}."
    ]
    clear = [name for name, b in batches.items() if b["clear"]]
    said.append(
        f"The two fastest differ by more than their spread at batch {listed(clear)}: there {DRAINED} is "
        f"right in {drained['clear_top1']} of {drained['clear']}, {OURS} in {ours['clear_top1']}, {PRINTED} "
        f"in {printed['clear_top1']}."
        if clear
        else "At no batch size do the two fastest differ by more than their spread over batches of prompts."
    )
    readings = [name for name in summary if name not in (SIMULATED, REPLAYED)]
    best = min(readings, key=lambda n: (summary[n]["median_regret"], summary[n]["mean_regret"]))
    said.append(
        f"Times told by {DRAINED} are off by {100 * drained['median_abs_error']:.0f}% in the median, "
        f"{OURS}'s by {100 * ours['median_abs_error']:.0f}%, {PRINTED}'s by "
        f"{100 * printed['median_abs_error']:.0f}%, those of replay of the decoded prompts by "
        f"{100 * summary[SIMULATED]['median_abs_error']:.1f}%. Least median regret of all readings: {best}, "
        f"{summary[best]['median_regret']:.2f}%."
    )
    wrong = {name: e["by_tokens"] for name, e in found["errors"].items()}
    slots = {name: e["by_slots"] for name, e in found["errors"].items()}
    worst = max(wrong, key=lambda n: abs(wrong[n]))
    said.append(
        "The forwards that ran, priced by the table timed between them, are off by "
        f"{100 * wrong[worst]:+.1f}% at worst (median of a batch size; batch {worst}); priced at the slots "
        f"that their caches held, wasted ones included, by {100 * slots[worst]:+.1f}%. {_machine(about)}."
    )
    return said


def parts(found: dict[str, Any], figures: Path, said: str) -> Iterator[Picture | Grid]:
    """Figures and tables; none where nothing was measured."""
    if found["why"]:
        return
    about = found["about"]
    where = (
        f"Measured: {_machine(about)}; {about['decoded']} prompts of the record, {about['output_tokens']} "
        f"tokens of text, {about['rounds']} rounds in which the chains took turns on each batch of prompts; "
        f"forwards timed in the same run; acceptance from {about['fitted']} other prompts; {said}"
    )
    over = "Intervals: 95%, over draws of batches of prompts, and of the prompts fitted on"
    save(_regrets(found), figures / "measured-regret.png")
    yield Picture(
        "measured-regret.png",
        "Regret over the measured fastest of the chain and length that each reading picks; symlog axis. "
        f"{where}.",
    )
    save(_scatter(found), figures / "measured-times.png")
    yield Picture(
        "measured-times.png",
        "Predicted against measured time, each chain x length a point; bars: 95% over draws of batches of "
        f"prompts. {where}.",
    )
    yield Grid(f"Fastest as measured, and what was picked. {over}. {where}.", *_best(found))
    yield Grid(
        "Where simulated time is off, %, medians over configurations: simulated over measured time; of "
        "forwards alone; of the very forwards that ran, priced at the longest row's tokens and at the "
        f"slots that the cache held; simulated less measured time beside forwards, over the whole. {where}.",
        *_errors(found),
    )
    yield Grid(f"Every reading, over batch sizes. {over}. {where}.", *_summary(found), folded=True)
    yield Grid(f"Everything that was decoded. {over}. {where}.", *_all(found), folded=True)


def _machine(about: dict[str, Any]) -> str:
    return f"{about['dtype']} on {about['device']}, {about['processor']}, {about['cores']} cores"


def _regret(summary: dict[str, Any]) -> str:
    median = with_span(summary["median_regret"], summary["median_regret_interval"], 2, "%")
    return (
        f"{median} in the median, {summary['mean_regret']:.2f}% on average and "
        f"{summary['worst_regret']:.1f}% at worst"
    )


def _regrets(found: dict[str, Any]) -> Figure:
    figure = sheet(7.6, 5.0)
    axes = figure.add_subplot()
    batches = [int(b) for b in found["batches"]]
    names = [n for n in (*SHOWN, REPLAYED) if n in found["summary"]]
    for k, name in enumerate(names):
        scores = [b["scores"][name] for b in found["batches"].values()]
        y = [s["regret"] for s in scores]
        errors = np.array([bars(s["regret"], s["regret_interval"]) for s in scores]).T
        axes.errorbar(
            [b * 2 ** (0.05 * (k - len(names) / 2)) for b in batches],
            y,
            yerr=errors,
            label=name,
            color=COLOURS[k % len(COLOURS)] if k < len(COLOURS) else GREY,
            marker=MARKERS[k % len(MARKERS)],
            linestyle=LINES[k % len(LINES)],
            capsize=2.5,
            elinewidth=0.8,
        )
    axes.axhline(3.0, color=GREY, linewidth=0.8, linestyle="--")
    whole_log2(axes, batches)
    axes.set_yscale("symlog", linthresh=1.0)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}"))
    axes.set_ylim(bottom=0.0)
    axes.set_xlabel("batch size")
    axes.set_ylabel("regret over the measured fastest, %")
    axes.set_title("dashed: 3%; bars: 95% over draws")
    below(figure, axes, 2)
    return figure


def _scatter(found: dict[str, Any]) -> Figure:
    batches = found["batches"]
    columns = min(len(batches), 2)
    figure = sheet(4.6 * columns + 0.4, 4.2 * -(-len(batches) // columns) + 0.8)
    every = figure.subplots(-(-len(batches) // columns), columns, squeeze=False).ravel()
    for axes, (name, batch) in zip(every, batches.items(), strict=False):
        _points(axes, name, batch)
    for axes in every[len(batches) :]:
        axes.set_visible(False)
    below(figure, every[0], 2)
    return figure


def _points(axes: Axes, name: str, batch: dict[str, Any]) -> None:
    measured = [1e3 * c["measured"] for c in batch["configurations"]]
    spans = [
        bars(m, [None if end is None else 1e3 * end for end in c["interval"]])
        for m, c in zip(measured, batch["configurations"], strict=True)
    ]
    shown = (SIMULATED, DRAINED, OURS, PRINTED)
    for k, reading in enumerate(shown):
        axes.errorbar(
            measured,
            [1e3 * t for t in batch["predicted"][reading]],
            xerr=np.array(spans).T,
            label=reading,
            linestyle="none",
            marker=MARKERS[k],
            color=COLOURS[k],
            markerfacecolor="none",
            markersize=5.5,
            elinewidth=0.6,
            ecolor="#bbbbbb",
        )
    times = measured + [1e3 * t for reading in shown for t in batch["predicted"][reading]]
    low, high = min(times) / 1.15, max(times) * 1.15
    axes.plot([low, high], [low, high], color=GREY, linewidth=1.2)
    plain_log(axes, low, high)
    axes.set_xlabel("measured (ms per token)")
    axes.set_ylabel("predicted (ms per token)")
    axes.set_title(f"batch {name}, {batch['units']} batches of prompts")


def _best(found: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    rows = []
    for name, batch in found["batches"].items():
        best = batch["configurations"][batch["best"]]
        row = [
            name,
            str(len(batch["configurations"])),
            f"{batch['units']} ({batch['prompts']})",
            chain_name(best),
            f"{1e3 * best['measured']:.1f}",
            span([None if e is None else 1e3 * e for e in best["interval"]], 1),
            NONE if batch["lead"] is None else f"{batch['lead']:.1f}",
            span(batch["lead_interval"], 1),
            "yes" if batch["clear"] else "no",
            f"{100 * batch['won']:.0f}",
        ]
        for reading in (DRAINED, OURS, PRINTED):
            score = batch["scores"][reading]
            row.append(chain_name(batch["configurations"][score["pick"]]))
            row.append(f"{score['regret']:.1f} ({span(score['regret_interval'], 1)})")
        rows.append(row)
    header = [
        "batch",
        "decoded",
        "batches (prompts)",
        "fastest",
        "ms/token",
        "95%",
        "second slower by %",
        "95%",
    ]
    header += [
        "clear",
        "fastest in % of batches",
        *(w for r in (DRAINED, OURS, PRINTED) for w in (f"{r} picks", "regret %")),
    ]
    return header, rows


def _errors(found: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    keys = ("whole", "worst", "simulated_forwards", "by_tokens", "by_slots", "overhead")
    rows = [[name, *(f"{100 * e[key]:+.1f}" for key in keys)] for name, e in found["errors"].items()]
    return ["batch", "simulated", "worst", "forwards", "at tokens", "at slots", "beside forwards"], rows


def _summary(found: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    same = {
        name: sum(b["scores"][name]["same_chain"] for b in found["batches"].values())
        for name in found["summary"]
    }
    of = {name: f"{same[name]} of {s['of']}" for name, s in found["summary"].items()}
    return scores_table(found["summary"], {"same chain": of})


def _all(found: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    rows = []
    for name, batch in found["batches"].items():
        for k, c in sorted(enumerate(batch["configurations"]), key=lambda kc: float(kc[1]["measured"])):
            told = [batch["predicted"][reading][k] for reading in (SIMULATED, DRAINED, OURS, PRINTED)]
            rows.append(
                [
                    name,
                    chain_name(c),
                    f"{1e3 * c['measured']:.1f}",
                    span([None if e is None else 1e3 * e for e in c["interval"]], 1),
                    f"{100 * c['spread_of_rounds']:.0f}",
                    *(f"{1e3 * t:.1f}" for t in told),
                ]
            )
    header = ["batch", "chain", "ms/token", "95%", "slowest round over fastest %"]
    return [*header, "simulated", DRAINED, OURS, PRINTED], rows
