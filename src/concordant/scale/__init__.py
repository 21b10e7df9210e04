"""Data that need not fit in memory: scans of files, conversion to Parquet, tree sums over parts, and Dask."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "convert.write_parquet": ["write_parquet"],
        "scan.letor_scan": ["scan_letor"],
        "scan.pair_scan": ["PairScan", "scan_pairs"],
        "scan.parquet": ["scan_parquet"],
        "scan.scan": ["PartRows", "Scan"],
    },
)
