"""The trace's latency table, as medians and as bootstrap draws of its repetitions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from simspec.claims.empirical.setting import Setting
from simspec.errors import BadInput

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Curve:
    """Seconds of forwards of one model at one batch and context, over widths (new tokens).

    Attributes:
        widths: rising, shape (W,).
        median: of the repetitions, shape (W,).
        draws: medians of resampled repetitions, shape (draws, W). All models and widths of one
            (batch, context) draw the same repetitions, since those ran in turn and share what the machine
            was doing. With 3 to 5 of them, draws vary less than new measurements would.
        repetitions: the fewest that a width has.
    """

    widths: NDArray[np.int64]
    median: Floats
    draws: Floats
    repetitions: int


# (batch, context) -> curve.
Grid = dict[tuple[int, int], Curve]


def curves(asked: Setting, model: str, dtype: str) -> Grid:
    """All curves of a model in one number format, on the trace's device (a look-up's on its own).

    Raises:
        BadInput: when a forward of a network took no time.
    """
    latency = asked.trace.latency
    rows = latency[(latency["model"] == model) & (latency["dtype"] == dtype)]
    if dtype != "none":
        rows = rows[rows["device"] == asked.trace.manifest.device]
    if (rows["seconds"] <= 0).any() and dtype != "none":
        bad = rows[rows["seconds"] <= 0].iloc[0]
        raise BadInput(
            f"{bad['seconds']} seconds of {model!r} ({dtype}) at batch {bad['batch']}, context "
            f"{bad['context']}, {bad['new_tokens']} new tokens",
            where="latency",
            allowed="above zero: costs are compared by their ratios",
        )
    found: Grid = {}
    cell: Any
    for cell, repetitions in rows.groupby(["batch", "context"], sort=True):
        key = int(cell[0]), int(cell[1])
        found[key] = _curve(repetitions, asked.luck("repetitions", *key), len(asked.counts))
    return found


def _curve(cell: pd.DataFrame, luck: np.random.Generator, draws: int) -> Curve:
    ordered = cell.sort_values(["new_tokens", "repetition"])
    widths, first = np.unique(ordered["new_tokens"].to_numpy(), return_index=True)
    seconds = np.split(ordered["seconds"].to_numpy(), first[1:])
    most = max(len(s) for s in seconds)
    # The same numbers for every width of equal repetitions, hence the same repetitions.
    chosen = luck.random((draws, most))
    drawn = [np.median(s[np.floor(chosen[:, : len(s)] * len(s)).astype(np.int64)], axis=1) for s in seconds]
    return Curve(
        widths=widths.astype(np.int64),
        median=np.array([np.median(s) for s in seconds]),
        draws=np.stack(drawn, axis=1),
        repetitions=min(len(s) for s in seconds),
    )


def priced_dtypes(asked: Setting) -> list[str]:
    """Number formats that the target was timed in."""
    latency = asked.trace.latency
    mine = latency[(latency["model"] == asked.trace.target) & (latency["dtype"] != "none")]
    return sorted({str(d) for d in mine["dtype"]})
