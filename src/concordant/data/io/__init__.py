"""Read and write LETOR/SVMlight, TREC qrels and runs, tables, comparisons and PrefLib files."""

from concordant.data.io.letor import read_letor, write_letor
from concordant.data.io.preflib import Digraph, Profile, read_preflib
from concordant.data.io.tables import from_frame, read_comparisons, read_table
from concordant.data.io.trec import Judged, Qrels, Run, join, read_qrels, read_run, write_qrels, write_run

__all__ = [
    "Digraph",
    "Judged",
    "Profile",
    "Qrels",
    "Run",
    "from_frame",
    "join",
    "read_comparisons",
    "read_letor",
    "read_preflib",
    "read_qrels",
    "read_run",
    "read_table",
    "write_letor",
    "write_qrels",
    "write_run",
]
