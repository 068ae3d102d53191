"""A page of studies, each a section, from their documents alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from simspec.report.folder import FIGURES, PAGE, Output, replacing
from simspec.report.parts import Grid, Picture, template, write_json
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


@dataclass(frozen=True)
class Laboratory:
    """What all pages of one verb share.

    Attributes:
        title, heading, intro: words of the window, the page's head and its first sentences.
        sections: by study, in the page's order.
    """

    output: Output
    title: str
    heading: str
    intro: str
    sections: dict[str, Section]

    def write(
        self,
        documents: dict[str, dict[str, Any]],
        head: dict[str, Any],
        folder: Path,
        provenance: dict[str, object],
    ) -> None:
        """Write index.html, a JSON file a study, and figures/ into ``folder``, whole or not at all.

        Args:
            documents: by study, as :class:`simspec.compare.kept.Kept` has them.
            head: ``name``, ``origin``, ``target``, ``prompts`` of the trace, and ``draws``.

        Raises:
            BadInput: when ``folder`` holds something else, or cannot be written.
        """
        said = f"{'SYNTHETIC' if head['origin'] == 'synthetic' else head['origin']} behaviour"
        with replacing(folder, self.output) as partial, drawing():
            (partial / FIGURES).mkdir()
            shown = []
            for name, document in documents.items():
                write_json(partial / f"{name}.json", document)
                section, found = self.sections[name], document["found"]
                parts = list(section.parts(found, partial / FIGURES, said))
                shown.append((name, section.title, section.findings(found), parts))
            text = template("laboratory.html").render(
                title=self.title,
                heading=self.heading,
                intro=self.intro,
                head=head,
                sections=shown,
                provenance=msgspec.json.format(msgspec.json.encode(provenance), indent=1).decode(),
            )
            (partial / PAGE).write_text(text, encoding="utf-8", newline="\n")
