"""What a sampled trace says of acceptance: the overlap of two distributions, place by place."""

from __future__ import annotations

from typing import Any

import numpy as np

from simspec.traces import ragged
from simspec.traces.checked import Tables


def mean_overlap(read: Tables) -> list[dict[str, Any]]:
    """Chance that a verifier lets a drawn token through, by place in the block.

    The mean of sum min(p, q) over all starts (arXiv 2211.17192, corollary 3.6),
    p and q as both were drawn from after the drafter's own draws. Blocks are drawn from every
    start whether or not what came before would have been accepted, so the places are not
    conditional on each other.

    Returns:
        one entry a pair with ``drafter``, ``verifier`` and ``positions``, a list of ``position``
        (from 1), ``drafts`` and ``overlap``.
    """
    verdicts = read.tables["verdicts"]
    keys = verdicts.select(["drafter", "verifier"]).to_pandas()
    depth = read.manifest.block_length
    values = ragged.pad(verdicts.column("overlap"), depth, 0.0).astype(np.float64)
    place = np.arange(depth)[None] < ragged.lengths(verdicts.column("overlap"))[:, None]
    found = []
    for (drafter, verifier), rows in keys.groupby(["drafter", "verifier"], sort=False).indices.items():
        drafts = place[rows].sum(axis=0)
        total = np.where(place[rows], values[rows], 0.0).sum(axis=0)
        found.append(
            {
                "drafter": str(drafter),
                "verifier": str(verifier),
                "positions": [
                    {"position": j + 1, "drafts": int(drafts[j]), "overlap": float(total[j] / drafts[j])}
                    for j in range(depth)
                    if drafts[j]
                ],
            }
        )
    return found
