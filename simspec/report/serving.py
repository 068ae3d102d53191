"""A load sweep as a page, from the document that ``simspec sweep`` makes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from simspec.report import serving_figures, serving_tables
from simspec.report.folder import FIGURES, PAGE, SWEEP, replacing
from simspec.report.parts import Grid, Picture, template, write_json
from simspec.report.style import drawing, save


def write_sweep(found: dict[str, Any], folder: Path) -> None:
    """Write index.html, sweep.json and figures/ into ``folder``, whole or not at all.

    Raises:
        BadInput: when ``folder`` holds something else, or cannot be written.
    """
    with replacing(folder, SWEEP) as partial, drawing():
        (partial / FIGURES).mkdir()
        write_json(partial / "sweep.json", found)
        text = template("serving.html").render(
            found=found,
            sentences_of_crossings=list(serving_tables.sentences(found)),
            against_load=list(_against_load(found, partial / FIGURES)),
            crossings=list(_crossings(found, partial / FIGURES)),
            assumptions=_assumptions(found),
            provenance=msgspec.json.format(msgspec.json.encode(found["provenance"]), indent=1).decode(),
        )
        (partial / PAGE).write_text(text, encoding="utf-8", newline="\n")


def _against_load(found: dict[str, Any], figures: Path) -> Iterator[Picture | Grid]:
    save(serving_figures.against_load(found), figures / "load.png")
    yield Picture("load.png", "Throughput and latency against load.")
    yield Grid(
        "Every load x policy: means over replications; differences to off are paired, with 95% intervals.",
        *serving_tables.cells_table(found),
        folded=True,
    )
    yield Grid(
        "Where the engine's time went, % of the measured time.",
        *serving_tables.utilisation_table(found),
        folded=True,
    )


def _crossings(found: dict[str, Any], figures: Path) -> Iterator[Picture | Grid]:
    save(serving_figures.gains(found), figures / "gains.png")
    yield Picture(
        "gains.png",
        "Gains over plain decoding; above zero, speculation pays. A crossover's mark stands where the "
        "gain, interpolated linearly between loads, is zero; the band through it is its interval.",
    )
    yield Grid(
        "Crossovers. The margin is what a pass gains in tokens less what it costs more in time, before and "
        "after; of its change, the term that turns it takes the most.",
        *serving_tables.crossings_table(found),
    )
    for view, words in (
        ("requests", "Time of a request from its first token to its end, a token after the first, by part."),
        ("engine", "All time of the engine, an emitted token, by part: the inverse of the throughput."),
    ):
        save(serving_figures.decomposition(found, view), figures / f"{view}.png")
        yield Picture(f"{view}.png", words)


def _assumptions(found: dict[str, Any]) -> Grid | None:
    if not found["assumptions"] or not found["assumptions"]["fitted"]:
        return None
    return Grid(
        "What assumptions about verdicts do to the crossovers and to p99 TPOT; behind each, its paired "
        "difference to replay in %, with a 95% interval.",
        *serving_tables.assumptions_table(found),
    )
