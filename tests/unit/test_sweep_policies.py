"""The policies of a sweep: how they are named, labelled and refused, and that off is plain decoding."""

from __future__ import annotations

import pytest

from simspec.errors import BadInput
from simspec.scenario.reading import read_scenario
from simspec.scenario.run import run
from simspec.scenario.speculation import FixedPolicy, G4Policy
from simspec.sweep.grid import at_load, check_loads
from simspec.sweep.policies import label_of, parse_policy, policies
from tests.unit.test_scenario_paired import made
from tests.unit.test_scenario_reading import written

GOODPUT = '{kind = "goodput", longest = 3}'


def test_a_kind_or_a_table():
    assert parse_policy("g4") == G4Policy()
    assert parse_policy('{kind = "fixed", draft_tokens = 4}') == FixedPolicy(4)
    assert label_of(FixedPolicy(4)) == "fixed draft_tokens=4"
    assert label_of(G4Policy()) == "g4"
    assert label_of(G4Policy(longest=7)) == "g4 longest=7"
    table = parse_policy('{kind = "by-rows", table = [[1, 8, 3], [9, 64, 0]]}')
    assert label_of(table) == "by-rows table=[[1,8,3],[9,64,0]]"


@pytest.mark.parametrize("text", ["", "g5", "fixed", '{kind = "fixed", draft_tokens = -1}', "{kind =", 'x"'])
def test_what_is_no_policy_is_refused(text):
    with pytest.raises(BadInput, match="--policy"):
        parse_policy(text)


def test_off_comes_first_and_is_plain_decoding(tmp_path):
    found = policies([read_scenario(written(tmp_path))], [GOODPUT])
    assert list(found) == ["off", "fixed draft_tokens=3", "goodput longest=3"]
    plain = made(tmp_path, speculation={"policy": {"kind": "off"}})
    assert run(found["off"], 3).figures == run(plain, 3).figures
    assert run(found["fixed draft_tokens=3"], 3).figures == run(made(tmp_path), 3).figures


def test_scenarios_that_differ_in_policy_or_drafter(tmp_path):
    one = read_scenario(written(tmp_path, name="one"))
    policy = {"kind": "fixed", "draft_tokens": 2}
    (written(tmp_path, name="two", speculation={"policy": policy})).rename(tmp_path / "two.toml")
    two = read_scenario(tmp_path / "two.toml")
    assert list(policies([one, two])) == ["off", "fixed draft_tokens=3", "fixed draft_tokens=2"]
    (tmp_path / "cost.toml").write_text((tmp_path / "cost.toml").read_text() + "large = 0.4\n")
    text = (tmp_path / "two.toml").read_text().replace('drafter = "small"', 'drafter = "large"')
    (tmp_path / "two.toml").write_text(text)
    labels = list(policies([one, read_scenario(tmp_path / "two.toml")]))
    assert labels == ["off", "small, fixed draft_tokens=3", "large, fixed draft_tokens=2"]


def test_scenarios_that_differ_in_more_are_refused(tmp_path):
    one = read_scenario(written(tmp_path))
    written(tmp_path, engine={"slots": 9}).rename(tmp_path / "other.toml")
    with pytest.raises(BadInput, match=r"engine differs from that of scenario\.toml"):
        policies([one, read_scenario(tmp_path / "other.toml")])
    (tmp_path / "away").mkdir()
    with pytest.raises(BadInput, match="another folder"):
        policies([one, read_scenario(written(tmp_path / "away"))])


def test_refusals(tmp_path):
    read = read_scenario(written(tmp_path))
    with pytest.raises(BadInput, match="there twice"):
        policies([read, read])
    with pytest.raises(BadInput, match="one drafter"):
        policies([read], ['{kind = "switching", longest = 2}'])
    with pytest.raises(BadInput, match="confidences"):
        policies([read], ["{kind = 'exact-marginal', longest = 2}"])
    off = read_scenario(written(tmp_path, speculation={"policy": {"kind": "off"}}))
    with pytest.raises(BadInput, match="no policy to compare"):
        policies([off])
    none = read_scenario(written(tmp_path, speculation=None))
    with pytest.raises(BadInput, match="no speculation"):
        policies([none], ["g4"])


def test_loads_suit_the_workload(tmp_path):
    opened = read_scenario(written(tmp_path))
    assert at_load(opened, 7.5).scenario.workload.rate == 7.5
    workload = {"kind": "closed", "clients": 2, "requests": 9}
    closed = read_scenario(written(tmp_path, workload=workload))
    assert at_load(closed, 4.0).scenario.workload.clients == 4
    with pytest.raises(BadInput, match="--rates and a workload of kind closed"):
        check_loads(closed, [1.0], clients=False)
    with pytest.raises(BadInput, match="--clients and a workload of kind poisson"):
        check_loads(opened, [1.0], clients=True)
    for loads in ([], [2.0, 1.0], [1.0, 1.0]):
        with pytest.raises(BadInput, match="rising"):
            check_loads(opened, loads, clients=False)
