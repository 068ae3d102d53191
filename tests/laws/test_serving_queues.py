"""The textbooks' side of claims M7 and M7b, and what their tests would notice."""

from __future__ import annotations

import pytest
from hypothesis import given

from simspec.claims.base import Against
from simspec.claims.serving.queue_means import Means, erlang_c_wait, expected_wait, means_are_right
from simspec.claims.serving.queues import lindley, queues, servers_wait


@given(queues())
def test_one_server_is_both_recursions(queue):
    assert servers_wait(1, queue.arrived, queue.service_ns) == lindley(queue)


@given(queues())
def test_more_servers_never_wait_longer(queue):
    fewer = servers_wait(queue.servers, queue.arrived, queue.service_ns)
    more = servers_wait(queue.servers + 1, queue.arrived, queue.service_ns)
    assert all(b <= a for a, b in zip(fewer, more, strict=True))


def test_formulas_at_known_points():
    """M/M/1 is Erlang's formula for one server; two servers at a load of 1/2: C = 1/3, a wait of 1/3."""
    assert erlang_c_wait(0.6, 1) == pytest.approx(0.6 / 0.4)
    assert erlang_c_wait(0.5, 2) == pytest.approx(1 / 3)
    assert expected_wait("M/D/1", 0.5) == (0.5, 0.5)
    low, high = expected_wait("M/M/4", 0.6)
    assert low == pytest.approx(0.1794, abs=1e-4)
    assert low < high < 1.5 * low


@pytest.mark.parametrize("queue", ["M/D/1", "M/M/1", "M/M/4"])
def test_a_test_of_means_notices_longer_services_and_burstier_arrivals(queue):
    """By half, and twice as varied, at every queue: the ledger's broken variants are caught at the first."""
    case = Means(queue, 0.6, 10, 500, 80)
    assert means_are_right()(case) is None
    assert isinstance(means_are_right(slower=1.5)(case), Against)
    assert isinstance(means_are_right(variation=2)(case), Against)
