"""From a scenario's file to an engine that can be run: costs, verdicts, policy, memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from simspec.compare.costs import cost_inputs, open_cost
from simspec.cost.files import read_cost
from simspec.cost.models import AffineCost, CostModel, MeasuredCost
from simspec.errors import BadInput
from simspec.interop.specdecode_bench import read_emitted_runs
from simspec.provenance import sha256_file
from simspec.scenario import config
from simspec.scenario.config import Scenario
from simspec.scenario.loads import Load, open_load
from simspec.scenario.reading import Read
from simspec.serving.config import Serving, Speculation
from simspec.serving.kvcache import Memory
from simspec.serving.policies import ByRows, Fixed, Goodput, OffAbove, Policy
from simspec.serving.pricing import Costs
from simspec.serving.verdicts import Mean, Rates, Recorded, Source
from simspec.traces.index import Trace, load_trace
from simspec.traces.profile import PROFILE_NAME

T = TypeVar("T")

ROUND = "a request begins at a position drawn from all texts and goes round its text"


@dataclass(frozen=True)
class Built:
    """A scenario ready to run under any seed.

    Attributes:
        read: the file and what it says.
        serving: the engine.
        load: its requests.
        approximations: what of it is no measurement, in words.
        inputs: name -> hash of everything that was read.
    """

    read: Read
    serving: Serving
    load: Load
    approximations: list[str]
    inputs: dict[str, str]

    @property
    def scenario(self) -> Scenario:
        return self.read.scenario


def build(read: Read) -> Built:
    """Open everything that a scenario names.

    Raises:
        BadInput: naming the file, and the section of the scenario that asked for it.
    """
    scenario = read.scenario
    load = open_load(read)
    inputs = {read.path.name: read.sha256, **load.inputs}
    words: list[str] = []
    trace = _trace(read)
    if trace is not None:
        inputs.update(trace.inputs)
    source = _at(read, "speculation.verdicts", lambda: _source(read, trace, inputs, words))
    costs = _at(read, "cost", lambda: _costs(read, trace, inputs, words))
    speculation = None
    if source is not None and scenario.speculation is not None:
        policy = _at(read, "speculation.policy", lambda: _policy(scenario))
        known = _known_drafts(scenario, trace)
        if policy.longest > known:
            raise BadInput(
                f"drafts of up to {policy.longest} tokens",
                where=f"{read.path}, [speculation.policy]",
                allowed=f"at most {known}: the verdicts know no more",
            )
        speculation = Speculation(policy, source, scenario.speculation.remembered)
    engine = msgspec.structs.asdict(scenario.engine)
    for name in ("overhead_seconds", "idle_seconds"):  # these are prices, and went there
        del engine[name]
    memory = _at(read, "memory", lambda: Memory(**msgspec.structs.asdict(scenario.memory)))
    serving = _at(read, "engine", lambda: Serving(costs, speculation=speculation, memory=memory, **engine))
    words += [f"{log['use']}: {log['source']}: tokens {log['unit']}" for log in load.logs if _guessed(log)]
    if scenario.memory.preemption == "swap":
        words.append("the host has room for every block that is swapped out")
    return Built(read, serving, load, words, inputs)


def _guessed(log: dict[str, object]) -> bool:
    return str(log["unit"]).startswith("approximate")


def _trace(read: Read) -> Trace | None:
    """The trace that verdicts or costs come from; one for both, where both name one."""
    scenario = read.scenario
    speculation = scenario.speculation
    verdicts = speculation.verdicts if speculation is not None and _speculating(scenario) else None
    replayed = verdicts.path if isinstance(verdicts, config.TraceVerdicts) else None
    priced = scenario.cost.trace
    if replayed and priced and read.beside(replayed).resolve() != read.beside(priced).resolve():
        raise BadInput(
            f"cost.trace is {priced!r} and speculation.verdicts.path is {replayed!r}",
            where=read.path,
            hint="leave cost.trace out: the trace of the verdicts is taken",
        )
    # Where speculation is switched off, the trace that its verdicts would come from still prices the target.
    named = replayed or priced
    if named is None and speculation is not None and isinstance(speculation.verdicts, config.TraceVerdicts):
        named = speculation.verdicts.path
    return None if named is None else load_trace(read.beside(named))


def _speculating(scenario: Scenario) -> bool:
    return scenario.speculation is not None and not isinstance(scenario.speculation.policy, config.OffPolicy)


# -- costs -------------------------------------------------------------------------------------------------


def _costs(read: Read, trace: Trace | None, inputs: dict[str, str], words: list[str]) -> Costs:
    scenario = read.scenario
    target = _cost(read, scenario.cost.target, trace, inputs)
    own = scenario.cost.drafter
    drafting = None if own is None else _cost(read, own, trace, inputs)
    speculation = scenario.speculation
    drafter, lookup = None, False
    if speculation is not None and _speculating(scenario):
        drafter = speculation.drafter
        if isinstance(speculation.verdicts, config.TraceVerdicts) and trace is not None and drafter:
            lookup = trace.is_lookup(drafter)
        else:
            lookup = bool(speculation.lookup)
    words.append(f"cost: {target.label}")
    if drafting is not None:
        words.append(f"cost of the drafter: {drafting.label}")
    words += [
        f"cost {cost.name}: batches, widths and contexts beyond the measured grid are extrapolated"
        for cost in (target, drafting)
        if isinstance(cost, MeasuredCost)
    ]
    return Costs(
        target,
        scenario.cost.target_name or _target_name(target, trace),
        drafter,
        drafter_cost=drafting,
        lookup=lookup,
        overhead_seconds=scenario.engine.overhead_seconds,
        idle_seconds=scenario.engine.idle_seconds,
    )


def _cost(read: Read, name: str, trace: Trace | None, inputs: dict[str, str]) -> CostModel:
    path = read.beside(name)
    is_path = name.endswith(".toml") or (path / PROFILE_NAME).exists()
    place = str(path) if is_path else name
    if is_path:
        inputs.update(cost_inputs([place]))
    if trace is not None:
        return open_cost(trace, place)
    if not name.endswith(".toml"):
        raise BadInput(
            f"cost {name!r} is no .toml file",
            where=read.path,
            hint="number formats and latency profiles belong to a trace: name it in cost.trace",
        )
    return read_cost(path)


def _target_name(cost: CostModel, trace: Trace | None) -> str:
    if trace is not None:
        return trace.target
    return cost.target if isinstance(cost, AffineCost) else "target"


# -- speculation -------------------------------------------------------------------------------------------


def _source(read: Read, trace: Trace | None, inputs: dict[str, str], words: list[str]) -> Source | None:
    scenario = read.scenario
    speculation = scenario.speculation
    if speculation is None or not _speculating(scenario):
        return None
    verdicts, drafter = speculation.verdicts, speculation.drafter
    assert drafter is not None  # the reader of scenarios refused that
    if isinstance(verdicts, config.TraceVerdicts):
        assert trace is not None
        trace.require(drafter)
        if trace.tokens_a_forward(drafter) > 1:
            raise BadInput(
                f"{drafter!r} drafts several tokens in one forward",
                hint="the serving engine prices one forward for each, or a look-up; simspec rank knows it",
            )
        words.append(
            f"verdicts replayed from {trace.manifest.name} ({trace.manifest.origin}, greedy); {ROUND}"
        )
        return Recorded.of_trace(trace, drafter)
    if isinstance(verdicts, config.AccLenVerdicts):
        path = read.beside(verdicts.path)
        runs = read_emitted_runs(path, verdicts.method)
        inputs[path.name] = sha256_file(path)
        words.append(f"verdicts replayed from {runs.source}, {runs.method} x {verdicts.longest}; {ROUND}")
        return Recorded.of_lengths(runs.emitted, verdicts.longest)
    if isinstance(verdicts, config.RateVerdicts):
        words.append("verdicts drawn by place in the block, independent between steps")
        return Rates(verdicts.survival)
    if isinstance(verdicts, config.IidVerdicts):
        words.append("verdicts drawn with one rate, independent")
        return Rates.independent(verdicts.rate, verdicts.longest)
    assert verdicts is not None
    words.append("verdicts are their mean: no luck")
    return Mean(verdicts.survival)


def _known_drafts(scenario: Scenario, trace: Trace | None) -> int:
    """The longest draft that the verdicts say anything about."""
    verdicts = scenario.speculation.verdicts if scenario.speculation is not None else None
    if isinstance(verdicts, config.TraceVerdicts):
        assert trace is not None
        return trace.manifest.block_length
    if isinstance(verdicts, config.AccLenVerdicts | config.IidVerdicts):
        return verdicts.longest
    assert verdicts is not None
    return len(verdicts.survival)


def _policy(scenario: Scenario) -> Policy:
    assert scenario.speculation is not None
    policy = scenario.speculation.policy
    if isinstance(policy, config.FixedPolicy):
        return Fixed(policy.draft_tokens)
    if isinstance(policy, config.OffAbovePolicy):
        return OffAbove(policy.draft_tokens, policy.off_above, policy.on_at)
    if isinstance(policy, config.ByRowsPolicy):
        return ByRows(policy.table)
    assert isinstance(policy, config.GoodputPolicy)
    return Goodput(policy.longest, policy.prior, policy.prior_drafts, policy.probe_every)


def _at(read: Read, section: str, make: Callable[[], T]) -> T:
    """Make a part; a refusal that does not say where it came from names the file and the section."""
    try:
        return make()
    except BadInput as error:
        where = f"{read.path}, [{section}]"
        raise BadInput(
            f"{error.where}: {error.problem}"
            if error.where and error.where != str(read.path)
            else error.problem,
            where=where,
            allowed=error.allowed,
            hint=error.hint,
        ) from error
