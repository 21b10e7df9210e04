"""Papers run again, and other studies: `python -m studies NAME`, from the root of the repository.

Nothing here is installed with `concordant`. Studies use its public API, and `concordant._internals` where
that is not enough. Within a folder, `command.py` reads the command line, `study.py` runs the experiment,
`results.py` holds its results, `report.py` puts them into tables, plain values and rows, which
`shared/output.py` prints and writes, and `plots.py` draws them.
"""
