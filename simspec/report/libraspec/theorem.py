"""Algorithm 1 against its theorems, shown: how often lengths differ, what that costs, what fails."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from simspec.report.libraspec.theorem_figures import (
    BEST,
    CHANCES,
    CURVES,
    PLAIN,
    STATEMENTS,
    apart,
    end_to_end,
    failures,
    fastest,
    of_found,
    shown,
)
from simspec.report.parts import Grid, Picture
from simspec.report.style import save
from simspec.report.words import NONE, listed, span, with_span


def findings(found: dict[str, Any]) -> list[str]:
    n = found["block"]
    printed, theorem, by_token = f"printed-{n}", f"theorem-{n}", "printed-1"
    cells = [(f"{c} {d}", x) for c, cost in found["costs"].items() for d, x in cost["drafters"].items()]
    if not cells:
        return ["No cost prices a drafter that has confidences."]

    def of(get: Any, digits: int = 0, unit: str = "%") -> str:
        """Least and greatest over costs and drafters, with their names."""
        values = [(get(x), name) for name, x in cells]
        (low, least), (high, most) = min(values), max(values)
        if f"{low:.{digits}f}" == f"{high:.{digits}f}":
            return f"{low:.{digits}f}{unit}"
        return f"{low:.{digits}f}{unit} ({least}) to {high:.{digits}f}{unit} ({most})"

    def differ(a: str, b: str, where: str) -> str:
        return of(lambda x: 100 * x["apart"][where][a][b]["differ"])

    def over(kind: str, rule: str) -> str:
        """Of each cost's fastest drafter."""
        chosen = [(name, shown(cost)) for name, cost in found["costs"].items() if cost["drafters"]]
        each = [(f"{c} {d}", found["costs"][c]["drafters"][d]["replay"][kind][rule]) for c, d in chosen]
        return listed(f"{_over(x)} ({name})" for name, x in each)

    def failing(name: str, chances: str, curve: str, digits: int = 0) -> str:
        return of(lambda x: 100 * (x["statements"][name][chances][curve]["share"] or 0.0), digits)

    past = of(lambda x: 100 * x["past"]["starts"][printed]["share"], 1)
    most = max(x["past"]["starts"][name]["most"] for _, x in cells for name in x["past"]["starts"])
    pays = [name for name, x in cells if fastest(x) < x["replay"]["alone"][PLAIN]["seconds_per_token"]]
    fed = [
        f"{name} {with_span(*of_found(x['replay']['alone'][theorem + '-p'], 'over_q'), 1, '%')}"
        for name, x in cells
    ]
    return [
        f"Algorithm 1 and the theorems' fixed point (alpha {found['alpha']}, n {n}, both fed with q) submit "
        f"different lengths on {differ(printed, theorem, 'starts')} of the rounds, the fixed point fed with "
        f"q and with p-hat on {differ(theorem, theorem + '-p', 'starts')}. Algorithm 1's length is not the "
        f"best by p-hat on {differ(printed, BEST, 'starts')}, and on {differ(printed, BEST, 'visited')} of "
        f"the rounds that it visits. It is beyond d_max on {past}, by at most {most}.",
        f"Time over the exact marginal rule's, batch 1: for {printed}'s lengths alone "
        f"{over('alone', printed)}; with each rule's own drafting, for {printed} {over('run', printed)}, and "
        f"for {by_token} {over('run', by_token)}.",
        f"Some rule is faster than plain decoding under {len(pays)} of {len(cells)} costs and drafters "
        f"({listed(pays) or 'none'}). Algorithm 1 and the theorems cannot choose length 0.",
        f"Were the confidences p-hat, as Assumption 3.7 supposes, the fixed point's lengths would take this "
        f"much more time than with q: {listed(fed)}.",
        f"Among lengths from 1 on, the chances taken to be q and costs as measured, min eps_i of Theorem 3.4 "
        f"lowers expected speedup from some length on {failing('3.4-extend', 'q', 'measured')} of the rounds "
        f"where it lengthens, and moves by it end below the optimum (Theorem 3.6) on "
        f"{failing('3.6-iteration', 'q', 'measured')}; so does Algorithm 1 on "
        f"{failing('1-optimal', 'q', 'measured')}. The single peak of Theorem 3.5 fails on "
        f"{failing('3.5-one-peak', 'q', 'measured', 1)}, and on {failing('3.5-one-peak', 'q', 'affine', 1)} "
        f"where each round's cost is an affine fit.",
    ]


def _over(found: dict[str, Any]) -> str:
    return with_span(*of_found(found, "over"), 1, "%")


