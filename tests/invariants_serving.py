"""The list of what must be true of every run of the serving simulator.

A law is a function of a run's tables, counters and scenario alone, from :class:`tests.invariants.life.Life` to
what breaks it: it knows nothing of the engine. The ledger's claims state some of them for one engine, by the
rules in :mod:`simspec.claims.serving.laws`, which are used here as they are where they hold for clusters too.
(They live beside the tests since claims need no more of them than that.) Each is shown to fail in
``tests/laws/test_serving_invariants.py``.
"""

from __future__ import annotations

from tests.invariants import clusters, drafting, figures, instants, memory, requests, tokens, waiting
from tests.invariants.life import Law, Life

INVARIANTS: dict[str, Law] = {
    law.__name__: law
    for room in (requests, tokens, instants, waiting, memory, drafting, figures, clusters)
    for law in room.LAWS
}


def broken(life: Life) -> dict[str, list[str]]:
    """Laws that a run breaks, and how."""
    return {name: how for name, law in INVARIANTS.items() if (how := law(life))}
