"""Where a ranker is trained: here in memory, here part by part, or on a cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from concordant.cli.output import working
from concordant.exceptions import ParameterError

if TYPE_CHECKING:
    from concordant.cli.config import Config

__all__ = ["HERE", "LocalWorkers", "Memory", "Place", "Scheduler"]

BEYOND = "Data larger than memory"
IN_PARTS = ("linear", "maxmargin", "pairs")  # kinds that read scans; on a cluster also boosted, with lightgbm
USUAL = "1 GiB"
UNBOUNDED = 2**62  # workers keep their parts: what a scan may take here says nothing of them

Scheduler = Annotated[
    str | None,
    typer.Option(
        "--scheduler",
        metavar="ADDRESS",
        help="Train on the Dask cluster of this scheduler, as tcp://host:8786: its workers read DATA "
        "(Parquet or LETOR text, at the same path) and keep it in memory. Models: linear, maxmargin, pairs, "
        "boosted by lightgbm.",
        show_default=False,
        rich_help_panel=BEYOND,
    ),
]
LocalWorkers = Annotated[
    int | None,
    typer.Option(
        "--local-cluster",
        min=1,
        metavar="N",
        help="The same on N worker processes that are started here.",
        show_default=False,
        rich_help_panel=BEYOND,
    ),
]
Memory = Annotated[
    str | None,
    typer.Option(
        "--memory",
        metavar="SIZE",
        help="Without a cluster: read DATA part by part, at each pass anew, within this much memory for "
        "features, as 2GiB. Models: linear, maxmargin, pairs.",
        show_default=False,
        rich_help_panel=BEYOND,
    ),
]


@dataclass(frozen=True)
class Place:
    """Where a run is trained; it is no part of its configuration, as the model is the same everywhere.

    Attributes
    ----------
    scheduler, workers
        Address of a cluster, or how many workers to start here; at most one of them.
    memory
        Bytes of features to keep in memory at a time, without a cluster.

    Without any of them all rows are in memory.
    """

    scheduler: str | None = None
    workers: int | None = None
    memory: int | None = None

    @classmethod
    def of(cls, scheduler: str | None, workers: int | None, memory: str | None) -> Place:
        """Give what the three options say; of a cluster one is enough."""
        from concordant.supervision.scans.scan import read_size

        if scheduler is not None and workers is not None:
            raise ParameterError("--local-cluster", workers, "left out: --scheduler names a cluster")
        if memory is not None and (scheduler is not None or workers is not None):
            wanted = "left out on a cluster: its workers keep what they have read in memory"
            raise ParameterError("--memory", memory, wanted)
        return cls(scheduler, workers, None if memory is None else read_size(memory, "--memory"))

    @classmethod
    def like(cls, facts: Mapping[str, Any]) -> Place:
        """Give where a run is made again that was made elsewhere: part by part where it was in parts."""
        from concordant.supervision.scans.scan import read_size

        if "place" not in facts:
            return HERE
        memory = facts["place"].get("memory")
        return cls(memory=read_size(USUAL if memory is None else memory))

    @property
    def is_cluster(self) -> bool:
        """Whether workers do the work."""
        return self.scheduler is not None or self.workers is not None

    @property
    def in_parts(self) -> bool:
        """Whether no process has all rows in memory."""
        return self.is_cluster or self.memory is not None

    @property
    def option(self) -> str:
        """What says so."""
        return next(
            name
            for name, value in (
                ("--scheduler", self.scheduler),
                ("--local-cluster", self.workers),
                ("--memory", self.memory),
            )
            if value is not None
        )

    def admit(self, config: Config) -> None:
        """Refuse what is trained in memory only, by its name, before any work."""
        if not self.in_parts:
            return
        if config.tune is not None:
            raise ParameterError(self.option, True, "left out: a search is made in memory")
        trees = config.kind == "boosted" and config.parameters["booster"] == "lightgbm"
        if not (config.kind in IN_PARTS or (trees and self.is_cluster)):
            said = (
                f"{config.kind} ({config.parameters['booster']})" if config.kind == "boosted" else config.kind
            )
            wanted = f"with {self.option} one of {', '.join(IN_PARTS)}; on a cluster also boosted (lightgbm)"
            raise ParameterError("--model", said, wanted)
        if config.validation is not None:
            wanted = f"left out: {config.kind} in parts does not choose by it; --test measures"
            raise ParameterError("--validation", str(config.validation), wanted)
        from concordant.metrics.parse import metric
        from concordant.rankers.partitioned.linear import refuse_joint

        for one in config.metrics:  # before the training, after which they are measured
            refuse_joint(metric(one))

    @contextmanager
    def client(self, *, quiet: bool) -> Iterator[Any]:
        """Give the client of the cluster while the block runs; None where there is none."""
        if not self.is_cluster:
            yield None
            return
        from concordant.solvers.partitioned.cluster import checked_client, connected
        from concordant.solvers.partitioned.local import local_cluster

        with ExitStack() as stack:
            with working("Waiting for workers", quiet=quiet):
                if self.workers is not None:
                    opened = local_cluster(self.workers)
                else:
                    opened = connected(str(self.scheduler))
                client = checked_client(stack.enter_context(opened))
            yield client

    def facts(self, client: Any) -> dict[str, Any]:
        """Give what a run says of it: nothing where all is in memory."""
        if not self.in_parts:
            return {}
        if client is None:
            return {"place": {"memory": self.memory}}
        count = len(client.scheduler_info(n_workers=-1)["workers"])
        return {"place": {"scheduler": self.scheduler or "local", "workers": count}}


HERE = Place()
