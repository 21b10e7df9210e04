"""Where a ranker is trained: here in memory, here part by part, or on a cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from concordant.cli.shared.output import option, working
from concordant.exceptions import ParameterError

if TYPE_CHECKING:
    from concordant.cli.runs.config import Config

BEYOND = "Data larger than memory"
IN_PARTS = ("linear", "maxmargin", "pairs")  # kinds that read scans; on a cluster also boosted, with lightgbm
USUAL = "1 GiB"
UNBOUNDED = 2**62  # workers keep their parts, so that memory here sets no limit

Scheduler = Annotated[
    str | None,
    option(
        "--scheduler",
        "ADDRESS",
        "Train on the Dask cluster of this scheduler, as tcp://host:8786: its workers read DATA "
        "(Parquet or LETOR text, at the same path) and keep it in memory. Models: linear, maxmargin, "
        "pairs, boosted by lightgbm.",
        BEYOND,
    ),
]
LocalWorkers = Annotated[
    int | None,
    option("--local-cluster", "N", "The same on N worker processes that are started here.", BEYOND, min=1),
]
Memory = Annotated[
    str | None,
    option(
        "--memory",
        "SIZE",
        "Without a cluster: read DATA part by part, at each pass anew, within this much memory for "
        "features, as 2GiB. Models: linear, maxmargin, pairs.",
        BEYOND,
    ),
]


@dataclass(frozen=True)
class ComputeTarget:
    """Where a run is trained; not part of its configuration, as the model is the same everywhere.

    Attributes
    ----------
    scheduler, workers
        Address of a cluster, or number of workers to start here; at most one of them.
    memory
        Bytes of features to keep in memory at a time, without a cluster.

    Without any of them all rows are in memory.
    """

    scheduler: str | None = None
    workers: int | None = None
    memory: int | None = None

    @classmethod
    def from_options(cls, scheduler: str | None, workers: int | None, memory: str | None) -> ComputeTarget:
        """Build the target from the three options, which exclude each other."""
        from concordant.scale.scan.scan import parse_size

        if scheduler is not None and workers is not None:
            raise ParameterError.because(
                "--local-cluster and --scheduler exclude each other. Give one of them."
            )
        if memory is not None and (scheduler is not None or workers is not None):
            raise ParameterError.because(
                "--memory has no effect on a cluster, whose workers keep the data in their memory. Leave it "
                "out."
            )
        return cls(scheduler, workers, None if memory is None else parse_size(memory, "--memory"))

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any]) -> ComputeTarget:
        """Return the target for repeating a run: in parts if it was trained in parts."""
        from concordant.scale.scan.scan import parse_size

        if "place" not in facts:
            return IN_MEMORY
        memory = facts["place"].get("memory")
        return cls(memory=parse_size(USUAL if memory is None else memory))

    @property
    def is_cluster(self) -> bool:
        """True if workers of a cluster do the work."""
        return self.scheduler is not None or self.workers is not None

    @property
    def in_parts(self) -> bool:
        """True if no process has all rows in memory."""
        return self.is_cluster or self.memory is not None

    @property
    def option(self) -> str:
        """The option that was given."""
        values = {"--scheduler": self.scheduler, "--local-cluster": self.workers, "--memory": self.memory}
        return next(name for name, value in values.items() if value is not None)

    def admit(self, config: Config) -> None:
        """Raise before the work if the run can only be trained in memory."""
        if not self.in_parts:
            return
        if config.tune is not None:
            raise ParameterError.because(
                f"{self.option} does not work with a search, which needs the data in memory."
            )
        trees = config.kind == "boosted" and config.parameters["booster"] == "lightgbm"
        if not (config.kind in IN_PARTS or (trees and self.is_cluster)):
            model_name = (
                f"{config.kind} ({config.parameters['booster']})" if config.kind == "boosted" else config.kind
            )
            raise ParameterError(
                "--model",
                model_name,
                f"one of {', '.join(IN_PARTS)} with {self.option}",
                hint="On a cluster it can also be boosted with booster lightgbm.",
            )
        if config.validation is not None:
            raise ParameterError.because(
                f"--validation does not work with {self.option}: {config.kind} does not use it there. "
                "--test measures the model on held-out data."
            )
        from concordant.metrics.parse import metric
        from concordant.rankers.parts.linear_parts import refuse_joint

        for name in config.metrics:  # before the training, after which they are measured
            refuse_joint(metric(name))

    @contextmanager
    def client(self, *, quiet: bool) -> Iterator[Any]:
        """Yield the client of the cluster, or None without a cluster."""
        if not self.is_cluster:
            yield None
            return
        from concordant.scale.cluster import check_client, connected, local_cluster

        with ExitStack() as stack:
            with working("Waiting for workers", quiet=quiet):
                if self.workers is not None:
                    opened = local_cluster(self.workers)
                else:
                    opened = connected(str(self.scheduler))
                client = check_client(stack.enter_context(opened))
            yield client

    def facts(self, client: Any) -> dict[str, Any]:
        """Return the facts on the target that a run records; empty in memory."""
        if not self.in_parts:
            return {}
        if client is None:
            return {"place": {"memory": self.memory}}
        count = len(client.scheduler_info(n_workers=-1)["workers"])
        return {"place": {"scheduler": self.scheduler or "local", "workers": count}}


IN_MEMORY = ComputeTarget()
