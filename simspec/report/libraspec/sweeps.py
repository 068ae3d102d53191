"""Algorithm 1's constants swept, shown: the best alpha, where it lies, and what tuning it gains."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from simspec.report.libraspec.sweep_figures import (
    alphas,
    best_alphas,
    n_and_longest,
    near_published,
    policies,
    shown,
)
from simspec.report.parts import Grid, Picture
from simspec.report.style import save
from simspec.report.words import NONE, listed, span, with_span

Cell = tuple[str, dict[str, Any]]


def findings(found: dict[str, Any]) -> list[str]:
    cells = cells_of(found)
    if not cells:
        return ["No cost prices a drafter that has confidences."]
    said = []
    for n in map(str, found["blocks"]):
        best = [(float(x["curves"][n]["best"]), name) for name, x in cells]
        (low, least), (high, most) = min(best), max(best)
        ends = [b for b, _ in best if b in (found["alphas"][0], found["alphas"][-1])]
        parts = [p for _, x in cells for p in x["curves"][n]["parts"]]
        at = found["alphas"].index(2.2)
        curves = [x["curves"][n]["speedup"] for _, x in cells]
        inside = sum(speedup[at] >= 0.99 * max(speedup) for speedup in curves)
        tuned = [p["best"] for p in parts]
        said.append(
            f"n {n}: the best alpha is {low:g} ({least}) to {high:g} ({most}) over {len(cells)} costs x "
            f"drafters x batch sizes, at an end of the sweep in {len(ends)}; tuned on halves and tasks it is "
            f"{min(tuned):g} to {max(tuned):g}. The paper's 2.2 is within 1% of the best speedup in {inside} "
            f"of {len(cells)}."
        )
        said.append(f"n {n}, alpha tuned on one half and scored on the other: " + _gains(found, n) + ".")
    return [*said, _theory(found)]


def cells_of(found: dict[str, Any]) -> list[Cell]:
    """Each (cost, drafter, batch) under its name."""
    return [
        (f"{c} {d} batch {b}", x)
        for c, cost in found["costs"].items()
        for d, batches in cost["drafters"].items()
        for b, x in batches.items()
    ]


def _gains(found: dict[str, Any], n: str) -> str:
    """Over 2.2, over the tuned static length, and of tasks over one for all; where intervals are clear."""
    cells = cells_of(found)

    def clear(get: Callable[[dict[str, Any]], list[float | None]]) -> tuple[int, int]:
        spans = [get(x["policies"]) for _, x in cells]
        kept = [(low, high) for low, high in spans if low is not None and high is not None]
        return sum(high < 0 for _, high in kept), sum(low > 0 for low, _ in kept)

    less, more = clear(lambda p: p[f"tuned/{n}"]["over_paper_interval"])
    faster, slower = clear(lambda p: p[f"tuned/{n}"]["over_static_interval"])
    task, not_task = clear(lambda p: p[f"tuned-by-task/{n}"]["over_tuned_interval"])
    least = str(min(found["batches"]))
    each = []
    for cost in (c for c in found["costs"] if found["costs"][c]["drafters"]):
        drafter = shown(found, cost)
        tuned = found["costs"][cost]["drafters"][drafter][least]["policies"][f"tuned/{n}"]
        paper = with_span(tuned["over_paper"], tuned["over_paper_interval"], 1, "%")
        static = with_span(tuned["over_static"], tuned["over_static_interval"], 1, "%")
        each.append(f"{cost} {drafter} {paper} over 2.2 and {static} over the tuned static length")
    return (
        f"of {len(cells)} it takes less time than 2.2, beyond its 95% interval, in {less} and more in "
        f"{more}, less than the static length tuned alike in {faster} and more in {slower}; one alpha a task "
        f"is faster than one for all in {task} and slower in {not_task}. "
        f"Time at batch {least}: {'; '.join(each)}"
    )


def _theory(found: dict[str, Any]) -> str:
    """How far each reading of T/(tau c) is from the best alpha found, as a factor."""
    told = []
    for name, words in (
        ("folded", "T/(tau c) with drafting in c"),
        ("verifying", "with the verification alone"),
        ("average", "d/tau"),
    ):
        for n in map(str, found["blocks"]):
            pairs = [(x["curves"][n]["readings"][name], x["curves"][n]["best"]) for _, x in cells_of(found)]
            factors = sorted(value / best for value, best in pairs if value is not None)
            if factors:
                middle = factors[len(factors) // 2]
                told.append(f"{words}, n {n}: {middle:.2f} times ({factors[0]:.2f} to {factors[-1]:.2f})")
    return (
        "What theory would set alpha to, at the lengths that the best alpha chose and by affine fits of the "
        f"cost, as a multiple of the best alpha, median and range: {'; '.join(told)}."
    )


def parts(found: dict[str, Any], figures: Path, said: str) -> Iterator[Picture | Grid]:
    if not cells_of(found):
        return
    tasks = listed(f"{n} of {task}" for task, n in found["prompts"].items())
    costs = listed(f"{name}: {cost['label']}" for name, cost in found["costs"].items())
    told = f"Prompts: {tasks}. {costs}. {said}."
    least = str(min(found["batches"]))
    save(alphas(found, least), figures / "sweeps-alpha.png")
    yield Picture(
        "sweeps-alpha.png",
        f"Speedup against alpha over that at alpha 2.0, batch {least}, every drafter but look-ups; d_max "
        f"{found['longest']}, n by row. Bands: 95% of paired draws of prompts. In the same scale the points "
        f"that the paper (arXiv 2608.08721) published, on OTHER models and devices: for shapes alone. {told}",
    )
    save(near_published(found, least), figures / "sweeps-published.png")
    yield Picture(
        "sweeps-published.png",
        f"The same around the published points, alpha 1.8 to 2.2: these are on OTHER models and devices, one "
        f"figure each without an interval. {told}",
    )
    save(best_alphas(found), figures / "sweeps-best.png")
    yield Picture(
        "sweeps-best.png",
        f"The best of the {len(found['alphas'])} values of alpha: on all prompts (filled; bars: 95% of the "
        f"best of draws of prompts), on either half, all tasks or one (small grey), and what T/(tau c) would "
        f"be by an affine fit of the cost at the lengths that the best alpha chose, c with drafting in it, "
        f"of the verification alone, or T/d. With n 1 an alpha below 1 always submits one token. {told}",
    )
    save(policies(found), figures / "sweeps-tuning.png")
    yield Picture(
        "sweeps-tuning.png",
        f"Time over that of the static length tuned on the other half, %, each cost's fastest drafter; what "
        f"is tuned is tuned on the other half of the prompts, and the halves never share a batch; symlog "
        f"axis; bars: 95% of paired draws of prompts. {told}",
    )
    save(n_and_longest(found, least), figures / "sweeps-n.png")
    yield Picture(
        "sweeps-n.png",
        f"Speedup over plain decoding against d_max by n, Algorithm 1 as printed, alpha 2.2, batch {least}, "
        f"each cost's fastest drafter; where n is d_max or more its loop never runs and n tokens are "
        f"submitted. The record's blocks cut what goes beyond them. {told}",
    )
    for name, cost in found["costs"].items():
        if cost["drafters"]:
            yield Grid(
                f"What tuning gains. Cost {name} ({cost['label']}); {said}.", *_table(cost), folded=True
            )
            yield Grid(
                f"Best alpha by part of the prompts, both halves (tuned on even / on odd). Cost {name} "
                f"({cost['label']}); {said}.",
                *_best(cost),
                folded=True,
            )


def _table(cost: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    rows = []
    for drafter, batches in cost["drafters"].items():
        for batch, cell in batches.items():
            for name, p in cell["policies"].items():
                paper = NONE
                if "over_paper" in p:
                    paper = f"{p['over_paper']:.1f} ({span(p['over_paper_interval'], 1)})"
                static = f"{p['over_static']:.1f} ({span(p['over_static_interval'], 1)})"
                speedup = f"{p['speedup']:.3f} ({span(p['speedup_interval'], 3)})"
                rows.append([drafter, batch, name, speedup, static, paper])
    header = ["drafter", "batch", "constants/n", "speedup (95%)", "time over tuned static, % (95%)"]
    return [*header, "over alpha 2.2 with the same n, %"], rows


def _best(cost: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    rows, header = [], ["drafter", "batch", "n", "all prompts", "within 1%"]
    tasks: list[str] = []
    for drafter, batches in cost["drafters"].items():
        for batch, cell in batches.items():
            for n, curve in cell["curves"].items():
                tasks = list(dict.fromkeys(p["task"] or "all" for p in curve["parts"]))
                both = [
                    "/".join(
                        f"{p['best']:g}" for p in reversed(curve["parts"]) if (p["task"] or "all") == task
                    )
                    for task in tasks
                ]
                like = "{:g} to {:g}".format(*curve["like"])
                rows.append([drafter, batch, n, f"{curve['best']:g}", like, *both])
    return [*header, *tasks], rows
