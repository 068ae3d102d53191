"""Finished studies are kept, found again under all that they depend on, and under nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simspec.compare.asked import Asked
from simspec.compare.kept import Kept, key_of
from simspec.compare.libraspec import studies as libraspec
from simspec.compare.specrouter import studies as specrouter
from simspec.compare.specrouter.studies import STUDIES
from simspec.errors import BadInput
from simspec.report.folder import LIBRASPEC_STUDIES, SPECROUTER_STUDIES
from simspec.report.libraspec import page as libraspec_page
from simspec.report.specrouter import page as specrouter_page

ASKED = Asked()


@pytest.mark.parametrize(
    ("studies", "page", "files"),
    [
        (specrouter.STUDIES, specrouter_page.SECTIONS, SPECROUTER_STUDIES),
        (libraspec.STUDIES, libraspec_page.SECTIONS, LIBRASPEC_STUDIES),
    ],
)
def test_every_study_has_its_part_of_the_page_and_its_file_in_the_same_order(studies, page, files):
    assert tuple(studies) == tuple(page) == files


@pytest.mark.parametrize(
    "other",
    [
        key_of("routing", ASKED, {"a": "1"}, "code"),
        key_of("ranking", ASKED, {"a": "2"}, "code"),
        key_of("ranking", ASKED, {"b": "1"}, "code"),
        key_of("ranking", ASKED, {"a": "1"}, "other code"),
        *(
            key_of("ranking", replace(ASKED, **changed), {"a": "1"}, "code")
            for changed in ({"batches": (1,)}, {"lengths": (1,)}, {"draws": 7}, {"seed": 1})
        ),
    ],
)
def test_whatever_findings_depend_on_is_in_the_key(other):
    key = key_of("ranking", ASKED, {"a": "1"}, "code")
    assert key == key_of("ranking", replace(ASKED, jobs=9), {"a": "1"}, "code")
    assert key != other


def test_a_study_is_found_in_either_folder_under_its_key_alone(tmp_path):
    begun, done = tmp_path / "begun", tmp_path / "done"
    kept = Kept("specrouter", begun, done)
    assert kept.find("ranking", "k") is None
    document = kept.keep("ranking", "k", {"x": 0.1})
    assert kept.find("ranking", "k") == document
    assert kept.find("ranking", "other") is None
    assert kept.find("routing", "k") is None
    begun.rename(done)
    assert kept.find("ranking", "k") == document


@pytest.mark.parametrize("text", ["", "[1]", '{"format": "simspec specrouter 1", "study"', "\xff"])
def test_a_broken_file_is_passed_over(tmp_path, text):
    kept = Kept("specrouter", tmp_path, tmp_path / "none")
    (tmp_path / "ranking.json").write_text(text, encoding="latin-1")
    assert kept.find("ranking", "k") is None


def test_what_is_forgotten_is_ours_alone(tmp_path):
    kept = Kept("specrouter", tmp_path / "begun", tmp_path / "none")
    kept.keep("ranking", "k", {})
    (tmp_path / "begun" / "mine.txt").write_text("dear diary")
    kept.forget(STUDIES)
    assert [p.name for p in (tmp_path / "begun").iterdir()] == ["mine.txt"]
    (tmp_path / "begun" / "mine.txt").unlink()
    kept.forget(STUDIES)
    assert not (tmp_path / "begun").exists()


def test_a_folder_that_cannot_be_written_is_said(tmp_path):
    (tmp_path / "begun").write_text("a file")
    with pytest.raises(BadInput, match="cannot be written"):
        Kept("specrouter", tmp_path / "begun", tmp_path).keep("ranking", "k", {})
