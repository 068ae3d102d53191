"""StepShape to seconds."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Protocol

import msgspec
import numpy as np
import pandas as pd
from msgspec import Meta
from numpy.typing import NDArray

from simspec.cost.shape import StepShape
from simspec.errors import BadInput

Floats = NDArray[np.float64]


class CostModel(Protocol):
    """What replay asks of a cost.

    Attributes:
        name: short, for tables and file names.
        label: one line that says device, number format and what is approximate.
        models: the models that it can price.
        step_overhead_seconds: fixed time of each cycle, whatever the chain.
    """

    @property
    def name(self) -> str: ...

    @property
    def label(self) -> str: ...

    @property
    def step_overhead_seconds(self) -> float: ...

    @property
    def models(self) -> frozenset[str]: ...

    def forward_seconds(self, model: str, shape: StepShape) -> Floats:
        """Seconds of forwards of ``model``; a look-up's width is the block it is asked for."""
        ...


class MeasuredCost:
    """A latency table, interpolated linearly in rows, width and context.

    Rows are padded: a forward costs what its rows times its widest row cost, at the
    longest context. Each grid point is the median of its repetitions. Beyond the greatest
    batch or width cost grows in proportion; beyond the contexts measured it stays as it is.
    """

    step_overhead_seconds = 0.0

    def __init__(self, latency: pd.DataFrame, dtype: str, name: str, label: str):
        """Build from rows of the latency table.

        Args:
            latency: the trace's latency table; rows of ``dtype`` and of look-ups are used.
            dtype: which number format's rows to use.

        Raises:
            BadInput: when no row fits or a model's grid has holes.
        """
        self.name, self.label = name, label
        kept = latency[latency["dtype"].isin([dtype, "none"])]
        if not (kept["dtype"] == dtype).any():
            raise BadInput(
                f"no latency of dtype {dtype!r}",
                allowed=", ".join(sorted(set(latency["dtype"]) - {"none"})) or "none was recorded",
            )
        devices = sorted(set(kept[kept["dtype"] == dtype]["device"]))
        if len(devices) > 1:
            raise BadInput(f"latency of {dtype!r} comes from several devices", where=", ".join(devices))
        medians = kept.groupby(["model", "context", "batch", "new_tokens"])["seconds"].median()
        self._grids = {model: _Grid(medians[model]) for model in medians.index.unique("model")}

    @property
    def models(self) -> frozenset[str]:
        return frozenset(self._grids)

    def measured_at(self, model: str) -> tuple[Floats, Floats, Floats]:
        """The batches, widths and contexts of a model's grid."""
        grid = self._grids[model]
        return grid.batches, grid.widths, grid.contexts

    def forward_seconds(self, model: str, shape: StepShape) -> Floats:
        return self._grids[model].at(shape.rows, shape.width, shape.context)


class _Grid:
    """One model's medians on (context, rows, width), filled in at every whole row and width."""

    def __init__(self, medians: pd.Series):
        table = medians.unstack("new_tokens")
        self.contexts = np.unique(table.index.get_level_values("context")).astype(float)
        self.batches = np.unique(table.index.get_level_values("batch"))
        self.widths = table.columns.to_numpy()
        full = len(self.contexts) * len(self.batches)
        if len(table) != full or table.isna().any().any():
            raise BadInput("the latency grid has holes", where="latency")
        self.points = table.to_numpy().reshape(len(self.contexts), len(self.batches), -1)
        rows = np.arange(1, int(self.batches[-1]) + 1)
        widths = np.arange(1, 2 * int(self.widths[-1]) + 1)
        over_width = _resample(self.points, self.widths, widths, axis=2)
        self.dense = _resample(over_width, self.batches, rows, axis=1)

    def at(self, rows: NDArray, width: NDArray, context: NDArray) -> Floats:  # type: ignore[type-arg]
        """Seconds at whole rows and widths and any context, broadcast together."""
        top_rows, top_width = self.dense.shape[1], self.dense.shape[2]
        plane = top_rows * top_width
        # Places in the grid laid out flat: far faster to take from than by three indices.
        cell = (np.minimum(rows, top_rows) - 1) * top_width + (np.minimum(width, top_width) - 1)
        if len(self.contexts) == 1:
            found = self.dense.take(cell)
        else:
            inside = np.minimum(np.maximum(context, self.contexts[0]), self.contexts[-1])
            low = np.searchsorted(self.contexts[1:-1], inside, side="right")
            share = (inside - self.contexts[low]) / (self.contexts[low + 1] - self.contexts[low])
            cell = cell + low * plane
            below = self.dense.take(cell)
            found = below + share * (self.dense.take(cell + plane) - below)
        if rows.max(initial=0) <= top_rows and width.max(initial=0) <= top_width:
            return np.asarray(found)
        # Beyond the greatest batch or width that is filled in, cost grows with the tokens.
        return np.asarray(found * (np.maximum(rows / top_rows, 1.0) * np.maximum(width / top_width, 1.0)))


