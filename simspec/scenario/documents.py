"""What ``simspec simulate`` answers: one document for each of the things it can be asked.

All but the figures of the machine are the same for the same files and seeds, on any machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from simspec.errors import BadInput
from simspec.scenario.build import Built
from simspec.scenario.paired import Progress, assumptions, luck, replicate, replicated
from simspec.scenario.run import describe, machine_figures, run

SIMULATION = "simspec simulation 1"
COMPARISON = "simspec comparison 1"
ASSUMPTIONS = "simspec assumptions 1"


def simulation(
    built: Built, seeds: Sequence[int], until_seconds: float | None, folder: Path | None, progress: Progress
) -> tuple[dict[str, Any], dict[str, Any]]:
    """One scenario: the figures of its first seed; over all seeds where there are several.

    Returns:
        the document, and the machine's figures of the first run.
    """
    _refuse_no_luck([built], seeds)
    first = run(built, seeds[0], until_seconds=until_seconds, folder=folder)
    progress(f"{built.scenario.name}, seed {seeds[0]}: {first.wall_seconds:.1f} s")
    found = {"format": SIMULATION, "seed": seeds[0], "until_seconds": _until(built, until_seconds)}
    found |= first.figures | describe(built)
    spent = machine_figures(first)
    if len(seeds) > 1:
        runs = [first, *replicate(built, seeds[1:], until_seconds, progress)]
        found["replications"] = {
            "seeds": list(seeds),
            "drawn": luck(built),
            "figures": replicated(runs).as_json(),
        }
    return found, spent


def comparison(
    first: Built, second: Built, seeds: Sequence[int], until_seconds: float | None, progress: Progress
) -> dict[str, Any]:
    """Two scenarios under the same seeds: ``differences`` are the second's figures less the first's."""
    _refuse_no_luck([first, second], seeds)
    one, other = (replicated(replicate(b, seeds, until_seconds, progress)) for b in (first, second))
    return {
        "format": COMPARISON,
        "seeds": list(seeds),
        "until_seconds": [_until(built, until_seconds) for built in (first, second)],
        "scenarios": [
            {**describe(built), "drawn": luck(built), "figures": found.as_json()}
            for built, found in ((first, one), (second, other))
        ],
        "differences": other.less(one),
    }


def under_assumptions(
    built: Built, seeds: Sequence[int], until_seconds: float | None, progress: Progress
) -> dict[str, Any]:
    """One scenario under replay and under what is left of its record; ``differences`` are to replay."""
    variants, fitted = assumptions(built)
    found = {
        name: replicated(replicate(variant, seeds, until_seconds, progress, name))
        for name, variant in variants.items()
    }
    return {
        "format": ASSUMPTIONS,
        "seeds": list(seeds),
        "until_seconds": _until(built, until_seconds),
        **describe(built),
        "fitted": {
            "draft_tokens": fitted.length,
            "survival": list(fitted.survival),
            "rate": fitted.rate,
            "emitted_per_pass": fitted.emitted_per_pass,
            "drafted_share": fitted.drafted_share,
        },
        "assumptions": {name: ran.as_json() for name, ran in found.items()},
        "differences": {name: ran.less(found["replay"]) for name, ran in found.items() if name != "replay"},
    }


def _until(built: Built, until_seconds: float | None) -> float | None:
    return built.scenario.until_seconds if until_seconds is None else until_seconds


def _refuse_no_luck(several: list[Built], seeds: Sequence[int]) -> None:
    if len(seeds) > 1 and not any(luck(built) for built in several):
        raise BadInput(
            "nothing is drawn here: every replication would be the same",
            where=several[0].read.path,
            hint="leave --replications out",
        )
