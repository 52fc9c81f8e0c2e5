"""Check of how disk images are laid out: what `trueline check` says, as values.

    >>> import trueline
    >>> trueline.check("vm.qcow2", for_="ssd-16k", follow=True)["verdict"]
    'misaligned'

`rows`, `batches`, `write_parquet` and `SCHEMA` need pyarrow: pip install 'trueline[arrow]'.
"""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from ._native import Checker, Crew, Pending
from ._report import (
    Container,
    Finding,
    FirstWrite,
    Grain,
    Image,
    Options,
    Provider,
    Report,
    Table,
    TouchedRange,
    Unread,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .arrow import SCHEMA, batches, rows, write_parquet

    Target = str | os.PathLike[str]

__all__ = [
    "Container",
    "Error",
    "Finding",
    "FirstWrite",
    "Grain",
    "Image",
    "Options",
    "Provider",
    "Report",
    "SCHEMA",
    "Table",
    "TouchedRange",
    "Unread",
    "batches",
    "check",
    "check_many",
    "rows",
    "write_parquet",
]

# Threads that wait for servers; files are read by as many as there are processors.
THREADS = 64

# Names that need pyarrow, which is imported with the first of them.
_ARROW = ("SCHEMA", "batches", "rows", "write_parquet")

__version__ = version("trueline")


class Error(Exception):
    """Reason for which a target could not be read: `target`, `error_class`, and the text."""

    def __init__(self, target: str, error_class: str, text: str) -> None:
        super().__init__(target, error_class, text)
        self.target = target
        self.error_class = error_class

    def __str__(self) -> str:
        return str(self.args[2])


def check(target: Target, **options: Unpack[Options]) -> Report:
    """Report on a disk, image or object, as a line of `trueline check --jsonl`.

    Options are those of `trueline check` that say what a disk is: `for_="ssd-16k"`,
    `physical="4096+3584"`, `grain=["chunk=64k"]`, `follow=True`.

    Raises `Error` where the target cannot be read, `ValueError` for a wrong option.
    """
    line: Any = json.loads(checker(options).crew(1).line(target).result())
    if "error" in line:
        raise Error(line["target"], line["error_class"], line["error"])
    report: Report = line
    return report


def check_many(
    targets: Iterable[Target], *, threads: int = THREADS, **options: Unpack[Options]
) -> Iterator[Report | Unread]:
    """Reports on targets, in their order, as soon as they are there and the list goes on.

    A target that cannot be read has one too, with the keys `error_class` and `error`. Targets
    are taken as they are wanted, so that a list may have any length.

    Raises `ValueError` for a wrong option.
    """
    return (json.loads(line) for line in in_order(checker(options), Crew.line, targets, threads))


def checker(options: Options) -> Checker:
    """Checker with these options, the last few of which are kept."""
    made: Callable[[tuple[str, ...]], Checker] = _checker
    if options.get("key_file"):
        # A passphrase is not kept for longer than it is needed, and is read anew.
        made = _checker.__wrapped__
    return made(_words(options))


@lru_cache(maxsize=16)
def _checker(words: tuple[str, ...]) -> Checker:
    return Checker(words)


# A process that was forked has none of the threads, and may have been forked with a lock held.
os.register_at_fork(after_in_child=_checker.cache_clear)


def _words(options: Options) -> tuple[str, ...]:
    """The options as words of a command line."""
    words: list[str] = []
    for name, value in options.items():
        option = "--" + name.rstrip("_").replace("_", "-")
        values: Any = value if isinstance(value, (list, tuple)) else [value]
        for one in values:
            if one is True:
                words.append(option)
            elif one is not None and one is not False:
                words.append(f"{option}={os.fspath(one) if isinstance(one, os.PathLike) else one}")
    return tuple(words)


def in_order(
    checker: Checker,
    begin: Callable[[Crew, Target], Pending],
    targets: Iterable[Target],
    threads: int,
) -> Iterator[bytes]:
    """Lines of targets, checked by `threads` at a time, in the order of the targets."""
    if isinstance(targets, (str, bytes, os.PathLike)):
        raise TypeError(f"{targets!r} is one target: give a list of them, or call check")
    if threads < 1:
        raise ValueError(f"threads must be at least 1, and are {threads}")
    return _in_order(checker.crew(threads), begin, iter(targets), 4 * threads)


def _in_order(
    crew: Crew, begin: Callable[[Crew, Target], Pending], targets: Iterator[Target], most: int
) -> Iterator[bytes]:
    ahead: deque[Pending] = deque()
    try:
        for target in targets:
            ahead.append(begin(crew, target))
            # One that takes long holds up those behind it, up to so many.
            while ahead and (len(ahead) >= most or ahead[0].done()):
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()
    finally:
        crew.close()


def __getattr__(name: str) -> Any:
    if name in _ARROW:
        from . import arrow

        return getattr(arrow, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_ARROW})
