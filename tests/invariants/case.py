"""A simulation to be run, as one value that can be printed and read again."""

from __future__ import annotations

import hashlib
import tempfile
from dataclasses import MISSING, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from simspec.serving import (
    candidates,
    chain_verdicts,
    choosing,
    cluster,
    config,
    graphs,
    kvcache,
    policies,
    pricing,
    row_policies,
    switching,
    verdicts,
)
from simspec.serving.arrivals import ClosedLoop, OpenLoop
from simspec.serving.cluster import Cluster
from simspec.serving.config import Serving
from simspec.serving.request import Request
from simspec.serving.simulate import Records, simulate
from simspec.speculation import lengths
from simspec.strategies.clusters import ClusterScenario
from simspec.strategies.small_engines import NANO, Scenario, made_up_cost
from tests.varied_chains import cost_of

COSTS = ("ticks", "device", "padded")
ROOMS = (candidates, cluster, config, graphs, kvcache, lengths, policies, pricing, row_policies, switching)


@dataclass(frozen=True)
class Case:
    """Who serves what; the fields are those of :class:`simspec.strategies.small_engines.Scenario`.

    ``sessions``: of each request, -1 for none; empty where none has one.
    """

    served: Serving | Cluster
    seed: int
    sizes: tuple[tuple[int, int], ...]
    instants: tuple[int, ...] = ()
    clients: int = 0
    think_ns: int = 0
    until: int | None = None
    sessions: tuple[int, ...] = ()

    @classmethod
    def of(cls, scenario: Scenario | ClusterScenario) -> Case:
        """What the strategies draw, as such a value."""
        if isinstance(scenario, Scenario):
            served, load, sessions = scenario.serving, scenario, ()
        else:
            served, load, sessions = scenario.fleet.cluster(), scenario.load, scenario.sessions
        same = ("seed", "sizes", "instants", "clients", "think_ns", "until")
        return cls(served, **{name: getattr(load, name) for name in same}, sessions=sessions)

    @property
    def cluster(self) -> Cluster:
        """An engine alone is a cluster of one."""
        return self.served if isinstance(self.served, Cluster) else Cluster((self.served,))

    @property
    def serving(self) -> Serving:
        """The engine where there is one; else the first."""
        return self.cluster.engines[0]

    def serve(self, *, emissions: bool = False, folder: Path | None = None) -> Records:
        """Run it."""
        sessions = self.sessions or (-1,) * len(self.sizes)
        requests = [Request(i, p, o, sessions[i]) for i, (p, o) in enumerate(self.sizes)]
        load: OpenLoop | ClosedLoop
        if self.clients:
            load = ClosedLoop(self.clients, requests, self.think_ns * NANO)
        else:
            load = OpenLoop(zip(self.instants, requests, strict=True))
        until = None if self.until is None else self.until * NANO
        return simulate(self.served, load, self.seed, until_seconds=until, folder=folder, emissions=emissions)

    def digest(self) -> str:
        """Hash of the files that a run leaves."""
        with tempfile.TemporaryDirectory() as folder:
            self.serve(emissions=True, folder=Path(folder))
            files = sorted(Path(folder).iterdir())
            return hashlib.sha256(b"".join(f.read_bytes() for f in files)).hexdigest()


def written(value: Any) -> str:
    """A value as an expression that :func:`read` makes it of again; what is as usual is left out."""
    for name in COSTS:
        for made in (made_up_cost, cost_of):
            if value is made(name):  # type: ignore[operator]
                return f"{made.__name__}({name!r})"
    if isinstance(value, np.ndarray):
        return f"np.array({value.tolist()}, np.{value.dtype})"
    if isinstance(value, tuple):
        told = ", ".join(map(written, value)) + ("," if len(value) == 1 else "")
        return f"{type(value).__name__}({told})" if hasattr(value, "_fields") else f"({told})"
    if is_dataclass(value):
        told = ", ".join(
            f"{f.name}={written(held)}"
            for f in fields(value)
            if not _usual(f, held := getattr(value, f.name))
        )
        return f"{type(value).__name__}({told})"
    return repr(value)


def read(text: str) -> Any:
    """What :func:`written` wrote."""
    names = {
        name: held
        for room in (*ROOMS, verdicts, choosing, chain_verdicts)
        for name, held in vars(room).items()
    }
    return eval(text, names | {"np": np, "Case": Case, "made_up_cost": made_up_cost, "cost_of": cost_of})


def _usual(field: Any, held: Any) -> bool:
    usual = field.default if field.default is not MISSING else MISSING
    if usual is MISSING and field.default_factory is not MISSING:
        usual = field.default_factory()
    return usual is not MISSING and type(held) is type(usual) and bool(held == usual)
