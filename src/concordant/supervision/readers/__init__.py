"""Readers and writers: LETOR/SVMlight, TREC qrels and runs, tables, comparisons, PrefLib."""

from concordant.supervision.readers.letor import read_letor
from concordant.supervision.readers.letor_writer import write_letor
from concordant.supervision.readers.preflib import Digraph, Profile, read_preflib
from concordant.supervision.readers.tables import from_frame, read_comparisons, read_table
from concordant.supervision.readers.trec import Judged, Qrels, Run, join, read_qrels, read_run
from concordant.supervision.readers.trec_writer import write_qrels, write_run

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