def parts(found: dict[str, Any], figures: Path, said: str) -> Iterator[Picture | Grid]:
    tasks = listed(f"{n} of {task}" for task, n in found["prompts"].items())
    told = (
        f"alpha {found['alpha']}, d_max {found['longest']}, rules end in their n. p-hat: "
        "what confidences are worth on the other half of the prompts (isotonic, one map for all places; not "
        f"fitted again for each draw). Prompts: {tasks}. {said}."
    )
    costs = {name: cost for name, cost in found["costs"].items() if cost["drafters"]}
    if not costs:
        return
    for k, (name, cost) in enumerate(costs.items()):
        drafter = shown(cost)
        save(apart(cost["drafters"][drafter], f"cost {name}, {drafter}"), figures / f"theorem-apart-{k}.png")
        yield Picture(
            f"theorem-apart-{k}.png",
            f"On what share of rounds two rules submit different lengths, %; cost {name} ({cost['label']}), "
            f"its fastest drafter {drafter}. Above the diagonal: every start position "
            f"({cost['drafters'][drafter]['starts']}); below it: those at which cycles of the row's rule "
            f"begin. theorem-own: eps with the cycle's own cost for the constant; argmax, argmax-p: greatest "
            f"expected tokens per second of the whole block, by q and by p-hat; {told}",
        )
    save(end_to_end(costs), figures / "theorem-cost.png")
    yield Picture(
        "theorem-cost.png",
        f"Seconds per token over the exact marginal rule's, %, at batch 1: above when nothing is drafted but "
        f"what is submitted (what the lengths alone do), below with each rule's own drafting, whole blocks "
        f"of n; symlog axis; bars: 95% of paired draws of prompts. {told}",
    )
    save(failures(costs), figures / "theorem-statements.png")
    yield Picture(
        "theorem-statements.png",
        f"On what share of the rounds of which it says something a statement is false, %, granted that the "
        f"chances are q (filled) or p-hat (hollow), under costs as measured or fitted by a line round by "
        f"round; each cost's fastest drafter, all start positions; bars: 95% over draws of prompts. {told}",
    )
    for name, cost in costs.items():
        for drafter, each in cost["drafters"].items():
            of = f"Cost {name} ({cost['label']}), drafter {drafter}; {said}."
            yield Grid(f"Rules against the best length by p-hat, batch 1. {of}", *_rules(each), folded=True)
            yield Grid(f"Rounds on which a statement is false. {of}", *_rounds(each), folded=True)


def _rules(drafter: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    rows = []
    for name, lengths in drafter["lengths"].items():
        near = drafter["apart"]["starts"][BEST].get(name)
        seen = drafter["apart"]["visited"][name].get(BEST)
        loss = drafter["loss"]["starts"][name]
        run = drafter["replay"]["run"].get(name)
        gap = None if near is None else "/".join(f"{q:.0f}" for q in near["quantiles"])
        rows.append(
            [
                name,
                f"{lengths['mean']:.2f}",
                NONE if near is None else f"{100 * near['differ']:.1f}",
                NONE if seen is None else f"{100 * seen['differ']:.1f}",
                NONE if near is None else f"{near['mean']:+.2f}",
                gap or NONE,
                f"{loss['mean']:.1f} ({span(loss['mean_interval'], 1)})",
                _over(drafter["replay"]["alone"][name]),
                NONE if run is None else _over(run),
                NONE if run is None else f"{run['drafted']:.1f}",
            ]
        )
    header = [
        "rule",
        "mean length",
        "differs from argmax-p, % of starts",
        "% of its own rounds",
        "mean difference",
    ]
    header += ["its quantiles 5/25/50/75/95%", "expected speedup lost, % of starts' mean"]
    header += ["time over marginal, lengths alone", "as run", "drafted a cycle, as run"]
    return header, rows


def _rounds(drafter: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    rows = []
    for name, (short, words) in STATEMENTS.items():
        row = [short, words]
        for chances in CHANCES:
            for curve in CURVES:
                cell = drafter["statements"][name][chances][curve]
                share = NONE if cell["share"] is None else f"{100 * cell['share']:.2f}"
                row.append(f"{share} ({cell['fails']} of {cell['rounds']})")
        seen = drafter["statements"][name]["q"]["measured"]["visited"]
        rows.append([*row, NONE if seen is None else f"{100 * seen:.2f}"])
    header = [f"{c}, {curve}, %" for c in CHANCES.values() for curve in CURVES]
    return ["statement", "in words", *header, "q, measured, of rounds visited by Algorithm 1, %"], rows
