"""Documents of experiments, written whole or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from simspec.errors import BadInput


def write_json(path: Path, document: dict[str, Any]) -> None:
    """Write ``document``; what stood at ``path`` stays until the new one is complete."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".writing")
    with partial.open("wb") as file:
        file.write(msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n")
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)


class Pieces:
    """Finished pieces of a long measurement, a JSON file each, so that a run that was stopped goes on."""

    def __init__(self, folder: Path, mark: str) -> None:
        """Begin, or go on with what ``folder`` holds.

        Args:
            mark: a hash of all that the pieces depend on.

        Raises:
            BadInput: when ``folder`` holds pieces of something else.
        """
        self.folder = folder
        found = folder / "mark.json"
        if not found.exists():
            write_json(found, {"mark": mark})
        if json.loads(found.read_text()).get("mark") != mark:
            raise BadInput("holds pieces of another measurement", where=folder, hint="move the folder away")

    def make(self, name: str, build: Callable[[], Any]) -> Any:
        """The piece ``name``, built unless it is there; as JSON has it, either way."""
        path = self.folder / f"{name}.json"
        if not path.exists():
            write_json(path, {"piece": build()})
        return json.loads(path.read_text())["piece"]

    def like(self, begin: str, end: str = "") -> list[Any]:
        """Pieces by how their names begin and end, in the order of their names."""
        paths = sorted(self.folder.glob(f"{begin}*{end}.json"))
        return [json.loads(path.read_text())["piece"] for path in paths]


def remove_pieces(folder: Path) -> None:
    """Delete the pieces in ``folder``, once what they make up is written."""
    for path in folder.glob("*.json"):
        path.unlink()
    folder.rmdir()
