"""Devices, architectures and published step times that come with the package, each with its source."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from simspec.cost.architecture import Architecture
from simspec.cost.roofline import Device
from simspec.errors import unknown_name

FOLDER = Path(__file__).parent


def read_preset(file: str) -> dict[str, Any]:
    """The contents of one of the package's own TOML files."""
    return tomllib.loads((FOLDER / file).read_text(encoding="utf-8"))


@cache
def devices() -> dict[str, Device]:
    """Device presets by name."""
    return msgspec.convert(read_preset("devices.toml"), dict[str, Device])


@cache
def architectures() -> dict[str, Architecture]:
    """Architecture presets by name."""
    return msgspec.convert(read_preset("architectures.toml"), dict[str, Architecture])


def device(name: str, *, where: object = "") -> Device:
    """A device preset; raises :class:`~simspec.errors.BadInput` with the nearest name."""
    if name not in devices():
        raise unknown_name("device", name, devices(), where=where)
    return devices()[name]


def architecture(name: str, *, where: object = "") -> Architecture:
    """An architecture preset; raises :class:`~simspec.errors.BadInput` with the nearest name."""
    if name not in architectures():
        raise unknown_name("architecture", name, architectures(), where=where)
    return architectures()[name]
