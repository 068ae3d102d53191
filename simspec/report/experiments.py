"""What real runs said: the critic's experiment and the validation of simulated time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from simspec.report.parts import Grid, Picture
from simspec.report.style import BLUE, COLOURS, GREY, MARKERS, below, plain_log, save, sheet
from simspec.report.words import NONE, span


def critic_parts(found: dict[str, Any]) -> Iterator[Picture | Grid]:
    """Tables of a document that ``simspec critic`` wrote."""
    chain = " > ".join(found["chain"])
    said = (
        f"Real decoding of {found['requests']} prompts ({'; '.join(found['prompts'])}), {chain}, "
        f"{found['length']} drafted tokens, {found['output_tokens']} tokens of text, {found['dtype']} on "
        f"{found['device']} ({found['machine']['processor']}, {found['machine']['cores']} cores)."
    )
    rows = []
    for name, entry in found["configurations"].items():
        totals = entry["totals"]
        rows.append(
            [
                name,
                f"{totals['identical']} of {found['requests']}",
                _span(entry["identical_share"], 3),
                _value(entry["emitted_per_pass"], 3),
                _span(entry["emitted_per_pass"], 3),
                str(totals["rejected"]) if totals["rejected"] else NONE,
                *(
                    [str(totals["wrongly"]), str(totals["rightly"]), str(totals["moot"])]
                    if totals["rejected"]
                    else [NONE] * 3
                ),
                _span(entry["wrong_share_of_decided_rejections"], 3),
                _value(entry["lost_tokens_per_pass"], 4) if totals["rejected"] else NONE,
            ]
        )
    header = ["run", "target's own text", "95%", "emitted a pass", "95%", "blocks cut", "wrongly", "rightly"]
    header += ["moot", "wrong share, 95%", "lost tokens a pass"]
    yield Grid(
        "What an intermediate verifier cuts off. Wrongly: the first token cut off is the target's own; "
        "rightly: it is not; moot: the block had left the target's text before. The share is of those "
        "that are not moot. Lost: tokens past the cut that the target would have accepted. " + said,
        header,
        rows,
    )
    times = []
    for name, entry in found["configurations"].items():
        for batch, time in entry["batches"].items():
            times.append(
                [
                    batch,
                    name,
                    str(time["requests"]),
                    f"{1e3 * time['seconds_per_token']['value']:.1f}",
                    _value(time["time_over_target"], 3),
                    _span(time["time_over_target"], 3),
                    _value(time["time_over_pair"], 3),
                    _span(time["time_over_pair"], 3),
                ]
            )
    times.sort(key=lambda row: int(row[0]))
    yield Grid(
        "The same chain without its middle, at every batch size: time a token over plain decoding's and over "
        "the pair's, run one after another in each group of prompts; intervals over draws of groups, none "
        "where a batch size has one group. " + said,
        ["batch", "run", "prompts", "ms/token", "over target", "95%", "over pair", "95%"],
        times,
    )


def validation_parts(found: dict[str, Any], figures: Path) -> Iterator[Picture | Grid]:
    """Figure and tables of a document that ``simspec validate`` wrote."""
    said = (
        f"{found['dtype']} on {found['device']} ({found['machine']['processor']}, "
        f"{found['machine']['cores']} cores), {found['rounds']} rounds, {found['output_tokens']} "
        "tokens of text; forwards timed in the same run."
    )
    rows = []
    for part, label in (("same_prompts", "recorded prompts"), ("disjoint_prompts", "other prompts")):
        s = found[part]
        rows.append(
            [
                label,
                str(s["configurations"]),
                f"{100 * s['median_abs_error']:.1f}",
                f"{100 * s['p90_abs_error']:.1f}",
                f"{100 * s['worst_abs_error']:.1f}",
                f"{s['kendall_tau']:.3f}",
                {True: "all equal", False: "DIFFER", None: NONE}[s["accepted_counts_equal"]],
                f"{100 * s['median_abs_error_of_forwards']:.1f}",
                f"{100 * s['median_abs_error_of_overhead']:.1f}",
                f"{100 * s['median_share_of_overhead']:.1f}",
                f"{100 * s['median_spread_of_repetitions']:.1f}",
            ]
        )
    header = ["prompts", "configurations", "median error %", "90th %", "worst %", "tau", "accepted counts"]
    header += ["of forwards %", "of the rest %", "share of the rest %", "spread of repetitions %"]
    yield Grid(f"Simulated against measured time per token. {said}", header, rows)
    save(_scatter(found), figures / "validation.png")
    yield Picture(
        "validation.png",
        "Simulated against measured time per token, each chain x length x batch a point; the dashed lines "
        f"are 5% off. {said}",
    )
    if found["engines"]:
        where = found.get("engines_note") or said
        engines_header = ["engine", "prompts", "measured s", "simulated s", "error %"]
        engines_header += ["share outside forwards %", "our time over theirs"]
        yield Grid(
            "Engines that simspec does not contain: transformers' own generation, after its first cycle. Its "
            f"time a cycle and a drafted token is fitted on other prompts. {where}",
            engines_header,
            [
                [
                    e["engine"],
                    str(e["prompts"]),
                    f"{e['measured_seconds']:.2f}",
                    f"{e['predicted_seconds']:.2f}",
                    f"{100 * e['error']:+.1f}",
                    f"{100 * e['share_outside_forwards']:.1f}",
                    NONE if e["our_time_over_theirs"] is None else f"{e['our_time_over_theirs']:.2f}",
                ]
                for e in found["engines"]
            ],
        )


def _scatter(found: dict[str, Any]) -> Figure:
    figure = sheet(7.0, 5.4)
    axes = figure.add_subplot()
    points = [(c, part) for part in ("same_prompts", "disjoint_prompts") for c in found[part]["all"]]
    values = [1e3 * v for c, _ in points for v in (c["measured"], c["predicted"])]
    low, high = 0.9 * min(values), 1.1 * max(values)
    axes.plot([low, high], [low, high], color=GREY, linewidth=1.2)
    for off in (0.95, 1.05):
        axes.plot([low, high], [off * low, off * high], color=GREY, linewidth=0.8, linestyle="--")
    batches = sorted({c["batch"] for c in found["same_prompts"]["all"]})
    for k, batch in enumerate(batches):
        mine = [c for c, part in points if part == "same_prompts" and c["batch"] == batch]
        axes.plot(
            [1e3 * c["measured"] for c in mine],
            [1e3 * c["predicted"] for c in mine],
            MARKERS[k % len(MARKERS)],
            color=COLOURS[k % len(COLOURS)],
            markersize=5.5,
            label=f"batch {batch}",
        )
    others = found["disjoint_prompts"]["all"]
    axes.plot(
        [1e3 * c["measured"] for c in others],
        [1e3 * c["predicted"] for c in others],
        "x",
        color=BLUE,
        markersize=6,
        label="simulated on other prompts" if others else None,
    )
    plain_log(axes, low, high)
    axes.set_xlabel("measured ms per token")
    axes.set_ylabel("simulated ms per token")
    below(figure, axes, 3)
    return figure


def _value(entry: dict[str, Any], digits: int) -> str:
    return NONE if entry["value"] is None else f"{entry['value']:.{digits}f}"


def _span(entry: dict[str, Any], digits: int) -> str:
    return span((entry["low"], entry["high"]), digits)
