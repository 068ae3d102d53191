"""Files and costs that several verbs take."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from simspec.traces.index import Trace

PUBLISHED = Path("calibrate/h100-llama-3.1-8b.toml")


def document(name: str, path: Path) -> dict[str, Any]:
    """A document of the experiment ``name``.

    Raises:
        BadInput: when it cannot be read, or is not what its name says.
    """
    import msgspec

    from simspec.errors import BadInput

    try:
        found = msgspec.json.decode(path.read_bytes())
    except OSError as error:
        raise BadInput(f"cannot be read: {error.strerror}", where=path) from error
    except msgspec.DecodeError as error:
        raise BadInput(f"is not JSON: {error}", where=path) from error
    wanted = f"simspec {name} 1"
    if not isinstance(found, dict) or found.get("format") != wanted:
        raise BadInput("is another kind of file", where=path, allowed=f"JSON whose format is {wanted!r}")
    return found


def default_costs(loaded: Trace, say: Callable[[str], None]) -> list[str]:
    """Every number format of the latency table, and the published profile where it fits."""
    from simspec.compare.costs import open_cost
    from simspec.errors import BadInput

    names = sorted(set(loaded.latency["dtype"]) - {"none"})
    if PUBLISHED.is_file():
        try:
            open_cost(loaded, str(PUBLISHED))
        except BadInput as error:
            say(f"left out {PUBLISHED}: {error}")
        else:
            names.append(str(PUBLISHED))
    return names
