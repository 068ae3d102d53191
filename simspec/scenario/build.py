"""From a scenario's file to an engine that can be run: costs, verdicts, policy, memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TypeVar

import msgspec

from simspec.compare.costs import cost_inputs, open_cost
from simspec.cost.files import read_cost
from simspec.cost.models import AffineCost, CostModel, MeasuredCost
from simspec.errors import BadInput
from simspec.scenario.config import ClusterPart, Scenario
from simspec.scenario.drafters import Drafter, make_policy, open_drafter
from simspec.scenario.loads import Load, open_load
from simspec.scenario.reading import Read
from simspec.scenario.speculation import OffPolicy, OtherPart, SpeculationPart, TraceVerdicts
from simspec.serving.candidates import Candidate
from simspec.serving.cluster import Cluster, DrafterDevice, Failures, Outage
from simspec.serving.config import Serving, Speculation
from simspec.serving.graphs import Graphs
from simspec.serving.kvcache import Memory
from simspec.serving.pricing import Costs
from simspec.serving.verdicts import Source
from simspec.traces.index import Trace, load_trace
from simspec.traces.profile import PROFILE_NAME

# Of all engines: each has its place in their arrays.
MOST_SLOTS = 4_000_000

T = TypeVar("T")
CostOf = Callable[[str], CostModel]


@dataclass(frozen=True)
class Built:
    """A scenario ready to run under any seed.

    Attributes:
        read: the file and what it says.
        cluster: the engines.
        load: its requests.
        approximations: what of it is no measurement, in words.
        inputs: name -> hash of everything that was read.
    """

    read: Read
    cluster: Cluster
    load: Load
    approximations: list[str]
    inputs: dict[str, str]

    @property
    def scenario(self) -> Scenario:
        return self.read.scenario

    @property
    def serving(self) -> Serving:
        """Any of the replicas, which are all alike."""
        return self.cluster.replicas[0]

    def replaying(self, source: Source) -> Built:
        """The same with other verdicts on its one drafter."""

        def other(one: Serving) -> Serving:
            if one.speculation is None:
                return one
            return replace(one, speculation=replace(one.speculation, source=source))

        cluster = self.cluster
        replicas, prefill = tuple(map(other, cluster.replicas)), tuple(map(other, cluster.prefill))
        return replace(self, cluster=replace(cluster, replicas=replicas, prefill=prefill))


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
    drafters = _drafters(read, trace)
    for one in drafters:
        inputs.update(one.inputs)
        words += [one.words] if one.words not in words else []
    # Each opened once: models that the same cost prices are on the same device.
    cost = cache(lambda name: _cost(read, name, trace, inputs))
    costs = _at(read, "cost", lambda: _costs(read, trace, drafters, cost, words))
    speculation = None
    if scenario.speculation is not None and drafters:
        speculation = _speculation(read, scenario.speculation, drafters, cost)
    engine = msgspec.structs.asdict(scenario.engine)
    for name in ("overhead_seconds", "idle_seconds"):  # these are prices, and went there
        del engine[name]
    told = msgspec.structs.asdict(scenario.memory)
    told["middle_blocks"] = tuple(scenario.memory.middle_blocks.items())
    memory = _at(read, "memory", lambda: Memory(**told))
    serving = _at(read, "engine", lambda: Serving(costs, speculation=speculation, memory=memory, **engine))
    cluster = _at(read, "cluster", lambda: _cluster(scenario.cluster, serving))
    words += [f"{log['use']}: {log['source']}: tokens {log['unit']}" for log in load.logs if _guessed(log)]
    if scenario.memory.preemption == "swap":
        words.append("the host has room for every block that is swapped out")
    words += _of_clusters(cluster)
    return Built(read, cluster, load, words, inputs)


def _cluster(told: ClusterPart, serving: Serving) -> Cluster:
    prefill: tuple[Serving, ...] = ()
    transfer: dict[str, float] = {}
    if told.prefill is not None:
        one = told.prefill
        own = {name: getattr(one, name) for name in ("slots", "token_budget", "prefill")}
        memory = {name: getattr(one, name) for name in ("target_blocks", "drafter_blocks")}
        reader = replace(
            serving,
            memory=replace(serving.memory, **{name: n for name, n in memory.items() if n is not None}),
            speculation=serving.speculation if one.drafter else None,
            **{name: value for name, value in own.items() if value is not None},
        )
        prefill = (reader,) * one.replicas
        transfer = {name: getattr(one, name) for name in ("transfer_seconds", "transfer_token_seconds")}
    if (slots := sum(one.slots for one in prefill) + told.replicas * serving.slots) > MOST_SLOTS:
        raise BadInput(f"all engines together have {slots:,} slots", allowed=f"at most {MOST_SLOTS:,}")
    failures, device = told.failures, told.drafter_device
    return Cluster(
        (serving,) * told.replicas,
        told.routing,
        prefill,
        outages=tuple(Outage(**msgspec.structs.asdict(one)) for one in told.outages),
        failures=None if failures is None else Failures(**msgspec.structs.asdict(failures)),
        on_failure=told.on_failure,
        retries=told.retries,
        drafter_device=None if device is None else DrafterDevice(**msgspec.structs.asdict(device)),
        **transfer,
    )


def _of_clusters(cluster: Cluster) -> list[str]:
    """What a cluster takes for granted."""
    words = []
    if cluster.prefill:
        words += [
            "a prompt's blocks are free as soon as it is handed over; its KV cache takes no room on the way",
            "transfers do not get in each other's way",
        ]
    if cluster.routing == "session-affine":
        words.append("no cache of prefixes: session-affine routing has its imbalance here and not its gain")
    if (cluster.outages or cluster.failures is not None) and cluster.on_failure == "restart":
        words.append("tokens a second count those that failures threw away later")
    if cluster.drafter_device is not None:
        words.append("policies do not foresee the wait for the drafter's device")
    return words


def _guessed(log: dict[str, object]) -> bool:
    return str(log["unit"]).startswith("approximate")


def _trace(read: Read) -> Trace | None:
    """The trace that verdicts or costs come from; one for both, where both name one."""
    scenario = read.scenario
    speculation = scenario.speculation
    told = _told(scenario)
    paths = [part.verdicts.path for part in told if isinstance(part.verdicts, TraceVerdicts)]
    replayed = paths[0] if paths else None
    if len({read.beside(path).resolve() for path in paths}) > 1:
        raise BadInput(
            f"verdicts of several traces: {', '.join(paths)}",
            where=f"{read.path}, [speculation.others]",
            hint="drafters are compared on the texts of one trace",
        )
    priced = scenario.cost.trace
    if replayed and priced and read.beside(replayed).resolve() != read.beside(priced).resolve():
        raise BadInput(
            f"cost.trace is {priced!r} and speculation.verdicts.path is {replayed!r}",
            where=read.path,
            hint="leave cost.trace out: the trace of the verdicts is taken",
        )
    # Where speculation is switched off, the trace that its verdicts would come from still prices the target.
    named = replayed or priced
    if named is None and speculation is not None and isinstance(speculation.verdicts, TraceVerdicts):
        named = speculation.verdicts.path
    return None if named is None else load_trace(read.beside(named))


def _speculating(scenario: Scenario) -> bool:
    return scenario.speculation is not None and not isinstance(scenario.speculation.policy, OffPolicy)


# -- costs -------------------------------------------------------------------------------------------------


def _costs(
    read: Read, trace: Trace | None, drafters: list[Drafter], cost_of: CostOf, words: list[str]
) -> Costs:
    scenario = read.scenario
    target = cost_of(scenario.cost.target)
    own = scenario.cost.drafter
    drafting = None if own is None else cost_of(own)
    first = drafters[0] if drafters else None
    graphs = scenario.cost.graphs
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
        None if first is None else first.name,
        drafter_cost=drafting,
        lookup=first is not None and first.lookup,
        overhead_seconds=scenario.engine.overhead_seconds,
        idle_seconds=scenario.engine.idle_seconds,
        graphs=None if graphs is None else Graphs(**msgspec.structs.asdict(graphs)),
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


def _drafters(read: Read, trace: Trace | None) -> list[Drafter]:
    """The drafter that the scenario names first, then the others; none where speculation is off."""
    found: list[Drafter] = []
    told = _told(read.scenario)
    for i, part in enumerate(told):
        verdicts = part.verdicts or told[0].verdicts
        assert verdicts is not None
        section = "speculation.verdicts" if not i else f"speculation.others[{i - 1}]"
        make = partial(open_drafter, read, trace, part, verdicts)
        found.append(_at(read, section, make))
    return found


def _told(scenario: Scenario) -> list[SpeculationPart | OtherPart]:
    """What the scenario says of each drafter; nothing where speculation is off."""
    told = scenario.speculation
    return [] if told is None or not _speculating(scenario) else [told, *told.others]


def _speculation(read: Read, told: SpeculationPart, drafters: list[Drafter], cost_of: CostOf) -> Speculation:
    known = min(one.known for one in drafters)
    policy = _at(read, "speculation.policy", lambda: make_policy(told.policy, known))
    others = []
    for i, (part, one) in enumerate(zip(told.others, drafters[1:], strict=True)):
        named = part.cost or read.scenario.cost.target

        def candidate(one: Drafter = one, named: str = named) -> Candidate:
            return Candidate(one.name, one.source, cost_of(named), one.lookup, one.intermediates)

        others.append(_at(read, f"speculation.others[{i}]", candidate))
    first = drafters[0]
    return _at(
        read,
        "speculation",
        lambda: Speculation(policy, first.source, told.remembered, tuple(others), first.intermediates),
    )


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
