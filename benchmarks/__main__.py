"""`python -m benchmarks [suites] [--quick] [--output FOLDER]`."""

import argparse
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path

from benchmarks import (
    boosting,
    certificates,
    choice,
    comparer,
    decoders,
    device,
    maxmargin,
    metrics,
    neural,
    ratings,
    reading,
    startup,
    surrogates,
    tables,
    torch_losses,
    training,
    tree_choice,
)

SUITES: Mapping[str, Callable[..., list[tables.Table]]] = {
    "boosting": boosting.run,
    "certificates": certificates.run,
    "choice": choice.run,
    "comparer": comparer.run,
    "decoders": decoders.run,
    "device": device.run,
    "maxmargin": maxmargin.run,
    "metrics": metrics.run,
    "neural": neural.run,
    "ratings": ratings.run,
    "reading": reading.run,
    "startup": startup.run,
    "surrogates": surrogates.run,
    "torch_losses": torch_losses.run,
    "training": training.run,
    "tree_choice": tree_choice.run,
}
HERE = Path(__file__).parent


def main() -> None:
    """Run the chosen suites, print their tables and write them down."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("suites", nargs="*", help=f"of {', '.join(SUITES)}; none means all")
    parser.add_argument("--quick", action="store_true", help="tiny data: shows that it runs, not how fast")
    parser.add_argument("--output", type=Path, help="folder of the results")
    chosen = parser.parse_args()
    names = chosen.suites or list(SUITES)
    if unknown := sorted(set(names) - set(SUITES)):
        parser.error(f"unknown suite {unknown[0]!r}; there are {', '.join(SUITES)}")
    folder = chosen.output or HERE / ("data/quick" if chosen.quick else "results")  # data/ is ignored by git
    warnings.filterwarnings("ignore")  # the peers' own
    for name in names:
        about = tables.machine() | {"quick": chosen.quick, "load_before": tables.load()}
        results = SUITES[name](quick=chosen.quick)
        for table in results:
            tables.show(table)
        print("written:", tables.write(folder, name, results, about | {"load_after": tables.load()}))


if __name__ == "__main__":
    main()
