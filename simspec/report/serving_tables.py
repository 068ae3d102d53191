"""Tables of a sweep, from the document that ``simspec sweep`` makes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from simspec.report.words import NONE, listed
from simspec.serving.step import PARTS

Table = tuple[list[str], list[list[str]]]

# A figure's name as readers see it, what it is multiplied by, decimals.
SHOWN = {
    "throughput_tokens_per_second": ("tokens/s", 1.0, 0),
    "tpot_seconds_mean": ("TPOT mean, ms", 1e3, 2),
    "tpot_seconds_p50": ("TPOT p50, ms", 1e3, 2),
    "tpot_seconds_p99": ("TPOT p99, ms", 1e3, 2),
    "ttft_seconds_p99": ("TTFT p99, ms", 1e3, 0),
    "goodput_requests_per_second": ("goodput, req/s", 1.0, 2),
    "rows_per_step": ("rows a step", 1.0, 1),
    "emitted_per_pass": ("emitted a pass", 1.0, 2),
}
SHARES = (*PARTS, "idle")
GAIN_WORDS = {"tpot_seconds_mean": "mean TPOT", "throughput_tokens_per_second": "throughput"}


def cells_table(found: dict[str, Any], shown: Sequence[str] = tuple(SHOWN)) -> Table:
    """Every load x policy, with verdicts as the scenario has them: means over replications.

    Args:
        shown: which of :data:`SHOWN`.
    """
    unit = found["load"]["unit"]
    header = [
        unit,
        "policy",
        *(SHOWN[name][0] for name in shown),
        "TPOT over off, %",
        "tokens/s over off, %",
    ]
    return header, [
        [f"{cell['load']:g}", cell["policy"], *_figures(cell, shown), *_over_off(found, cell)]
        for cell in own(found)
    ]


def utilisation_table(found: dict[str, Any]) -> Table:
    """Shares of the measured time, in %."""
    rows = [
        [f"{cell['load']:g}", cell["policy"]]
        + [_value(cell["figures"][f"utilisation_{part}"]["value"], 100, 1) for part in SHARES]
        for cell in own(found)
    ]
    return [found["load"]["unit"], "policy", *SHARES], rows


def crossings_table(found: dict[str, Any]) -> Table:
    """Where each policy's gain changes sign, and the term that turns it."""
    rows = [
        [
            crossing["policy"],
            GAIN_WORDS[crossing["figure"]],
            crossing_words(found, crossing),
            between(crossing),
            *_because(crossing["because"]),
        ]
        for crossing in found["crossovers"]
        if crossing["verdicts"] == "own"
    ]
    header = ["policy", "gain in", f"crossover, {found['load']['unit']}", "95%", "turned by", "its change"]
    return [*header, "margin", "alone beyond the gain"], rows


def crossing_words(found: dict[str, Any], crossing: dict[str, Any]) -> str:
    """``14.2 (stops paying)`` or ``none in the range: pays at 5 of 6 loads``."""
    if crossing["load"] is None:
        told = (
            f" at {len(crossing['told'])} of {len(found['load']['values'])} loads" if crossing["told"] else ""
        )
        return f"none in the range: {crossing['verdict']}{told}"
    return f"{crossing['load']:.3g} ({crossing['verdict']})"


def between(crossing: dict[str, Any]) -> str:
    """The crossover's interval."""
    low, high = crossing["low"], crossing["high"]
    return NONE if low is None else f"{low:.3g} to {high:.3g}"


def assumptions_table(found: dict[str, Any]) -> Table:
    """What each assumption about verdicts does to the crossovers and to p99 TPOT, beside replay."""
    loads = found["load"]["values"]
    header = ["policy", "verdicts", "crossover, mean TPOT", "95%", "crossover, tokens/s", "95%"]
    header += [f"p99 TPOT at {load:g}" for load in loads]
    rows = []
    for policy in found["assumptions"]["fitted"]:
        for verdicts in found["assumptions"]["verdicts"]:
            row = [policy, "replay" if verdicts == "own" else verdicts]
            for figure in GAIN_WORDS:
                (crossing,) = (
                    c
                    for c in found["crossovers"]
                    if (c["policy"], c["verdicts"], c["figure"]) == (policy, verdicts, figure)
                )
                row += [crossing_words(found, crossing), between(crossing)]
            for cell in of_series(found, policy, verdicts):
                row.append(_tail(found, cell))
            rows.append(row)
    return header, rows


