"""Bare SimPy: one process that waits, and does nothing else. A "token" is a timeout."""

from __future__ import annotations

from collections.abc import Callable, Generator

from protocol import Done, Prepare, main
from simpy import Environment, Event


def prepare(_: str) -> Prepare:
    """As many timeouts as requests are asked for."""

    def set_up(requests: int, rate: float | None) -> Callable[[], Done]:
        env = Environment()

        def waits() -> Generator[Event, None, None]:
            for _ in range(requests):
                yield env.timeout(1)

        def run() -> Done:
            env.process(waits())
            env.run()
            return Done(requests, env.now, {})

        return run

    return set_up


if __name__ == "__main__":
    main(prepare)
