"""Batches of unequal rows, and drafting that stops or is only cut, shown."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from simspec.report.libraspec.batch_figures import arms_figure, joint_figure, stopping_figure
from simspec.report.parts import Grid, Picture
from simspec.report.style import save
from simspec.report.words import NONE, listed, span, with_span

LAYOUTS = ("padded", "packed")


def findings(found: dict[str, Any]) -> list[str]:
    return [_priced(found), *_joint(found), _rivals(found), *_stopping(found)]


def _priced(found: dict[str, Any]) -> str:
    by = {
        layout: [name for name, cost in found["costs"].items() if cost["prices"] == layout]
        for layout in LAYOUTS
    }
    words = {
        "padded": "by the widest (a latency table of rows that are alike); packed is an approximation there, "
        "rows of the mean width",
        "packed": "by the tokens alone; padded, every row computes as many as the widest",
    }
    said = [f"{listed(names)}: {layout}, {words[layout]}" for layout, names in by.items() if names]
    return f"How costs take rows of unequal width by themselves: {'; '.join(said)}."


def cells(found: dict[str, Any], part: str) -> list[tuple[str, dict[str, Any]]]:
    return [(name, one) for name, cost in found["costs"].items() for one in cost[part]]


def _clear(value: dict[str, Any], key: str) -> int:
    """1 where a figure's interval lies above 0, -1 where below, 0 elsewhere."""
    low, high = value[f"{key}_interval"]
    return 0 if low is None else int(low > 0) - int(high < 0)


def _joint(found: dict[str, Any]) -> Iterator[str]:
    by_row = found["names"]["by_row"]
    for layout in LAYOUTS:
        said = []
        for key, base, words in (
            ("one_length", "ours", "ours that stops drafting"),
            ("one_length_in_blocks", "blocks", "ours that only cuts blocks of 7"),
        ):
            arm = f"{found['names'][base]}, {by_row}"
            here = [(name, one, one["layouts"][layout]) for name, one in cells(found, "joint")]
            here = sorted((c for c in here if c[2][key] is not None), key=lambda c: float(c[2][key]))
            if not here:
                continue
            more, less = (sum(_clear(v, key) == sign for *_, v in here) for sign in (1, -1))
            ends = [
                f"{with_span(v[key], v[f'{key}_interval'], 1, '%')} ({name}, {_cell(one)}, slope "
                f"{one['slope']:.1f}%)"
                for name, one, v in (here[0], here[-1])
            ]
            shares = [100 * u for *_, v in here if (u := v["arms"][arm]["unequal"]) is not None]
            does = f" (which leaves rows unequal in {min(shares):.0f} to {max(shares):.0f}% of cycles)"
            said.append(
                f"{words} takes clearly more time with one length for all than row by row"
                f"{does if shares else ''} in {more} and clearly less in {less} of {len(here)} costs x batch "
                f"sizes x drafters, from {ends[0]} to {ends[1]}"
            )
        if said:
            yield f"Rows {layout}: " + "; ".join(said) + "."


def _rivals(found: dict[str, Any]) -> str:
    every = cells(found, "joint")
    names = found["names"]
    said = []
    for layout in LAYOUTS:
        ours = f"{names['ours']}, {found['fits'][layout]}"
        arms = [(one, one["layouts"][layout]["arms"]) for _, one in every]
        rivals = [n for n in arms[0][1] if not n.startswith(names["ours"])] if arms else []
        beaten = [
            f"{rival} {sum(_clear(a[rival], 'over_ours') > 0 for _, a in arms)}/"
            f"{sum(_clear(a[rival], 'over_ours') < 0 for _, a in arms)}"
            for rival in rivals
        ]
        said.append(f"{layout} ({ours}): {', '.join(beaten)}")
    return (
        f"Clearly slower/faster than ours, of {len(every)} costs x batch sizes x drafters; " + "; ".join(said)
    ) + "."


