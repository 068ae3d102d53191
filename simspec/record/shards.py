"""Finished pieces of a long run, so that one that was stopped goes on where it was."""

from __future__ import annotations

import errno
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from simspec.calibration.forwards import out_of_memory
from simspec.errors import BadInput
from simspec.tables import Table

Progress = Callable[[str], None]

_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def going_on(folder: Path, doing: str) -> Iterator[None]:
    """Turn a full disk and a full memory into one refusal that says what is kept in ``folder``."""
    try:
        yield
    except OSError as error:
        if error.errno not in _DISK_FULL:
            raise
        raise BadInput(
            f"no space left while {doing}", where=folder, hint=f"make room; {_kept(folder)}"
        ) from error
    except (RuntimeError, MemoryError) as error:
        if not out_of_memory(error):
            raise
        raise BadInput(
            f"out of memory while {doing}",
            where=folder,
            hint=f"free some, or choose a device with more; {_kept(folder)}",
        ) from error


def _finished(folder: Path) -> list[Path]:
    return sorted(p for p in folder.iterdir() if p.is_dir() and p.suffix != ".writing")


def _kept(folder: Path) -> str:
    return f"{len(_finished(folder))} finished pieces are kept there, and the same command goes on from them"


class Shards:
    """Pieces of a run, each a folder of tables that appears by one rename."""

    def __init__(self, folder: Path, identity: str, tables: tuple[Table, ...], progress: Progress | None):
        """Begin, or go on with what ``folder`` holds.

        Args:
            identity: a hash of all that the pieces depend on, such as the recipe.
            tables: the tables that pieces may hold.
            progress: called with lines to show.

        Raises:
            BadInput: when ``folder`` holds pieces of something else.
        """
        self.folder = folder
        self.known = tables
        self.progress = progress
        folder.mkdir(parents=True, exist_ok=True)
        mark = folder / "recipe.sha256"
        partial = folder / "recipe.writing"
        partial.unlink(missing_ok=True)
        if not any(folder.iterdir()):
            with going_on(folder, "starting"):
                partial.write_text(identity + "\n")
                partial.replace(mark)
        found = mark.read_text().strip() if mark.exists() else "none"
        if found != identity:
            raise BadInput(
                f"holds shards of another recipe or machine ({found[:12]})",
                where=folder,
                hint="finish that run with its own recipe, or move the folder away",
            )
        for leftover in folder.glob("*.writing"):
            shutil.rmtree(leftover)

    def make(self, name: str, build: Callable[[], dict[str, pa.Table]], label: str) -> None:
        """Build the piece ``name`` unless it is there already.

        Raises:
            BadInput: when memory or the disk is full; what was finished before is kept.
        """
        final = self.folder / name
        if final.exists():
            self._show(f"{label}: found")
            return
        partial = self.folder / f"{name}.writing"
        begun = time.perf_counter()
        try:
            with going_on(self.folder, f"making {label}"):
                tables = build()
                seconds = time.perf_counter() - begun
                partial.mkdir()
                for table_name, table in tables.items():
                    pq.write_table(table, partial / f"{table_name}.parquet")
                (partial / "seconds").write_text(f"{seconds:.3f}\n")
                partial.replace(final)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise
        self._show(f"{label}: {seconds:.1f} s")

    def _show(self, line: str) -> None:
        if self.progress:
            self.progress(line)

    def tables(self) -> dict[str, pa.Table]:
        """All pieces put together, in the order of their names."""
        parts: dict[str, list[pa.Table]] = {t.name: [] for t in self.known}
        for path in (p for shard in _finished(self.folder) for p in sorted(shard.glob("*.parquet"))):
            parts[path.stem].append(pq.read_table(path))
        return {
            t.name: pa.concat_tables(parts[t.name]) if parts[t.name] else t.schema.empty_table()
            for t in self.known
        }

    def seconds(self) -> dict[str, float]:
        """What each piece took to build, by its name."""
        return {shard.name: float((shard / "seconds").read_text()) for shard in _finished(self.folder)}

    def remove(self) -> None:
        """Delete all pieces, once what they make up is written."""
        shutil.rmtree(self.folder)
