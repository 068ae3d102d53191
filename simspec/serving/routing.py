"""Which replica gets a request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from simspec.serving.cluster import Routing
from simspec.serving.request import NEVER, Request

_WORD = (1 << 64) - 1


class Replica(Protocol):
    """What routing looks at: a replica's number, and the requests that are in it."""

    number: int

    @property
    def load(self) -> int: ...


class Router:
    """Chooses among replicas of one kind; remembers whose turn it is."""

    def __init__(self, routing: Routing):
        self.routing = routing
        self._turn = 0

    def choose(self, request: Request, up: Sequence[Replica]) -> int:
        """Index into ``up``, which holds at least one replica, in order of their numbers."""
        if self.routing == "round-robin":
            chosen = next((i for i, one in enumerate(up) if one.number >= self._turn), 0)
            self._turn = up[chosen].number + 1
            return chosen
        if self.routing == "session-affine" and request.session != NEVER:
            return max(range(len(up)), key=lambda i: (mix(request.session, up[i].number), i))
        return min(range(len(up)), key=lambda i: up[i].load)


def mix(session: int, number: int) -> int:
    """A number of 64 bits that looks random: the finisher of SplitMix64 over both.

    Rendezvous hashing takes the replica with the greatest, so that only the sessions of a replica that
    fails move, and move back when it returns.
    """
    word = ((session + 1) * 0x9E3779B97F4A7C15 + (number + 1) * 0xD1B54A32D192ED03) & _WORD
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 & _WORD
    word = (word ^ (word >> 27)) * 0x94D049BB133111EB & _WORD
    return word ^ (word >> 31)
