"""Figures from small tables, counted by hand."""

from __future__ import annotations

import pyarrow as pa
import pytest

from simspec.serving.figures import Spread, figures
from simspec.serving.recorder import REQUESTS, STEPS


def table(schema: pa.Schema, *rows: dict[str, object]) -> pa.Table:
    """Rows with what is said of them, and 0 or null for the rest."""
    empty = {f.name: None if f.nullable else 0 for f in schema}
    return pa.Table.from_pylist([empty | row for row in rows], schema=schema)


def request(number: int, outcome: str, *instants: int | None, **counts: int) -> dict[str, object]:
    """A row of the table of requests: instants of arrival, admission, first token and end."""
    names = ("arrived_at_ns", "admitted_at_ns", "first_token_at_ns", "ended_at_ns")
    known = dict(zip(names, instants, strict=True))
    return {"request_id": number, "outcome": outcome, **known, **counts}


def test_pooled_and_mean_of_requests_differ():
    """10 passes with 3 accepted are 1.3 pooled; of two requests, one got 2 a pass and one got 1."""
    steps = table(
        STEPS.schema,
        {"started_at_ns": 10, "draft_ns": 4, "verify_ns": 6, "decoding_requests": 10},
        {"started_at_ns": 30, "prefill_ns": 2, "swap_ns": 3, "overhead_ns": 5, "drafted_tokens": 5},
    )
    steps = steps.set_column(
        steps.schema.get_field_index("accepted_tokens"), STEPS.schema.field("accepted_tokens"), [[2, 1]]
    )
    requests = table(
        REQUESTS.schema,
        request(0, "finished", 0, 5, 10, 40, produced_tokens=5, passes=2, accepted_tokens=2, preemptions=1),
        request(1, "finished", 0, 7, 20, 40, produced_tokens=9, passes=8),
        request(2, "finished", 2, 2, 30, 30, produced_tokens=1),
        request(3, "rejected", 4, None, None, 4),
        request(4, "unfinished", 5, 6, None, 40),
    )
    found = figures(steps, requests)
    assert found.requests == {"finished": 3, "rejected": 1, "unfinished": 1}
    assert found.emitted_per_pass_pooled == pytest.approx(13 / 10)
    assert found.emitted_per_pass_mean == pytest.approx((2 + 1) / 2)
    assert found.draft_waste == pytest.approx(2 / 5)
    assert (found.output_tokens, found.preemptions) == (15, 1)
    assert found.ttft_seconds.mean == pytest.approx((10 + 20 + 28) / 3 * 1e-9)
    assert found.queueing_seconds.mean == pytest.approx((5 + 7 + 0 + 1) / 4 * 1e-9)
    assert found.tpot_seconds.mean == pytest.approx((30 / 4 + 20 / 8) / 2 * 1e-9)
    assert found.e2e_seconds.p50 == pytest.approx(40e-9)


def test_nothing_happened():
    found = figures(STEPS.schema.empty_table(), REQUESTS.schema.empty_table())
    assert found.requests == {}
    assert found.ttft_seconds == Spread(None, None, None, None)
    assert found.emitted_per_pass_pooled is None
