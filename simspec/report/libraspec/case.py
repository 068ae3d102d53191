"""The paper's case study again, shown: lengths along texts, deviations from oracles, and what they tell."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from simspec.compare.lengths import OURS
from simspec.compare.libraspec.case import HINDSIGHT, PRINTED, PROGRAM, READINGS
from simspec.report.libraspec import case_figures as figures_of
from simspec.report.libraspec.case_figures import ORDER
from simspec.report.parts import Grid, Picture
from simspec.report.style import save
from simspec.report.words import listed, span, with_span

BY_TOKEN = "libraspec-n1"


def findings(found: dict[str, Any]) -> list[str]:
    published = found["published"]
    said = [
        "Published deviations from an oracle whose objective is not stated: LibraSpec "
        f"{published['libraspec']}, static {published['static']}, "
        f"{published['static'] / published['libraspec']:.1f} times as much. {_ties(found)}"
    ]
    for name, cost in found["costs"].items():
        said += [f"Cost {name}, {cost['drafter']}, batch 1: {_deviations(cost)}", _order(name, cost)]
    return said


def _deviations(cost: dict[str, Any]) -> str:
    mads = {r: [cost["rules"][r]["mad"][o] for o in ORDER] for r in cost["shown"]}
    shown = "; ".join(f"{r} {min(m):.2f} to {max(m):.2f}" for r, m in mads.items())
    text = f"mean absolute deviation by the oracle that is meant: {shown}."
    ratios = {o: cost["oracles"][o] for o in ORDER if cost["oracles"][o]["ratio"] is not None}
    if ratios:
        ends = [f(ratios, key=lambda o: float(ratios[o]["ratio"])) for f in (min, max)]
        told = [f"{with_span(ratios[o]['ratio'], ratios[o]['ratio_interval'], 1)} for {o}" for o in ends]
        text += f" The best static length's over LibraSpec's: {' to '.join(told)}."
    return text


def _order(name: str, cost: dict[str, Any]) -> str:
    taus = {o: cost["oracles"][o] for o in ORDER if cost["oracles"][o]["tau"] is not None}
    ends = dict.fromkeys(f(taus, key=lambda o: float(taus[o]["tau"])) for f in (min, max)) if taus else {}
    told = " to ".join(f"{with_span(taus[o]['tau'], taus[o]['tau_interval'], 2)} for {o}" for o in ends)
    nearest = {cost["oracles"][o]["least"]: cost["oracles"][o]["least_over"] for o in ORDER}
    text = (
        f"Cost {name}: deviation ranks {len(cost['rules'])} rules as time does with Kendall's tau "
        f"{told or 'undefined'}, and the rules nearest to some oracle are slower than the fastest by "
        f"{listed(f'{over:.1f}% ({rule})' for rule, over in nearest.items())}."
    )
    # A look-up drafts any number at one price.
    if BY_TOKEN in cost["rules"] and cost["network"]:
        one, whole = (cost["rules"][r] for r in (BY_TOKEN, PRINTED))
        text += (
            " It does not see what is drafted and not submitted: Algorithm 1 by its own blocks deviates by "
            f"{whole['mad'][HINDSIGHT]:.2f} from {HINDSIGHT} and takes "
            f"{1000 * whole['seconds_per_token']:.2f} ms a token, token by token "
            f"{one['mad'][HINDSIGHT]:.2f} and {1000 * one['seconds_per_token']:.2f} ms."
        )
    return text


def _ties(found: dict[str, Any]) -> str:
    ties = [(name, c["shown"], tie) for name, c in found["costs"].items() for tie in c["ties"]]

    def moves(slack: float) -> float:
        """The most that a deviation moves with the choice among ties."""
        return max(
            float(tie[r]["farthest"] - tie[r]["nearest"])
            for _, shown, tie in ties
            if tie["slack"] == slack
            for r in shown
        )

    exact = max(float(tie["tied"]) for _, _, tie in ties if tie["slack"] == 0.0)
    blind = [
        f"{tie[PRINTED]['nearest']:.1f} to {tie[PRINTED]['farthest']:.1f} ({name})"
        for name, _, tie in ties
        if tie["slack"] is None
    ]
    return (
        f"For tokens a second in hindsight, lengths tie at {100 * exact:.1f}% of positions at most, which "
        f"moves no deviation by more than {moves(0.0):.2f}; were those within 1 or 5% of the best as good, "
        f"by {moves(0.01):.2f} or {moves(0.05):.2f}. Were it most tokens, whatever they cost, LibraSpec's "
        f"could be called anything from {listed(blind)}."
    )


def parts(found: dict[str, Any], figures: Path, said: str) -> Iterator[Picture | Grid]:
    published = found["published"]
    for i, (name, cost) in enumerate(found["costs"].items()):
        save(figures_of.along(found["texts"], cost), figures / f"case-along-{i}.png")
        yield Picture(
            f"case-along-{i}.png",
            "Length submitted, cycle by cycle, along the first prompt of each category, and what "
            f"{HINDSIGHT} would have submitted there; batch 1. MAD: mean absolute deviation on this text. "
            f"{_of(name, cost, said)}",
        )
    drawn = any(c["afresh"]["seconds_per_token_interval"][0] is not None for c in found["costs"].values())
    over = "bars: 95% over draws of prompts" if drawn else "no intervals drawn"
    save(figures_of.deviations(found), figures / "case-deviations.png")
    yield Picture(
        "case-deviations.png",
        "Mean absolute deviation of submitted lengths from each oracle's at the same places, all prompts, "
        f"batch 1; {over}. Lines: published, with blocks of up to 60 tokens and other models. {said}.",
    )
    save(figures_of.ranks(found), figures / "case-ranks.png")
    yield Picture(
        "case-ranks.png",
        "Every rule's deviation and its time, all prompts, batch 1; the upper oracle knows what will be "
        "accepted, the lower what a rule may know. Were deviation a measure of speed, points would rise "
        f"to the right. {said}.",
    )
    for name, cost in found["costs"].items():
        yield Grid(
            "Mean absolute deviation from each oracle, tokens: all prompts (95% over draws of prompts), and "
            f"the shown texts. Published: LibraSpec {published['libraspec']}, static {published['static']}. "
            f"{_of(name, cost, said)}",
            *_table(cost),
        )
    for name, cost in found["costs"].items():
        yield Grid(
            f"Deviation from {HINDSIGHT} by which of the lengths that are as good (within that share of the "
            f"best one's tokens a second) is meant. {_of(name, cost, said)}",
            *_tie_table(cost),
            folded=True,
        )
        yield Grid(
            "Every rule, the fastest first: time, mean length submitted, deviation from each oracle. "
            f"{_of(name, cost, said)}",
            *_rules(cost),
            folded=True,
        )


def _of(name: str, cost: dict[str, Any], said: str) -> str:
    kind = "" if cost["network"] else " (a look-up, whose confidence is always 1: no network here pays)"
    return f"Cost {name} ({cost['label']}), drafter {cost['drafter']}{kind}; {said}."


def _table(cost: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    rows = []
    shown = [*cost["shown"], *([BY_TOKEN] if BY_TOKEN in cost["rules"] else [])]
    given = [(rule, cost["rules"][rule], cost["four"].get(rule)) for rule in shown]
    fresh = with_span(cost["afresh"]["over_stream"], cost["afresh"]["over_stream_interval"], 1, "%")
    afresh = f"{OURS} knowing nothing before each text; its time over the stream's: {fresh}"
    for rule, of, four in [*given, (afresh, cost["afresh"], None)]:
        length = f"{of['mean_length']:.2f}" if "mean_length" in of else ""
        mads = [f"{of['mad'][o]:.2f} ({span(of['mad'][f'{o}_interval'], 2)})" for o in ORDER]
        texts = [f"{four[o]:.2f}" if four else "" for o in (HINDSIGHT, PROGRAM)]
        rows.append([rule, f"{1000 * of['seconds_per_token']:.3f}", length, *mads, *texts])
    lengths = [f"{cost['oracles'][o]['mean_length']:.2f}" for o in ORDER]
    rows.append(["mean length of the oracle, all positions", "", "", *lengths, "", ""])
    texts = [f"shown texts, {o}" for o in (HINDSIGHT, PROGRAM)]
    return ["rule", "ms/token", "mean length", *ORDER, *texts], rows


def _tie_table(cost: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    rows = []
    for tie in cost["ties"]:
        meant = "most tokens, whatever the cost" if tie["slack"] is None else f"{100 * tie['slack']:g}%"
        head = [meant, f"{100 * tie['tied']:.1f}", f"{tie['span']:.2f}"]
        rows += [[*head, rule, *(f"{tie[rule][r]:.2f}" for r in READINGS)] for rule in cost["shown"]]
    return ["as good", "positions with several, %", "longest less shortest", "rule", *READINGS], rows


def _rules(cost: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    rows = []
    for name, of in sorted(cost["rules"].items(), key=lambda each: float(each[1]["seconds_per_token"])):
        between = [None if v is None else 1000 * v for v in of["seconds_per_token_interval"]]
        row = [name, f"{1000 * of['seconds_per_token']:.3f}", span(between, 3), f"{of['mean_length']:.2f}"]
        rows.append([*row, *(f"{of['mad'][o]:.2f}" for o in ORDER)])
    return ["rule", "ms/token", "95%", "mean length", *ORDER], rows
