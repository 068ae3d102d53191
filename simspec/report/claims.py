"""The claims ledger as a page, from the document that ``simspec check`` makes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from textwrap import fill
from typing import Any

import msgspec
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from simspec.report.folder import FIGURES, LEDGER, PAGE, replacing
from simspec.report.parts import Picture, template, write_json
from simspec.report.style import COLOURS, LINES, MARKERS, drawing, save, sheet
from simspec.report.words import listed


def write_ledger(found: dict[str, Any], folder: Path, command: list[str]) -> None:
    """Write index.html, ledger.json and figures/ into ``folder``, whole or not at all.

    Raises:
        BadInput: when ``folder`` holds something else, or cannot be written.
    """
    with replacing(folder, LEDGER) as partial, drawing():
        (partial / FIGURES).mkdir()
        write_json(partial / "ledger.json", found)
        pictures = {}
        for claim in found["claims"]:
            if claim["figure"]:
                file = f"{claim['id']}.png"
                save(_figure(claim["figure"]), partial / FIGURES / file)
                pictures[claim["id"]] = Picture(file, f"{claim['id']}: {claim['figure']['title']}")
        counts = Counter(claim["verdict"] for claim in found["claims"])
        text = template("claims.html").render(
            found=found,
            pictures=pictures,
            tried=_tried,
            tally=listed(f"{counts[v]} {v}" for v in ("holds", "refuted", "vacuous") if counts[v]),
            failed=listed(c["id"] for c in found["claims"] if not c["as_expected"]),
            made_by=msgspec.json.format(
                msgspec.json.encode({"command": command, "versions": found["versions"]}), indent=1
            ).decode(),
        )
        (partial / PAGE).write_text(text, encoding="utf-8", newline="\n")


def _tried(claim: dict[str, Any]) -> str:
    """``all 9,056 cases and 300 random ones``."""
    if claim.get("found_by") == "pinned":
        return "the case below"
    said = []
    if claim["cases"]:
        said.append(f"{'all ' if claim['exhaustive'] else ''}{claim['cases']:,} cases")
    if claim["examples"]:
        said.append(f"{claim['examples']:,} random ones" if said else f"{claim['examples']:,} random cases")
    tried = " and ".join(said)
    return f"{tried}, of which {claim['unmet']:,} did not meet the premise" if claim["unmet"] else tried


def _figure(plot: dict[str, Any]) -> Figure:
    """A claim's plot: lines along numbers, or groups of bars."""
    figure = sheet(6.5, 3.4)
    axes = figure.subplots()
    series, x = plot["series"], plot["x"]
    if plot["kind"] == "bars":
        width = 0.8 / len(series)
        for i, (name, values) in enumerate(series.items()):
            places = [j + (i - (len(series) - 1) / 2) * width for j in range(len(x))]
            axes.bar(places, values, width, label=name, color=COLOURS[i % len(COLOURS)])
        names = [str(place) for place in x]
        # Long names side by side would run into one another.
        slanted = sum(map(len, names)) > 45
        axes.set_xticks(
            range(len(x)), names, rotation=35 if slanted else 0, ha="right" if slanted else "center"
        )
        axes.set_ylim(bottom=0)
    else:
        for i, (name, values) in enumerate(series.items()):
            axes.plot(
                x,
                values,
                label=name,
                color=COLOURS[i % len(COLOURS)],
                marker=MARKERS[i % len(MARKERS)],
                linestyle=LINES[i % len(LINES)],
                markersize=4,
            )
        if all(place == int(place) for place in x):
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel(plot["x_label"])
    axes.set_ylabel(plot["y_label"])
    axes.set_title(fill(plot["title"], 72), loc="left")
    if len(series) > 1:
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))  # beside: it hides nothing there
    return figure
