"""Tables of the calibration study."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from simspec.report.words import NONE, with_span

EVERY, VISITED = "every", "visited"

Table = tuple[list[str], list[list[str]]]


def told(figure: Sequence[float | None], digits: int, unit: str = "") -> str:
    """A [value, low, high]."""
    value = figure[0]
    return NONE if value is None else with_span(value, figure[1:], digits, unit)


def cell_of(
    found: dict[str, Any], drafter: str, starts: str, places: str, task: str = "all"
) -> dict[str, Any]:
    cells = found["drafters"][drafter]["cells"]
    cell: dict[str, Any] = next(
        c for c in cells if (c["starts"], c["places"], c["task"]) == (starts, places, task)
    )
    return cell


def examples(found: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    """(cost, drafter, example) of single rounds."""
    return [
        (cost, name, example)
        for cost, c in found["acting"].items()
        for name, d in c["drafters"].items()
        for example in d["theory"]["examples"]
    ]


def scores(found: dict[str, Any]) -> Table:
    """Every cell."""
    rows = []
    for name, drafter in found["drafters"].items():
        for c in drafter["cells"]:
            row = [name, c["starts"], c["task"], c["places"], str(c["tokens"])]
            row += [_plain(c[k], 3) for k in ("confidence", "accepted")]
            row += [told(c["bias"], 3), told(c["ece"], 3), _plain(c["ece_by_chance"], 3)]
            row += [told(c["brier"], 3)]
            row += [_plain(c[k], 4) for k in ("miscalibration", "discrimination", "uncertainty")]
            rows.append([*row, told(c["auroc"], 3)])
    header = ["drafter", "starts", "task", "places", "tokens", "confidence", "accepted", "bias", "ECE"]
    header += ["by chance", "Brier", "miscalibration", "discrimination", "uncertainty", "AUROC"]
    return header, rows


def left(found: dict[str, Any]) -> Table:
    """What maps fitted on the other half leave, all places."""
    rows = []
    for name, drafter in found["drafters"].items():
        for starts in (EVERY, VISITED):
            raw = cell_of(found, name, starts, "all")
            rows.append([name, "none", NONE, starts, *_row(raw), NONE])
            rows += [
                [name, r["method"], r["fitted"], starts, *_row(r), told(r["spared"], 4)]
                for r in drafter["held_out"]
                if r["scored"] == starts and r["places"] == "all"
            ]
    header = ["drafter", "map", "fitted at", "scored at", "bias", "ECE", "by chance", "Brier", "AUROC"]
    return [*header, "spared"], rows


def _row(cell: dict[str, Any]) -> list[str]:
    row = [told(cell["bias"], 3), told(cell["ece"], 3), _plain(cell["ece_by_chance"], 3)]
    return [*row, told(cell["brier"], 4), told(cell["auroc"], 3)]


def rules(found: dict[str, Any]) -> Table:
    """Rounds whose length changes, and the end."""
    rows = []
    for cost, c in found["acting"].items():
        for name, d in c["drafters"].items():
            for rule, of_rule in d["rules"].items():
                for where in (EVERY, VISITED):
                    r = of_rule[where]
                    row = [cost, name, rule, where, str(r["rounds"])]
                    row += [told(r["changed"], 1), _plain(r["longer"][0], 1), told(r["change"], 2)]
                    row += [f"{r['absolute']:.2f}", str(r["most"])]
                    row += [_plain(r["slower"][0], 1), _plain(r["faster"][0], 1), told(r["loss"], 2)]
                    rows.append([*row, told(of_rule["end_to_end"][where], 2)])
    header = ["cost", "drafter", "rule", "positions", "rounds", "changed %", "longer %", "mean change"]
    header += ["mean |change| of changed", "most", "q slower %", "q faster %", "forgone %"]
    return [*header, "end to end %, p-hat fitted there"], rows


def theory(found: dict[str, Any]) -> Table:
    """The same under affine costs."""
    rows = []
    for cost, c in found["acting"].items():
        for name, d in c["drafters"].items():
            line = d["theory"]
            start = [cost, name, str(line["fixed_us"]), str(line["per_place_us"])]
            start.append(f"{line['worst_error']:.1f}")
            for rule, r in line["rules"].items():
                rows.append([*start, rule, *(told(r[k], 2) for k in ("slower", "faster", "loss"))])
    header = ["cost", "drafter", "T0 us", "c us", "line off by at most %", "rule"]
    return [*header, "q slower, % of rounds", "q faster", "forgone, mean %"], rows


def by_hand(found: dict[str, Any]) -> Table:
    """Of each cost and rule the round that loses most."""
    most: dict[tuple[str, str], tuple[str, dict[str, Any]]] = {}
    for cost, name, example in examples(found):
        key = cost, example["rule"]
        if key not in most or example["lost"] > most[key][1]["lost"]:
            most[key] = name, example
    rows = []
    for (cost, rule), (name, e) in most.items():
        line = found["acting"][cost]["drafters"][name]["theory"]
        row = [cost, rule, name, f"{e['prompt']}, {e['position']}"]
        row += [" ".join(f"{x:.4f}" for x in e[k]) for k in ("q", "p")]
        row += [str(line["fixed_us"]), str(line["per_place_us"]), str(e["length_q"]), str(e["length_p"])]
        rows.append([*row, f"{e['speed_q']:.4f}", f"{e['speed_p']:.4f}", f"{e['lost']:.2f}"])
    header = ["cost", "rule", "drafter", "prompt, position", "q", "p-hat", "T0", "c", "length by q"]
    return [*header, "by p-hat", "tokens/s by q", "by p-hat", "lost %"], rows


def _plain(value: float | None, digits: int) -> str:
    return NONE if value is None else f"{value:.{digits}f}"
