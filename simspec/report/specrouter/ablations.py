"""Ablations, shown: chains of three against pairs, and marking cache entries against moving them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from simspec.report.parts import Grid, Picture
from simspec.report.style import (
    BLUE,
    COLOURS,
    GREEN,
    GREY,
    LINES,
    MARKERS,
    bars,
    below,
    save,
    sheet,
    whole_log2,
)
from simspec.report.words import NONE, chain_name, listed, span, with_span


def findings(found: dict[str, Any]) -> list[str]:
    """What a reader must take away."""
    said = [_replayed(name, cost["batches"]) for name, cost in found["replayed"].items()]
    decoded, critic, masks = found["decoded"], found["critic"], found["masks"]
    measured = []
    if not decoded["why"]:
        told = [
            f"{_percent(b['over_best_pair'], b['over_best_pair_interval'])} at batch {name}"
            for name, b in decoded["batches"].items()
        ]
        measured.append(f"the fastest chain of three over the fastest pair {listed(told)}")
    if not critic["why"]:
        for name, batches in critic["configurations"].items():
            last = list(batches)[-1]
            over = _percent(batches[last]["over_pair"], batches[last]["interval"])
            measured.append(
                f"{' > '.join(critic['chain'])} {name} over the same without its middle {over} at batch "
                f"{last}"
            )
    said.append(
        f"Measured time: {'; '.join(measured)}." if measured else "No chain of three was measured here."
    )
    if masks["why"]:
        said.append(f"Moving entries was not measured: {masks['why']}.")
        return said
    for way, what in (("move", "Moving rejected entries away at once"), ("never", "Never packing")):
        cells = [c for c in masks["cells"] if way in c["ways"]]
        if not cells:
            continue
        worst = max(cells, key=lambda c: abs(float(c["ways"][way]["over_mask"])))
        w = worst["ways"][way]
        changes = (
            f"{what}, where marking packs now and then, changes time by "
            f"{min(c['ways'][way]['over_mask'] for c in cells):+.1f}% to "
            f"{max(c['ways'][way]['over_mask'] for c in cells):+.1f}% (medians of {len(cells)} cells); most "
            f"in {_cell(worst)}: {w['over_mask']:+.1f}% ({_range(w['range'])} over {worst['rounds']} "
            "rounds)."
        )
        packing = max(float(c["ways"][way]["packing"] / c["ways"][way]["seconds_per_token"]) for c in cells)
        said.append(
            changes + (f" Packing takes at most {100 * packing:.1f}% of its time." if packing else "")
        )
    idle = [
        c["ways"]["never"]
        for c in masks["cells"]
        if not c["ways"]["mask"]["packed_per_cycle"] and "never" in c["ways"]
    ]
    if idle:
        ends = [min(w["range"][0] for w in idle), max(w["range"][1] for w in idle)]
        said.append(
            f"In {len(idle)} of {len(masks['cells'])} cells marking never came to pack, so never packing is "
            f"the same work; what differs there, {_range(ends)} over rounds, is what the clock cannot tell."
        )
    equal, rounds = (sum(c[key] for c in masks["cells"]) for key in ("equal", "rounds"))
    said.append(f"Texts were the same in every way in {equal} of {rounds} batches of prompts.")
    return said


def _replayed(name: str, batches: dict[str, Any]) -> str:
    gains = [b for b, e in batches.items() if (e["over_best_pair_interval"][1] or 0.0) < 0.0]
    best = min(batches, key=lambda b: float(batches[b]["over_best_pair"]))
    own = [b for b, e in batches.items() if (e["over_own_pair_interval"][1] or 0.0) < 0.0]
    saves, drafters = _at(gains), _at(own)
    return (
        f"Cost {name}, replayed: an intermediate verifier saves time for certain over the best pair "
        f"{saves}, over the pair of the same drafter {drafters}. Where it does best, at batch {best}, it "
        f"takes {_percent(batches[best]['over_best_pair'], batches[best]['over_best_pair_interval'])} time "
        "against the best pair."
    )


def _at(batches: list[str]) -> str:
    return f"at batch {listed(batches)}" if batches else "at no batch size"


def _percent(value: float, interval: list[float | None]) -> str:
    told = with_span(value, interval, 1, "%")
    return told if value < 0 else f"+{told}"


def _range(ends: list[float]) -> str:
    return f"{ends[0]:+.1f} to {ends[1]:+.1f}%"


def parts(found: dict[str, Any], figures: Path, said: str) -> Iterator[Picture | Grid]:
    """Figures and tables, of what was measured where it was."""
    costs = [f"{name} ({cost['label']})" for name, cost in found["replayed"].items()]
    if costs:
        save(_middle(found), figures / "ablation-middle.png")
        yield Picture(
            "ablation-middle.png",
            "Time of the best chain of three over a pair's: both the fastest on the half of the prompts "
            "that is not scored, summed over both halves; below 0 the intermediate verifier pays. Bars: "
            f"95%, over draws of prompts, paired. Replayed; costs {listed(costs)}. {said}.",
        )
    yield Grid(
        "With and without an intermediate verifier, replayed: % more time than the pair's, 95% over draws "
        f"of prompts, paired; the chains are those of either half. {said}.",
        *_middle_rows(found),
        folded=True,
    )
    decoded, critic, masks = found["decoded"], found["critic"], found["masks"]
    if not decoded["why"]:
        yield Grid(
            "With and without an intermediate verifier, measured by simspec validate: the fastest of what "
            "was decoded. 95% over draws of batches of prompts, paired; none where there are few.",
            *_decoded_rows(decoded),
        )
    if not critic["why"]:
        yield Grid(
            f"{' > '.join(critic['chain'])} x {critic['draft_length']} over the same chain without its "
            f"middle, % more time, measured by simspec critic: {_machine(critic['about'])}. 95% over draws "
            "of groups of prompts, paired; none where there are few.",
            *_critic_rows(critic),
        )
    if not masks["why"]:
        save(_ways(masks), figures / "ablation-masks.png")
        where = f"Measured by simspec masks: {_machine(masks['about'])}; {masks['cells'][0]['rounds']} rounds"
        yield Picture(
            "ablation-masks.png",
            "Time of keeping caches in order otherwise over marking rejected entries and packing now and "
            "then, same prompts and chain one after another. Points: medians over rounds; bars: all "
            f"rounds. {where}.",
        )
        yield Grid(
            "Marking rejected cache entries against moving them (packed in every cycle that leaves the "
            "longest row waste) and against never packing: medians over rounds, ms a token by part; least "
            f"and most over rounds. {where}.",
            *_ways_rows(masks),
        )


def _machine(about: dict[str, Any]) -> str:
    return f"{about['dtype']} on {about['device']}, {about['processor']}, {about['cores']} cores"


def _middle(found: dict[str, Any]) -> Figure:
    costs = found["replayed"]
    figure = sheet(4.4 * len(costs) + 0.6, 4.6)
    every = figure.subplots(1, len(costs), squeeze=False)[0]
    for axes, (name, cost) in zip(every, costs.items(), strict=True):
        batches = [int(b) for b in cost["batches"]]
        axes.axhline(0.0, color=GREY, linewidth=1.2)
        for k, (key, label, colour) in enumerate(
            (
                ("over_own_pair", "over its drafter's pair", BLUE),
                ("over_best_pair", "over the best pair", GREEN),
            )
        ):
            entries = list(cost["batches"].values())
            errors = np.array([bars(e[key], e[f"{key}_interval"]) for e in entries]).T
            axes.errorbar(
                [b * 2 ** (0.06 * (k - 0.5)) for b in batches],
                [e[key] for e in entries],
                yerr=errors,
                label=label,
                color=colour,
                marker=MARKERS[k],
                linestyle=LINES[k],
                capsize=2.5,
            )
        whole_log2(axes, batches)
        axes.set_title(name)
        axes.set_xlabel("batch size")
    every[0].set_ylabel("time of the best chain of three, % more")
    below(figure, every[0], 2)
    return figure


def _middle_rows(found: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    rows = []
    for name, cost in found["replayed"].items():
        for batch, e in cost["batches"].items():
            rows.append(
                [
                    name,
                    batch,
                    f"{e['over_own_pair']:+.1f}",
                    span(e["over_own_pair_interval"], 1),
                    f"{e['over_best_pair']:+.1f}",
                    span(e["over_best_pair_interval"], 1),
                    *(
                        "; ".join(dict.fromkeys(chain_name(c) for c in e[key]))
                        for key in ("triple", "own_pair", "best_pair")
                    ),
                ]
            )
    header = ["cost", "batch", "over its drafter's pair %", "95%", "over the best pair %", "95%"]
    return [*header, "chain of three", "its drafter's pair", "best pair"], rows


def _decoded_rows(decoded: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    rows = []
    for batch, e in decoded["batches"].items():
        own = e["own_pair"]
        rows.append(
            [
                batch,
                str(e["units"]),
                chain_name(e["triple"]),
                NONE if own is None else chain_name(own),
                NONE if own is None else f"{e['over_own_pair']:+.1f}",
                span(e["over_own_pair_interval"], 1),
                chain_name(e["best_pair"]),
                f"{e['over_best_pair']:+.1f}",
                span(e["over_best_pair_interval"], 1),
            ]
        )
    header = ["batch", "batches of prompts", "chain of three", "its drafter's pair", "over it %", "95%"]
    return [*header, "best pair", "over it %", "95%"], rows


def _critic_rows(critic: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    rows = [
        [batch, name, str(e["prompts"]), f"{e['over_pair']:+.1f}", span(e["interval"], 1)]
        for name, batches in critic["configurations"].items()
        for batch, e in batches.items()
    ]
    rows.sort(key=lambda row: int(row[0]))
    return ["batch", "semantics", "prompts", "over the pair %", "95%"], rows


def _cell(cell: dict[str, Any]) -> str:
    chain = f"{' > '.join(cell['chain'])} x {cell['draft_length']}"
    return f"{chain}, batch {cell['batch']}, {cell['output_tokens']} tokens after {cell['prompt_tokens']:.0f}"


def _ways(masks: dict[str, Any]) -> Figure:
    cells = masks["cells"]
    figure = sheet(8.2, 0.42 * len(cells) + 1.8)
    axes = figure.add_subplot()
    axes.axvline(0.0, color=GREY, linewidth=1.2)
    others = [way for way in cells[0]["ways"] if way != "mask"]
    for k, way in enumerate(others):
        mine = [c["ways"][way] for c in cells]
        errors = np.array([bars(m["over_mask"], m["range"]) for m in mine]).T
        axes.errorbar(
            [m["over_mask"] for m in mine],
            [i + 0.2 * (k - (len(others) - 1) / 2) for i in range(len(cells))],
            xerr=errors,
            label={"move": "moved at once", "never": "never packed"}.get(way, way),
            linestyle="none",
            marker=MARKERS[k],
            color=COLOURS[k + 1],
            capsize=2.5,
        )
    axes.set_yticks(range(len(cells)), [_cell(c) for c in cells], fontsize=8.5)
    axes.invert_yaxis()
    axes.set_xlabel("% more time than marking and packing now and then")
    below(figure, axes, 2)
    return figure


def _ways_rows(masks: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    rows = []
    for cell in masks["cells"]:
        for way, w in cell["ways"].items():
            rows.append(
                [
                    _cell(cell),
                    way,
                    *(f"{1e3 * w[key]:.2f}" for key in ("seconds_per_token", "forward", "choosing")),
                    f"{1e3 * w['packing']:.3f}",
                    f"{w['packed_per_cycle']:.2f}",
                    f"{w['slots_over_tokens']:.2f}",
                    NONE if way == "mask" else f"{w['over_mask']:+.1f}",
                    NONE if way == "mask" else _range(w["range"]),
                    f"{cell['equal']} of {cell['rounds']}",
                ]
            )
    header = ["decoding", "caches", "ms/token", "forwards", "choosing", "packing", "packings a cycle"]
    return [*header, "slots over tokens", "over mask %", "rounds", "texts equal"], rows
