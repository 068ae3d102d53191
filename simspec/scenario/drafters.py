"""From what a scenario says of speculation to policies, and to verdicts on each drafter's drafts."""

from __future__ import annotations

import math
from dataclasses import dataclass

import msgspec

from simspec.errors import BadInput
from simspec.interop.specdecode_bench import read_emitted_runs
from simspec.provenance import sha256_file
from simspec.scenario import speculation as said
from simspec.scenario.reading import Read
from simspec.serving.chain_verdicts import LevelRates, RecordedChain
from simspec.serving.choosing import Routed
from simspec.serving.policies import ByRows, ByRowsAndContext, Fixed, Goodput, OffAbove, Policy
from simspec.serving.row_policies import ByRule, Joint, RowPolicy
from simspec.serving.switching import Switching
from simspec.serving.verdicts import Mean, Rates, Recorded, Source
from simspec.speculation.chains import Chain
from simspec.speculation.lengths import G4, ExactMarginal, LibraSpec
from simspec.traces.index import Trace

ROUND = "a request begins at a position drawn from all texts and goes round its text"


@dataclass(frozen=True)
class Drafter:
    """Verdicts on a drafter's drafts.

    Attributes:
        intermediates: who verifies them below the target.
        known: the longest draft that they say anything about.
        lookup: whether it is a look-up.
        words: what of them is no measurement.
        inputs: name -> hash of what was read.
    """

    name: str
    source: Source
    known: int
    lookup: bool
    words: str
    inputs: dict[str, str]
    intermediates: tuple[str, ...] = ()


def open_drafter(
    read: Read, trace: Trace | None, told: said.SpeculationPart | said.OtherPart, verdicts: said.VerdictsKind
) -> Drafter:
    """Open the verdicts on a chain; ``trace`` is the one that they name, where they name one.

    Raises:
        BadInput: when they cannot be read, or the trace does not know a model.
    """
    name, lookup, above = told.drafter, told.lookup, told.intermediates
    assert name is not None  # the reader of scenarios refused that
    replace = told.semantics == "funnel-replace"
    if isinstance(verdicts, said.TraceVerdicts):
        assert trace is not None
        trace.require(name)
        if trace.tokens_a_forward(name) > 1:
            raise BadInput(
                f"{name!r} drafts several tokens in one forward",
                hint="the serving engine prices one forward for each, or a look-up; simspec rank knows it",
            )
        words = f"verdicts replayed from {trace.manifest.name} ({trace.manifest.origin}, greedy); {ROUND}"
        recorded: Source = Recorded.of_trace(trace, name)
        if above:
            if trace.target in above:
                raise BadInput(f"{trace.target!r} is the target, and no intermediate")
            chain = Chain((name, *above, trace.target), told.semantics or "funnel-truncate")
            recorded = RecordedChain.of_trace(trace, chain)
        return Drafter(name, recorded, trace.manifest.block_length, trace.is_lookup(name), words, {}, above)
    if isinstance(verdicts, said.AccLenVerdicts):
        path, longest = read.beside(verdicts.path), verdicts.longest
        runs = read_emitted_runs(path, verdicts.method)
        words = f"verdicts replayed from {runs.source}, {runs.method} x {longest}; {ROUND}"
        inputs = {path.name: sha256_file(path)}
        return Drafter(name, Recorded.of_lengths(runs.emitted, longest), longest, bool(lookup), words, inputs)
    source: Source
    if isinstance(verdicts, said.RateVerdicts):
        source, known = Rates(verdicts.survival), len(verdicts.survival)
        words = "verdicts drawn by place in the block, independent between steps"
    elif isinstance(verdicts, said.LevelVerdicts):
        source, known = LevelRates(verdicts.rates, verdicts.longest, replace), verdicts.longest
        words = "verdicts made up: one rate for each level, levels independent of each other"
    elif isinstance(verdicts, said.IidVerdicts):
        source, known = Rates.independent(verdicts.rate, verdicts.longest), verdicts.longest
        words = "verdicts drawn with one rate, independent"
    else:
        source, known = Mean(verdicts.survival), len(verdicts.survival)
        words = "verdicts are their mean: no luck"
    return Drafter(name, source, known, bool(lookup), words, {}, above)


def make_policy(policy: said.PolicyKind, known: int) -> Policy | RowPolicy | Switching | Routed:
    """The policy that a scenario names; raises :class:`BadInput` where it drafts more than is ``known``."""
    made = _policy(policy, known)
    if made.longest > known:
        raise BadInput(
            f"drafts of up to {made.longest} tokens", allowed=f"at most {known}: the verdicts know no more"
        )
    return made


def _policy(policy: said.PolicyKind, known: int) -> Policy | RowPolicy | Switching | Routed:
    if isinstance(policy, said.FixedPolicy):
        return Fixed(policy.draft_tokens)
    if isinstance(policy, said.OffAbovePolicy):
        return OffAbove(policy.draft_tokens, policy.off_above, policy.on_at)
    if isinstance(policy, said.ByRowsPolicy):
        return ByRows(policy.table)
    if isinstance(policy, said.ByRowsAndContextPolicy):
        return ByRowsAndContext(policy.table)
    if isinstance(policy, said.GoodputPolicy):
        return Goodput(policy.longest, policy.prior, policy.prior_drafts, policy.probe_every)
    if isinstance(policy, said.G4Policy):
        if policy.first > policy.longest:
            raise BadInput(f"first is {policy.first}", allowed=f"1 to longest, which is {policy.longest}")
        return ByRule(G4(policy.first, policy.up, policy.down, policy.longest), policy.longest)
    if isinstance(policy, said.LibraSpecPolicy):
        rule = LibraSpec(policy.alpha, policy.block, policy.longest)
        return ByRule(rule, policy.cut or min(_most_drafted(rule), known))
    if isinstance(policy, said.ExactMarginalPolicy):
        return ByRule(ExactMarginal(policy.longest), policy.longest)
    if isinstance(policy, said.JointPolicy):
        return Joint(policy.longest, policy.full_scan)
    if isinstance(policy, said.RoutedPolicy):
        return Routed(**msgspec.structs.asdict(policy))
    assert isinstance(policy, said.SwitchingPolicy)
    return Switching(policy.longest, policy.margin, policy.horizon, policy.prior, policy.prior_drafts)


def _most_drafted(rule: LibraSpec) -> int:
    """It submits up to longest - 1 + floor(alpha) tokens (claim L10) and drafts whole blocks."""
    submitted = max(rule.block, rule.longest - 1 + math.floor(rule.alpha))
    return rule.block * -(-submitted // rule.block)
