"""Cost models from TOML files, whichever kind the file says it is."""

from __future__ import annotations

import tomllib
from pathlib import Path

from simspec.cost.models import AffineCost, read_affine
from simspec.cost.roofline import RooflineCost
from simspec.cost.roofline_file import roofline_cost
from simspec.errors import BadInput


def read_cost(path: Path) -> AffineCost | RooflineCost:
    """Read a cost model: ``kind = "roofline"``, or without a kind a published affine profile.

    Raises:
        BadInput: naming the field that does not fit.
    """
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadInput(f"cannot be read: {error.strerror}", where=path) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadInput(str(error), where=path) from error
    if "kind" not in raw:
        return read_affine(path)
    if raw["kind"] != "roofline":
        raise BadInput(f"field 'kind' is {raw['kind']!r}", where=path, allowed="roofline, or none for affine")
    return roofline_cost(raw, path)
