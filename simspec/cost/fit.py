"""Cost models fitted to a latency table, with how far off they are.

Every fit is to the medians of repetitions, and by relative error: a forward of a millisecond
counts as much as one of a second. Errors are ``abs(predicted / measured - 1)``, over the points
that were fitted and over points left out of the fit.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import pandas as pd

from simspec.cost.affine_fit import AffineFit, fit_affines
from simspec.cost.architecture import FORMATS, Architecture
from simspec.cost.fit_errors import medians
from simspec.cost.roofline_fit import RooflineFit, fit_roofline


class Fits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All fits to one table: affine for each model, a roofline for each device and number format."""

    affine: list[AffineFit]
    roofline: list[RooflineFit]


def fit_all(latency: pd.DataFrame, architectures: Mapping[str, Architecture]) -> Fits:
    """Every fit that a latency table allows.

    Raises:
        BadInput: as :func:`medians`.
    """
    points = medians(latency)
    roofline = []
    for (_, dtype), rows in points.groupby(["device", "dtype"], sort=True):
        if dtype in FORMATS and rows["model"].isin(list(architectures)).any():
            roofline.append(fit_roofline(rows, architectures, FORMATS[dtype]))
    return Fits(fit_affines(latency), roofline)
