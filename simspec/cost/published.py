"""Roofline predictions beside published times.

Cases come from two places: a few figures of papers that the package carries
(``presets/published.toml``), and a CSV of public reports that the caller has
(:mod:`simspec.cost.reports`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated, Literal

import msgspec
import numpy as np
from msgspec import Meta

from simspec.cost import presets
from simspec.cost.architecture import formats_of
from simspec.cost.fit_errors import Errors, errors_of
from simspec.cost.roofline import roofline_seconds
from simspec.cost.shape import uniform

FRAMEWORK = (
    "A roofline has no framework, sampling or scheduling in it. A ratio far below 1 means that the "
    "published time is mostly such overhead, not that the device is slow."
)


Milliseconds = Annotated[float, Meta(gt=0)]
Count = Annotated[int, Meta(ge=1)]


class Case(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A published time of one forward of ``rows`` alike rows; names are those of presets.

    ``kind``: ``time`` for a time that somebody states, ``fit`` for the value of a published fit,
    of which any number could be taken.
    """

    id: str
    source: str
    device: str
    architecture: str
    dtype: str
    rows: Count
    width: Count
    context: Annotated[int, Meta(ge=0)]
    published_ms: Milliseconds
    kind: Literal["time", "fit"] = "time"
    assumed: str = ""
    weight_bytes: Annotated[float, Meta(gt=0)] | None = None


class NotCompared(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A published time that is not compared, and why."""

    id: str
    source: str
    reason: str


class Compared(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A case with what the roofline says; ``ratio`` is predicted over published."""

    case: Case
    predicted_ms: float
    ratio: float


@dataclass(frozen=True)
class Cases:
    """Published times: those that can be compared, and those that cannot."""

    cases: list[Case] = field(default_factory=list)
    not_compared: list[NotCompared] = field(default_factory=list)


class _Affine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    id: str
    source: str
    assumed: str
    device: str
    architecture: str
    dtype: str
    base_ms: Milliseconds
    token_ms: Milliseconds
    context_token_ms: Milliseconds
    rows: list[Count]
    widths: list[Count]
    contexts: list[Count]

    def cases(self) -> Iterator[Case]:
        for rows in self.rows:
            for width in self.widths:
                for context in self.contexts:
                    yield Case(
                        id=f"{self.id}/{rows}x{width}@{context}",
                        source=self.source,
                        kind="fit",
                        assumed=self.assumed,
                        device=self.device,
                        architecture=self.architecture,
                        dtype=self.dtype,
                        rows=rows,
                        width=width,
                        context=context,
                        published_ms=self.base_ms
                        + self.token_ms * rows * width
                        + self.context_token_ms * rows * context,
                    )


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    case: list[Case]
    affine: list[_Affine]
    not_compared: list[NotCompared]


def papers() -> Cases:
    """The figures of papers that come with the package."""
    found = msgspec.convert(presets.read_preset("published.toml"), _File)
    return Cases([*found.case, *(c for a in found.affine for c in a.cases())], found.not_compared)


def compare(cases: list[Case]) -> list[Compared]:
    """What the device presets predict for each case, packed rows, with their stated efficiencies."""
    found = []
    for case in cases:
        rates = presets.device(case.device).rates(case.dtype)
        formats = formats_of(case.dtype)
        if case.weight_bytes is not None:
            formats = msgspec.structs.replace(formats, weight_bytes=case.weight_bytes)
        made = presets.architecture(case.architecture)
        shape = uniform(*(np.array([n]) for n in (case.rows, case.width, case.context)))
        predicted = 1000 * float(roofline_seconds(rates, made, formats, shape, packed=True)[0])
        found.append(Compared(case, predicted, predicted / case.published_ms))
    return found


def published_errors(compared: list[Compared]) -> dict[str, Errors]:
    """Errors of each kind of case, and of ``all``; empty where there are no cases."""
    groups: dict[str, list[Compared]] = {}
    for each in compared:
        groups.setdefault(each.case.kind, []).append(each)
        groups.setdefault("all", []).append(each)
    return {
        kind: errors_of(
            np.array([c.predicted_ms for c in group]), np.array([c.case.published_ms for c in group])
        )
        for kind, group in groups.items()
    }
