"""What a cluster of engines is: its frozen parameters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, get_args

from simspec.errors import BadInput
from simspec.serving.clock import nanoseconds
from simspec.serving.config import Serving
from simspec.streams import stream

Routing = Literal["round-robin", "least-loaded", "session-affine"]
OnFailure = Literal["restart", "resume", "lost"]


@dataclass(frozen=True)
class Outage:
    """A replica fails ``at_seconds``, and is back, empty, ``for_seconds`` later."""

    replica: int
    at_seconds: float
    for_seconds: float

    def __post_init__(self) -> None:
        nanoseconds(self.at_seconds, "at_seconds")
        if not nanoseconds(self.for_seconds, "for_seconds"):
            raise BadInput(f"for_seconds is {self.for_seconds}", allowed="at least a nanosecond")

    @property
    def nanoseconds(self) -> tuple[int, int]:
        """When it fails and when it is back."""
        failed = nanoseconds(self.at_seconds)
        return failed, failed + nanoseconds(self.for_seconds)


@dataclass(frozen=True)
class Failures:
    """Outages by chance: every replica is up and down in turn, for exponential times of these means."""

    mean_up_seconds: float
    mean_down_seconds: float

    def __post_init__(self) -> None:
        for name in ("mean_up_seconds", "mean_down_seconds"):
            if not nanoseconds(getattr(self, name), name):
                raise BadInput(f"{name} is {getattr(self, name)}", allowed="at least a nanosecond")

    def of(self, replica: int, seed: int) -> Iterator[tuple[int, int]]:
        """A replica's outages without end, as (nanoseconds at which it fails, at which it is back)."""
        random, at = stream(seed, "outages", replica), 0
        while True:
            up, down = random.exponential((self.mean_up_seconds, self.mean_down_seconds)).tolist()
            failed = at + max(nanoseconds(up), 1)
            at = failed + max(nanoseconds(down), 1)
            yield failed, at


@dataclass(frozen=True)
class DrafterDevice:
    """Drafters run on ``devices`` of their own, which all replicas share; first come, first served.

    ``link_seconds``: how long drafts take to the target's device, and verdicts back.
    """

    devices: int = 1
    link_seconds: float = 0.0

    def __post_init__(self) -> None:
        if self.devices < 1:
            raise BadInput(f"devices is {self.devices}", allowed="at least 1")
        nanoseconds(self.link_seconds, "link_seconds")


@dataclass(frozen=True)
class Cluster:
    """Replicas, and how requests come to them. One replica and nothing else is an engine alone.

    Attributes:
        replicas: engines that decode, numbered from 0; they read prompts too unless others do.
        routing: which replica gets a request: ``round-robin``; ``least-loaded``: the one with the fewest
            requests; ``session-affine``: always the same for one session, while it is up.
        prefill: engines that only read prompts, numbered after the replicas. Who has read a prompt gives
            its first token and hands the request over; its blocks are free at once, and the KV cache
            arrives at a replica after ``transfer_seconds`` and ``transfer_token_seconds`` for each token.
        outages: which replicas fail when; or ``failures``, by chance.
        on_failure: what becomes of requests in a replica that fails: ``restart``: from their prompt, and
            what they had is thrown away; ``resume``: what they had is read again behind the prompt;
            ``lost``.
        retries: how often; one more failure, and a request is lost.
        drafter_device: None where drafters share the device of their target.
    """

    replicas: tuple[Serving, ...]
    routing: Routing = "round-robin"
    prefill: tuple[Serving, ...] = ()
    transfer_seconds: float = 0.0
    transfer_token_seconds: float = 0.0
    outages: tuple[Outage, ...] = ()
    failures: Failures | None = None
    on_failure: OnFailure = "restart"
    retries: int = 3
    drafter_device: DrafterDevice | None = None

    def __post_init__(self) -> None:
        if not self.replicas:
            raise BadInput("no replica", allowed="at least 1")
        for name, allowed in (("routing", get_args(Routing)), ("on_failure", get_args(OnFailure))):
            if getattr(self, name) not in allowed:
                raise BadInput(f"{name} is {getattr(self, name)!r}", allowed=", ".join(allowed))
        if self.retries < 0:
            raise BadInput(f"retries is {self.retries}", allowed="at least 0")
        for name in ("transfer_seconds", "transfer_token_seconds"):
            nanoseconds(getattr(self, name), name)
        if len({one.patience_seconds for one in self.engines}) > 1:
            raise BadInput("engines of unlike patience_seconds", hint="it is the requests that wait")
        if self.outages and self.failures is not None:
            raise BadInput("outages and failures by chance too", hint="set one of them")
        for one in self.outages:
            if not 0 <= one.replica < len(self.engines):
                raise BadInput(f"outage of replica {one.replica}", allowed=f"0 to {len(self.engines) - 1}")
        for number in range(len(self.engines)):
            for (_, back), (failed, _) in pairwise(self._listed(number)):
                if failed < back:
                    raise BadInput(f"replica {number} fails again before it is back")

    @property
    def engines(self) -> tuple[Serving, ...]:
        """All of them, in the order of their numbers."""
        return self.replicas + self.prefill

    def outages_of(self, number: int, seed: int) -> Iterator[tuple[int, int]]:
        """When an engine fails and is back, in nanoseconds."""
        return self.failures.of(number, seed) if self.failures is not None else iter(self._listed(number))

    def _listed(self, number: int) -> list[tuple[int, int]]:
        return sorted(one.nanoseconds for one in self.outages if one.replica == number)
