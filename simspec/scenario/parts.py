"""What the parts of a scenario are made of: kinds of numbers, and closed structs."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

Name = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
Count = Annotated[int, Meta(ge=1, le=10**9)]
Natural = Annotated[int, Meta(ge=0, le=10**9)]
# Each of these is an object, or a place in an array, from the beginning of a simulation on.
Engines = Annotated[int, Meta(ge=1, le=10_000)]
Slots = Annotated[int, Meta(ge=1, le=100_000)]
Requests = Annotated[int, Meta(ge=1, le=10**8)]
Length = Annotated[int, Meta(ge=0, le=1024)]
Longest = Annotated[int, Meta(ge=1, le=1024)]
Above = Annotated[float, Meta(gt=0, le=1e9)]
Seconds = Annotated[float, Meta(ge=0, le=1e9)]
Probability = Annotated[float, Meta(ge=0, le=1)]


class Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Frozen, and closed to keys that it does not know."""


class Kind(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind"):
    """One of several kinds, told apart by the key ``kind``."""
