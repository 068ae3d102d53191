"""A report's folder: it appears whole or not at all, and nothing that is not a report is replaced."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from simspec.errors import BadInput

PAGE = "index.html"
FIGURES = "figures"
NAMES = frozenset({PAGE, "rank.json", "lengths.json", "ledger.json", FIGURES})
# In every page's head: how a report is known again.
MARK = '<meta name="generator" content="simspec report">'


def check_free(folder: Path) -> None:
    """Refuse a folder that holds anything but a report made by simspec.

    Raises:
        BadInput: naming what is in the way.
    """
    if not os.path.lexists(folder):
        return
    if folder.is_symlink() or not folder.is_dir():
        raise BadInput("is no folder", where=folder, hint="name a new one")
    held = {path.name for path in folder.iterdir()}
    if not held:
        return
    strange = sorted(held - NAMES)
    if strange:
        raise BadInput(
            f"holds {strange[0]!r}, which no report of simspec's has",
            where=folder,
            allowed="a new or empty folder, or a report to replace",
        )
    page = folder / PAGE
    if not page.is_file() or MARK not in page.read_text(encoding="utf-8", errors="replace")[:1000]:
        raise BadInput(
            f"is not empty and its {PAGE} was not made by simspec report",
            where=folder,
            allowed="a new or empty folder, or a report to replace",
        )


@contextmanager
def replacing(folder: Path) -> Iterator[Path]:
    """A folder beside ``folder`` to write in; takes its place when the block ends well.

    Raises:
        BadInput: when ``folder`` is in use for something else, or cannot be written.
    """
    check_free(folder)
    folder = folder.absolute()
    partial = folder.with_name(folder.name + ".writing")
    try:
        if partial.exists():
            strange = sorted({path.name for path in partial.iterdir()} - NAMES)
            if strange:
                raise BadInput(f"holds {strange[0]!r}", where=partial, hint="move it away")
            shutil.rmtree(partial)
        (partial / FIGURES).mkdir(parents=True)
    except OSError as error:
        raise BadInput(f"cannot be written: {error.strerror}", where=partial) from error
    try:
        yield partial
        check_free(folder)  # the work took a while
        _swap(partial, folder)
    except OSError as error:
        raise BadInput(f"cannot be written: {error.strerror}", where=folder) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _swap(partial: Path, folder: Path) -> None:
    """A full folder cannot be renamed over, so the old report steps aside first."""
    old = folder.with_name(folder.name + ".replaced")
    if not folder.exists() or not any(folder.iterdir()):
        partial.replace(folder)
        return
    folder.rename(old)
    try:
        partial.rename(folder)
    except OSError:
        old.rename(folder)
        raise
    shutil.rmtree(old)
