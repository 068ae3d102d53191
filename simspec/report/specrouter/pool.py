"""Growing pools, shown: who takes a newcomer up, what it costs, and who holds both requirements."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from simspec.report.parts import Grid, Picture
from simspec.report.style import COLOURS, GREY, LINES, MARKERS, below, save, sheet
from simspec.report.words import NONE, listed

# Routers that are drawn, by the prior that they are given; all are in the tables.
DRAWN = ("reach", "funnel-switch", "exact-switch", "polybasic", "dytc", "ucb-prior")
# Made-up newcomers that are drawn.
COLUMNS = ("shifted", "flattering", "double", "excellent")


def findings(found: dict[str, Any]) -> list[str]:
    rule, verdicts = found["criterion"], found["verdicts"]
    both = [name for name, v in verdicts.items() if v["holds"]]
    asked = (
        f"Asked of a model of no use: after {rule['settled']} texts in under {100 * rule['share']:.0f}% of "
        f"cycles (made-up ones) and under {rule['lost']:.0f}% time lost; of a good one: "
        f"{100 * rule['taken_up']:.0f}% of the static gain after {rule['settled']} texts and within "
        f"{found['after']}."
    )
    if both:
        said = [f"{asked} Both hold everywhere for {listed(both)}, of {len(verdicts)} routers x priors."]
    else:
        # Those that were asked everywhere.
        most = max(v["useless"]["of"] for v in verdicts.values())
        full = {n: v for n, v in verdicts.items() if v["useless"]["of"] == most}
        careful, eager = (max(full, key=lambda n: (full[n][k]["held"], full[n][o]["held"])) for k, o in _WAYS)
        said = [
            f"{asked} None of {len(verdicts)} routers x priors holds both everywhere: the most careful, "
            f"{careful}, holds {_counts(full[careful])}; the most eager, {eager}, {_counts(full[eager])}."
        ]
    cells = list(_cells(found))
    flattered = [e for r, n, e in cells if r == "reach, prior 0.5" and n == "flattering"]
    sober = [e for r, n, e in cells if r == "funnel-switch, prior 0.5" and n == "flattering"]
    if flattered and sober:
        said.append(
            f"Similarity can be fooled for ever: a SYNTHETIC drafter near the target in distribution, never "
            f"right is in {_range(flattered, 'late_share', 100)}% of reach's cycles after {rule['settled']} "
            f"texts and costs it {_range(flattered, 'lost')}% of time (over costs and batch sizes); "
            f"funnel-switch, which learns from verdicts, has it in {_range(sober, 'late_share', 100)}% and "
            f"loses {_range(sober, 'lost')}%."
        )
    untried = [
        (r, e["untried"])
        for r, n, e in cells
        if n == "excellent" and e["kind"] == "good" and r.endswith("pessimistic")
    ]
    if untried:
        total = {
            r: (sum(u for q, u in untried if q == r), sum(q == r for q, _ in untried)) for r, _ in untried
        }
        told = listed(
            f"{r.split(',')[0]} in {never} of {of * found['streams']} streams"
            for r, (never, of) in total.items()
        )
        said.append(
            f"What never runs is never learned of: with a pessimistic prior the SYNTHETIC excellent model, "
            f"where it is worth having at batch 1, is never tried by {told}."
        )
    good = [
        (r, n, e)
        for r, n, e in cells
        if e["kind"] == "good" and r in ("exact-switch, prior 0.5", "exact-switch, prior optimistic", "ucb")
    ]
    if good:
        taken = {r: [e["taken_up"][0] for q, _, e in good if q == r] for r, _, _ in good}
        told = listed(f"{r} takes up {100 * np.median(v):.0f}%" for r, v in taken.items())
        said.append(f"Of what a good newcomer is worth to the best static candidates, in the median {told}.")
    dropped = [
        (e["share"][-1] - e["share"][0], router, newcomer, name, e)
        for name, cost in found["costs"].items()
        for router, newcomers in cost["batches"]["1"]["routers"].items()
        for newcomer, e in newcomers.items()
        if e["kind"] == "good"
    ]
    if dropped:
        _, router, newcomer, name, e = min(dropped, key=lambda d: d[0])
        gain = found["costs"][name]["batches"]["1"]["gain"][newcomer][0]
        said.append(
            f"Nor is a good model safe once it is known: what a bad text puts off may not be tried again. "
            f"{newcomer} ({name}, batch 1, static gain {gain:.1f}%) goes from {100 * e['share'][0]:.0f}% of "
            f"the cycles of {router}, in the first text to {100 * e['share'][-1]:.0f}% in text "
            f"{found['after']}."
        )
    return said


_WAYS = (("useless", "good"), ("good", "useless"))


def _counts(verdict: dict[str, Any]) -> str:
    useless, good = verdict["useless"], verdict["good"]
    return f"{useless['held']} of {useless['of']} of no use and {good['held']} of {good['of']} good"


def _cells(found: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Router, newcomer and figures, over costs and batch sizes."""
    for cost in found["costs"].values():
        for here in cost["batches"].values():
            for router, newcomers in here["routers"].items():
                for newcomer, entry in newcomers.items():
                    yield router, newcomer, entry


def _range(entries: list[dict[str, Any]], key: str, times: float = 1.0) -> str:
    values = [times * e[key][0] for e in entries]
    return f"{min(values):.1f} to {max(values):.1f}"


