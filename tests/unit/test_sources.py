"""What a recipe's ``source`` names: paths, packages, hub models; pickles never."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from simspec.errors import BadInput
from simspec.record.sources import find_source


def model(folder: Path, *files: str) -> Path:
    """A folder that looks like a model; nothing in it can be loaded."""
    folder.mkdir(parents=True)
    for name in files:
        (folder / name).write_bytes(b"{}")
    return folder


def find(text: str, folder: Path | None = None, **others):
    return find_source(text, "source", folder=folder, **others)


def test_a_path_is_looked_up_beside_the_recipe_first(tmp_path, monkeypatch):
    beside = model(tmp_path / "recipes" / "both", "config.json", "model.safetensors")
    model(tmp_path / "here" / "both", "config.json", "model.safetensors")
    only = model(tmp_path / "here" / "only", "config.json", "model.safetensors")
    monkeypatch.chdir(tmp_path / "here")
    assert find("both", tmp_path / "recipes").folder.resolve() == beside
    assert find("only", tmp_path / "recipes").folder.resolve() == only
    # A bare name with a slash is a path where there is one, and a hub model only where there is not.
    model(tmp_path / "here" / "org" / "name", "config.json", "model.safetensors")
    assert find("org/name", tmp_path / "recipes").said == "name"


def test_a_gguf_file_by_its_path(tmp_path):
    path = tmp_path / "small.gguf"
    path.write_bytes(b"GGUF....")
    found = find("small.gguf", tmp_path)
    assert (found.said, found.folder, found.gguf) == ("small.gguf", tmp_path, "small.gguf")


def test_random_weights_for_a_config_file_or_folder(tmp_path):
    folder = model(tmp_path / "made", "config.json")
    for text in ("random:made", "random:made/config.json"):
        found = find(text, tmp_path)
        assert (found.folder, found.config) == (folder, "config.json")
    assert found.sha256() == find("random:made", tmp_path).sha256()


def test_a_folders_hash_covers_its_weights(tmp_path):
    folder = model(tmp_path / "m", "config.json", "model.safetensors")
    before = find("m", tmp_path).sha256()
    (folder / "model.safetensors").write_bytes(b"{ }")
    assert find("m", tmp_path).sha256() != before


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (("config.json", "pytorch_model.bin"), "pytorch_model.bin"),
        (("config.json",), "holds no weights"),
        (("model.safetensors",), "config.json"),
        (("small.gguf",), "name the GGUF file itself"),
    ],
)
def test_a_folder_without_safetensors_is_refused(tmp_path, files, said):
    model(tmp_path / "m", *files)
    with pytest.raises(BadInput) as refused:
        find("m", tmp_path)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("weights.pt", b"", "pickle"),
        ("weights.onnx", b"", "unknown kind"),
        ("weights.gguf", b"<html>", "no GGUF file"),
    ],
)
def test_other_files_are_refused(tmp_path, name, content, said):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(BadInput) as refused:
        find(name, tmp_path)
    assert said in str(refused.value)
    assert name in str(refused.value)


@pytest.mark.parametrize(
    "text", ["nowhere", "nowhere.gguf", "a/b/c", "a/b.bin", "", "random:nowhere", "hub:x"]
)
def test_what_is_not_there_is_refused(tmp_path, text):
    with pytest.raises(BadInput) as refused:
        find(text, tmp_path)
    assert "source = " in str(refused.value)
    assert "allowed: " in str(refused.value)


def test_a_revision_is_for_hub_models(tmp_path):
    model(tmp_path / "m", "config.json", "model.safetensors")
    with pytest.raises(BadInput, match="revision 'main'"):
        find("m", tmp_path, revision="main")


@pytest.fixture
def no_way_to_the_hub(tmp_path, monkeypatch):
    """The hub at a port where nobody listens, and an empty folder for copies; returns that folder."""
    constants = pytest.importorskip("huggingface_hub.constants")
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "copies"))
    return tmp_path / "copies"


@pytest.mark.parametrize("text", ["hub:org/name", "org/name"])
def test_a_hub_that_cannot_be_reached_is_said_at_once(tmp_path, no_way_to_the_hub, text, monkeypatch):
    def waited(seconds):
        pytest.fail(f"waited {seconds} s to try again")

    monkeypatch.setattr("time.sleep", waited)
    with pytest.raises(BadInput, match="cannot be reached") as refused:
        find(text, tmp_path)
    assert ("no such path" in str(refused.value)) == (text == "org/name")


def test_a_copy_of_a_hub_model_is_used_where_the_hub_cannot_be_reached(tmp_path, no_way_to_the_hub):
    commit = "0123456789abcdef0123456789abcdef01234567"
    copy = no_way_to_the_hub / "models--org--name"
    snapshot = model(copy / "snapshots" / commit, "config.json", "model.safetensors")
    (copy / "refs").mkdir()
    (copy / "refs" / "main").write_text(commit)
    found = find("org/name", tmp_path)
    assert (found.said, found.folder, found.commit) == ("hub:org/name", snapshot, commit)
    (snapshot / "model.safetensors").unlink()
    (snapshot / "config.json").write_text(json.dumps({}))
    with pytest.raises(BadInput, match="holds no weights"):
        find("org/name", tmp_path)
