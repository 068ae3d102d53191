"""Acceptance estimates, and averages that follow a change, shown."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from simspec.report.parts import Grid, Picture
from simspec.report.specrouter.estimate_figures import calibration, errors, tracking, trade_off
from simspec.report.specrouter.estimate_findings import findings, reached
from simspec.report.style import save
from simspec.report.words import NONE, listed, span

__all__ = ["findings", "parts"]


def parts(found: dict[str, Any], figures: Path, said: str) -> Iterator[Picture | Grid]:
    prompts = listed(f"{n} of {task}" for task, n in found["prompts"].items())
    of = f"Prompts: {prompts}; blocks of {found['longest']}. No cost enters. {said}."
    save(calibration(found, said), figures / "estimates-calibration.png")
    yield Picture(
        "estimates-calibration.png",
        "Calibration. Above: each (drafter, verifier), estimated from one half of the prompts and realised "
        "on the other, both ways. Below: averages as they stood before each request, against what it "
        "realised, in bins of equal counts; requests in shuffled orders. Bars: 95% over draws of prompts. "
        f"{of}",
    )
    save(errors(found, said), figures / "estimates-errors.png")
    yield Picture(
        "estimates-errors.png",
        "Bias of each source over all pairs, weighted by drafts tried. A place in the block counts where all "
        f"before it were accepted. Bars: 95% over draws of both halves. {of}",
    )
    header = ["by", "cell", "source", "drafts tried", "accepted", "bias", "95%", "absolute", "95%"]
    yield Grid(f"Errors of every source of acceptance. {of}", header, _errors(found), folded=True)
    header = ["requests", "source", "weight", "bias", "rms error", "95%", "gain over weight 0", "95%"]
    yield Grid(
        "A moving average by request before each request, against what that request realises; weight 0 is "
        f"the other half's rate, left as it is. The luck of a request's few drafts is in every error. {of}",
        header,
        _moving(found),
        folded=True,
    )
    yield from _changes(found, figures, said)


def _changes(found: dict[str, Any], figures: Path, said: str) -> Iterator[Picture | Grid]:
    changes = found["task_changes"]
    where = (
        f"Tasks: {changes['changes']} changes x {changes['pairs']} drafters with the target, "
        f"{changes['streams']} streams of half of either task's prompts, changing where a text begins; 95% "
        f"over {changes['draws']} draws of prompts. Batch: {changes['together']} requests in lock-step. "
        f"{said}."
    )
    for name, load in found["load_changes"].items():
        if load["measures"]:
            repeated = " to ".join(str(n) for n in sorted(set(load["repetitions"])))
            few, many = load["loads"]
            where += (
                f" Load, cost {name}: {few} to {many} rows and back, models {listed(load['models'])}, drawn "
                f"from {repeated} measured repetitions of each forward, width 1; seconds relative to "
                "their mean after the change."
            )
    if changes["measures"] or any(load["measures"] for load in found["load_changes"].values()):
        save(tracking(found, said), figures / "estimates-tracking.png")
        yield Picture("estimates-tracking.png", f"How averages follow a change in mid-stream. {where}")
        save(trade_off(found, said), figures / "estimates-trade-off.png")
        yield Picture(
            "estimates-trade-off.png",
            f"Distance from the new mean over a stretch that begins with the change. {where}",
        )
    measured = [
        (name, clock, told) for name, clocks in changes["measures"].items() for clock, told in clocks.items()
    ]
    measured += [
        (f"seconds ({name})", "forward", load["measures"]["seconds"]["forward"])
        for name, load in found["load_changes"].items()
        if load["measures"]
    ]
    if measured:
        yield Grid(f"Steps to follow a change, and what is left. {where}", *_followed(measured), folded=True)
        yield Grid(
            "Root mean square error over a stretch after a change, by weight; least: which, in how many "
            f"draws of prompts, and which a clean step in independent observations would have. {where}",
            *_stretches(measured),
        )


def _errors(found: dict[str, Any]) -> list[list[str]]:
    return [
        [
            e["by"],
            e["cell"],
            e["source"],
            str(e["tried"]),
            f"{e['accepted_share']:.3f}",
            f"{e['bias']:+.3f}",
            span(e["bias_interval"], 3),
            f"{e['absolute']:.3f}",
            span(e["absolute_interval"], 3),
        ]
        for e in found["errors"]
    ]


def _moving(found: dict[str, Any]) -> list[list[str]]:
    return [
        [
            order,
            source,
            weight,
            f"{t['bias']:+.3f}",
            f"{t['rms']:.4f}",
            span(t["rms_interval"], 4),
            f"{t['gain']:+.4f}",
            span(t["gain_interval"], 4),
        ]
        for order, sources in found["moving"].items()
        for source, weights in sources.items()
        for weight, t in weights.items()
    ]


def _reach(ends: list[int | None], drawn: bool) -> str:
    return NONE if not drawn else f"{reached(ends[0])} to {reached(ends[1])}"


def _followed(measured: list[tuple[str, str, dict[str, Any]]]) -> tuple[list[str], list[list[str]]]:
    header = ["measure", "clock", "apart", "noise", "weight"]
    header += ["steps to half", "95%", "clean", "steps to 90%", "95%", "clean", "bias", "shake", "95%"]
    rows = []
    for name, clock, told in measured:
        for weight, f in told["weights"].items():
            drawn = f["shake_interval"][0] is not None
            rows.append(
                [
                    name,
                    clock,
                    f"{told['apart']:.3f}",
                    f"{told['noise']:.3f}",
                    weight,
                    reached(f["steps_to_half"]),
                    _reach(f["steps_to_half_interval"], drawn),
                    str(f["expected_half"]),
                    reached(f["steps_to_90"]),
                    _reach(f["steps_to_90_interval"], drawn),
                    str(f["expected_90"]),
                    f"{f['bias']:.3f}",
                    f"{f['shake']:.3f}",
                    span(f["shake_interval"], 3),
                ]
            )
    return header, rows


def _stretches(measured: list[tuple[str, str, dict[str, Any]]]) -> tuple[list[str], list[list[str]]]:
    weights = list(measured[0][2]["weights"])
    rows = []
    for name, clock, told in measured:
        for n, stretch in told["stretches"].items():
            share = stretch["best_share"]
            rows.append(
                [
                    name,
                    clock,
                    n,
                    *(f"{stretch['weights'][w]['error']:.3f}" for w in weights),
                    stretch["best"],
                    NONE if share is None else f"{100 * share:.0f}",
                    stretch["expected"],
                ]
            )
    header = ["measure", "clock", "over", *(f"w {w}" for w in weights)]
    return [*header, "least", "% of draws", "clean step"], rows
