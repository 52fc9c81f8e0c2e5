"""Lines of `trueline check --rows` as Arrow: one for each provider, the same columns in all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

try:
    import pyarrow as pa
    import pyarrow.json
    import pyarrow.parquet
except ImportError as error:
    raise ImportError("rows need pyarrow: pip install 'trueline[arrow]'") from error

from . import THREADS, checker, in_order
from ._native import Crew

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from . import Options, Target

# Columns, in the order of docs/schema/rows.schema.json, which says what each is.
SCHEMA = pa.schema(
    [
        ("uri", pa.string()),
        ("etag", pa.string()),
        ("size", pa.int64()),
        ("for", pa.string()),
        ("target_verdict", pa.string()),
        ("container", pa.string()),
        ("creator", pa.string()),
        ("virtual_size", pa.int64()),
        ("allocation", pa.int64()),
        ("grain", pa.int64()),
        ("phase", pa.int64()),
        ("provider", pa.string()),
        ("class", pa.string()),
        ("kind", pa.string()),
        ("start", pa.int64()),
        ("length", pa.int64()),
        ("data_bearing", pa.bool_()),
        ("verdict", pa.string()),
        ("rules", pa.string()),
        ("severity", pa.string()),
        ("unit", pa.int64()),
        ("remainder", pa.int64()),
        ("cost", pa.float64()),
        ("error_class", pa.string()),
        ("error", pa.string()),
    ]
)

# Bytes of lines that make a batch: some ten thousand rows.
BATCH = 8 << 20


def batches(
    targets: Iterable[Target], *, threads: int = THREADS, **options: Unpack[Options]
) -> Iterator[pa.RecordBatch]:
    """Rows of targets, in their order, some ten thousand at a time.

    A target that cannot be read has one row, with `error_class` and `error`.

    Raises `ValueError` for a wrong option.
    """
    return _batches(in_order(checker(options), Crew.rows, targets, threads))


def _batches(lines: Iterable[bytes]) -> Iterator[pa.RecordBatch]:
    kept, size = [], 0
    for some in lines:
        kept.append(some)
        size += len(some)
        if size >= BATCH:
            yield from _read(b"".join(kept))
            kept, size = [], 0
    if kept:
        yield from _read(b"".join(kept))


def _read(lines: bytes) -> Iterator[pa.RecordBatch]:
    table = pyarrow.json.read_json(
        pa.BufferReader(lines),
        # One block: a line is never cut.
        read_options=pyarrow.json.ReadOptions(block_size=len(lines) + 1),
        parse_options=pyarrow.json.ParseOptions(
            explicit_schema=SCHEMA, unexpected_field_behavior="error"
        ),
    )
    yield from table.to_batches()


def rows(
    targets: Iterable[Target], *, threads: int = THREADS, **options: Unpack[Options]
) -> pa.Table:
    """Rows of targets as one table, all of it in memory; `batches` gives it in parts."""
    return pa.Table.from_batches(batches(targets, threads=threads, **options), SCHEMA)


def write_parquet(
    targets: Iterable[Target],
    path: str | os.PathLike[str],
    *,
    threads: int = THREADS,
    **options: Unpack[Options],
) -> int:
    """Number of rows written to a Parquet file, which takes its place once it is whole.

    Raises `ValueError` for a wrong option, or a path of anything but a file.
    """
    # Through a link to what it leads to, so that the link stays.
    place = os.path.realpath(path)
    if os.path.lexists(place) and not os.path.isfile(place):
        raise ValueError(f"{os.fspath(path)} is there, and is no file")
    found, count = batches(targets, threads=threads, **options), 0
    directory, name = os.path.split(place)
    beside = os.path.join(directory, f".{name}.{secrets.token_hex(4)}.new")
    with open(beside, "xb") as file:
        try:
            with pyarrow.parquet.ParquetWriter(file, SCHEMA) as out:
                for batch in found:
                    out.write_batch(batch)
                    count += batch.num_rows
            file.flush()
            os.fsync(file.fileno())
            os.replace(beside, place)
        except BaseException:
            os.unlink(beside)
            raise
    return count
