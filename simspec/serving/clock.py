"""Time inside the simulator: whole nanoseconds, and what comes first when instants are equal.

A Python integer adds without rounding, so the same scenario gives the same bytes and Little's law
holds exactly. Seconds are for the doors: parameters come in as seconds and figures go out as seconds.
"""

from __future__ import annotations

import math
from enum import IntEnum

from simpy import Environment
from simpy.events import Event, EventPriority

from simspec.errors import BadInput

NANOSECONDS = 1_000_000_000


class Stage(IntEnum):
    """What happens first at one instant; within a stage, by engine, then what was scheduled first.

    SimPy orders events by (time, priority, sequence number), and its own housekeeping has priority 0;
    a stage is the priority, and the number of an engine is added to it, so that it makes no difference how
    long ago the end of a step was scheduled. A replica that fails at the instant at which its step would end
    does not end it, and gets nobody who arrives then. Whoever arrives at the instant at which a step ends is
    there when the next step is planned.
    """

    CHANGE = 1
    ARRIVE = 2
    STEP = 1 << 20
    PLAN = 1 << 40


class Pause(Event):
    """An event ``delay_ns`` from now, at a stage: SimPy's Timeout, which knows one priority only."""

    def __init__(self, env: Environment, delay_ns: int, stage: int):
        # What Event and Timeout set up, in one go: there is one of these for every step.
        self.env, self.callbacks = env, []
        self._ok, self._value = True, None
        env.schedule(self, EventPriority(stage), delay_ns)


class Signal(Event):
    """An event that somebody else fires, at a stage of the instant at which they do."""

    def fire(self, stage: int) -> None:
        self._ok, self._value = True, None
        self.env.schedule(self, EventPriority(stage), 0)


def nanoseconds(seconds: float, name: str = "duration") -> int:
    """Whole nanoseconds, half rounded up; raises :class:`BadInput` unless finite and not negative."""
    if not math.isfinite(seconds) or seconds < 0:
        raise BadInput(f"{name} of {seconds} seconds", allowed="a finite number, at least 0")
    return int(seconds * 1e9 + 0.5)
