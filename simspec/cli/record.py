"""``simspec record``: run real models once and keep what they did."""

from __future__ import annotations

import sys
from pathlib import Path

from simspec.errors import BadInput


def record(recipe: Path, out: Path) -> None:
    """Record the models of a recipe as a trace.

    A run that was stopped goes on where it was. Needs the extra ``record`` (torch).

    Parameters
    ----------
    recipe
        The TOML recipe, such as calibrate/smollm2-cpu.toml.
    out
        The folder to write; it must not exist yet.
    """
    try:
        from simspec.record.session import record as carry_out
    except ImportError as error:
        raise BadInput(f"recording needs {error.name}", hint="pip install 'simspec[record]'") from error
    manifest = carry_out(
        recipe,
        out,
        ["simspec", "record", recipe.as_posix(), out.as_posix()],
        progress=lambda line: print(line, file=sys.stderr),
    )
    rows = sum(entry.rows for entry in manifest.tables.values())
    print(f"{out}: {rows} rows in {len(manifest.tables)} tables", file=sys.stderr)