def _resample(values: Floats, old: NDArray, new: NDArray, axis: int) -> Floats:  # type: ignore[type-arg]
    """Linear in between, in proportion beyond the last point, constant before the first."""
    moved = np.moveaxis(values, axis, -1)
    if len(old) == 1:
        out = moved * np.ones(len(new))
    else:
        at = np.clip(np.searchsorted(old, new, side="right") - 1, 0, len(old) - 2)
        share = (new - old[at]) / (old[at + 1] - old[at])
        out = moved[..., at] + share * (moved[..., at + 1] - moved[..., at])
        first = new < old[0]
        out[..., first] = moved[..., :1]
        last = new > old[-1]
        out[..., last] = moved[..., -1:] * (new[last] / old[-1])
    return np.moveaxis(out, -1, axis)


@dataclass(frozen=True)
class LeaveOneOut:
    """Relative errors of the table at points that it was not given.

    ``relative_error`` has one entry an interior grid point: along new tokens and along batch.
    """

    relative_error: Floats

    @property
    def median(self) -> float:
        return float(np.median(self.relative_error))

    @property
    def p90(self) -> float:
        return float(np.quantile(self.relative_error, 0.9))


def leave_one_out(latency: pd.DataFrame, dtype: str) -> dict[str, LeaveOneOut]:
    """How well each model's table predicts a grid line that is taken out of it.

    Every interior count of new tokens, and every interior batch, is dropped in turn and
    predicted from its neighbours. Look-ups are left out: they are far from the total. So are
    models whose grid has no interior, which says nothing.
    """
    cost = MeasuredCost(latency, dtype, "", "")
    errors = {}
    for model in sorted(set(latency[latency["dtype"] == dtype]["model"])):
        grid = cost._grids[model]
        found = []
        for axis, old in ((2, grid.widths), (1, grid.batches)):
            for i in range(1, len(old) - 1):
                kept = np.delete(np.arange(len(old)), i)
                guess = _resample(np.take(grid.points, kept, axis), old[kept], old[i : i + 1], axis)
                truth = np.take(grid.points, [i], axis)
                found.append(np.abs(guess / truth - 1).ravel())
        if found:
            errors[model] = LeaveOneOut(np.concatenate(found))
    return errors


Seconds = Annotated[float, Meta(ge=0, le=1e4)]


class AffineCost(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A published profile: a forward costs base + per_token * tokens + per_context_token * KV tokens.

    Packed rows. A model other than ``target`` costs its stated ratio of the target's forward;
    a ratio of 0 is free. ``label`` says where the numbers come from.
    """

    name: str
    label: str
    target: str
    base_seconds: Seconds
    token_seconds: Seconds
    context_token_seconds: Seconds
    step_overhead_seconds: Seconds
    ratios: dict[str, Annotated[float, Meta(ge=0, le=10)]]

    @property
    def models(self) -> frozenset[str]:
        return frozenset(self.ratios) | {self.target}

    def forward_seconds(self, model: str, shape: StepShape) -> Floats:
        ratio = 1.0 if model == self.target else self.ratios[model]
        return np.asarray(
            ratio
            * (
                self.base_seconds
                + self.token_seconds * shape.tokens
                + self.context_token_seconds * shape.context_tokens
            )
        )


def read_affine(path: Path) -> AffineCost:
    """Read a profile from TOML; raises :class:`BadInput` naming the field that does not fit."""
    try:
        return msgspec.convert(tomllib.loads(path.read_text()), AffineCost)
    except OSError as error:
        raise BadInput(f"cannot be read: {error.strerror}", where=path) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise BadInput(str(error), where=path) from error
