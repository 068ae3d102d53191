"""Does an intermediate verifier throw away what the target would have taken, and what does that cost?

The critic's claim (S4c of the ledger): a rejection by an intermediate of a token that the target would
have accepted changes the output. Where the target checks what survives it cannot; it costs accepted
tokens. Here rejections are told apart by what the target's own text says of the rejected token.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simspec.metrics import Estimate, estimate, wilson
from simspec.speculation.verify import accepted_prefix
from simspec.streams import stream

Tokens = NDArray[np.int32]
Floats = NDArray[np.float64]

# Counts that each request of each configuration brings; sums over requests mean something.
COUNTS = (
    "tokens",
    "passes",
    "drafted",
    "accepted",
    "rejected",
    "wrongly",
    "rightly",
    "moot",
    "lost_tokens",
    "identical",
    "near_ties",
)


# Draws of fewer groups than this say nothing of how times vary: no interval is given.
FEWEST_GROUPS = 5


@dataclass(frozen=True)
class Rejection:
    """What the intermediates cut off one block.

    Attributes:
        kind: ``wrongly``: the first token cut off is the target's own; ``rightly``: it is not, and
            all before it are; ``moot``: a token before it already is not, so the target would not
            have come so far; ``none``: nothing was cut off.
        lost_tokens: tokens, from the cut on, that the target would have accepted had it been given them.
    """

    kind: str
    lost_tokens: int


def judge_rejection(block: Tokens, survived: int, ahead: Tokens) -> Rejection:
    """Tell what a cut was.

    Args:
        block: tokens that were drafted and submitted, shape (n,).
        survived: how many of them came through the intermediates.
        ahead: the target's own text from the block's start on; a token past its end counts as none of it.
    """
    if survived >= len(block):
        return Rejection("none", 0)
    own = accepted_prefix(block[: len(ahead)], ahead)
    if own < survived:
        return Rejection("moot", 0)
    if own == survived:
        return Rejection("rightly", 0)
    return Rejection("wrongly", own - survived)


def summarise(groups: Sequence[dict[str, Any]], draws: int, seed: int) -> dict[str, Any]:
    """The experiment's document from its finished groups.

    Args:
        groups: each has ``batch``, ``requests`` (prompt ids) and ``runs``: for each configuration
            ``seconds`` and the :data:`COUNTS`, one list entry a request.

    Returns:
        ``configurations.<name>`` = totals, rates with 95% intervals over draws of requests, and
        ``batches.<B>``: seconds a token and the ratio of times to the same chain without its middle
        (paired: draws are of groups, each of which ran every configuration one after another; no
        interval with fewer than :data:`FEWEST_GROUPS` groups).
    """
    names = list(groups[0]["runs"])
    table = {
        name: {key: np.concatenate([g["runs"][name][key] for g in groups]) for key in COUNTS}
        for name in names
    }
    size = len(table[names[0]]["tokens"])
    picks = stream(seed, "bootstrap", "critic").integers(0, size, (draws, size))
    found: dict[str, Any] = {}
    for name in names:
        counts = table[name]
        sums = {key: int(values.sum()) for key, values in counts.items()}
        found[name] = {
            "totals": sums,
            "identical_share": wilson(sums["identical"], size).as_json(),
            "emitted_per_pass": _ratio(counts["tokens"], counts["passes"], picks).as_json(),
            "accepted_per_pass": _ratio(counts["accepted"], counts["passes"], picks).as_json(),
            "lost_tokens_per_pass": _ratio(counts["lost_tokens"], counts["passes"], picks).as_json(),
            "wrong_share_of_rejections": _ratio(counts["wrongly"], counts["rejected"], picks).as_json(),
            "wrong_share_of_decided_rejections": _ratio(
                counts["wrongly"], counts["wrongly"] + counts["rightly"], picks
            ).as_json(),
            "batches": _times(groups, name, draws, seed),
        }
    return {"requests": size, "configurations": found}


def _times(groups: Sequence[dict[str, Any]], name: str, draws: int, seed: int) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for batch in sorted({g["batch"] for g in groups}):
        mine = [g for g in groups if g["batch"] == batch]
        picks = stream(seed, "bootstrap", "critic", batch).integers(0, len(mine), (draws, len(mine)))

        def per_token(which: str, mine: list[dict[str, Any]] = mine) -> tuple[Floats, Floats]:
            seconds = np.array([g["runs"][which]["seconds"] for g in mine])
            return seconds, np.array([sum(g["runs"][which]["tokens"]) for g in mine], dtype=np.float64)

        enough = len(mine) >= FEWEST_GROUPS
        if not enough:
            picks = picks[:0]
        seconds, tokens = per_token(name)
        entry = {
            "groups": len(mine),
            "requests": sum(len(g["requests"]) for g in mine),
            "seconds_per_token": _ratio(seconds, tokens, picks).as_json(),
        }
        for other, label in (("pair", "time_over_pair"), ("target", "time_over_target")):
            theirs, their_tokens = per_token(other)
            value = (seconds.sum() / tokens.sum()) / (theirs.sum() / their_tokens.sum())
            drawn = (seconds[picks].sum(1) / tokens[picks].sum(1)) / (
                theirs[picks].sum(1) / their_tokens[picks].sum(1)
            )
            entry[label] = estimate(float(value), drawn if enough else drawn[:0]).as_json()
        out[str(batch)] = entry
    return out


def _ratio(above: Floats, below: Floats, picks: NDArray[np.int64]) -> Estimate:
    """Pooled ratio with its interval; null where nothing is below."""
    if not below.sum():
        return Estimate(None, None, None)
    with np.errstate(invalid="ignore", divide="ignore"):
        drawn = above[picks].sum(1) / below[picks].sum(1)
    return estimate(float(above.sum() / below.sum()), drawn)
