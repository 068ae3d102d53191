"""How an output says what made it.

Nothing here depends on the clock or on the machine's name, so that running the
same command again gives the same bytes. Recordings, which do depend on the
machine, add its description on their own (:func:`machine`).
"""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path

import simspec
from simspec.errors import BadInput

# Rooms whose code no simulated figure depends on.
_ABOVE = frozenset(
    {"cli", "report", "claims", "experiments", "strategies", "training", "record", "calibration"}
)


def sha256_file(path: Path) -> str:
    """Hex SHA-256 of a file's bytes; raises :class:`BadInput` when it cannot be read."""
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while chunk := file.read(1 << 20):
                digest.update(chunk)
    except OSError as error:
        raise BadInput(f"cannot be read: {error.strerror}", where=path) from error
    return digest.hexdigest()


def versions(packages: Iterable[str]) -> dict[str, str]:
    """Installed version of each package that is installed, simspec's own included."""
    found = {"simspec": simspec.__version__, "python": platform.python_version()}
    for package in packages:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return dict(sorted(found.items()))


def machine() -> dict[str, object]:
    """A description of the machine that timings depend on: processor, cores, memory, system."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "processor": _processor_name(),
        "architecture": platform.machine(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_bytes": memory,
        "system": platform.system(),
    }


def code_hash() -> str:
    """A hash of simspec's own sources, as far as replay and simulation depend on them."""
    root = Path(simspec.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        name = path.relative_to(root)
        if name.parts[0] not in _ABOVE:
            digest.update(name.as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def _processor_name() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or "unknown"


def provenance(command: list[str], inputs: Mapping[str, str], seed: int | None = None) -> dict[str, object]:
    """The block that every simulated output carries.

    Args:
        command: the arguments after ``simspec`` that make the file again.
        inputs: name of each input -> its hash.
        seed: the seed that the run used, if it used any.
    """
    packages = ("numpy", "scipy", "pandas", "pyarrow")
    return {
        "command": ["simspec", *command],
        "inputs": dict(sorted(inputs.items())),
        "seed": seed,
        "versions": versions(packages),
    }
