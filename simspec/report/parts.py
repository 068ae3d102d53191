"""What a page is made of."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
import msgspec
from markupsafe import Markup

from simspec.report.folder import MARK


@dataclass(frozen=True)
class Picture:
    """A figure's file and what stands under it."""

    file: str
    caption: str


@dataclass(frozen=True)
class Grid:
    """A table for the page."""

    caption: str
    header: list[str]
    rows: list[list[str]]
    folded: bool = False


def template(name: str) -> jinja2.Template:
    """A page's template; it is given the mark by which a report is known."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("simspec.report", ""),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(name, globals={"mark": Markup(MARK)})


def write_json(path: Path, document: dict[str, Any]) -> None:
    """The numbers beside a page, one document, keys in their order."""
    path.write_bytes(msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n")
