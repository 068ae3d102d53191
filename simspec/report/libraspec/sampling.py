"""Rules that rejection sampling allows, at a temperature beside temperature 0."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from simspec.report.parts import Grid, Picture
from simspec.report.style import BLACK, BLUE, COLOURS, GREY, MARKERS, ORANGE, bars, below, save, sheet
from simspec.report.words import listed, span, with_span

OURS, TUNED = "long-run-as-drafted", "tuned-static"
BESIDE = ("long-run-expected", "long-run-hindsight")
AT = {"greedy": "0", "sampled": "above 0"}


def findings(found: dict[str, Any]) -> list[str]:
    refused, safe = found["refused"], found["safe"]
    said = [
        f"Rejection sampling allows {len(safe)} of {len(refused) + len(safe)} published rules; refused are "
        f"{listed(refused)}: {found['why']}."
    ]
    about = found["sampled"]
    if about is None:
        return [*said, "No sampled trace was given, so nothing is said of any temperature but 0."]
    chances = [
        f"{name} {100 * c['text']:.1f}% by the texts drawn, {100 * c['overlap']:.1f}% by the overlap of "
        f"distributions (difference {_points(c['difference'], c['difference_interval'])})"
        for name, c in about["chances"].items()
    ]
    said.append(
        f"Drafts at temperature {about['temperature']:g} are accepted, place by place: {listed(chances)}. "
        f"Approximate: {about['approximate']}. Of these, "
        + listed(
            f"{100 * share:.0f}% ({name})" for name, share in about["stand_ins"].items() if share is not None
        )
        + " begin with a token that could not have been refused."
    )
    for name, cost in found["costs"].items():
        said += [_of_cost(name, cost, about["temperature"])]
    return said


def _of_cost(name: str, cost: dict[str, Any], temperature: float) -> str:
    speeds, ours, least = [], [], []
    for batch, sides in cost["batches"].items():
        greedy, drawn = sides["greedy"], sides["sampled"]
        speeds.append(
            f"batch {batch}: {_speed(drawn['rules'][drawn['best_static']])} ({drawn['best_static']}) against "
            f"{_speed(greedy['rules'][greedy['best_static']])} ({greedy['best_static']})"
        )
        mine = drawn["rules"].get(OURS)
        if mine is not None:
            ours.append(f"{with_span(mine['over_static'], mine['over_static_interval'], 1, '%')}")
        least.append(f"{drawn['fastest']}, {_speed(drawn['rules'][drawn['fastest']])}")
    lost = [
        with_span(s["greedy"]["lost"], s["greedy"]["lost_interval"], 1, "%") for s in cost["batches"].values()
    ]
    return (
        f"Cost {name}: speedup over plain decoding of the best static length at temperature {temperature:g} "
        f"against 0, each picked on the prompts it is scored on: {listed(speeds)}. "
        f"Above 0, {OURS} takes more time than that length by {listed(ours)}; "
        f"the fastest rules that are no static length are {listed(least)}. At temperature 0, keeping to "
        f"those of them that are safe at any temperature costs {listed(lost)} over the fastest of all of "
        "them, both picked on these very prompts."
    )


def _speed(rule: dict[str, Any]) -> str:
    return with_span(rule["speedup"], rule["speedup_interval"], 2)


def _points(value: float, interval: list[float | None]) -> str:
    low, high = interval
    between = "" if low is None or high is None else f", 95% {100 * low:+.1f} to {100 * high:+.1f}"
    return f"{100 * value:+.1f} points{between}"


def parts(found: dict[str, Any], figures: Path, said: str) -> Iterator[Picture | Grid]:
    yield Grid(
        "Which published rules may be used with rejection sampling, given each place's top-1 probability "
        f"(claim L16). Refused ones: {found['why']}.",
        ["rule", "with rejection sampling"],
        [[n, "refused"] for n in found["refused"]] + [[n, "allowed"] for n in found["safe"]],
        folded=True,
    )
    about = found["sampled"]
    if about is None:
        return
    prompts = listed(f"{n} of {task}" for task, n in about["prompts"].items())
    made = ", SYNTHETIC" if about["origin"] == "synthetic" else ""
    same = (
        "the same prompts at both temperatures" if about["same_prompts"] else "other prompts at temperature 0"
    )
    told = (
        f"Sampled trace {about['name']}{made}, temperature {about['temperature']:g}, top_p "
        f"{about['top_p']:g}; {same} ({prompts}), texts of {about['tokens']} tokens, blocks of at most "
        f"{about['depth']}. Replayed in distribution, mean of {about['lucks']} lucks. Greedy: {said}"
    )
    save(_survival(about), figures / "sampling-survival.png")
    yield Picture(
        "sampling-survival.png",
        f"Share of starts whose first n drafts are all accepted. Bars: 95%, Wilson, starts taken as "
        f"independent. {told}.",
    )
    for k, (name, cost) in enumerate(found["costs"].items()):
        file = f"sampling-rules-{k}.png"
        save(_rules(cost, found["safe"], about["temperature"]), figures / file)
        yield Picture(
            file,
            f"Speedup over plain decoding of rules that sampling allows, and of oracles and the bound (the "
            f"dynamic program, batch 1; above temperature 0, hindsight and bound know the luck too). Cost "
            f"{name} ({cost['label']}). Bars: 95% over draws of prompts. {told}.",
        )
        yield Grid(
            f"The same in short; % more time than the best static length, tuned on the same prompts. Cost "
            f"{name} ({cost['label']}). {told}.",
            *_short(cost),
        )
        yield Grid(
            f"Every rule and oracle. Cost {name} ({cost['label']}). {told}.", *_every(cost), folded=True
        )


def _survival(about: dict[str, Any]) -> Figure:
    figure = sheet(7.0, 4.4)
    axes = figure.subplots()
    for side, line, fill in (("greedy", "-", "full"), ("sampled", "--", "none")):
        for k, (drafter, shares) in enumerate(about["survival"][side].items()):
            at = "0" if side == "greedy" else f"{about['temperature']:g}"
            y = [s["value"] for s in shares]
            error = [bars(s["value"], (s["low"], s["high"])) for s in shares]
            axes.errorbar(
                range(1, len(y) + 1),
                y,
                yerr=list(zip(*error, strict=True)),
                label=f"{drafter}, temperature {at}",
                color=COLOURS[k],
                marker=MARKERS[k],
                linestyle=line,
                fillstyle=fill,
                markersize=5,
                capsize=2,
            )
    axes.set_ylim(0, 1)
    axes.set_xlabel("drafts")
    axes.set_ylabel("share of starts")
    below(figure, axes, 2)
    return figure


def _shown(cost: dict[str, Any], safe: list[str]) -> list[str]:
    """Rules by their mean speedup at the temperature, then what stands beside them."""
    sides = [s["sampled"]["rules"] for s in cost["batches"].values()]
    able = [n for n in safe if all(n in rules for rules in sides)]
    able.sort(key=lambda n: -sum(rules[n]["speedup"] for rules in sides))
    return ["best static", TUNED, *able, *BESIDE, "bound"]


def _figure_of(side: dict[str, Any], name: str) -> dict[str, Any] | None:
    if name == "bound":
        bound: dict[str, Any] | None = side["bound"]
        return bound
    if name == "best static":
        name = side["best_static"]
    found: dict[str, Any] | None = {**side["rules"], **side["oracles"]}.get(name)
    return found


def _rules(cost: dict[str, Any], safe: list[str], temperature: float) -> Figure:
    names, batches = _shown(cost, safe), cost["batches"]
    figure = sheet(3.4 * len(batches) + 2.2, 0.27 * len(names) + 1.5)
    every = figure.subplots(1, len(batches), squeeze=False, sharey=True)[0]
    for axes, (batch, sides) in zip(every, batches.items(), strict=True):
        for side, colour, marker, label, lift in (
            ("greedy", BLUE, "o", "temperature 0", 0.16),
            ("sampled", ORANGE, "s", f"temperature {temperature:g}", -0.16),
        ):
            rows = [(k, _figure_of(sides[side], n)) for k, n in enumerate(names)]
            kept = [(k, r) for k, r in rows if r is not None]
            axes.errorbar(
                [r["speedup"] for _, r in kept],
                [-k + lift for k, _ in kept],
                xerr=list(zip(*(bars(r["speedup"], r["speedup_interval"]) for _, r in kept), strict=True)),
                label=label,
                linestyle="none",
                marker=marker,
                color=colour,
                markersize=4.5,
                capsize=2,
            )
        axes.axvline(1.0, color=GREY, linewidth=1.2, label="plain decoding")
        axes.axhline(-1.5, color=BLACK, linewidth=0.6)
        axes.axhline(-(len(names) - len(BESIDE) - 1) + 0.5, color=BLACK, linewidth=0.6)
        axes.set_yticks([-k for k in range(len(names))], names)
        axes.set_title(
            f"batch {batch}: {sides['greedy']['drafter']} / {sides['sampled']['drafter']}", fontsize=10
        )
        axes.set_xlabel("speedup")
    below(figure, every[0], 3)
    return figure


def _short(cost: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    header = ["batch", "temperature", "drafter", "best static", "its speedup", "tuned on the other half"]
    header += [
        OURS,
        "fastest rule",
        "its time",
        "long-run-expected",
        "bound",
        "rules safe at any temperature lose",
    ]
    rows = []
    for batch, sides in cost["batches"].items():
        for side, of in sides.items():

            def over(name: str, of: dict[str, Any] = of) -> str:
                figure = _figure_of(of, name)
                if figure is None:
                    return "-"
                return with_span(figure["over_static"], figure["over_static_interval"], 1)

            rows.append(
                [
                    batch,
                    AT[side],
                    of["drafter"],
                    of["best_static"],
                    _speed(of["rules"][of["best_static"]]),
                    over(TUNED),
                    over(OURS),
                    of["fastest"],
                    over(of["fastest"]),
                    over("long-run-expected"),
                    over("bound"),
                    with_span(of["lost"], of["lost_interval"], 1) if side == "greedy" else "-",
                ]
            )
    return header, rows


def _every(cost: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    header = ["batch", "temperature", "rule", "speedup", "95%", "% over best static", "95%"]
    header += ["% over tuned", "95%", "gap closed", "length", "drafted"]
    rows = []
    for batch, sides in cost["batches"].items():
        for side, of in sides.items():
            told = [(n, r) for n, r in of["rules"].items()]
            told += [(f"oracle {n}", r) for n, r in of["oracles"].items()]
            for name, r in sorted(told, key=lambda each: -float(each[1]["speedup"])):
                closed = "-" if r["closed"] is None else f"{r['closed']:.2f}"
                rows.append(
                    [
                        batch,
                        AT[side],
                        name,
                        f"{r['speedup']:.3f}",
                        span(r["speedup_interval"], 3),
                        f"{r['over_static']:+.1f}",
                        span(r["over_static_interval"], 1),
                        f"{r['over_tuned']:+.1f}",
                        span(r["over_tuned_interval"], 1),
                        closed,
                        f"{r['length']:.2f}",
                        f"{r['drafted']:.2f}",
                    ]
                )
    return header, rows
