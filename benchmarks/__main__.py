"""`python -m benchmarks [suites] [--quick] [--output FOLDER]`."""

import argparse
import warnings
from importlib import import_module
from pathlib import Path

from benchmarks import page
from benchmarks.shared import tables

SUITES = (  # modules of `suites`; each is imported when it is run: together they load every peer
    "boosting", "certificates", "comparer", "decoders", "device", "kill_resume", "kill_workers",
    "limits", "maxmargin", "metrics", "neural", "out_of_core", "ratings", "reading", "robustness", "scaling",
    "significance", "startup", "surrogates", "torch_losses", "training",
)  # fmt: skip
HERE = Path(__file__).parent


def main() -> None:
    """Run the chosen suites, print their tables and write them down; the documentation's page follows."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("suites", nargs="*", help=f"of {', '.join(SUITES)}; none means all")
    parser.add_argument("--quick", action="store_true", help="tiny data: shows that it runs, not how fast")
    parser.add_argument("--output", type=Path, help="folder of the results")
    options = parser.parse_args()
    names = options.suites or list(SUITES)
    if unknown := sorted(set(names) - set(SUITES)):
        parser.error(f"unknown suite {unknown[0]!r}; there are {', '.join(SUITES)}")
    folder = options.output or HERE / (
        "data/quick" if options.quick else "results"
    )  # data/ is ignored by git
    warnings.filterwarnings("ignore")  # the peers' own
    for name in names:
        about = tables.machine() | {"quick": options.quick, "load_before": tables.load()}
        results: list[tables.Table] = import_module(f"benchmarks.suites.{name}").run(quick=options.quick)
        for table in results:
            tables.show(table)
        print("written:", tables.write(folder, name, results, about | {"load_after": tables.load()}))
    if folder == page.RESULTS:
        page.write()


if __name__ == "__main__":
    main()