def sentences(found: dict[str, Any]) -> Iterator[str]:
    """What the crossovers say, in words."""
    unit = found["load"]["unit"]
    for crossing in found["crossovers"]:
        if crossing["verdicts"] != "own":
            continue
        policy, gain = crossing["policy"], GAIN_WORDS[crossing["figure"]]
        if crossing["load"] is None:
            told = listed(f"{load:g}" for load in crossing["told"]) or "none"
            yield f"{policy}, {gain}: {crossing_words(found, crossing)} (told from zero at: {told})."
            continue
        span = "" if crossing["low"] is None else f" (95% {between(crossing)})"
        said = f"{policy}, {gain}: {crossing['verdict']} at {crossing['load']:.3g} {unit}{span}."
        why = crossing["because"]
        if why is not None:
            before, after = why["before"], why["after"]
            tokens = f"from {_percent(before['tokens'])} to {_percent(after['tokens'])}"
            said += (
                f" From {crossing['before']:g} to {crossing['after']:g} {unit} the tokens that a pass gains "
            )
            said += f"go {tokens} of a plain pass, its time by "
            costs = (n for n in why["changes"] if n != "tokens")
            said += listed(
                f"{n} from {_percent(before[n])} to {_percent(after[n])}"
                for n in sorted(costs, key=lambda n: abs(why["changes"][n]), reverse=True)[:3]
            )
            said += f": what turns it is {_term(why['term'])}."
            if why["exceeding"]:
                said += f" Alone beyond the gain there: {listed(why['exceeding'])}."
        yield said


def own(found: dict[str, Any]) -> list[dict[str, Any]]:
    """Cells with verdicts as the scenario has them, load by load."""
    return [cell for cell in found["cells"] if cell["verdicts"] == "own"]


def of_series(found: dict[str, Any], policy: str, verdicts: str = "own") -> list[dict[str, Any]]:
    """A policy's cells, by rising load."""
    return [c for c in found["cells"] if (c["policy"], c["verdicts"]) == (policy, verdicts)]


def plain_at(found: dict[str, Any], load: float) -> dict[str, Any]:
    """Plain decoding's cell at a load."""
    (cell,) = (c for c in of_series(found, "off") if c["load"] == load)
    return cell


def _figures(cell: dict[str, Any], shown: Sequence[str]) -> list[str]:
    return [_value(cell["figures"][name]["value"], *SHOWN[name][1:]) for name in shown]


def _over_off(found: dict[str, Any], cell: dict[str, Any]) -> list[str]:
    """Differences to plain decoding, in % of its mean, with their paired intervals."""
    if "differences" not in cell:
        return [NONE, NONE]
    plain = plain_at(found, cell["load"])["figures"]
    return [
        relative(cell["differences"][name], plain[name]["value"])
        for name in ("tpot_seconds_mean", "throughput_tokens_per_second")
    ]


def relative(difference: dict[str, Any], base: float | None) -> str:
    """``-12.3 (-13.0 to -11.6)`` percent."""
    if difference["value"] is None or not base:
        return NONE
    value, low, high = (
        None if difference[end] is None else 100 * difference[end] / base for end in ("value", "low", "high")
    )
    return f"{value:+.1f}" if low is None else f"{value:+.1f} ({low:+.1f} to {high:+.1f})"


def _tail(found: dict[str, Any], cell: dict[str, Any]) -> str:
    name = "tpot_seconds_p99"
    text = _value(cell["figures"][name]["value"], 1e3, 2)
    if "less_own" not in cell:
        return f"{text} ms"
    (base,) = (c for c in of_series(found, cell["policy"]) if c["load"] == cell["load"])
    return f"{text} ms, {relative(cell['less_own'][name], base['figures'][name]['value'])}%"


def _because(why: dict[str, Any] | None) -> list[str]:
    if why is None:
        return [NONE] * 4
    margins = [_percent(why[side]["margin"]) for side in ("before", "after")]
    return [
        why["term"],
        f"{100 * why['changes'][why['term']]:+.1f}%",
        " to ".join(margins),
        listed(why["exceeding"]) or "none",
    ]


def _term(name: str) -> str:
    return "that a pass gains fewer tokens" if name == "tokens" else f"the time of {name}"


def _percent(estimate: dict[str, Any]) -> str:
    return f"{100 * estimate['value']:+.1f}%"


def _value(value: float | None, scale: float, digits: int) -> str:
    return NONE if value is None else f"{scale * value:,.{digits}f}"
