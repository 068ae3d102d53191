"""A run's folder: its tables and figures appear all at once or not at all."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from simspec.errors import BadInput

FIGURES = "figures.json"


@contextmanager
def appearing(folder: Path) -> Iterator[Path]:
    """A folder to write in; becomes ``folder`` when the block ends well, and is gone otherwise.

    Raises:
        BadInput: when ``folder`` holds something already, or cannot be written.
    """
    target = folder.absolute()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    except OSError as error:
        raise BadInput(f"cannot be written: {error.strerror}", where=folder) from error
    try:
        yield partial
        check_new(folder)  # now, not before: the work took a while
        partial.chmod(0o755)  # mkdtemp keeps others out
        try:
            partial.replace(target)
        except OSError as error:
            raise BadInput(f"cannot be written: {error.strerror}", where=folder) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def check_new(folder: Path) -> None:
    """Refuse a folder that is there and holds something."""
    if folder.is_symlink() or (folder.exists() and (not folder.is_dir() or any(folder.iterdir()))):
        raise BadInput("is there already", where=folder, allowed="a new or empty folder", hint="move it away")
