"""Acceptance estimates, and averages that follow a change, shown."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from simspec.report.parts import Grid, Picture
from simspec.report.specrouter.estimate_figures import calibration, errors, tracking, trade_off
from simspec.report.style import save
from simspec.report.words import NONE, listed, span, with_span

# Weights that sentences name.
MIDDLE = "0.1"
NAMED = ("0.02", MIDDLE, "0.5")


def findings(found: dict[str, Any]) -> list[str]:
    said = [_overall(found), _places(found), _moved(found)]
    if found["task_changes"]["measures"]:
        said += [_task_change(found), _best_weights(found)]
    said += [_load_change(name, load) for name, load in found["load_changes"].items() if load["measures"]]
    return said


def _cell(found: dict[str, Any], source: str, by: str = "all", cell: str = "all") -> dict[str, Any]:
    key = {"source": source, "by": by, "cell": cell}
    return next(e for e in found["errors"] if all(e[k] == v for k, v in key.items()))


def _cells(found: dict[str, Any], by: str) -> list[str]:
    return list(dict.fromkeys(e["cell"] for e in found["errors"] if e["by"] == by))


def _signed(cell: dict[str, Any]) -> str:
    low, high = cell["bias_interval"]
    return f"{cell['bias']:+.3f}" + ("" if low is None else f" ({low:+.3f} to {high:+.3f})")


def _overall(found: dict[str, Any]) -> str:
    named = {s: _cell(found, s) for s in dict.fromkeys(e["source"] for e in found["errors"])}
    guessed = {s: c for s, c in named.items() if s != "realised"}
    best = min(guessed, key=lambda s: float(guessed[s]["absolute"]))

    def off(source: str) -> str:
        return with_span(named[source]["absolute"], named[source]["absolute_interval"], 3)

    pairs = {(p["drafter"], p["verifier"]) for p in found["by_pair"]}
    return (
        f"Fitted on one half of {sum(found['prompts'].values())} prompts and scored on the other, over "
        f"{len(pairs)} pairs of models: SimScore itself is off by {off('simscore')} a pair (bias "
        f"{_signed(named['simscore'])}), through the logistic map by {off('logistic')}, the isotonic map by "
        f"{off('isotonic')}; {best} does best of what is not counted from drafts, {off(best)}. One "
        f"constant for all pairs is off by {off('constant')}, the acceptance that the other half realised by "
        f"{off('realised')}."
    )


def _places(found: dict[str, Any]) -> str:
    places = _cells(found, "position")
    first, last = places[0], places[-1]
    tasks = _cells(found, "task")
    worst = max(tasks, key=lambda t: abs(float(_cell(found, "simscore", "task", t)["bias"])))
    ends = {
        s: [_signed(_cell(found, s, "position", p)) for p in (first, last)] for s in ("realised", "simscore")
    }
    shares = [_cell(found, "realised", "position", p)["accepted_share"] for p in (first, last)]
    return (
        f"One rate for a whole block is the wrong shape: the share accepted goes from {shares[0]:.2f} at the "
        f"first place to {shares[1]:.2f} at place {last} of a block that was accepted so far, so that even "
        f"realised acceptance has a bias of {ends['realised'][0]} at the first place and "
        f"{ends['realised'][1]} at place {last}, and SimScore of {ends['simscore'][0]} and "
        f"{ends['simscore'][1]}. By task SimScore's bias is the greatest on {worst}, "
        f"{_signed(_cell(found, 'simscore', 'task', worst))}."
    )


def _moved(found: dict[str, Any]) -> str:
    gains = {
        (order, source, weight): told
        for order, sources in found["moving"].items()
        for source, weights in sources.items()
        for weight, told in weights.items()
        if weight != "0"
    }
    sure = [key for key, told in gains.items() if (told["gain_interval"][0] or 0.0) > 0]
    order, source, weight = max(gains, key=lambda key: float(gains[key]["gain"]))
    most = gains[order, source, weight]
    fixed = found["moving"][order][source]["0"]["rms"]
    lost = [key for key, told in gains.items() if (told["gain_interval"][1] or 0.0) < 0]
    return (
        f"Of {len(gains)} moving averages by request (sources, weights, orders of requests) {len(sure)} are "
        f"better than the other half's rates left as they are by more than their interval, {len(lost)} worse. "
        f"The best ({source}, weight {weight}, requests {order}) lowers the error of a request from "
        f"{fixed:.4f} by {with_span(most['gain'], most['gain_interval'], 4)}."
    )


def _task_change(found: dict[str, Any]) -> str:
    changes = found["task_changes"]
    parts = []
    for name, clocks in changes["measures"].items():
        told = clocks["text"]
        steps = [
            f"{_steps(f['steps_to_half'])} and {_steps(f['steps_to_90'])} tokens at weight {w} (a clean step: "
            f"{f['expected_half']} and {f['expected_90']})"
            for w, f in told["weights"].items()
            if w in NAMED
        ]
        shake = told["weights"][MIDDLE]["shake"]
        parts.append(
            f"{name} (tasks are {told['apart']:.3f} apart) {listed(steps)}, and at weight {MIDDLE} it goes on "
            f"shaking by {shake:.3f}, {shake / told['apart']:.1f} times that distance"
        )
    return (
        f"After a change of task in mid-stream ({changes['changes']} changes x {changes['pairs']} drafters) an "
        f"average along the text is half and 90% there after, for {'; for '.join(parts)}."
    )


def _best_weights(found: dict[str, Any]) -> str:
    parts = []
    for name, clocks in found["task_changes"]["measures"].items():
        for clock, unit in (("text", "tokens"), ("batch", "cycles of a batch"), ("request", "requests")):
            stretches = clocks[clock]["stretches"]
            ends = [
                f"{s['best']} over {n} (error {s['weights'][s['best']]['error']:.3f}"
                + (
                    f", least in {100 * s['best_share']:.0f}% of draws)"
                    if s["best_share"] is not None
                    else ")"
                )
                for n, s in (list(stretches.items())[i] for i in sorted({0, len(stretches) - 1}))
            ]
            if ends:
                still = f"not moving: {clocks[clock]['apart']:.3f}"
                parts.append(f"{name} by {unit}: {listed(ends)}, {still}")
    return (
        "The weight of least total error (bias and variance together, of those tried) over a stretch after a "
        f"change of task: {'; '.join(parts)}."
    )


def _load_change(name: str, load: dict[str, Any]) -> str:
    told = load["measures"]["seconds"]["forward"]
    steps = [
        f"{_steps(f['steps_to_half'])} and {_steps(f['steps_to_90'])} forwards at weight {w} (a clean step: "
        f"{f['expected_half']} and {f['expected_90']}; shaking by {100 * f['shake']:.1f}%)"
        for w, f in told["weights"].items()
        if w in NAMED
    ]
    few, many = load["loads"]
    best = [f"{s['best']} over {n}" for n, s in told["stretches"].items()]
    return (
        f"Cost {name}: after a change of load ({few} to {many} rows and back) a forward's learned seconds "
        f"are half and 90% there after {listed(steps)}. Measured forwards of one shape vary by "
        f"{100 * told['noise']:.1f}%; the weight of least error is {best[0]} and {best[-1]} forwards."
    )


def _steps(steps: int | None) -> str:
    return "never" if steps is None else str(steps)


def parts(found: dict[str, Any], figures: Path, said: str) -> Iterator[Picture | Grid]:
    prompts = listed(f"{n} of {task}" for task, n in found["prompts"].items())
    of = f"Prompts: {prompts}; blocks of {found['longest']}. No cost enters. {said}."
    save(calibration(found, said), figures / "estimates-calibration.png")
    yield Picture(
        "estimates-calibration.png",
        "Calibration. Above: each (drafter, verifier), estimated from one half of the prompts and realised "
        "on the other, both ways. Below: averages as they stood before each request, against what it realised, "
        f"in bins of equal counts; requests in shuffled orders. Bars: 95% over draws of prompts. {of}",
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
        f"over {changes['draws']} draws of prompts. Batch: {changes['together']} requests in lock-step. {said}."
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
            "Root mean square error over a stretch after a change, by weight; least: which, in how many draws "
            f"of prompts, and which a clean step in independent observations would have. {where}",
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
    return NONE if not drawn else f"{_steps(ends[0])} to {_steps(ends[1])}"


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
                    _steps(f["steps_to_half"]),
                    _reach(f["steps_to_half_interval"], drawn),
                    str(f["expected_half"]),
                    _steps(f["steps_to_90"]),
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
