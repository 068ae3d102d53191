"""A verb's folder: whole or not at all, in place of what the same verb wrote and of nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from simspec.errors import BadInput
from simspec.report.folder import LEDGER, MARK, REPORT, RUN, SIMULATION, SWEEP, check_free, replacing


def files(folder):
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def put(folder, **texts):
    for name, text in texts.items():
        path = folder / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.mark.parametrize("output", [REPORT, LEDGER, SWEEP, SIMULATION])
@pytest.mark.parametrize("name", ["notes.txt", "index.html", "figures.json", "figures/mine.png", "a/b.png"])
def test_a_folder_of_something_else_is_refused_by_name_and_left_alone(tmp_path, output, name):
    """Names of our own files among them, whose content is not ours."""
    path = tmp_path / "mine" / name
    path.parent.mkdir(parents=True)
    path.write_text("dear diary")
    with pytest.raises(BadInput, match="mine") as said, replacing(tmp_path / "mine", output):
        raise AssertionError("the folder was opened")
    assert name.split("/")[0] in str(said.value) or output.known_by in str(said.value)
    assert files(tmp_path) == {f"mine/{name}": b"dear diary"}


@pytest.mark.parametrize(
    "strange", ["study_toml", "rank_json", "figures__notes_txt", "figures__deep__a_png", "steps_parquet"]
)
def test_one_strange_file_beside_our_own_is_enough(tmp_path, strange):
    out = tmp_path / "out"
    put(out, index_html=MARK, sweep_json="{}", figures__load_png="")
    check_free(out, SWEEP)
    put(out, **{strange: ""})
    named = strange.replace("__", "/").replace("_", ".").replace("/deep/a.png", "/deep")
    with pytest.raises(BadInput, match=f"holds '{named}', which simspec sweep does not write"):
        check_free(out, SWEEP)


def test_one_verb_does_not_replace_what_another_wrote(tmp_path):
    put(tmp_path, index_html=MARK, ledger_json="{}")
    check_free(tmp_path, LEDGER)
    for output in (REPORT, SWEEP, SIMULATION):
        with pytest.raises(BadInput, match="does not write"):
            check_free(tmp_path, output)


def test_a_link_a_plain_file_and_tables_without_their_figures_are_refused(tmp_path):
    put(tmp_path, real__figures_json='{"format": "simspec simulation 1"}', bare__steps_parquet="")
    check_free(tmp_path / "real", SIMULATION)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    for name in ("link", "real/figures.json"):
        with pytest.raises(BadInput, match="is no folder"):
            check_free(tmp_path / name, SIMULATION)
    with pytest.raises(BadInput, match=r"figures\.json was not made by"):
        check_free(tmp_path / "bare", SIMULATION)
    (tmp_path / "real" / "steps.parquet").symlink_to(tmp_path / "bare" / "steps.parquet")
    with pytest.raises(BadInput, match=r"steps\.parquet"):
        check_free(tmp_path / "real", SIMULATION)


@pytest.mark.parametrize(
    "before", [None, {}, {"figures_json": '"format": "simspec ', "steps_parquet": "old"}]
)
def test_it_takes_the_place_of_nothing_of_an_empty_folder_and_of_an_earlier_one(tmp_path, before):
    out = tmp_path / "a" / "out"
    if before is not None:
        out.mkdir(parents=True)
        put(out, **before)
    with replacing(out, SIMULATION) as partial:
        assert out.exists() == (before is not None)
        (partial / RUN).write_text("new")
    assert files(tmp_path) == {"a/out/figures.json": b"new"}
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["a", "figures.json", "out"]
    assert out.stat().st_mode & 0o077 == (tmp_path / "a").stat().st_mode & 0o077


@pytest.mark.parametrize("failure", [RuntimeError(), OSError(28, "No space left on device")])
def test_a_failure_leaves_the_old_one_and_nothing_beside_it(tmp_path, failure):
    with replacing(tmp_path / "out", REPORT) as partial:
        (partial / "index.html").write_text(MARK + "old")

    def fails():
        with replacing(tmp_path / "out", REPORT) as partial:
            (partial / "index.html").write_text(MARK + "new")
            raise failure

    with pytest.raises(RuntimeError if isinstance(failure, RuntimeError) else BadInput):
        fails()
    assert files(tmp_path) == {"out/index.html": (MARK + "old").encode()}
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_a_swap_that_fails_puts_the_old_one_back(tmp_path, monkeypatch):
    """The second of its two renames is refused."""
    put(tmp_path, out__index_html=MARK)
    real = Path.rename

    def refused(path, target):
        if path.name == "new":
            raise OSError(1, "Operation not permitted")
        return real(path, target)

    monkeypatch.setattr(Path, "rename", refused)
    with pytest.raises(BadInput, match="not permitted"), replacing(tmp_path / "out", REPORT):
        pass
    assert files(tmp_path) == {"out/index.html": MARK.encode()}
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_what_came_meanwhile_is_not_replaced(tmp_path):
    with pytest.raises(BadInput, match=r"notes\.txt"), replacing(tmp_path / "out", REPORT):
        put(tmp_path, out__notes_txt="mine")
    assert files(tmp_path) == {"out/notes.txt": b"mine"}


def test_a_name_that_no_folder_can_have_is_refused(tmp_path):
    with pytest.raises(BadInput, match="cannot be a folder"):
        check_free(tmp_path / ("x" * 300), REPORT)
