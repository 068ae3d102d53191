"""Run the cells of a sweep in processes; what comes out does not depend on how many."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from joblib import Parallel, delayed

from simspec.provenance import code_hash
from simspec.sweep.cell import Figures, carry_out, key_of
from simspec.sweep.grid import Cell
from simspec.sweep.kept import Kept

Progress = Callable[[str], None]


def run_all(
    cells: Sequence[Cell], until_seconds: float | None, kept: Kept, jobs: int, say: Progress
) -> list[Figures]:
    """Figures of every cell, in their order; cells that are kept already are not run again."""
    code = code_hash()
    keys = [key_of(cell, until_seconds, code) for cell in cells]
    wanted = [i for i, key in enumerate(keys) if key not in kept.found]
    if len(wanted) < len(cells):
        say(f"{len(cells) - len(wanted)} of {len(cells)} cells are there already")
    done: Iterable[tuple[int, Figures]]
    if jobs == 1 or len(wanted) < 2:
        done = (_numbered(i, cells[i], until_seconds) for i in wanted)
    else:
        done = Parallel(n_jobs=jobs, return_as="generator_unordered")(
            delayed(_numbered)(i, cells[i], until_seconds) for i in wanted
        )
    for count, (i, figures) in enumerate(done, 1):
        kept.keep(keys[i], figures)
        say(f"{cells[i].words} ({count} of {len(wanted)})")
    return [kept.found[key] for key in keys]


def _numbered(i: int, cell: Cell, until_seconds: float | None) -> tuple[int, Figures]:
    return i, carry_out(cell, until_seconds)
