"""Finished studies, kept as they come, so that a run which was stopped goes on where it was."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from simspec.compare.asked import Asked
from simspec.errors import BadInput


def key_of(study: str, asked: Asked, inputs: Mapping[str, str], code: str) -> str:
    """All that a study's findings depend on, as a hash: what is asked, its inputs' hashes, the code's."""
    told = [
        study,
        asked.batches,
        asked.lengths,
        asked.draws,
        asked.seed,
        dict(sorted(inputs.items())),
        code,
    ]
    return hashlib.sha256(msgspec.json.encode(told)).hexdigest()


class Kept:
    """Documents ``<study>.json`` = {format, study, key, found}, looked for in several folders.

    Args:
        verb: whose studies these are.
        begun: where finished studies of this run are kept.
        done: an earlier run's folder; what it holds under the same key need not be worked out again.
    """

    def __init__(self, verb: str, begun: Path, done: Path):
        self.format, self.begun, self.done = f"simspec {verb} 1", begun, done

    def find(self, study: str, key: str) -> dict[str, Any] | None:
        """The document under that key; a file that is broken, or of other inputs, is passed over."""
        for folder in (self.begun, self.done):
            try:
                document = msgspec.json.decode((folder / f"{study}.json").read_bytes())
            except (OSError, msgspec.DecodeError):
                continue
            if (
                isinstance(document, dict)
                and document.get("format") == self.format
                and document.get("study") == study
                and document.get("key") == key
            ):
                return document
        return None

    def keep(self, study: str, key: str, found: dict[str, Any]) -> dict[str, Any]:
        """The document of ``found``, on the disk before this returns.

        Raises:
            BadInput: when the folder cannot be written.
        """
        document = {"format": self.format, "study": study, "key": key, "found": found}
        partial = self.begun / f"{study}.json.writing"
        try:
            self.begun.mkdir(parents=True, exist_ok=True)
            with partial.open("wb") as file:
                file.write(msgspec.json.encode(document))
                file.flush()
                os.fsync(file.fileno())
            partial.replace(self.begun / f"{study}.json")
        except OSError as error:
            raise BadInput(f"cannot be written: {error.strerror}", where=self.begun) from error
        return document

    def forget(self, studies: Mapping[str, object]) -> None:
        """The page is written: what was kept for it goes."""
        for study in studies:
            (self.begun / f"{study}.json").unlink(missing_ok=True)
        if self.begun.is_dir() and not any(self.begun.iterdir()):
            self.begun.rmdir()
