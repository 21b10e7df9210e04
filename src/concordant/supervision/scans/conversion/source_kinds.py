"""Any source of rows, told by what it is."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from itertools import chain
from pathlib import Path
from typing import Any

from concordant.exceptions import EmptyDataError, LabelError, ParameterError
from concordant.supervision.data import RankingData
from concordant.supervision.readers.tables import FORMATS
from concordant.supervision.readers.text import COMPRESSED, paths_of
from concordant.supervision.scans.conversion.source_files import of_csv, of_feather, of_parquet
from concordant.supervision.scans.conversion.source_memory import of_one, of_pieces, of_scan
from concordant.supervision.scans.conversion.sources import Source, Wanted
from concordant.supervision.scans.letor_text import LetorSource
from concordant.supervision.scans.parquet import listed, parquet_files
from concordant.supervision.scans.scan import Scan

__all__ = ["name_of", "source_of"]

KNOWN = "a file, several files, a folder of Parquet files, ranking data, a frame, a scan, or several frames"


def source_of(
    source: Any, wanted: Wanted, n_features: int | None, zero_based: bool, folder: Path, stack: ExitStack
) -> Source:
    """Give the source; what comes once only is kept on the disk of a folder, until the stack is closed."""
    source = RankingData.like(source) or source
    if isinstance(source, Mapping):  # whose names would be taken for those of files
        raise ParameterError("source", type(source).__name__, KNOWN)
    if isinstance(source, Iterable) and not (is_path(source) or is_whole(source)):
        pieces = iter(source)
        first = next(pieces, None)
        if first is None:
            raise EmptyDataError("the source")
        source = chain([first], pieces)
        if not is_path(first):
            refuse_letor(n_features, zero_based)
            return stack.enter_context(closing(of_pieces(source, wanted, folder)))
    if is_path(source) or isinstance(source, chain):
        return of_files(paths_of(source, "source"), wanted, n_features, zero_based)
    refuse_letor(n_features, zero_based)
    if not is_whole(source):
        raise ParameterError("source", type(source).__name__, KNOWN)
    return of_scan(source, wanted) if isinstance(source, Scan) else of_one(source, wanted)


def name_of(source: Any) -> str:
    """Give the files of a source, for messages; what is no file is called the source."""
    files = source if isinstance(source, list | tuple) else [source]
    if not files or not all(map(is_path, files)):
        return "the source"
    return listed([os.fspath(one) for one in files], source)


def is_path(source: Any) -> bool:
    """Whether it names a file."""
    return isinstance(source, str | os.PathLike)


def is_whole(source: Any) -> bool:
    """Whether it is all rows in one: ranking data, a scan or a frame."""
    import narwhals as nw
    import pyarrow as pa

    if isinstance(source, RankingData | Scan | pa.RecordBatch):
        return True
    try:
        return isinstance(nw.from_native(source, pass_through=True), nw.DataFrame | nw.LazyFrame)
    except nw.exceptions.NarwhalsError:  # a frame that will be refused by name
        return True


def of_files(files: Sequence[str], wanted: Wanted, n_features: int | None, zero_based: bool) -> Source:
    """Give files of one kind, told by the suffix; what is no table is LETOR text."""
    kinds = {file: kind_of(file) for file in files}
    if len(set(kinds.values())) > 1:
        one, other = list({kind: file for file, kind in kinds.items()}.values())[:2]
        raise LabelError(f"{one} and {other} are of different kinds", "convert files of one kind at a time.")
    kind = next(iter(kinds.values()))
    if kind == "":
        return LetorSource(files, wanted, n_features, zero_based=zero_based)
    refuse_letor(n_features, zero_based)
    if kind in (".csv", ".tsv"):
        return of_csv(files, wanted, "," if kind == ".csv" else "\t")
    return of_feather(files, wanted) if kind == ".feather" else of_parquet(parquet_files(files), wanted)


def kind_of(file: str) -> str:
    """Give the suffix that tells how a file is read; LETOR text has none.

    >>> kind_of("train.txt.gz"), kind_of("a.pq"), kind_of("a.csv.xz")
    ('', '.parquet', '.csv')
    """
    inner = Path(file).with_suffix("") if Path(file).suffix in COMPRESSED else Path(file)
    if Path(file).is_dir() or inner.suffix == ".pq":
        return ".parquet"
    if inner != Path(file) and inner.suffix in FORMATS and inner.suffix not in (".csv", ".tsv"):
        raise ParameterError("source", file, "uncompressed, since Parquet and Feather compress themselves")
    return {".arrow": ".feather"}.get(inner.suffix, inner.suffix if inner.suffix in FORMATS else "")


def refuse_letor(n_features: int | None, zero_based: bool) -> None:
    """Refuse what is said of LETOR text where there is none."""
    if n_features is not None or zero_based:
        name, value = ("n_features", n_features) if n_features is not None else ("zero_based", zero_based)
        raise ParameterError(name, value, "left out: it is about LETOR text")
