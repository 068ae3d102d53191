"""The page of SpecRouter's studies, from their documents alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from simspec.report.folder import FIGURES, PAGE, SPECROUTER, replacing
from simspec.report.parts import Grid, Picture, template, write_json
from simspec.report.specrouter import (
    ablations,
    estimates,
    measured,
    pool,
    ranking,
    routing,
    sensitivity,
    table2,
)
from simspec.report.style import drawing


@dataclass(frozen=True)
class Section:
    """A study's part of the page.

    Attributes:
        title: its heading.
        findings: sentences from what was found.
        parts: figures, drawn into a folder, and tables; told in one sentence whose behaviour it is.
    """

    title: str
    findings: Callable[[dict[str, Any]], list[str]]
    parts: Callable[[dict[str, Any], Path, str], Iterator[Picture | Grid]]


SECTIONS = {
    "ranking": Section("Does the cost model pick the fastest chain?", ranking.findings, ranking.parts),
    "measured": Section(
        "Is the chain of lowest predicted time the chain of lowest measured time?",
        measured.findings,
        measured.parts,
    ),
    "estimates": Section(
        "How good are estimates of acceptance, and how fast do they follow?",
        estimates.findings,
        estimates.parts,
    ),
    "sensitivity": Section(
        "What do noise, correlation and the slope of cost do to its picks?",
        sensitivity.findings,
        sensitivity.parts,
    ),
    "routing": Section("What does picking a chain every cycle gain?", routing.findings, routing.parts),
    "pool": Section("Can the pool grow without retuning?", pool.findings, pool.parts),
    "table2": Section("Where would the published speedups be reached?", table2.findings, table2.parts),
    "ablations": Section(
        "What do intermediate verification and the validity mask cost or save?",
        ablations.findings,
        ablations.parts,
    ),
}


def write_specrouter(
    documents: dict[str, dict[str, Any]],
    head: dict[str, Any],
    folder: Path,
    provenance: dict[str, object],
) -> None:
    """Write index.html, a JSON file a study, and figures/ into ``folder``, whole or not at all.

    Args:
        documents: by study, as :class:`simspec.compare.specrouter.kept.Kept` has them.
        head: ``name``, ``origin``, ``target``, ``prompts`` of the trace, and ``draws``.

    Raises:
        BadInput: when ``folder`` holds something else, or cannot be written.
    """
    said = f"{'SYNTHETIC' if head['origin'] == 'synthetic' else head['origin']} behaviour"
    with replacing(folder, SPECROUTER) as partial, drawing():
        (partial / FIGURES).mkdir()
        sections = []
        for name, document in documents.items():
            write_json(partial / f"{name}.json", document)
            section, found = SECTIONS[name], document["found"]
            shown = list(section.parts(found, partial / FIGURES, said))
            sections.append((name, section.title, section.findings(found), shown))
        text = template("specrouter.html").render(
            head=head,
            sections=sections,
            provenance=msgspec.json.format(msgspec.json.encode(provenance), indent=1).decode(),
        )
        (partial / PAGE).write_text(text, encoding="utf-8", newline="\n")
