"""The list of what must be true of every run of the serving simulator.

A law is a function of a run's tables, counters and scenario alone, from a :class:`tests.invariants.life.Life`
to what breaks it: it knows nothing of the engine. Those that the ledger states, in
:mod:`simspec.claims.serving.laws`, are in the list as they stand there; the others hold for clusters too, and
live beside the tests because no claim needs them. Each is shown to fail in
``tests/laws/test_serving_invariants.py``; engines that go wrong break them in
``tests/laws/test_serving_mutations.py``.
"""

from __future__ import annotations

from tests.invariants import (
    clusters,
    drafting,
    figures,
    instants,
    ledger,
    luck,
    memory,
    requests,
    tokens,
    waiting,
)
from tests.invariants.life import Law, Life

INVARIANTS: dict[str, Law] = {
    law.__name__: law
    for room in (requests, tokens, luck, instants, waiting, memory, drafting, figures, clusters, ledger)
    for law in room.LAWS
}


def broken(life: Life) -> dict[str, list[str]]:
    """Laws that a run breaks, and how."""
    return {name: how for name, law in INVARIANTS.items() if (how := law(life))}
