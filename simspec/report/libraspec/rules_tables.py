"""Tables of all length rules."""

from __future__ import annotations

from typing import Any

from simspec.compare.lengths import OURS, TUNED
from simspec.report.words import NONE, span

REFERENCES = {
    "best static": "best_static",
    "tuned static": "tuned_static",
    "ours": "ours",
    "myopic-expected": "myopic-expected",
    "myopic-hindsight": "myopic-hindsight",
    "long-run-expected": "long-run-expected",
    "long-run-hindsight": "long-run-hindsight",
    "bound": "lower_bound",
}
DEVIATIONS = {
    "expected": "myopic-expected",
    "hindsight": "myopic-hindsight",
    "long_run_expected": "long-run-expected",
    "long_run_hindsight": "long-run-hindsight",
    "lower_bound": "dynamic program",
}


def rival(rule: str) -> bool:
    """Whether a rule is none of the static lengths, which have a verdict of their own."""
    return not rule.startswith("static-") and rule != TUNED


def verdicts(cost: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    rows = []
    for study in cost["studies"]:
        of = study["verdict"]
        rows.append(
            [
                str(study["batch"]),
                study["drafter"] + (" (fastest)" if study["fastest"] else ""),
                study["best_static"].removeprefix("static-"),
                _percent(of, "over_static"),
                _percent(of, "over_tuned"),
                ", ".join(f"{w['rule']} {_percent(w, 'by')}" for w in of["slower_than"]) or "none",
                f"{of['faster_than']} of {of['of']}",
                _share(of, "closed"),
                _share(of, "closed_by_oracle"),
                _share(of, "closed_by_told"),
                _share(of, "left_to_planner"),
            ]
        )
    header = ["batch", "drafter", "best static", "over best static, %", "over tuned static, %"]
    header += ["slower than", "faster than", "closed", "by the oracle", "by ours told acceptance"]
    return [*header, "left"], rows


def over_ours(cost: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    studies = cost["studies"]
    names = list(dict.fromkeys(n for s in studies for kind in ("rules", "oracles") for n in s[kind]))
    header = ["rule", *(f"{s['batch']}, {s['drafter']}" for s in studies)]
    rows = []
    for name in names:
        cells = [s["rules"].get(name) or s["oracles"].get(name) for s in studies]
        oracle = "" if name in studies[0]["rules"] else "oracle "
        rows.append([oracle + name, *(NONE if c is None else _percent(c, "regret_ours") for c in cells)])
    return header, [row for row in rows if row[0] != OURS]


def everything(study: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    """The fastest first."""
    told = [(n, r) for n, r in study["rules"].items()]
    told += [(f"oracle {n}", r) for n, r in study["oracles"].items()]
    rows = []
    for name, r in sorted(told, key=lambda each: float(each[1]["seconds_per_token"])):
        row = [name, f"{1000 * r['seconds_per_token']:.3f}", _span(r, "seconds_per_token", 1000, 3)]
        row += [_percent(r, f"regret_{key}") for key in REFERENCES.values()]
        row += [_share(r, "gap_closed"), f"{r['mean_length']:.2f}", f"{r['mean_drafted']:.2f}"]
        row += [NONE if r.get(f"mad_{key}") is None else f"{r[f'mad_{key}']:.2f}" for key in DEVIATIONS]
        rows.append(row)
    header = ["rule", "ms/token", "95%", *(f"over {r}" for r in REFERENCES), "closed", "submitted", "drafted"]
    return [*header, *(f"MAD {d}" for d in DEVIATIONS.values())], rows


def _percent(of: dict[str, Any], name: str) -> str:
    value = of[name]
    if value is None:
        return NONE
    return f"{value:+.1f}" + (f" ({_span(of, name, 1, 1)})" if of[f"{name}_interval"][0] is not None else "")


def _share(of: dict[str, Any], name: str) -> str:
    value = of[name]
    if value is None:
        return NONE
    return f"{value:.2f}" + (f" ({_span(of, name, 1, 2)})" if of[f"{name}_interval"][0] is not None else "")


def _span(of: dict[str, Any], name: str, times: float, digits: int) -> str:
    return span([None if v is None else times * v for v in of[f"{name}_interval"]], digits)
