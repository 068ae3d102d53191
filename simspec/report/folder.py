"""A verb's folder: it appears whole or not at all, and replaces nothing but what that verb wrote."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from simspec.errors import BadInput

PAGE = "index.html"
FIGURES = "figures"
RUN = "figures.json"
# In every page's head: how a report is known again.
MARK = '<meta name="generator" content="simspec report">'


@dataclass(frozen=True)
class Output:
    """What a verb writes into its folder.

    Attributes:
        verb: of the command line.
        files: patterns of the files, by their paths in the folder.
        known_by: the file by which its folder is known again.
        mark: what stands near that file's beginning.
    """

    verb: str
    files: tuple[str, ...]
    known_by: str = PAGE
    mark: str = MARK

    def strange(self, folder: Path) -> str | None:
        """The first thing in a folder that the verb does not write there; None without one."""
        folders = {Path(pattern).parent for pattern in self.files}
        for path in sorted(folder.rglob("*")):
            name = path.relative_to(folder)
            ours = any(name.match(p) and len(name.parts) == len(Path(p).parts) for p in self.files)
            if path.is_symlink() or not (name in folders if path.is_dir() else ours):
                return name.as_posix()
        return None


REPORT = Output("report", (PAGE, "rank.json", "lengths.json", f"{FIGURES}/*.png"))
LEDGER = Output("check", (PAGE, "ledger.json", f"{FIGURES}/*.png"))
# A document each, named after its study.
SPECROUTER_STUDIES = (
    "ranking",
    "measured",
    "estimates",
    "sensitivity",
    "routing",
    "pool",
    "table2",
    "ablations",
)
LIBRASPEC_STUDIES = (
    "rules",
    "calibration",
    "theorem",
    "sweeps",
    "batches",
    "trees",
    "case",
    "sampling",
)


def _laboratory(verb: str, studies: tuple[str, ...]) -> Output:
    return Output(verb, (PAGE, *(f"{study}.json" for study in studies), f"{FIGURES}/*.png"))


SPECROUTER = _laboratory("specrouter", SPECROUTER_STUDIES)
LIBRASPEC = _laboratory("libraspec", LIBRASPEC_STUDIES)
SWEEP = Output("sweep", (PAGE, "sweep.json", f"{FIGURES}/*.png"))
TABLES = ("steps.parquet", "requests.parquet", "emissions.parquet", "outages.parquet")
SIMULATION = Output("simulate", (RUN, *TABLES), RUN, '"format": "simspec ')


def check_free(folder: Path, output: Output) -> None:
    """Refuse a folder that holds anything but an earlier output of the same verb.

    Raises:
        BadInput: naming what is in the way.
    """
    allowed = f"a new or empty folder, or one that simspec {output.verb} wrote, to replace"
    try:
        folder.lstat()
    except FileNotFoundError:
        return
    except OSError as error:
        raise BadInput(f"cannot be a folder: {error.strerror}", where=folder) from error
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise BadInput("is no folder", where=folder, hint="name a new one")
    if not folder.is_dir() or not any(folder.iterdir()):
        return
    strange = output.strange(folder)
    if strange is not None:
        raise BadInput(
            f"holds {strange!r}, which simspec {output.verb} does not write", where=folder, allowed=allowed
        )
    known = folder / output.known_by
    if not known.is_file() or output.mark not in known.read_text(encoding="utf-8", errors="replace")[:1000]:
        raise BadInput(
            f"is not empty and its {output.known_by} was not made by simspec {output.verb}",
            where=folder,
            allowed=allowed,
        )


@contextmanager
def replacing(folder: Path, output: Output) -> Iterator[Path]:
    """A folder beside ``folder`` to write in; takes its place when the block ends well, else it is gone.

    Raises:
        BadInput: when ``folder`` is in use for something else, or cannot be written.
    """
    check_free(folder, output)
    target = folder.resolve()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        beside = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    except OSError as error:
        raise BadInput(f"cannot be written: {error.strerror}", where=folder) from error
    partial, old = beside / "new", beside / "old"
    try:
        partial.mkdir()
        yield partial
        check_free(folder, output)  # the work took a while
        _swap(partial, target, old)
        shutil.rmtree(old, ignore_errors=True)
    except OSError as error:
        raise BadInput(f"cannot be written: {error.strerror or error}", where=folder) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        with suppress(OSError):  # what was there before stays, should it not have found its way back
            beside.rmdir()


def _swap(partial: Path, target: Path, old: Path) -> None:
    """A full folder cannot be renamed over, so the old one steps aside first."""
    if target.exists():
        target.rename(old)
    try:
        partial.rename(target)
    except BaseException:
        if old.exists():
            old.rename(target)
        raise
