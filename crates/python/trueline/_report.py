"""Shapes of options and reports, for type checkers. Their meaning is in docs/manual/check.md."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal, TypedDict, final

if TYPE_CHECKING:
    from collections.abc import Sequence

Verdict = Literal["aligned", "unknown", "misaligned"]


class Options(TypedDict, total=False):
    """Options of `trueline check` that say what a disk is."""

    for_: str | None
    logical: int | str | None
    physical: int | str | None
    grain: str | Sequence[str] | None
    format: str | None
    follow: bool
    key_file: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None


class Grain(TypedDict):
    """Boundary of a provider: `size` and `phase` in bytes, its reason and source."""

    size: int
    phase: int
    why: str
    source: str
    trust: str


class TouchedRange(TypedDict):
    """Range that a first write touches: its length in bytes, and the units of the drive."""

    what: str
    length: int
    reads: int
    writes: int


class FirstWrite(TypedDict):
    """Device operations of a guest's first write to a cluster, at the least."""

    bytes: int
    unit: int
    reads: int
    writes: int
    ranges: list[TouchedRange]


class _Container(TypedDict):
    allocation: int
    grain: int
    phase: int
    blocks_looked_at: int | None


class Container(_Container, total=False):
    """Units in bytes of a container, and how many of its blocks were looked at."""

    first_write: FirstWrite


class Table(TypedDict):
    """Partition table: the bytes between which partitions may be, and those that are free."""

    scheme: str
    first: int
    end: int
    free: list[dict[str, int]]


# The functional form, here and below: a key is a word of Python's.
_Provider = TypedDict(
    "_Provider",
    {
        "provider": str,
        "parent": "str | None",
        "class": str,
        "sign": "str | None",
        "start": "int | None",
        "length": int,
        "sector_size": int,
        "stripe_size": int,
        "stripe_offset": int,
        "grains": list[Grain],
        "largest_grain": "int | None",
        "verdict": Verdict,
        "data_bearing": bool,
        "base": int,
        "root": str,
        "signs": list[str],
        "table": "Table | None",
        "members": list[str],
        "type": "str | None",
        "label": "str | None",
        "uuid": "str | None",
        "block_size": "int | None",
        "mountpoint": "str | None",
    },
)


class Provider(_Provider, total=False):
    """Provider of a target: a disk, a partition, a set, or what is in a container."""

    set: dict[str, Any]
    container: Container


class Finding(TypedDict):
    """Finding about a provider, what it costs, and how it is mended."""

    rule: str
    severity: Literal["note", "warning", "error"]
    provider: str
    offset: int
    unit: int
    remainder: int
    straddle: float
    rmw_factor: float
    message: str
    fix: list[str]
    commands: list[str]


class Image(TypedDict):
    """File or object that a target is."""

    size: int
    etag: str
    container: str
    creator: str


_Report = TypedDict(
    "_Report",
    {
        "format": str,
        "image": Image,
        "target": str,
        "for": "dict[str, Any] | None",
        "verdict": Verdict,
        "providers": list[Provider],
        "findings": list[Finding],
    },
)


@final
class Report(_Report):
    """Line about a target: the providers on it, and what was found."""


@final
class Unread(TypedDict):
    """Line of a target that could not be read."""

    format: str
    target: str
    error_class: str
    error: str
