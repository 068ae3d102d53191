"""Chains with intermediates: requests that begin together are a lock-step batch, in engine and replay."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from simspec.compare.costs import open_cost
from simspec.cost.models import read_affine
from simspec.replay.lockstep import price
from simspec.replay.trajectories import draft_limit, outcome, run
from simspec.serving.arrivals import OpenLoop
from simspec.serving.candidates import Candidate
from simspec.serving.chain_verdicts import ChainVerdicts, RecordedChain, _ChainTexts
from simspec.serving.choosing import Routed
from simspec.serving.config import Serving, Speculation
from simspec.serving.policies import Fixed
from simspec.serving.pricing import Costs
from simspec.serving.request import Request
from simspec.serving.row_policies import ByRule
from simspec.serving.simulate import simulate
from simspec.serving.verdicts import Blocks, Recorded
from simspec.speculation.chains import SEMANTICS, Chain
from simspec.speculation.lengths import G4, Static
from simspec.traces.index import Trace, load_trace

PROJECT = Path(__file__).parents[2]
TOKENS = 40
H100 = read_affine(PROJECT / "calibrate" / "h100-llama-3.1-8b.toml")
LEVELS = [
    ("skip-10", "skip-2", "target"),
    ("skip-10", "skip-6", "target"),
    ("ngram", "skip-6", "target"),
    ("skip-6", "skip-10", "target"),
]
CHAINS = [Chain(levels, how) for levels in LEVELS for how in SEMANTICS]
CHAINS += [Chain(("skip-10", "skip-6", "skip-2", "target")), Chain(("ngram", "skip-10", "skip-2", "target"))]


@pytest.fixture(scope="module")
def trace() -> Trace:
    return load_trace(PROJECT / "traces" / "smollm2-cpu").shortened(TOKENS)


@dataclass(frozen=True)
class InOrder:
    """The recorded verdicts of some prompts, request i at the beginning of the i-th."""

    recorded: RecordedChain
    unconfident = None

    @property
    def intermediates(self) -> int:
        return self.recorded.intermediates

    @property
    def replace(self) -> bool:
        return self.recorded.replace

    def open(self, slots: int, seed: int) -> ChainVerdicts:
        texts = _ChainTexts(self.recorded, slots, seed)
        offsets = self.recorded.drafts.offsets
        texts._first = lambda request_id: int(offsets[request_id])  # type: ignore[method-assign]
        return texts


def cut(trace: Trace, chain: Chain, prompts: np.ndarray) -> InOrder:
    """Some prompts' texts, of TOKENS tokens each."""
    whole = RecordedChain.of_trace(trace, chain)
    drafts = whole.drafts
    flat = np.concatenate([drafts.offsets[p] + np.arange(TOKENS) for p in prompts])
    assert drafts.blocks is not None
    blocks = Blocks(*(part[flat] for part in drafts.blocks))
    offsets = np.arange(len(prompts) + 1) * TOKENS
    return InOrder(
        RecordedChain(
            Recorded(offsets, drafts.matched[flat], drafts.available[flat], blocks),
            tuple(level[flat] for level in whole.agreed),
            whole.ended[flat],
            whole.owns[flat],
            whole.replace,
        )
    )


