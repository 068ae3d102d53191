"""Drafters on devices of their own: who drafts waits for one, first come, first served."""

from __future__ import annotations

from simspec.serving.clock import nanoseconds
from simspec.serving.cluster import DrafterDevice


class Devices:
    """Run state of a :class:`DrafterDevice`.

    Attributes:
        busy_ns: work that they have been given so far, done or not.
    """

    def __init__(self, told: DrafterDevice):
        self.link_ns = nanoseconds(told.link_seconds)
        self.busy_ns = 0
        self._free_at = [0] * told.devices

    def serve(self, now: int, drafting: int, reading: int, target: int) -> tuple[int, int]:
        """What a step from ``now`` on takes longer for its drafters: (drafting, waiting), nanoseconds.

        The target's forward comes after the drafts; prompts are read beside it, and count as drafting so far
        as they take longer. Who fails meanwhile leaves the device as busy as it was.

        Args:
            drafting: forwards of the drafter for its drafts.
            reading: its reading of prompts, after them and on the same device.
            target: the target's forward.
        """
        if not drafting and not reading:
            return 0, 0
        device = min(range(len(self._free_at)), key=self._free_at.__getitem__)
        begin = max(now, self._free_at[device])
        self._free_at[device] = begin + drafting + reading
        self.busy_ns += drafting + reading
        waiting = begin - now + 2 * self.link_ns if drafting else 0
        late = self._free_at[device] - (now + waiting + drafting + target)
        return drafting + max(late, 0) * (reading > 0), waiting

    def busy_until(self, instant: int) -> int:
        """Of the work, what was done by an instant at which, or later, nobody asks any more."""
        # What is left then is done without a pause.
        return self.busy_ns - sum(max(free - instant, 0) for free in self._free_at)
