"""Confidence against acceptance, and what acting on it as if it were a chance costs, shown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from simspec.report.libraspec import calibration_figures as figures_of
from simspec.report.libraspec import calibration_tables as tables
from simspec.report.libraspec.calibration_tables import EVERY, VISITED, cell_of, told
from simspec.report.parts import Grid, Picture
from simspec.report.style import save
from simspec.report.words import listed

# The map that p-hat is, and the other.
MAP, OTHER = "isotonic by place", "temperature by place"
# The exact rule, and Algorithm 1 by the paper's blocks and by single tokens.
EXACT, PRINTED, BY_TOKEN = "exact-marginal", "libraspec", "libraspec-n1"


def findings(found: dict[str, Any]) -> list[str]:
    if not found["drafters"]:
        return ["No drafter but look-ups has drafted anything, so there is no confidence to judge."]
    said = [_calibrated(found), _along(found), _after(found)]
    said += [_rounds(found, rule) for rule in (EXACT, PRINTED, BY_TOKEN)]
    return [s for s in [*said, _single(found)] if s]


def _calibrated(found: dict[str, Any]) -> str:
    shown = []
    for name in found["drafters"]:
        cell = cell_of(found, name, EVERY, "all")
        tasks = [cell_of(found, name, EVERY, "all", task) for task in _tasks(found, name)]
        off = sorted((c for c in tasks if _sign(c["bias"])), key=lambda c: float(c["bias"][0]))
        # The ends alone, where there are several.
        ends = off[:1] + off[1:][-1:]
        shown.append(
            f"{name} {told(cell['bias'], 3)} with ECE {cell['ece'][0]:.3f} (about "
            f"{cell['ece_by_chance']:.3f} were it calibrated) and AUROC {told(cell['auroc'], 3)}"
            + (f", by task {listed(_signed(c) for c in ends)}" if ends else "")
        )
    return f"Mean confidence less accepted share, all places: {'; '.join(shown)}."


def _signed(cell: dict[str, Any]) -> str:
    return f"{cell['bias'][0]:+.3f} ({cell['task']})"


def _tasks(found: dict[str, Any], drafter: str) -> list[str]:
    return list(dict.fromkeys(c["task"] for c in found["drafters"][drafter]["cells"] if c["task"] != "all"))


def _along(found: dict[str, Any]) -> str:
    shown = []
    for name, drafter in found["drafters"].items():
        at, there = (cell_of(found, name, starts, "1")["bias"][0] for starts in (EVERY, VISITED))
        shown.append(
            f"{name} {told(drafter['drift'][EVERY], 4)}, its first token being off by {at:+.3f} at every "
            f"position and by {there:+.3f} where cycles begin"
        )
    return (
        "With each place down the block, given that all before were accepted, confidence less acceptance "
        f"moves by: {'; '.join(shown)}."
    )


def _after(found: dict[str, Any]) -> str:
    shown = []
    for name in found["drafters"]:
        raw = cell_of(found, name, EVERY, "all")
        one, other = (_kept(found, name, method) for method in (MAP, OTHER))
        shown.append(
            f"{name} has an ECE of {one['ece'][0]:.3f} and {other['ece'][0]:.3f} after {raw['ece'][0]:.3f}, "
            f"and of a Brier score of {raw['brier'][0]:.4f} it is spared {told(one['spared'], 4)} and "
            f"{told(other['spared'], 4)}"
        )
    return (
        f"Calibrated on the other half of the prompts, {MAP} and {OTHER}: {'; '.join(shown)}. A temperature "
        "turns confidences about one half and cannot lift them all."
    )


def _kept(found: dict[str, Any], drafter: str, method: str) -> dict[str, Any]:
    """What a map leaves over all places, fitted and scored at every start."""
    rows = found["drafters"][drafter]["held_out"]
    row: dict[str, Any] = next(
        r for r in rows if (r["method"], r["scored"], r["places"]) == (method, EVERY, "all")
    )
    return row


def _rounds(found: dict[str, Any], rule: str) -> str:
    """How often lengths change under one rule, and what acting on q costs end to end."""
    rows = [
        (cost, name, d["rules"][rule])
        for cost, c in found["acting"].items()
        for name, d in c["drafters"].items()
    ]
    if not rows:
        return ""
    shares = [[r[where]["changed"][0] or 0.0 for _, _, r in rows] for where in (EVERY, VISITED)]
    changed, visited = (f"{min(s):.0f} to {max(s):.0f}%" for s in shares)
    slower, faster = ([x for x in rows if _sign(x[2]["end_to_end"][EVERY]) == way] for way in (1, -1))
    text = (
        f"{rule} told p-hat for q: {changed} of rounds change their length ({visited} of those visited); end "
        f"to end at batch 1 acting on q is slower beyond its interval in {len(slower)} and faster in "
        f"{len(faster)} of {len(rows)} drafters x costs"
    )
    ends = [max(slower, key=_value, default=None), min(faster, key=_value, default=None)]
    shown = [
        f"{told(row['end_to_end'][EVERY], 1, '%')} for {name} under {cost}"
        for cost, name, row in (e for e in ends if e is not None)
    ]
    text += f" (at the ends, time by q over by p-hat: {listed(shown)})." if shown else "."
    # p-hat is no better a forecast of a drafter that is calibrated.
    better = [d for d in found["drafters"] if _sign(_kept(found, d, MAP)["spared"]) > 0]
    odd = dict.fromkeys(name for _, name, _ in faster if name in better)
    if odd:
        text += f" With {listed(odd)} p-hat is the better forecast, and yet the rule does better by q."
    return text


def _single(found: dict[str, Any]) -> str:
    every = [x for x in tables.examples(found) if x[2]["rule"] == EXACT]
    if not every:
        return ""
    cost, drafter, one = max(every, key=lambda x: float(x[2]["lost"]))
    wrong = [d for d in found["drafters"] if _sign(cell_of(found, d, EVERY, "all")["bias"])]
    text = (
        "Single rounds, costs affine and all else as the theory has it, worked out on fractions: with "
        f"{drafter} under {cost} the exact rule submits {one['length_q']} by q and {one['length_p']} by "
        f"p-hat (prompt {one['prompt']}, position {one['position']}), and acting on q forgoes "
        f"{one['lost']:.1f}% of the expected tokens a second."
    )
    if wrong:
        text += (
            f" So the theory needs its Assumption 3.7, which is false of {listed(wrong)} over all prompts."
        )
    return text


def _value(row: tuple[str, str, dict[str, Any]]) -> float:
    return float(row[2]["end_to_end"][EVERY][0])


def _sign(figure: Sequence[float | None]) -> int:
    """1 or -1 where the interval leaves out 0."""
    _, low, high = figure
    if low is None or high is None:
        return 0
    return 1 if low > 0 else -1 if high < 0 else 0


P_HAT = (
    "q is the drafter's confidence, p-hat the acceptance of such a confidence at such a place on the other "
    "half of the prompts (isotonic, by stretch of the block; not fitted again for each draw)"
)
ACCEPTED = "A token counts where all before it in its block were accepted"
SCORES = (
    "ECE over ten bins of equal counts errs upward; 'by chance' is about what a calibrated drafter would "
    "show. Miscalibration - discrimination + uncertainty is the Brier score (against the isotonic map of the "
    "same tokens)"
)


def parts(found: dict[str, Any], figures: Path, said: str) -> Iterator[Picture | Grid]:
    if not found["drafters"]:
        return
    prompts = listed(f"{n} of {task}" for task, n in found["prompts"].items())
    over = f"Prompts: {prompts}; intervals are 95% over draws of prompts. {said}."
    save(figures_of.reliability(found), figures / "calibration-reliability.png")
    yield Picture(
        "calibration-reliability.png",
        f"Confidence against the share accepted by place in the block, blocks from every position. "
        f"{ACCEPTED}. Ten bins of equal counts; stretches with fewer than {figures_of.FEW} tokens are left "
        f"out. No cost enters. {over}",
    )
    save(figures_of.by_place(found), figures / "calibration-places.png")
    yield Picture(
        "calibration-places.png",
        f"Bias, Brier score and AUROC along the block. {ACCEPTED}. Filled: blocks from every position; open: "
        f"from where cycles begin under {found['rule']}, as far as they are accepted. A drafter of one token "
        "at a time says the same of a token whatever its place, so what moves along the block is which "
        f"tokens get there. No cost enters. {over}",
    )
    yield Grid(f"Scores by task and place. {ACCEPTED}. {SCORES}. {over}", *tables.scores(found), folded=True)
    yield Grid(
        "What is left after calibration on the other half of the prompts, all places; spared is the Brier "
        f"score less than without, paired. {ACCEPTED}. {over}",
        *tables.left(found),
    )
    if any(c["drafters"] for c in found["acting"].values()):
        labels = "; ".join(f"cost {n}: {c['label']}" for n, c in found["acting"].items() if c["drafters"])
        yield from _acting(found, figures, f"{labels}. {over}")


def _acting(found: dict[str, Any], figures: Path, over: str) -> Iterator[Picture | Grid]:
    save(figures_of.changes(found), figures / "calibration-changes.png")
    yield Picture(
        "calibration-changes.png",
        f"How much longer lengths are when rules are told p-hat for q, over every position. {P_HAT}. {over}",
    )
    save(figures_of.end_to_end(found), figures / "calibration-end-to-end.png")
    yield Picture(
        "calibration-end-to-end.png",
        f"Time a token at batch 1 told q over told p-hat; right of 0 acting on q is slower. {P_HAT}; fitted "
        f"at every position, or where cycles begin under the rule told q. Rows of drafters without a price "
        f"are empty. {over}",
    )
    yield Grid(
        "Rounds whose length changes, %, and expected tokens a second under p-hat that q's length forgoes, % "
        f"(below 0: the rule does better on the wrong numbers). {P_HAT}, here fitted at every position. All "
        f"that is drafted is paid for. {over}",
        *tables.rules(found),
        folded=True,
    )
    yield Grid(
        "The same where all else is as LibraSpec's theory has it: T(d) = T0 + c d, T0 and c above 0, a line "
        "through the cost of cycles that draft and submit 1 to D tokens, in whole microseconds; 1 + S_1 + .. "
        f"+ S_d tokens; only what is submitted is paid for. {P_HAT}. {over}",
        *tables.theory(found),
        folded=True,
    )
    yield Grid(
        "Single rounds to work out by hand: q and p-hat of places 1, 2, .. as far as the rule looks, T0 and "
        "c in microseconds. All conditions of the theory hold but q = p: an affine cost with a fixed part, "
        "gains that are sums of products from place 1, and the bonus token. Lengths and tokens a second, "
        "(1 + S_1 + .. + S_d) / (T0 + c d) with S of p-hat, were worked out on fractions. Of each cost and "
        "rule the round that loses most, among those of 1 to 8 tokens if there are any. The exact rule's "
        "length is the best one, so what it loses is the confidence's doing; Algorithm 1 (alpha as the paper "
        "sets it, 2.2) is not best by p-hat either, and floors: it can lose by a small change. "
        f"{over}",
        *tables.by_hand(found),
        folded=True,
    )
