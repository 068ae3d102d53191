"""Schedulers and oracles, shown."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from simspec.report.parts import Grid, Picture
from simspec.report.style import BLACK, BLUE, GREY, ORANGE, bars, save, sheet
from simspec.report.words import NONE, chain_name, span, with_span

PRINTED, BOUND, PAIR = "reach", "dynamic-program", "static-pair"
# Tuned offline on other prompts and fixed: no router.
STATIC = ("target-only", "smallest-drafter", PAIR, "three-level", "static-tuned")


def findings(found: dict[str, Any]) -> list[str]:
    said = []
    for name, cost in found["costs"].items():
        for batch in (b for b in ("1", "16") if b in cost["batches"]):
            scores = cost["batches"][batch]
            routers = [s for s in scores if s not in (*STATIC, *found["oracles"])]
            statics = [s for s in STATIC if s in scores]
            best = max(routers, key=lambda s: float(scores[s]["tokens_per_second"]))
            fixed = max(statics, key=lambda s: float(scores[s]["tokens_per_second"]))
            words = (
                f"Cost {name}, batch {batch}: the best of {len(routers)} routers ({best}, the fastest on "
                f"these very prompts) runs at {_over(scores[best])} of the best static pair's speed, "
                f"SpecRouter as printed ({PRINTED}) at {_over(scores[PRINTED])}, the best of "
                f"{len(statics)} static schedules ({fixed}, likewise) at {_over(scores[fixed])}"
            )
            if BOUND in scores:
                words += f"; no scheme over these chains can pass {_over(scores[BOUND])}"
            said.append(words + ".")
        for batch, scores in cost["split"].items():
            both = {s: cost["batches"][batch][s]["tokens_per_second"] for s in scores if s not in STATIC}
            gains = {s: scores[s]["tokens_per_second"] / rate for s, rate in both.items()}
            if gains and batch == "16":
                best = max(gains, key=lambda s: gains[s])
                worst = min(gains, key=lambda s: gains[s])
                said.append(
                    f"Cost {name}, batch {batch}: letting each request take its own chain multiplies the "
                    f"router's speed by {gains[worst]:.2f} ({worst}) to {gains[best]:.2f} ({best})."
                )
    return said


def _over(score: dict[str, Any]) -> str:
    return with_span(score["over_static_pair"], score["over_static_pair_interval"], 3)


def parts(found: dict[str, Any], figures: Path, said: str) -> Iterator[Picture | Grid]:
    for k, (name, cost) in enumerate(found["costs"].items()):
        of = f"Cost {name} ({cost['label']}); {said}."
        save(_speeds(cost["batches"], found["oracles"], name), figures / f"routing-{k}.png")
        yield Picture(
            f"routing-{k}.png",
            "Speed over that of the best static pair (tuned on the other half of the prompts), by batch "
            f"size. Oracles see verdicts before they choose; the dynamic program is a bound. Bars: 95%. {of}",
        )
        yield Grid(f"Schedulers, one chain for the whole batch. {of}", *_table(cost["batches"]), folded=True)
        if cost["split"]:
            yield Grid(
                f"Schedulers, a chain for each request of a batch. {of}", *_table(cost["split"]), folded=True
            )


def _speeds(batches: dict[str, Any], oracles: list[str], name: str) -> Figure:
    figure = sheet(3.1 * len(batches) + 1.8, 5.4)
    every = figure.subplots(1, len(batches), squeeze=False, sharey=True)[0]
    names = list(dict.fromkeys(s for scores in batches.values() for s in scores))[::-1]
    for axes, (batch, scores) in zip(every, batches.items(), strict=True):
        axes.axvline(1.0, color=GREY, linewidth=1.2)
        for y, scheduler in enumerate(names):
            score = scores.get(scheduler)
            if score is None or score["over_static_pair"] is None:
                continue
            value = score["over_static_pair"]
            low, high = bars(value, score["over_static_pair_interval"])
            colour, marker = (
                (BLACK, "*")
                if scheduler in oracles
                else (BLUE, "s")
                if scheduler in STATIC
                else (ORANGE, "o")
            )
            axes.errorbar([value], [y], xerr=[[low], [high]], color=colour, marker=marker, capsize=2.5)
        axes.set_title(f"batch {batch}")
        axes.set_yticks(range(len(names)), names)
        axes.set_xlabel("speed over static pair")
    figure.suptitle(f"cost {name}; circles: routers, squares: static, stars: oracles", fontsize=11)
    return figure


def _table(batches: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    rows = []
    for batch, scores in batches.items():
        for name, s in sorted(scores.items(), key=lambda item: -float(item[1]["tokens_per_second"])):
            most = s["taken"][0] if s["taken"] else None
            rows.append(
                [
                    batch,
                    name,
                    f"{s['tokens_per_second']:.4g}",
                    *(
                        text
                        for key, digits in (("speedup", 3), ("over_static_pair", 3), ("regret", 1))
                        for text in (
                            NONE if s[key] is None else f"{s[key]:.{digits}f}",
                            span(s[f"{key}_interval"], digits),
                        )
                    ),
                    f"{100 * s['switches_per_cycle']:.0f}",
                    f"{100 * s['catching_up_share']:.1f}",
                    NONE if most is None else f"{chain_name(most)} {100 * most['share']:.0f}%",
                ]
            )
    header = [
        "batch",
        "scheduler",
        "tokens/s",
        "speedup",
        "95%",
        "v. pair",
        "95%",
        "regret to bound %",
        "95%",
    ]
    return [*header, "switches % of cycles", "time catching up %", "most taken"], rows
