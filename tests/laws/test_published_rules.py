"""Every published rule on a recorded trace: its decisions can be carried out, and streams do not meet."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from simspec.compare.batches import request_starts
from simspec.compare.costs import open_cost
from simspec.replay.planned import plan
from simspec.replay.trajectories import draft_limit, run
from simspec.speculation.chains import Chain
from simspec.speculation.lengths_thresholds import Svip
from simspec.speculation.rule_files import as_planner, published
from simspec.traces.index import load_trace

TRACE = load_trace(Path("traces/smollm2-cpu"))
COST = open_cost(TRACE, "calibrate/h100-llama-3.1-8b.toml")
RULES = published(TRACE.manifest.block_length)
# Two streams of two batches of three.
QUEUES = request_starts(TRACE)[:12].reshape(2, 2, 3)


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("drafter", ["ngram", "skip-2"])
def test_decisions_lie_within_the_limit_and_streams_do_not_see_each_other(name, drafter):
    chain, planner = Chain((drafter, TRACE.target)), as_planner(RULES[name])
    both = plan(TRACE, chain, COST, planner, QUEUES, keep=len(QUEUES))
    lengths = TRACE.remaining[QUEUES].sum(axis=(1, 2))
    assert both.tokens.tolist() == lengths.tolist()
    for cycle in both.log:
        runs = cycle.flat >= 0
        limit = np.where(runs, np.maximum(draft_limit(TRACE, drafter, np.maximum(cycle.flat, 0)), 0), 0)
        assert ((cycle.submitted >= 0) & (cycle.submitted <= cycle.drafted)).all()
        assert (cycle.drafted <= limit).all()
        assert (cycle.accepted <= cycle.submitted).all()
    assert both.submitted.sum() > 0
    for stream in range(2):
        alone = plan(TRACE, chain, COST, planner, QUEUES[stream : stream + 1])
        assert alone.seconds[0] == pytest.approx(both.seconds[stream], rel=1e-12)
        assert alone.drafted[0] == both.drafted[stream]


@pytest.mark.parametrize("drafter", ["skip-2", "skip-10", "ngram"])
def test_every_positions_entropies_are_those_of_the_tables(drafter):
    """Along the text while the drafter agrees with it, then of the block stored where it does not."""
    prompts = TRACE.prompts["prompt_id"].to_numpy()
    kept = {t: pq.read_table(TRACE.folder / f"{t}.parquet").to_pylist() for t in ("along", "blocks")}
    along = {(r["prompt_id"], r["position"]): r for r in kept["along"] if r["model"] == drafter}
    blocks = {(r["prompt_id"], r["start"]): r for r in kept["blocks"] if r["drafter"] == drafter}
    index = TRACE.drafters[drafter]
    for flat in range(0, len(TRACE.tokens), 97):
        at = (int(prompts[TRACE.prompt[flat]]), int(TRACE.position[flat]))
        entropy: list[float] = []
        while at not in blocks and at in along:
            entropy.append(along[at]["entropy"])
            at = (at[0], at[1] + 1)
        entropy += blocks[at]["entropy"] if at in blocks else []
        length = int(index.length[flat])
        assert index.entropy[flat, :length].tolist() == pytest.approx(entropy[:length])
        assert (index.entropy[flat, length:] == 0).all()


def test_svip_sees_the_recorded_entropy():
    """Block by block from the table: up to the first entropy above .6 nats, as replay drafts it."""
    blocks = TRACE.drafters["skip-2"]
    start = request_starts(TRACE)
    runs = run(TRACE, Chain(("skip-2", TRACE.target)), Svip(), start)
    at, column = np.nonzero(runs.active)
    for row, cycle in list(zip(at, column, strict=True))[::50]:
        flat = runs.flat[row, cycle]
        entropy = blocks.entropy[flat].astype(float)
        limit = int(draft_limit(TRACE, "skip-2", flat))
        weak = np.flatnonzero(np.sqrt(0.15 * entropy[:limit]) > 0.3)
        assert runs.submitted[row, cycle] == (min(weak[0] + 1, limit) if len(weak) else limit)
