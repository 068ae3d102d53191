"""From a case to its life: the simulation is run twice, and looked at."""

from __future__ import annotations

from simspec.claims.serving.laws import Row, first_difference, told
from simspec.errors import BadInput
from simspec.scenario.config import ObjectivesPart, WarmUpPart
from simspec.scenario.figures import measure
from simspec.serving.recorder import EMISSIONS, OUTAGES, REQUESTS, STEPS
from simspec.serving.simulate import Records
from simspec.tables import check_table
from tests.invariants.case import Case
from tests.invariants.life import Life, end_of


def live(case: Case, *, thorough: bool = True) -> Life:
    """Run it twice, and look; without ``thorough``, not at everything about schemas and figures."""
    records, again = case.serve(emissions=True), case.serve()
    rows = told(case, records)  # type: ignore[arg-type]
    ttft = [r["first_token_at_ns"] - r["arrived_at_ns"] for r in rows.requests if r["first_token_at_ns"]]
    objectives = ObjectivesPart(ttft_seconds=(sum(ttft) / len(ttft) if ttft else 1) * 1e-9, tpot_seconds=9e-9)
    measured = measure(records, case.cluster, objectives, WarmUpPart())
    late = without = None
    if thorough:
        late = measure(records, case.cluster, objectives, WarmUpPart(requests=len(case.sizes) // 3))
        without = measure(again, case.cluster, objectives, WarmUpPart())["itl_seconds"]
    return Life(
        case,
        *placed(rows.steps, rows.emissions),
        rows.requests,
        [] if records.outages is None else records.outages.to_pylist(),
        rows.arrived,
        rows.outcomes,
        rows.request_ns,
        rows.ended_at,
        records.drafters_ns,
        undeclared(records) if thorough else [],
        differences(records, again),
        measured,
        without,
        late,
        objectives,
    )


def placed(steps: list[Row], emissions: list[Row]) -> tuple[list[Row], list[Row]]:
    """Steps in the order of their ends, and emissions, each with the ``row`` of its step."""
    steps = sorted(steps, key=lambda step: (end_of(step), step["replica"], step["step"]))
    steps = [step | {"row": row} for row, step in enumerate(steps)]
    rows = {(step["replica"], step["step"]): step["row"] for step in steps}
    return steps, [row | {"row": rows[row["replica"], row["step"]]} for row in emissions]


def undeclared(records: Records) -> list[str]:
    """What is not as the schemas say; instants that never came are left out."""
    found = []
    for table in (STEPS, REQUESTS, EMISSIONS, OUTAGES):
        data = getattr(records, table.name)
        if data is None:
            continue
        try:
            check_table(table, data, table.name)
        except BadInput as wrong:
            found.append(str(wrong))
    return found


def differences(one: Records, other: Records) -> list[str]:
    """Between two runs of the same scenario, in tables and counters."""
    found = []
    for name in ("steps", "requests", "outages"):
        tables = [getattr(records, name) for records in (one, other)]
        if None in tables:
            continue
        if name == "steps":  # of several engines, those that are computed at once come together
            tables = [table.sort_by([("replica", "ascending"), ("step", "ascending")]) for table in tables]
        if not tables[0].equals(tables[1]):
            found.append(f"{name}, step by step and at once: {first_difference(*tables)}")
    counted = [(r.request_ns, r.ended_at, r.arrived, r.outcomes, r.drafters_ns) for r in (one, other)]
    if counted[0] != counted[1]:
        found.append(f"counted {counted[0]} step by step, {counted[1]} at once")
    return found
