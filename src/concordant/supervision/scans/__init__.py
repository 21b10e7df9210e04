"""Data that need not fit in memory: parts of whole queries, read one after the other."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "conversion.convert": ["write_parquet"],
        "letor": ["scan_letor"],
        "pairs": ["PairScan", "scan_pairs"],
        "parquet": ["scan_parquet"],
        "scan": ["PartRows", "Scan"],
    },
)
