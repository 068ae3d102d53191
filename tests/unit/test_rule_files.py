"""Parameter files of length rules: those of the package, and a user's own."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from simspec.errors import BadInput
from simspec.speculation.calibrating import Calibration
from simspec.speculation.learned_times import LearnedTimes
from simspec.speculation.lengths import ExactMarginal, LibraSpec
from simspec.speculation.lengths_libraspec import TheoremLibraSpec
from simspec.speculation.planners_engines import BanditSpec, EmaWalk
from simspec.speculation.planners_longrun import LongRun
from simspec.speculation.planning import EachAlone
from simspec.speculation.rule_files import (
    ALONE,
    FOLDER,
    TOGETHER,
    as_planner,
    published,
    read_rule,
    shortened,
)


def written(folder: Path, text: str) -> Path:
    path = folder / "my.toml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.toml")), ids=lambda p: p.stem)
def test_a_published_file_says_its_source_and_every_parameter(path):
    text = path.read_text(encoding="utf-8")
    assert text.startswith("# ")
    told = re.findall(r"^(\w+) = ", text, re.MULTILINE)
    assert sorted(told) == sorted(["rule", *(f.name for f in fields(read_rule(path)))])


def test_every_kind_but_static_is_published():
    kinds = {type(rule) for rule in published(1000).values()}
    assert kinds == {*ALONE.values(), *TOGETHER.values()} - {ALONE["static"]}


@pytest.mark.parametrize("depth", [1, 2, 16, 26])
def test_rules_are_cut_to_the_records_blocks(depth):
    rules = published(depth)
    assert all(getattr(rule, "longest", 0) <= depth for rule in rules.values())
    assert rules["libraspec"] == LibraSpec(2.2, min(16, max(depth - 1, 1)), min(24, max(depth - 1, 1)))
    assert rules["exact-marginal"] == ExactMarginal(min(24, depth))
    assert rules["sglang-ema"] == EmaWalk()
    assert shortened(TheoremLibraSpec(), 9) == TheoremLibraSpec(block=9, longest=9)


def test_a_users_own(tmp_path):
    rule = read_rule(written(tmp_path, 'rule = "libraspec"\nalpha = 3\n'))
    assert rule == LibraSpec(alpha=3.0)
    assert as_planner(rule) == EachAlone(LibraSpec(alpha=3.0))
    bandit = read_rule(written(tmp_path, 'rule = "banditspec"\narms = [2, 5]\n'))
    assert bandit == as_planner(bandit) == BanditSpec(arms=(2, 5))


def test_ours():
    rules = published(20)
    assert rules["long-run"] == LongRun()
    assert rules["long-run-own-ratio"] == LongRun(objective="own-ratio")
    assert rules["long-run-uncalibrated"] == LongRun(calibration=None)
    assert rules["long-run-learned-times"] == LongRun(times=LearnedTimes())


def test_parts_of_a_users_own(tmp_path):
    rule = read_rule(written(tmp_path, 'rule = "long-run"\n[calibration]\nrefit_every = 3\n[times]\n'))
    assert rule == LongRun(calibration=Calibration(3), times=LearnedTimes())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("alpha = 2.0", "rule is None"),
        ("rule = 3", "rule is 3"),
        ('rule = "librespec"', "did you mean 'libraspec'"),
        ('rule = "libraspec"\nalfa = 2.0', "unknown parameter 'alfa'.*did you mean 'alpha'"),
        ('rule = "libraspec"\nblock = 0', "block is 0.*>= 1"),
        ('rule = "libraspec"\nblock = 1.5', "block is 1.5.*int"),
        ('rule = "libraspec"\nalpha = nan', "alpha is nan"),
        ('rule = "libraspec"\nalpha = inf', "alpha is inf"),
        ('rule = "libraspec"\nalpha = -1.0', "alpha is -1.0.*>= 0"),
        ('rule = "weak-token"\nleast = 1.5', "least is 1.5.*<= 1"),
        ('rule = "weak-token"\nleast = "high"', "least is 'high'.*float"),
        ('rule = "static"', "no length"),
        ('rule = "ema-walk"\nlengths = [3, 1]', r"lengths are \(3, 1\).*rising"),
        ('rule = "ema-walk"\nfirst = 2', "first is 2.*one of"),
        ('rule = "ema-walk"\nlengths = []', "lengths is"),
        ('rule = "libraspec', "is no TOML"),
        ('rule = "long-run"\nobjective = "short-run"', "objective is 'short-run'.*Invalid enum value"),
        ('rule = "long-run"\ncalibration = true', "calibration is True.*a table, or false"),
        ('rule = "long-run"\ncalibration = { refit = 3 }', "'calibration.refit'.*'calibration.refit_every'"),
        ('rule = "long-run"\n[calibration]\nrefit_every = 0', "calibration.refit_every is 0.*>= 1"),
        ('rule = "long-run"\n[times]\nridge = -1.0', "times.ridge is -1.0.*> 0"),
        ('rule = "long-run"\n[times]\nridge = inf', "times.ridge is inf"),
        ('rule = "dspark"\nscan = "some"', "scan is 'some'"),
        ('rule = "d-cut"\nshares = [0.5, 1.5]', r"shares is \[0.5, 1.5\].*<= 1"),
    ],
)
def test_what_a_file_cannot_say(tmp_path, text, said):
    path = written(tmp_path, text)
    with pytest.raises(BadInput, match=said) as refusal:
        read_rule(path)
    assert str(path) in str(refusal.value)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(BadInput, match="cannot be read"):
        read_rule(tmp_path / "none.toml")
    path = tmp_path / "bytes.toml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadInput, match="is no TOML"):
        read_rule(path)
