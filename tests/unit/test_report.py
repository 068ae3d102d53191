"""The report of a made-up trace: whole, repeatable, true to the numbers."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from html.parser import HTMLParser

import pytest

from simspec.cli.report import report
from simspec.errors import BadInput
from tests.toy import Setting, Toy
from tests.unit.test_report_folder import files

ASKED = {"batches": "2", "lengths": "1-2", "draws": 2}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A trace's folder, its report's, and what the command printed is not kept."""
    root = tmp_path_factory.mktemp("report")
    Toy(Setting(seed=5, prompts=3, output_tokens=12, order=1)).write(root / "toy")
    report(root / "toy", out=root / "first", cost=["float32"], **ASKED)
    return root


class Page(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.links, self.open = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.links += [v for k, v in attrs if k in ("src", "href")]
        if tag not in ("img", "meta", "link", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_every_link_is_a_file_of_the_report_and_every_file_is_linked(made):
    page = Page((made / "first" / "index.html").read_text())
    assert page.open == []
    assert set(page.links) == set(files(made / "first")) - {"index.html"}
    pictures = [n for n in page.links if n.endswith(".png")]
    assert {n.split("/")[1].split("-")[0].removesuffix(".png") for n in pictures} == {
        "speedup",
        "predicted",
        "survival",
        "reliability",
        "along",
        "rules",
    }


def test_pictures_carry_no_instant_and_no_version(made):
    for name, data in files(made / "first").items():
        if name.endswith(".png"):
            assert data.startswith(b"\x89PNG")
            assert not re.search(rb"tEXt|iTXt|tIME", data)


def test_the_same_command_writes_the_same_bytes_and_replaces_its_own(made):
    (made / "second").mkdir()
    report(made / "toy", out=made / "second", cost=["float32"], **ASKED)
    assert files(made / "second") == files(made / "first")
    (made / "second" / "rank.json").write_text("spoilt")
    report(made / "toy", out=made / "second", cost=["float32"], **ASKED)
    assert files(made / "second") == files(made / "first")
    assert sorted(p.name for p in made.iterdir()) == ["first", "second", "toy"]


def test_synthetic_behaviour_is_called_so_beside_every_result(made):
    text = (made / "first" / "index.html").read_text()
    captions = re.findall(r"<(figcaption|caption|summary)>(.*?)</\1>", text, re.DOTALL)
    shown = [c for _, c in captions if "Leave-one-out" not in c]
    assert len(shown) >= 9
    for caption in shown:
        assert "SYNTHETIC behaviour" in caption
        assert "ost float32" in caption or "No cost enters" in caption


def test_sentences_repeat_the_numbers_of_the_json(made):
    text = (made / "first" / "index.html").read_text()
    ranks = json.loads((made / "first" / "rank.json").read_text())
    rules = json.loads((made / "first" / "lengths.json").read_text())
    assert ranks["origin"] == rules["origin"] == "synthetic"
    assert ranks["provenance"] == rules["provenance"]
    found = ranks["costs"]["float32"]
    chains = found["batches"]["1"]["chains"]
    plain = next(c for c in chains if len(c["chain"]) == 1)["replay_seconds_per_token"]
    bound = plain / found["lower_bound_seconds_per_token"]
    assert bound >= chains[found["batches"]["1"]["best"]]["speedup"] > 0
    assert f"can be more than {bound:.2f}x as fast" in text
    rule = rules["costs"]["float32"]["batches"]["2"]["rules"]["libraspec"]
    assert f"{rule['regret_best_static']:+.1f}% time per token" in text
    for name, drafter in rules["drafters"].items():
        if drafter["calibration"] is not None:
            assert re.search(rf"<li>{name}: .*ECE {drafter['calibration']['ece']:.3f}", text)
    for batch, entry in found["batches"].items():
        score = entry["scores"]["reach/simscore"]
        said = re.search(rf"picks the chain .*{score['regret']:.1f}% \(95% .*\) at batch {batch}", text)
        assert score["top1"] or said


def test_two_costs_of_one_name_are_refused(made):
    with pytest.raises(BadInput, match="two costs"):
        report(made / "toy", out=made / "none", cost=["float32", "float32"], **ASKED)
    assert not (made / "none").exists()


def test_importing_the_command_imports_no_drawing():
    heavy = "{'matplotlib', 'pandas', 'jinja2'}"
    code = f"import sys, simspec.cli.report; print(sorted({heavy} & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
