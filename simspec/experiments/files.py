"""Documents of experiments, written whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec


def write_json(path: Path, document: dict[str, Any]) -> None:
    """Write ``document``; what stood at ``path`` stays until the new one is complete."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".writing")
    with partial.open("wb") as file:
        file.write(msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n")
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)
