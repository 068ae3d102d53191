"""BurstGPT: arrivals of chat and API requests, two layouts."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from simspec.interop.columns import read_csv, seconds, whole
from simspec.interop.log import RequestLog, in_order


def read_burstgpt(path: Path) -> RequestLog:
    """``Timestamp`` in seconds, ``Request tokens``, ``Response tokens``; ``Session ID`` if there is one.

    Rows without response tokens are failures: left out and counted. The first minutes of the published
    file are a slow beginning; take a window of the log to leave them out. Raises BadInput naming row,
    column and value.
    """
    table = read_csv(path, ("Timestamp", "Request tokens", "Response tokens"), ("Session ID",))
    sessions = None
    if "Session ID" in table:  # the first layout has none
        sessions = pd.factorize(table["Session ID"])[0].astype("int64")
    return in_order(
        seconds(table, "Timestamp", path),
        whole(table, "Request tokens", path),
        whole(table, "Response tokens", path),
        source=f"{path.name} (BurstGPT)",
        unit="seconds",
        sessions=sessions,
    )