@pytest.mark.parametrize("cost_name", ["float32", "h100"])
@pytest.mark.parametrize("chain", CHAINS, ids=lambda c: f"{c} {c.semantics}")
def test_lock_step(trace, cost_name, chain):
    """Cycle by cycle the same tokens, and forward by forward the same time."""
    prompts = np.flatnonzero(np.diff(trace.offsets) >= TOKENS)[:16]
    assert len(prompts) == 16
    cost = open_cost(trace, "float32") if cost_name == "float32" else H100
    lookup = trace.is_lookup(chain.drafter)
    source = cut(trace, chain, prompts)
    prompt_tokens = trace.context[trace.offsets[prompts]]
    load = [(0, Request(i, int(n), TOKENS)) for i, n in enumerate(prompt_tokens)]
    idle = 0
    # Rows that stop at their own lengths leave the levels above with nothing to read now and then.
    for rule, policy in (
        (Static(4), Fixed(4)),
        (Static(4), Routed((4,))),
        (G4(2, 2, 1, 8), ByRule(G4(2, 2, 1, 8), 8)),
    ):
        speculation = Speculation(policy, source, intermediates=chain.intermediates)
        serving = Serving(
            Costs(cost, trace.target, chain.drafter, lookup=lookup),
            slots=len(prompts),
            speculation=speculation,
            token_budget=1 << 20,
        )
        steps = simulate(serving, OpenLoop(load), 0).steps.to_pandas()
        decoding = steps[steps["decoding_requests"] > 0]
        # The engine's prompts give the first token, which replay's first cycle would.
        runs = run(trace, chain, rule, trace.offsets[prompts] + 1)
        assert decoding["decoding_requests"].tolist() == runs.active.sum(axis=0).tolist()
        for name in ("drafted", "emitted", "context", "accepted"):
            theirs = getattr(runs, name).sum(axis=0, dtype=int).tolist()
            assert decoding[f"{name}_tokens"].tolist() == theirs
        widths = decoding["submitted_tokens"] + decoding["decoding_requests"]
        assert widths.tolist() == runs.width.sum(axis=0, dtype=int).tolist()
        times = price(runs, np.arange(len(prompts))[None], [cost], lookup=lookup)[0]
        parts = decoding[["draft_ns", "middle_ns", "verify_ns", "overhead_ns"]].to_numpy().sum()
        # Each forward and each overhead is rounded to a whole nanosecond.
        rounded = (2 + policy.longest + len(chain.intermediates)) * len(decoding)
        assert abs(parts - times.seconds[0] * 1e9) <= rounded
        assert decoding["middle_ns"].sum() > 0
        idle += sum(int((middle[runs.active] == 0).sum()) for middle in runs.middle)
    # Only who adds a token has something to read in every cycle.
    assert (idle > 0) == (chain.semantics == "funnel-truncate")


@pytest.mark.parametrize("chain", CHAINS, ids=lambda c: f"{c} {c.semantics}")
def test_every_level_is_handed_what_replay_says(trace, chain):
    """From every position of every text, whole or cut short, for any number of submitted drafts."""
    for record in (trace, load_trace(trace.folder)):
        source = RecordedChain.of_trace(record, chain)
        flat = np.flatnonzero(record.remaining > 0)
        texts = source.open(len(flat), 0)
        texts.place[:] = texts.padded
        # Past the end of a text that its models know, only replay goes on drafting.
        left = record.remaining[flat] - 1
        limit = np.minimum(draft_limit(record, chain.drafter, flat), left)
        assert (texts.available() == limit).all()
        room = record.manifest.output_tokens - record.position[flat] - 1
        for most in range(9):
            submitted = np.minimum(most, limit)
            wanted, found = outcome(record, chain, flat, submitted), texts.handed(submitted, room)
            # A text that has ended is full, whatever it might still have grown by.
            full = left < room
            same = np.array(wanted.offered) == found.given
            assert (same | (full & (found.given[-1] == left))).all()
            accepted = texts.settled(found.given, found.passed)
            assert (np.minimum(accepted + 1, left + 1) == wanted.emitted).all()
            assert (np.minimum(accepted, found.passed[-1]) == wanted.kept)[~full].all()


def test_a_chain_that_is_chosen_among_one_is_that_chain(trace):
    """Routed with one candidate and one length, byte for byte, also where requests come and go."""
    for chain in CHAINS[:6]:
        source = RecordedChain.of_trace(trace, chain)
        costs = Costs(H100, trace.target, chain.drafter, lookup=trace.is_lookup(chain.drafter))
        load = [(i * 10_000_000, Request(i, 50 + i, 30)) for i in range(40)]
        tables = []
        for policy in (Fixed(3), Routed((3,), every=4)):
            speculation = Speculation(policy, source, intermediates=chain.intermediates)
            tables.append(simulate(Serving(costs, 8, speculation), OpenLoop(load), 5).steps)
        assert tables[0].equals(tables[1])


def test_a_pair_among_chains_is_that_pair(trace):
    """A pair and a triple to choose from, of which the pair is always taken: the pair's passes."""
    chain = CHAINS[0]
    pair = Recorded.of_trace(trace, "skip-10")
    others = (Candidate("skip-10", RecordedChain.of_trace(trace, chain), H100, intermediates=("skip-2",)),)
    costs = Costs(H100, trace.target, "skip-10")
    load = [(0, Request(i, 50 + i, 30)) for i in range(8)]
    columns = ["drafted_tokens", "submitted_tokens", "accepted_tokens", "verify_ns", "middle_ns"]
    tables = []
    # A margin that nothing is better by.
    for policy, more in ((Fixed(3), ()), (Routed((3,), margin=1e9), others)):
        serving = Serving(costs, 8, Speculation(policy, pair, others=more))
        tables.append(simulate(serving, OpenLoop(load), 5).steps.to_pandas()[columns])
    assert tables[0].equals(tables[1])
    assert tables[0]["middle_ns"].sum() == 0
