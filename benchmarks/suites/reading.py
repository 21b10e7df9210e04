"""Reading LETOR text: MB/s of ours, the peers that read the format, and the limits."""

import gzip
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

import concordant as cc
from benchmarks.shared.tables import Table
from benchmarks.shared.timing import Race, race, watched
from concordant._base.segments import n_threads

FEATURES = 136  # as MSLR-WEB
BLOCK = 4_000  # distinct rows; about 4 MB, far beyond gzip's window and the processor's branch history
OURS = "concordant"


def run(*, quick: bool) -> list[Table]:
    """One table for each kind of file."""
    size, rounds = (5, 1) if quick else (200, 3)
    with tempfile.TemporaryDirectory() as folder:
        usual = generate(Path(folder, "usual.txt"), size * 10**6, usual_values)
        without = _without_qid(usual)
        tables = [_timed("MSLR-like text", usual, _plain(usual, without), rounds)]
        packed = _compress(usual)
        tables.append(_timed("MSLR-like text, gzip", usual, _gzipped(packed), rounds))
        for path in (without, packed, usual):
            path.unlink()
        long = generate(Path(folder, "long.txt"), size * 10**6, _long_values)
        tables.append(_timed("17-digit values", long, _plain(long, _without_qid(long)), rounds))
    return tables


def usual_values(rng: np.random.Generator) -> Iterator[str]:
    """Values of one row as MSLR writes them: counts, zeros, ratios, six decimals, small exponents."""
    kinds = np.arange(FEATURES) % 8
    numbers, counts = rng.standard_normal(FEATURES), rng.geometric(0.1, FEATURES)
    for kind, number, count in zip(kinds, numbers, counts, strict=True):
        if kind < 2:
            yield str(count)
        elif kind == 2:
            yield "0"
        elif kind == 3:
            yield f"{count / 2:g}"
        elif kind == 4:
            yield f"{number * 5:.6f}"
        elif kind == 5:
            yield f"{abs(number) / 100:.6f}"
        elif kind == 6:
            yield f"{number:.4g}"
        else:
            yield "1e-05" if count > 10 else f"{count * 37}"


def _long_values(rng: np.random.Generator) -> Iterator[str]:
    """Values of one row with 17 significant digits."""
    return (f"{number:.17g}" for number in rng.standard_normal(FEATURES))


def generate(path: Path, size: int, values: Callable[[np.random.Generator], Iterator[str]]) -> Path:
    """Write rows until the file has this many bytes; features are drawn from a block of rows."""
    rng = np.random.default_rng(0)
    block = [
        "".join(f" {index}:{value}" for index, value in enumerate(values(rng), 1)).encode()
        for _ in range(min(BLOCK, size // 1000))
    ]
    with path.open("wb") as file:
        for row, drawn in enumerate(rng.integers(0, len(block), 1 + size // len(min(block, key=len)))):
            file.write(b"%d qid:%d%b\n" % (drawn % 5, 1 + row // 120, block[drawn]))
            if file.tell() >= size:
                break
    return path


def _without_qid(path: Path) -> Path:
    """The same rows for LightGBM, which refuses `qid:`."""
    target = path.with_suffix(".noqid")
    with path.open("rb") as source, target.open("wb") as file:
        for line in source:
            grade, _, features = line.split(b" ", 2)
            file.write(grade + b" " + features)
    return target


def _compress(path: Path) -> Path:
    """A .gz beside the file."""
    target = path.with_name(path.name + ".gz")
    with path.open("rb") as source, gzip.open(target, "wb", compresslevel=6) as file:
        for piece in watched(iter(lambda: source.read(1 << 22), b""), "compressing"):
            file.write(piece)
    return target


Candidates = dict[str, tuple[str, Callable[[], object]]]  # name -> what is timed, the call


def _plain(path: Path, without: Path) -> Candidates:
    """Readers of the text file."""
    _check(path)
    return {
        OURS: ("`cc.read_letor(path)`: dense float64, exact; grades, queries", lambda: cc.read_letor(path)),
        f"{OURS}, sparse": ("`read_letor(path, sparse=True)`: CSR", lambda: cc.read_letor(path, sparse=True)),
        "scikit-learn": (
            "`load_svmlight_file(path, query_id=True)`: CSR float64, exact; 1 thread",
            lambda: _read_sklearn(path),
        ),
        **_peer(
            "xgboost",
            "`DMatrix('path?format=libsvm')`: float32; deprecated since 3.1",
            lambda: _read_xgboost(path),
        ),
        **_peer(
            "lightgbm",
            "`Dataset(path).construct()`: also bins the features; from a copy without `qid:`, refused",
            lambda: _read_lightgbm(without),
        ),
        "bytes": ("limit: `np.fromfile(path, uint8)`, page cache", lambda: np.fromfile(path, np.uint8)),
        "newlines": ("limit: read the bytes and count `\\n`", lambda: path.read_bytes().count(b"\n")),
    }


def _gzipped(path: Path) -> Candidates:
    """Readers of .gz."""
    return {
        OURS: ("`cc.read_letor(path.gz)`", lambda: cc.read_letor(path)),
        "scikit-learn": ("`load_svmlight_file(path.gz, query_id=True)`", lambda: _read_sklearn(path)),
        "bytes": ("limit: `gzip.decompress`, 1 thread", lambda: gzip.decompress(path.read_bytes())),
    }


def _check(path: Path) -> None:
    """Raise if ours and scikit-learn's do not read the same numbers, bit for bit."""
    ours, (X, y, qid) = cc.read_letor(path, sparse=True), _read_sklearn(path)
    same = (ours.X != X).nnz == 0 and np.array_equal(ours.y, y) and np.array_equal(ours.qid, qid)
    if not same:
        raise SystemExit("cc.read_letor and load_svmlight_file read different numbers")


def _peer(package: str, what: str, call: Callable[[], object]) -> Candidates:
    """The candidate, if its package is installed."""
    try:
        __import__(package)
    except ImportError:
        return {}
    return {package: (what, call)}


def _read_sklearn(path: Path) -> tuple:
    from sklearn.datasets import load_svmlight_file

    return load_svmlight_file(str(path), query_id=True, zero_based=False)


def _read_xgboost(path: Path) -> object:
    import xgboost

    with xgboost.config_context(verbosity=0):
        return xgboost.DMatrix(f"{path}?format=libsvm", nthread=n_threads())


def _read_lightgbm(path: Path) -> object:
    import lightgbm

    return lightgbm.Dataset(str(path), params={"verbose": -1, "num_threads": n_threads()}).construct()


def _timed(title: str, text: Path, candidates: Candidates, rounds: int) -> Table:
    """Time the candidates; speeds count the bytes of the plain text."""
    size = text.stat().st_size / 1e6
    calls = {name: call for name, (_, call) in candidates.items()}
    timings: Race = race(calls, title=f"reading: {title}", rounds=rounds, most=1)
    table = Table(
        f"Reading: {title}",
        f"A generated file of {size:.0f} MB, {FEATURES} features, 120 rows a query; all threads unless said. "
        "Speeds count the bytes of the plain text. Ours equals scikit-learn's numbers bit for bit, checked "
        "before timing. The last column: how many times longer the row takes than ours.",
        ("reader", "timed", "MB/s", "/ ours"),
    )
    for name, (what, _) in candidates.items():
        table.rows.append((name, what, size / timings.median(name), timings.ratio(name, OURS)))
    return table
