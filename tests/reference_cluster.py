"""The slow twin of a cluster: several engines of :mod:`tests.reference_serving` on one agenda, a router,
outages, prompts that are read elsewhere, and drafters on devices of their own.

It shares the frozen parameters with :mod:`simspec.serving`, and the hash by which sessions find replicas.
"""

from __future__ import annotations

from functools import partial

from simspec.serving.cluster import Cluster
from simspec.serving.routing import mix
from tests.reference_load import ARRIVE, CHANGE, Asked, Door
from tests.reference_serving import Replica
from tests.reference_serving_prices import Row


class ClusterTwin(Door):
    """A cluster serves a workload step by step; the arguments are those of :class:`Door`.

    Attributes:
        pools: numbers of the replicas that read prompts of requests that come, and of those that are handed
            requests: the same where no replica only reads.
        turns: by pool, whose turn it is next.
        held: by pool, requests that no replica is up for.
    """

    def __init__(
        self,
        cluster: Cluster,
        seed: int,
        *,
        arrivals: list[tuple[int, Asked]] = (),  # type: ignore[assignment]
        clients: int = 0,
        asked: list[Asked] = (),  # type: ignore[assignment]
        think: int = 0,
        until: int | None = None,
    ):
        super().__init__(arrivals, clients, asked, think, until, cluster.replicas[0].patience_seconds)
        self.c = cluster
        count, more = len(cluster.replicas), len(cluster.prefill)
        engines = [*cluster.replicas, *cluster.prefill]
        self.replicas = [Replica(one, seed, self, n, n >= count) for n, one in enumerate(engines)]
        decode = list(range(count))
        self.pools = {"come": list(range(count, count + more)) or decode, "handed": decode}
        self.turns = {name: pool[0] for name, pool in self.pools.items()}
        self.held: dict[str, list[Row]] = {"come": [], "handed": []}
        self.outages: list[dict[str, object]] = []
        own = cluster.drafter_device
        self.devices = [0] * own.devices if own else []  # when each is free
        self.link = int(own.link_seconds * 1e9 + 0.5) if own else 0
        # Those of one replica one after the other, in the order in which they happen.
        self.failures = [cluster.outages_of(n, seed) for n in range(len(engines))]
        for number in range(len(engines)):
            self.next_failure(number)

    def run(self) -> ClusterTwin:
        super().run()
        return self

    # -- routing ------------------------------------------------------------------------------------------

    def place(self, row: Row) -> None:
        name = "handed" if row.brought else "come"
        up = [n for n in self.pools[name] if self.replicas[n].up]
        if not up:
            row.queue = self.held[name]
            row.queue.append(row)
            return
        self.replicas[self.choose(name, up, row)].come(row)

    def choose(self, name: str, up: list[int], row: Row) -> int:
        if self.c.routing == "round-robin":
            later = [n for n in up if n >= self.turns[name]]
            found = min(later or up)
            self.turns[name] = found + 1
            return found
        if self.c.routing == "session-affine" and row.session >= 0:
            return max(up, key=lambda n: mix(row.session, n))
        return min(up, key=lambda n: (len(self.replicas[n].waiting) + len(self.replicas[n].batch), n))

    def hand_over(self, row: Row) -> None:
        tokens = row.prompt + row.produced - 1
        seconds = self.c.transfer_seconds + self.c.transfer_token_seconds * tokens
        row.brought = True
        self.at(self.now + int(seconds * 1e9 + 0.5), ARRIVE, lambda: self.place(row))

    # -- failures -----------------------------------------------------------------------------------------

    def next_failure(self, number: int) -> None:
        failed, back = next(self.failures[number], (None, None))
        if failed is not None:
            self.at(failed, CHANGE, partial(self.fail, number, back))

    def fail(self, number: int, back: int) -> None:
        if self.nobody_comes:
            return
        replica = self.replicas[number]
        self.outages.append(
            {
                "replica": number,
                "failed_at_ns": self.now,
                "back_at_ns": back,
                "step_began_at_ns": replica.began,
                "batch_requests": len(replica.batch),
                "queued_requests": len(replica.waiting),
            }
        )
        self.at(back, CHANGE, lambda: self.come_back(number))
        for row in replica.fail():
            if self.c.on_failure == "lost":
                self.close(row, "lost")
                continue
            if self.c.on_failure == "restart":
                row.discarded += row.produced
                row.produced, row.first = 0, None
            row.restarts += 1
            if row.restarts > self.c.retries:
                self.close(row, "lost")
            else:
                self.place(row)

    def come_back(self, number: int) -> None:
        self.replicas[number].up = True
        name = next(name for name, pool in self.pools.items() if number in pool)
        held, self.held[name] = self.held[name], []
        for row in held:
            self.place(row)
        self.next_failure(number)

    # -- the drafters' own devices ------------------------------------------------------------------------

    def ask_device(self, nanoseconds: int) -> int | None:
        if not self.devices:
            return None
        free = min(self.devices)
        begins = max(self.now, free)
        self.devices[self.devices.index(free)] = begins + nanoseconds
        return begins - self.now
