"""What is true of every scan, whatever it was made of; and rows by query, from the definition."""

from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from concordant.scale.scan.index import Index
from concordant.scale.scan.scan import PartRows, Scan

NASTY = st.sampled_from([0.0, -0.0, 1.0, -1.5, 5e-324, 1e-40, 3.4e38, -1e30, 0.1])
IDS = st.one_of(
    st.lists(st.integers(-3, 3), min_size=1, max_size=24),
    st.lists(
        st.sampled_from(["a", "b", "10", "9", "\u00e9t\u00e9", "\u65e5\u672c", " "]), min_size=1, max_size=24
    ),
    st.lists(st.sampled_from(["1", "10", "9"]), min_size=1, max_size=24),  # text that reads as numbers
)


@st.composite
def ranking_rows(draw, single=None):
    """Columns of a little set, in any order of ids; X of single or double precision."""
    ids = draw(IDS)
    kind = np.float32 if (draw(st.booleans()) if single is None else single) else np.float64
    width = draw(st.integers(1, 3))
    values = draw(st.lists(NASTY, min_size=len(ids) * width, max_size=len(ids) * width))
    return {
        "qid": np.array(ids),
        "y": np.array(draw(st.lists(st.integers(0, 4), min_size=len(ids), max_size=len(ids))), dtype=float),
        "X": np.array(values).reshape(len(ids), width).astype(kind),
        "docid": np.array([f"d{row}" for row in range(len(ids))]),
        "sample_weight": np.array(
            draw(st.lists(st.integers(1, 3), min_size=len(ids), max_size=len(ids))), float
        ),
    }


def whole(ids):
    """Ids as numbers, where all are text that Python would write so for a whole number."""
    texts = [str(value) for value in ids.tolist()]
    plain = ids.dtype.kind == "U" and all(
        text.lstrip("-").isdecimal() and str(int(text)) == text for text in texts
    )
    return np.array([int(text) for text in texts]) if plain else ids


def by_query(columns):
    """Rows of each query, in the order in which they stand: ids ascend."""
    ids, rows_by_query = columns["qid"], {}
    for row in sorted(range(len(ids)), key=lambda row: (ids[row], row)):
        weight = None if columns.get("sample_weight") is None else columns["sample_weight"][row]
        docid = None if columns.get("docid") is None else str(columns["docid"][row])
        content = (columns["X"][row].tobytes(), columns["y"][row], docid, weight)
        rows_by_query.setdefault(ids[row].item(), []).append(content)
    return rows_by_query


def check_scan(scan, columns):
    """The parts hold every query once, whole, rows in their order; and the index says which."""
    expected, rows_by_query = by_query({**columns, "qid": whole(columns["qid"])}), {}
    assert scan.n_rows == len(columns["qid"])
    assert scan.n_queries == len(expected)
    assert scan.n_features == columns["X"].shape[1]
    for number, part in enumerate(scan.with_docid().parts):
        rows, part_slice = part.read(), scan.index.part_slice(number)
        assert rows.X.dtype == columns["X"].dtype
        assert rows.X.flags.c_contiguous
        assert part.n_rows == len(rows.y)
        assert part.nbytes > rows.X.nbytes + rows.y.nbytes
        assert (
            rows.queries.ids.tolist()
            == scan.index.ids[part_slice].tolist()
            == sorted(scan.index.ids[part_slice].tolist())
        )
        assert rows.queries.sizes.tolist() == scan.index.sizes[part_slice].tolist()
        ids = np.repeat(rows.queries.ids, rows.queries.sizes)
        plain = {
            "qid": ids,
            "y": rows.y,
            "X": rows.X,
            "docid": rows.docid,
            "sample_weight": rows.sample_weight,
        }
        own_rows = by_query(plain)
        assert not own_rows.keys() & rows_by_query.keys()
        rows_by_query |= own_rows
    assert rows_by_query == expected
    in_order = [scan.index.ids[position].item() for position in scan.index.order]
    assert in_order == sorted(expected)


def wrong_scans(scan):
    """Scans that are almost right; there are two parts at least, one of them of two rows that differ."""
    scan = scan.with_docid()
    parts, index = scan.parts, scan.index
    edges = [index.part_slice(number) for number in range(len(parts))]
    pieces = [(index.ids[edge], index.sizes[edge], None) for edge in edges]
    names = [part.name for part in parts]
    yield replaced(scan, parts[1:], Index.from_pieces(pieces[1:], names[1:]))  # a part is missing
    yield replaced(scan, parts[::-1], index)  # parts are swapped
    yield replaced(scan, (*parts, parts[0]), scan.index)  # a part comes twice
    yield replaced(scan, tuple(Reversed(part) for part in parts), index)  # rows are in another order
    yield replaced(scan, tuple(Rounded(part) for part in parts), index)  # numbers are rounded


def replaced(scan, parts, index):
    return Scan(tuple(parts), index, scan.n_features, scan.feature_names, scan.memory)


class Wrong:
    def __init__(self, part):
        self.part, self.name, self.n_rows, self.nbytes = part, part.name, part.n_rows, part.nbytes


class Reversed(Wrong):
    def read(self):
        rows = self.part.read()
        return replace(rows, X=rows.X[::-1].copy(), y=rows.y[::-1])


class Rounded(Wrong):
    def read(self) -> PartRows:
        rows = self.part.read()
        return replace(rows, X=rows.X.astype(np.float16).astype(rows.X.dtype))
