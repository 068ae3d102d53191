"""What a page is made of."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Picture:
    """A figure's file and what stands under it."""

    file: str
    caption: str


@dataclass(frozen=True)
class Grid:
    """A table for the page."""

    caption: str
    header: list[str]
    rows: list[list[str]]
    folded: bool = False
