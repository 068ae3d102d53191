"""The laws that the ledger's claims state of an engine alone, as they stand there: M2b, M6b, M30 and M31."""

from __future__ import annotations

from functools import wraps

from simspec.claims.serving import laws
from tests.invariants.life import Law, Life
from tests.invariants.requests import limits


def _alone(law: laws.Law, *, unlimited: bool = False) -> Law:
    """For one engine that cannot fail and, where that is asked for, has no limit on its memory."""

    @wraps(law)
    def of_one(life: Life) -> list[str]:
        (first, *others), fails = life.cluster.engines, life.fragile
        return [] if others or fails or (unlimited and limits(first)) else law(life.lived)

    of_one.__name__ = f"{law.__name__}_alone"
    return of_one


LAWS = (
    _alone(laws.tokens_are_accounted_for),
    _alone(laws.never_idle_while_work_waits),
    _alone(laws.first_come_first_served),
    _alone(laws.no_slot_is_empty_while_somebody_waits, unlimited=True),
)
