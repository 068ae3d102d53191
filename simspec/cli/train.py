"""``simspec train``: make a drafter for a target, from the target's own texts."""

from __future__ import annotations

import sys
from pathlib import Path

from simspec.errors import BadInput


def train(recipe: Path, folder: Path = Path("~/.cache/simspec")) -> None:
    """Train the drafter of a recipe; a recording can name its folder as a model's source.

    The target's texts are written first, unless the folder holds them. A run that was stopped goes
    on where it was. Needs the extra ``record`` (torch). The drafter's folder gets loss.csv and
    held-out.csv as it goes, and curves.png of both at the end.

    Parameters
    ----------
    recipe
        The TOML recipe, such as calibrate/student-4.toml.
    folder
        Where texts, checkpoints and drafters lie, each drafter in a folder of its name.
    """
    try:
        from simspec.training.session import train as carry_out
    except ImportError as error:
        raise BadInput(f"training needs {error.name}", hint="pip install 'simspec[record]'") from error
    made = carry_out(recipe, folder.expanduser(), lambda line: print(line, file=sys.stderr, flush=True))
    from simspec.report.training_curves import draw_curves

    print(f"{draw_curves(made)}: drawn", file=sys.stderr)
    print(f"{made}: done", file=sys.stderr)
