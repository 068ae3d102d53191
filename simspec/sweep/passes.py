"""Where the time of an emitted token goes, and why speculation stops paying.

A token's time is the time of a pass over the tokens of a pass, T / E, and T is a sum of parts, so speculation
pays against plain decoding, which has T' / E', exactly while

    E / E' - 1  >  sum over parts of (T_part - T'_part) / T'.

Left stands what a pass gains in tokens, right what it costs in time, both as shares of a plain pass; their
difference is the margin. So the rise of a part from one load to the next says how much margin it takes.

Two times are told apart. Of the engine: all of its time, idle time too, over all emitted tokens; the inverse
of the throughput. Of requests: time from a request's first token to its end, over the tokens after the
first; the mean TPOT with every token weighed alike. There a step counts once for each request that is between
its first token and its end, decoding or kept waiting.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from simspec.scenario.itl import column, ends_of
from simspec.scenario.period import Period
from simspec.serving.step import PARTS

# Of the engine alone: while a request decodes, the engine is not idle.
IDLE = "idle"
TOKENS = "tokens"
VIEWS = ("engine", "requests")
NS = 1_000_000_000


def passes(steps: pa.Table, requests: pa.Table, when: Period) -> dict[str, float | None]:
    """``<view>.tokens`` a pass, and ``<view>.<part>`` seconds a pass, of the steps that are measured.

    A pass is one row that decodes in one step. All None without one. Of several engines, all that have a step
    count, each with its own time; requests belong to the engine that had them last, so times of requests that
    went from one to another are not told exactly.
    """
    began, ends = column(steps, "started_at_ns"), ends_of(steps)
    replica, measured = column(steps, "replica"), when.steps(steps)
    many = int(column(steps, "decoding_requests")[measured].sum())
    names = [f"{view}.{part}" for view in VIEWS for part in (TOKENS, *PARTS)] + [f"engine.{IDLE}"]
    if not many:
        return dict.fromkeys(names)
    spent = {part: column(steps, f"{part}_ns") for part in PARTS}
    emitted = column(steps, "emitted_tokens")
    first, ended, last = (column(requests, n) for n in ("first_token_at_ns", "ended_at_ns", "replica"))
    sums = dict.fromkeys(names, 0)
    for number in np.unique(replica).tolist():
        own = (replica == number) & measured
        served = (first >= 0) & (last == number)
        begins, stops = np.sort(first[served]), np.sort(ended[served])
        at = began[own]
        # Requests between their first token and their end, as a step begins.
        inside = np.searchsorted(begins, at, side="right") - np.searchsorted(stops, at, side="right")
        tokens, busy = int(emitted[own].sum()), 0
        sums[f"engine.{TOKENS}"] += tokens
        if len(at):
            begun = np.searchsorted(begins, [at[0], ends[own][-1]], side="right")
            sums[f"requests.{TOKENS}"] += tokens - int(begun[1] - begun[0])
        for part in PARTS:
            mine = spent[part][own]
            busy += int(mine.sum())
            sums[f"engine.{part}"] += int(mine.sum())
            sums[f"requests.{part}"] += int(np.dot(mine, inside))
        sums[f"engine.{IDLE}"] += when.of_engine(number).engine_ns - busy
    return {name: total / many / (1 if name.endswith(TOKENS) else NS) for name, total in sums.items()}


def parts_of(view: str) -> tuple[str, ...]:
    """The parts of a view's time."""
    return (*PARTS, IDLE) if view == "engine" else PARTS


def terms(
    view: str, with_speculation: Mapping[str, float | None], plain: Mapping[str, float | None]
) -> dict[str, float] | None:
    """What a pass gains in ``tokens``, what it costs more by part, and the ``margin``.

    All as shares of a plain pass, of its tokens or of its time. None where either has no pass.
    """
    ours, theirs = (
        {name: value for name in (TOKENS, *parts_of(view)) if (value := run[f"{view}.{name}"]) is not None}
        for run in (with_speculation, plain)
    )
    if TOKENS not in ours or TOKENS not in theirs:
        return None
    time = sum(theirs[part] for part in parts_of(view))
    found = {TOKENS: ours[TOKENS] / theirs[TOKENS] - 1}
    found |= {part: (ours[part] - theirs[part]) / time for part in parts_of(view)}
    found["margin"] = found[TOKENS] - sum(found[part] for part in parts_of(view))
    return found
