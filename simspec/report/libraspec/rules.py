"""Every length rule against every other, shown: the verdict on ours, and what of the gap it could have."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from simspec.compare.libraspec.rules import JUDGED
from simspec.report.libraspec import rules_figures as figures_of
from simspec.report.libraspec import rules_tables as tables
from simspec.report.parts import Grid, Picture
from simspec.report.style import save
from simspec.report.words import listed, with_span

# A cost's name and a study under it.
Case = tuple[str, dict[str, Any]]


def findings(found: dict[str, Any]) -> list[str]:
    every = [(c, s) for c, cost in found["costs"].items() for s in cost["studies"]]
    judged = [(c, s) for c, s in every if s["batch"] in JUDGED]
    said = [_verdict(found, judged)] if judged else []
    for name, cost in found["costs"].items():
        mine = [s for s in cost["studies"] if s["fastest"]]
        shown = [s for s in mine if s["batch"] in JUDGED] or mine
        told = "; ".join(f"{_where(s)} {_figure(s['verdict'], 'over_static', 1, '%')}" for s in shown)
        said.append(
            f"Cost {name}, the fastest drafter of each batch size: {found['ours']} takes over the best "
            f"static length, which is tuned on these very prompts: {told}."
        )
        said += [_missing(name, found, s) for s in mine if s["batch"] == 1]
    return said + _bounds(found, [s for _, s in every if s["batch"] > 1])


def _verdict(found: dict[str, Any], judged: list[Case]) -> str:
    static = [case for case in judged if _above(case[1]["verdict"]["over_static_interval"])]
    tuned = [case for case in judged if _above(case[1]["verdict"]["over_tuned_interval"])]
    lost = [(c, s, w) for c, s in judged for w in s["verdict"]["slower_than"] if tables.rival(w["rule"])]
    rival = list({(c, s["drafter"], s["batch"]): (c, s) for c, s, _ in lost}.values())
    batches = listed(sorted({s["batch"] for _, s in judged}))
    text = (
        f"Target, at batch {batches}: of {len(judged)} cases (costs x drafters x batch sizes) "
        f"{found['ours']} is slower beyond its paired interval than the best static length, tuned on the "
        f"same prompts, in {len(static)}{_cases(static)}; than the static length tuned on other prompts in "
        f"{len(tuned)}; than some rule that is no static length in {len(rival)}{_cases(rival)}."
    )
    if lost:
        cost, study, worst = max(lost, key=lambda each: float(each[2]["by"]))
        text += (
            f" The most: {_figure(worst, 'by', 1, '%')} slower than {worst['rule']}, {_where(study)} under "
            f"{cost}. With {study['verdict']['of']} rules a case, some are outside their 95% by chance."
        )
    return text


def _cases(cases: list[Case]) -> str:
    told = [f"{s['drafter']} at batch {s['batch']} under {c}" for c, s in cases]
    return f" ({listed(told)})" if told else ""


def _above(interval: list[float | None]) -> bool:
    return interval[0] is not None and interval[0] > 0.0


def _where(study: dict[str, Any]) -> str:
    return f"batch {study['batch']} ({study['drafter']})"


def _figure(of: dict[str, Any], name: str, digits: int, unit: str = "") -> str:
    return "none" if of[name] is None else with_span(of[name], of[f"{name}_interval"], digits, unit)


def _missing(name: str, found: dict[str, Any], study: dict[str, Any]) -> str:
    of = study["verdict"]
    if of["closed"] is None:
        return f"Cost {name}: at batch 1 no gap is left between the best static length and the program."
    closed, oracle, told, left = (
        _figure(of, key, 2) for key in ("closed", "closed_by_oracle", "closed_by_told", "left_to_planner")
    )
    return (
        f"Cost {name}, {_where(study)}: of the gap from the best static length to the dynamic program ours "
        f"closes {closed} (aim: half). The oracle {found['oracle']}, which sees the same confidences and is "
        f"told from other prompts what they stand for and what a second is worth, closes {oracle}; ours told "
        f"what they stand for, {told}, which is {left} more. What none closes is not in confidences, or not "
        "to be had by rules of this kind."
    )


def _bounds(found: dict[str, Any], studies: list[dict[str, Any]]) -> list[str]:
    if not studies:
        return []
    loose = [float(s["plain_over_bound"]) for s in studies]
    closed = [100 * s["verdict"]["closed"] for s in studies if s["verdict"]["closed"] is not None]
    text = (
        "Above batch 1 the bound need not be reached: decoding without drafts takes "
        f"{min(loose):.0f} to {max(loose):.0f}% more than its own bound."
    )
    if closed:
        text += f" Of the gap to it ours closes {min(closed):.0f} to {max(closed):.0f}%."
    slower = sum(s["oracles"][found["oracle"]]["regret_ours"] > 0 for s in studies)
    return [
        f"{text} The oracle {found['oracle']} is no ceiling there, since it chooses for each request alone "
        f"and a batch pays for its longest draft: in {slower} of {len(studies)} cases it is slower than ours."
    ]


def parts(found: dict[str, Any], figures: Path, said: str) -> Iterator[Picture | Grid]:
    prompts = f"{found['prompts']} prompts"
    save(figures_of.over_batches(found), figures / "rules-batches.png")
    yield Picture(
        "rules-batches.png",
        "Time a token over that of the best static length (tuned on the same prompts) by batch size, each "
        f"with its fastest drafter, named in the corner; {prompts}. Bound: the dynamic program at batch 1, "
        f"one that need not be reached above. Oracles know more than rules. {said}.",
    )
    save(figures_of.closed(found), figures / "rules-closed.png")
    yield Picture(
        "rules-closed.png",
        "Share closed of the gap from the best static length to the dynamic program, batch 1, by cost and "
        f"drafter; bars: 95% over draws of prompts, paired; {prompts}. Left of 0: slower than the best "
        f"static length. {said}.",
    )
    for name, cost in found["costs"].items():
        yield Grid(
            f"The verdict on {found['ours']}: % more time than the best static length (tuned on the same "
            "prompts), than the one tuned on the other half, and than rules that are faster beyond their "
            f"interval; 95% paired over draws of prompts ({_draws(cost)}), {prompts}; above batch 1 the "
            "figure itself is of one order of the prompts and can lie outside. Shares of the gap to the "
            f"bound closed; left: what {found['told']} closes beyond it. {_of(name, cost, said)}",
            *tables.verdicts(cost),
        )
    for name, cost in found["costs"].items():
        yield Grid(
            f"Time of every rule over {found['ours']}, %, by batch size and drafter; 95% paired over draws "
            f"of prompts ({_draws(cost)}), {prompts}. {_of(name, cost, said)}",
            *tables.over_ours(cost),
            folded=True,
        )
        for study in cost["studies"]:
            if study["fastest"] and study["batch"] in JUDGED:
                yield Grid(
                    f"All rules, {_where(study)}: % more time than each reference, share of the gap closed, "
                    "tokens a cycle, mean absolute deviation from each oracle. "
                    f"{_of(name, cost, said)}",
                    *tables.everything(study),
                    folded=True,
                )


def _draws(cost: dict[str, Any]) -> str:
    mine, others = ({s["draws"] for s in cost["studies"] if s["fastest"] is f} for f in (True, False))
    return " and ".join(
        f"{max(draws)} with {whose}"
        for draws, whose in ((mine, "the fastest drafters"), (others, "others"))
        if draws
    )


def _of(name: str, cost: dict[str, Any], said: str) -> str:
    return f"Cost {name} ({cost['label']}); {said}."
