"""Claims on a recorded trace as tables and as a page, from the document of ``simspec check --trace``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from simspec.report.folder import LEDGER, PAGE, replacing
from simspec.report.parts import Grid, template, write_json
from simspec.report.words import NONE, span

Table = tuple[list[str], list[list[str]]]


def summary_table(found: dict[str, Any]) -> Table:
    """Header and rows: how many subjects of each claim came to which verdict."""
    rows = [
        [
            asked["id"],
            asked["words"],
            str(asked["subjects"]),
            ", ".join(f"{many} {verdict}" for verdict, many in asked["verdicts"].items()),
        ]
        for asked in found["summary"]
    ]
    return ["claim", "statement", "subjects", "verdicts"], rows


def tests_table(found: dict[str, Any]) -> Table:
    """Header and rows: every finding that a test decided."""
    rows = [_row(claim) for claim in found["claims"] if claim["family"]]
    header = ["claim", "subject", "verdict", "effect", "95%", "prompts", "p", "p (Holm)", "detectable"]
    return header, rows


def write_data_claims(found: dict[str, Any], folder: Path) -> None:
    """Write index.html and ledger.json into ``folder``, whole or not at all.

    Raises:
        BadInput: when ``folder`` holds something else, or cannot be written.
    """
    with replacing(folder, LEDGER) as partial:
        write_json(partial / "ledger.json", found)
        asked = []
        for one in found["summary"]:
            claims = [claim for claim in found["claims"] if claim["id"] == one["id"]]
            header = ["subject", "verdict", "effect", "95%", "prompts", "p", "p (Holm)", "detectable", "note"]
            rows = [[*_row(claim)[1:], claim["note"]] for claim in claims]
            asked.append((one, claims[0], Grid(claims[0]["statistic"], header, rows)))
        text = template("data_claims.html").render(
            found=found,
            summary=Grid("Verdicts by claim", *summary_table(found)),
            asked=asked,
            provenance=msgspec.json.format(msgspec.json.encode(found["provenance"]), indent=1).decode(),
        )
        (partial / PAGE).write_text(text, encoding="utf-8", newline="\n")


def _row(claim: dict[str, Any]) -> list[str]:
    return [
        claim["id"],
        claim["subject"],
        claim["verdict"],
        NONE if claim["value"] is None else f"{claim['value']:.4g}",
        span(claim["interval"], 3),
        str(claim["n"]),
        NONE if claim["p_value"] is None else f"{claim['p_value']:.2g}",
        NONE if claim["p_adjusted"] is None else f"{claim['p_adjusted']:.2g}",
        NONE if claim["detectable"] is None else f"{claim['detectable']:.2g}",
    ]
