"""What a sweep runs: cells, each a load, a policy, an assumption about verdicts, and a seed.

All cells of one load and seed meet the same luck (common random numbers): the same requests, and for every
place of every request's text the same verdict, whatever the policy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import msgspec

from simspec.errors import BadInput
from simspec.scenario.build import Built
from simspec.scenario.config import ClosedLoad, LogLoad
from simspec.scenario.fitting import Fitted
from simspec.scenario.loads import Load, open_load
from simspec.scenario.paired import assumptions
from simspec.scenario.reading import Read
from simspec.sweep.policies import OFF

# Verdicts as the scenario has them; the other names are those of simspec.scenario.fitting.
OWN = "own"


@dataclass(frozen=True)
class Series:
    """One policy under one assumption about verdicts, before any load is set."""

    policy: str
    verdicts: str
    built: Built


@dataclass(frozen=True)
class Cell:
    """One simulation.

    Attributes:
        load: requests a second, or clients.
        built: the scenario at that load.
    """

    policy: str
    verdicts: str
    load: float
    seed: int
    built: Built

    @property
    def words(self) -> str:
        """For progress."""
        assumed = "" if self.verdicts == OWN else f", {self.verdicts}"
        return f"load {self.load:g}, {self.policy}{assumed}, seed {self.seed}"


def series(
    built: Mapping[str, Built], assumed: bool
) -> tuple[list[Series], dict[str, Fitted], dict[str, str]]:
    """Every policy; with ``assumed`` also under the narrower assumptions, fitted to what it replays.

    Returns:
        the series; what was fitted, by policy; and why it was not, by policy.
    """
    found, fitted, refused = [], {}, {}
    for policy, one in built.items():
        found.append(Series(policy, OWN, one))
        if not assumed or policy == OFF:
            continue
        speculation = one.serving.speculation
        if speculation is not None and speculation.others:
            refused[policy] = "several drafters: their verdicts are of one text, and drawn ones would not be"
            continue
        try:
            variants, fitted[policy] = assumptions(one)
        except BadInput as error:
            refused[policy] = error.problem
            continue
        # Replay is what the scenario has itself.
        found += [Series(policy, name, variant) for name, variant in variants.items() if name != "replay"]
    return found, fitted, refused


def cells(every: Sequence[Series], loads: Sequence[float], seeds: Sequence[int]) -> Iterator[Cell]:
    """All cells, load by load.

    Raises:
        BadInput: when a load does not suit the scenario's workload.
    """
    for load in loads:
        at = at_load(every[0].built.read, load)
        requests = open_load(at)
        for one in every:
            set_to = _loaded(one.built, at, requests)
            for seed in seeds:
                yield Cell(one.policy, one.verdicts, load, seed, set_to)


def at_load(read: Read, load: float) -> Read:
    """A scenario at a load: so many clients of a closed loop, or so many requests a second."""
    workload = read.scenario.workload
    if isinstance(workload, ClosedLoad):
        changed: object = msgspec.structs.replace(workload, clients=int(load))
    elif isinstance(workload, LogLoad):
        changed = msgspec.structs.replace(workload, rate=load, time_scale=None)
    else:
        changed = msgspec.structs.replace(workload, rate=load)
    return replace(read, scenario=msgspec.structs.replace(read.scenario, workload=changed))


def check_loads(read: Read, loads: Sequence[float], clients: bool) -> None:
    """Refuse clients for an open loop, rates for a closed one, and fewer than one load."""
    closed = isinstance(read.scenario.workload, ClosedLoad)
    if closed != clients:
        raise BadInput(
            f"{'--clients' if clients else '--rates'} and a workload of kind "
            f"{msgspec.to_builtins(read.scenario.workload)['kind']}",
            where=read.path,
            allowed="--clients for closed loops, --rates for all others",
        )
    if not loads or any(later <= load for load, later in pairwise(loads)):
        raise BadInput(f"loads {', '.join(f'{load:g}' for load in loads)}", allowed="at least one, rising")


def _loaded(built: Built, at: Read, requests: Load) -> Built:
    scenario = msgspec.structs.replace(built.scenario, workload=at.scenario.workload)
    return replace(built, read=replace(built.read, scenario=scenario), load=requests)