def _stopping(found: dict[str, Any]) -> Iterator[str]:
    said = []
    for rule in (found["names"]["exact"], found["names"]["ours"]):
        here = [
            (name, one, one["rules"][rule])
            for name, one in cells(found, "stopping")
            if rule in one["rules"] and not one["lookup"]
        ]
        if not here:
            continue
        longest = sorted(
            ((name, one, _longest(of)) for name, one, of in here), key=lambda c: float(c[2]["over_stop"])
        )
        ends = [
            f"{with_span(v['over_stop'], v['over_stop_interval'], 0, '%')} ({name}, {_cell(one)})"
            for name, one, v in (longest[0], longest[-1])
        ]
        best = [_clear(of["blocks"][str(of["best"])], "over_stop") for *_, of in here]
        most = max(here[0][2]["blocks"], key=int)
        said.append(
            f"{rule} that drafts {most} tokens and only cuts takes {ends[0]} to {ends[1]} more time "
            "than where it stops drafting, but with the block length that is best on "
            f"these very prompts clearly more in {best.count(1)} and clearly less in {best.count(-1)} of "
            f"{len(here)} costs x batch sizes x drafters"
        )
    free = []
    for rule in (found["names"]["exact"], found["names"]["ours"]):
        rules = [one["rules"].get(rule) for _, one in cells(found, "stopping") if one["lookup"]]
        over = [float(_longest(of)["over_stop"]) for of in rules if of]
        if over:
            free.append(f"{rule} by {min(over):.2g} to {max(over):.2g}%")
    if free:
        said.append(f"with a look-up, the control, they differ: {' and '.join(free)}")
    yield "Stopping the drafting: " + "; ".join(said) + "."


def _longest(of: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = of["blocks"][max(of["blocks"], key=int)]
    return found


def _cell(one: dict[str, Any]) -> str:
    return f"{one['drafter']}, batch {one['batch']}"


def parts(found: dict[str, Any], figures: Path, said: str) -> Iterator[Picture | Grid]:
    of = f"{found['prompts']} prompts, bars 95% over {found['draws']} draws of them; {said}."
    yield _drawn(
        joint_figure(found),
        figures / "batches-joint.png",
        "What cutting row by row gains over one length for all rows, by how steeply the target's forward "
        "rises; a point is a cost, batch size and drafter; above 0 one length takes more time. In blocks: 7 "
        f"tokens are drafted in every row whatever comes of them. {of}",
    )
    for k, (name, cost) in enumerate(found["costs"].items()):
        labelled = f"Cost {name} ({cost['label']}), rows {cost['prices']} by itself. {of}"
        if cost["joint"]:
            yield _drawn(
                arms_figure(found, name),
                figures / f"batches-arms-{k}.png",
                f"Time over that of ours under the same layout, symlog axis. {labelled}",
            )
            yield Grid(f"Rules in batches, padded and packed. {labelled}", *_arms(cost), folded=True)
        yield _drawn(
            stopping_figure(found, name),
            figures / f"batches-stopping-{k}.png",
            "A rule that drafts whole blocks and only cuts what it submits, over the same rule that stops "
            f"drafting, symlog axis. n-gram look-ups draft for next to nothing: the control. {labelled}",
        )
        yield Grid(f"Stopping the drafting against only cutting. {labelled}", *_stops(cost), folded=True)


def _drawn(figure: Any, path: Path, caption: str) -> Picture:
    save(figure, path)
    return Picture(path.name, caption)


def _arms(cost: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    rows = [
        [
            str(one["batch"]),
            one["drafter"],
            f"{one['slope']:.1f}",
            layout,
            name,
            f"{1e3 * arm['seconds_per_token']:.4g}",
            f"{arm['over_ours']:.1f}",
            span(arm["over_ours_interval"], 1),
            f"{arm['drafted']:.2f}",
            f"{arm['submitted']:.2f}",
            *(NONE if arm[k] is None else f"{100 * arm[k]:.0f}" for k in ("unequal", "padding")),
        ]
        for one in cost["joint"]
        for layout, of in one["layouts"].items()
        for name, arm in of["arms"].items()
    ]
    header = ["batch", "drafter", "slope %", "rows", "rule", "ms/token", "over ours %", "95%"]
    return [*header, "drafted", "submitted", "unequal % of cycles", "padding %"], rows


def _stops(cost: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    rows = []
    for one in cost["stopping"]:
        for rule, of in one["rules"].items():
            ways = {"stops": of["stop"], "stops, never cuts": of["uncut"]}
            ways |= {f"only cuts {n}": block for n, block in of["blocks"].items()}
            rows += [
                [
                    str(one["batch"]),
                    one["drafter"],
                    f"{one['draft']:.1f}",
                    rule,
                    way,
                    f"{1e3 * v['seconds_per_token']:.4g}",
                    f"{v['over_stop']:.1f}" if "over_stop" in v else NONE,
                    span(v.get("over_stop_interval", [None, None]), 1),
                    f"{v['drafted']:.2f}",
                    f"{v['submitted']:.2f}",
                ]
                for way, v in ways.items()
                if v is not None
            ]
    header = ["batch", "drafter", "draft forward % of target's", "rule", "way", "ms/token"]
    return [*header, "over stopping %", "95%", "drafted", "submitted"], rows