def parts(found: dict[str, Any], figures: Path, said: str) -> Iterator[Picture | Grid]:
    made = listed(f"{n}: {v['about']}" for n, v in found["newcomers"].items() if v["synthetic"])
    for prior in ("0.5", "optimistic"):
        for key, what in (("share", "Share of cycles that use it"), ("regret", "Regret of learning")):
            name = f"pool-{key}-{prior.replace('.', '')}.png"
            save(_curves(found, key, prior), figures / name)
            more = (
                ""
                if key == "share"
                else ": time since it joined over the best static candidate of the grown "
                "pool, tuned on the other half of the prompts"
            )
            yield Picture(
                name,
                f"{what}{more}; by texts since a SYNTHETIC model joined ({made}), which routers give a prior "
                f"acceptance of {prior}; batch 1, {found['streams']} streams of texts in random order, "
                f"line: all streams, band: middle 80% of streams. {said}, but for the newcomer.",
            )
    yield Grid(
        "Who holds the criterion, over costs, batch sizes and newcomers (held / asked). " + _criterion(found),
        *_verdicts(found),
    )
    for name, cost in found["costs"].items():
        for batch, here in cost["batches"].items():
            yield Grid(
                f"Cost {name}, batch {batch} ({cost['label']}): every newcomer, {found['streams']} streams; "
                f"95% intervals over draws of streams. {said}; {listed(COLUMNS)} are SYNTHETIC.",
                *_table(here),
                folded=True,
            )


def _criterion(found: dict[str, Any]) -> str:
    rule = found["criterion"]
    return (
        f"Of no use: the best static candidate gains under {rule['no_gain']}% by it; good: at least "
        f"{rule['gain']}%. After {found['before']} texts a model joins, {found['after']} follow (batches of "
        "texts above batch 1)."
    )


def _curves(found: dict[str, Any], key: str, prior: str) -> Figure:
    costs = found["costs"]
    figure = sheet(3.3 * len(COLUMNS) + 0.6, 2.7 * len(costs) + 0.9)
    grid = figure.subplots(len(costs), len(COLUMNS), squeeze=False, sharex=True, sharey="row")
    x = np.arange(1, found["after"] + 1)
    for row, (name, cost) in zip(grid, costs.items(), strict=True):
        here = cost["batches"]["1"]
        for axes, newcomer in zip(row, COLUMNS, strict=True):
            axes.axhline(0.0, color=GREY, linewidth=1.0)
            for k, router in enumerate(DRAWN):
                entry = here["routers"].get(f"{router}, prior {prior}", {}).get(newcomer)
                if entry is None:
                    continue
                times = 100.0 if key == "share" else 1.0
                low, mid, high = (times * np.array(entry[f"{key}{end}"]) for end in ("_low", "", "_high"))
                axes.fill_between(x, low, high, color=COLOURS[k], alpha=0.12, linewidth=0)
                axes.plot(
                    x,
                    mid,
                    label=router,
                    color=COLOURS[k],
                    marker=MARKERS[k],
                    linestyle=LINES[k],
                    markersize=4,
                )
            gain = here["gain"][newcomer][0]
            axes.set_title(f"{newcomer} (static gain {gain:.1f}%)", fontsize=10)
        row[0].set_ylabel(f"{name}\n" + ("% of cycles" if key == "share" else "% over static"))
    for axes in grid[-1]:
        axes.set_xlabel("texts since it joined")
    below(figure, grid[0][0], len(DRAWN))
    return figure


def _verdicts(found: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    rows = []
    for router, v in found["verdicts"].items():
        failed = [f"{n} ({cost}, batch {b})" for k in ("useless", "good") for cost, b, n in v[k]["failed"]]
        some = listed(failed[:3]) + (f" and {len(failed) - 3} more" if len(failed) > 3 else "")
        rows.append(
            [
                router,
                f"{v['useless']['held']} / {v['useless']['of']}",
                f"{v['good']['held']} / {v['good']['of']}",
                "yes" if v["holds"] else "no",
                some or NONE,
            ]
        )
    return ["router", "of no use", "good", "both", "failed"], rows


def _table(here: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    rows = []
    for router, newcomers in here["routers"].items():
        for newcomer, e in newcomers.items():
            rows.append(
                [
                    router,
                    newcomer,
                    f"{here['gain'][newcomer][0]:.1f}",
                    f"{100 * e['share'][0]:.0f}",
                    _three(e["late_share"], 100),
                    f"{e['longest_run'][0]:.0f} / {e['longest_run'][1]}",
                    f"{100 * e['tokens']:.1f}",
                    _three(e["lost"]),
                    _three(e["late_lost"]),
                    NONE if e["taken_up"] is None else _three(e["taken_up"], 100),
                    f"{e['regret'][-1]:.1f}",
                    str(e["untried"]),
                    {True: "yes", False: "no", None: NONE}[e["held"]],
                ]
            )
    return [
        "router",
        "newcomer",
        "static gain %",
        "cycles in text 1, %",
        "later cycles, %",
        "longest run, median / most",
        "tokens %",
        "time lost %",
        "later lost %",
        "gain taken up %",
        "regret %",
        "never tried",
        "held",
    ], rows


def _three(values: list[float | None], times: float = 1.0) -> str:
    value, low, high = values
    assert value is not None
    if low is None or high is None:
        return f"{times * value:.1f}"
    return f"{times * value:.1f} ({times * low:.1f} to {times * high:.1f})"
