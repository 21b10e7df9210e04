"""LightGBM on a Dask cluster, through `lightgbm.dask`, called with gradients and curvatures of our losses.

Workers grow the same trees together: each builds histograms of its rows, which are summed over direct links
between the workers. LightGBM does not survive the loss of a worker: the others may wait for it forever. So
the tasks are watched, and if a task fails, the links of the other workers are cut.
"""

from __future__ import annotations

import math
import os
import re
import socket
import stat
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from threading import Event, Thread
from traceback import clear_frames
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np

from concordant._base.segments import kernel_threads
from concordant._base.warn import warn_caller
from concordant.data.check import is_collection
from concordant.exceptions import ClusterError, ParameterError, WorkerLostError, show_value
from concordant.rankers.boosters.booster import BoostingMonitor, Round, Trees
from concordant.rankers.boosters.lightgbm import LightGBM
from concordant.rankers.boosters.plan import Slopes, slopes
from concordant.scale import cluster
from concordant.scale.cluster import (
    addresses,
    gather_results,
    import_distributed,
    naming_faults,
    refuse_loss,
    wait_for_futures,
)
from concordant.scale.cluster_parts import build_dask_array
from concordant.scale.scan.scan import Scan
from concordant.surrogates import Loss, Surrogate
from concordant.types import FloatArray, IntArray

if TYPE_CHECKING:
    from concordant.rankers.parts.boosted_parts import PartitionedTreeTrainingSet, TreePart


# A client for libraries that use a Dask cluster themselves; it does not wait for workers that are gone.

GRACE, SOON = 10.0, 0.1  # seconds until a worker that does not leave a fit is restarted; and between checks
MOMENT = 2.0  # seconds within which all errors of a failure arrive
ABANDONED: set[str] = set()  # names of the fits that this worker is to leave


class AttendedClient:
    """Client for `lightgbm.dask`: parts stay where they are, in their order; waiting always ends.

    Otherwise LightGBM would number the workers, and concatenate the parts of each, in a random order.

    Parameters
    ----------
    client
        Client that does the work.
    places
        Address of the worker that has each part.
    run_task
        `run_task(task, *args, **options)` runs a task of the library on a worker.
    is_echo
        `is_echo(error)` is True if the error may only report that another worker failed.
    """

    def __init__(
        self,
        client: Any,
        places: Sequence[str],
        run_task: Callable[..., Any],
        is_echo: Callable[[BaseException], bool],
    ) -> None:
        self.client, self.places, self.needed = client, places, frozenset(places)
        self.run_task, self.is_echo = run_task, is_echo
        self.parts: list[Any] = []
        self.tasks: list[Any] = []
        self.lost: frozenset[str] = frozenset()
        self.machines = ""  # ends of the links between the workers: "host:port,host:port"

    def __getattr__(self, name: str) -> Any:
        return getattr(self.client, name)

    def compute(self, parts: Sequence[Any]) -> list[Any]:
        """Start computing each part at its address, and wait for the parts."""
        pairs = zip(parts, self.places, strict=True)
        self.parts = [self.client.compute(part, workers=[address]) for part, address in pairs]
        wait_for_futures(self.client, self.parts, self.needed)
        for future in self.parts:
            if future.status == "error":
                future.result()
        return self.parts

    def who_has(self, futures: Sequence[Any]) -> dict[Any, list[str]]:
        """Return the address of each part, in the order of the parts."""
        refuse_loss(self.needed, addresses(self.client))
        return {future.key: [address] for future, address in zip(futures, self.places, strict=True)}

    def submit(self, *args: Any, **options: Any) -> Any:
        """Submit a task, and remember it."""
        self.machines = options.get("machines", self.machines)
        self.tasks.append(self.client.submit(self.run_task, *args, **options))
        return self.tasks[-1]

    def gather(self, futures: Any) -> Any:
        """Wait for tasks that depend on each other: the first failure ends all."""
        pending = list(futures.values()) if isinstance(futures, dict) else list(futures)
        while pending:
            wait_for_futures(self.client, pending, self.needed, "FIRST_COMPLETED")
            if any(task.status not in ("pending", "finished") for task in pending):
                return self.client.gather([self.cause(pending)])
            pending = [task for task in pending if task.status == "pending"]
        return gather_results(self.client, futures, self.needed)

    def cause(self, tasks: Sequence[Any]) -> Any:
        """Return the task whose failure made others fail; wait a moment, as their errors may arrive first."""
        deadline = time.monotonic() + MOMENT
        while True:
            failed = [task for task in tasks if task.status not in ("pending", "finished")]
            causes = [task for task in failed if task.status != "error" or not self.is_echo(task.exception())]
            if causes or len(failed) == len(tasks) or time.monotonic() > deadline:
                return (causes or failed)[0]
            time.sleep(SOON)

    @contextmanager
    def fitting(self, fit: str) -> Iterator[None]:
        """Run the fit of this name; if it fails or is interrupted, make the workers leave it."""
        is_over = Event()
        attending = Thread(target=self.attend, args=(is_over,), name="concordant-attend", daemon=True)
        attending.start()
        try:
            with naming_faults(), self.client.as_current():
                yield
        except BaseException as error:
            with suppress(Exception):  # report the first error
                self.leave(fit)
            if self.lost and isinstance(error, ClusterError):  # says only that tasks were cancelled
                refuse_loss(self.lost, ())
            raise
        finally:
            is_over.set()
            attending.join()

    def attend(self, is_over: Event) -> None:
        """Cancel everything if a worker is lost, since the library may wait for it forever."""
        while not (self.lost or is_over.wait(cluster.LOOK)):
            with suppress(Exception):  # the cluster is gone, which is reported elsewhere
                self.lost = self.needed - set(addresses(self.client))
                if self.lost:
                    self.client.cancel([*self.parts, *self.tasks], force=True)

    def leave(self, fit: str) -> None:
        """Make the workers leave a fit; restart those that cannot, because they wait for a link."""
        keys, busy = {task.key for task in self.tasks}, sorted(self.needed & set(addresses(self.client)))
        self.client.cancel(self.tasks)
        deadline = time.monotonic() + GRACE
        while busy and time.monotonic() < deadline:
            answers = self.client.run(_abandon, fit, self.machines, keys, workers=busy, on_error="return")
            busy = [address for address, working in answers.items() if working]
            time.sleep(SOON)
        if busy:
            self.client.restart_workers(busy, raise_for_error=False)


def _abandon(fit: str, machines: str, keys: set[Any], dask_worker: Any) -> bool:
    """Leave a fit, on a worker; return True if the worker still runs some of these tasks."""
    ABANDONED.add(fit)
    cut_links({(host, int(port)) for host, port in (end.split(":") for end in machines.split(",") if end)})
    return not keys.isdisjoint(dask_worker.active_keys)


def _is_abandoned(fit: str) -> bool:
    return fit in ABANDONED


def cut_links(ends: set[tuple[str, int]]) -> int:
    """Make this process's connections with these addresses fail at their next use; return their number.

    The shutdown wakes threads that wait for a connection. A library that takes its end for a pause and tries
    again then finds no socket. The file descriptors stay open, for the library to close.
    """
    links = [number for number in _open_sockets() if _is_link(number, ends)]  # list all before cutting any
    for number in links:
        with suppress(OSError), _socket_from_number(number) as link:
            link.shutdown(socket.SHUT_RDWR)
        with Path(os.devnull).open() as nothing:
            os.dup2(nothing.fileno(), number)
    return len(links)


def _open_sockets() -> list[int]:
    """Return the descriptors of this process's open sockets, if the system lists them."""
    sockets, table = [], Path("/dev/fd")
    for number in [int(entry.name) for entry in table.iterdir()] if table.exists() else []:
        with suppress(OSError):  # the descriptor of the listing, which is closed now
            if stat.S_ISSOCK(os.fstat(number).st_mode):
                sockets.append(number)
    return sockets


def _is_link(number: int, ends: set[tuple[str, int]]) -> bool:
    """True for connections with these addresses, and for any connection that has ended but is still open."""
    with suppress(OSError), _socket_from_number(number) as link:
        try:
            return bool(ends & {link.getsockname(), link.getpeername()})
        except OSError:  # never connected, or ended: only an ended connection can be read, to its end
            return link.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
    return False


def _socket_from_number(number: int) -> socket.socket:
    """Wrap an open descriptor as a socket object; the descriptor stays open when the object is closed."""
    return socket.fromfd(number, socket.AF_INET, socket.SOCK_STREAM)


def worker_threads() -> int:
    """Return the number of threads of the current worker."""
    return int(import_distributed().get_worker().state.nthreads)


def _announce(topic: str, message: Any, address: str) -> None:
    """Send a message to the listening client, if this is the worker at that address."""
    worker = import_distributed().get_worker()
    if worker.address == address:
        worker.log_event(topic, message)


@contextmanager
def _subscribed(client: Any, topic: str, on_message: Callable[[Any], object]) -> Iterator[None]:
    """Call a function with each message that workers send on a topic."""
    client.subscribe_topic(topic, lambda event: on_message(event[1]))
    try:
        yield
    finally:
        client.unsubscribe_topic(topic)


RESERVED_PARAMS = {  # parameters that lightgbm.dask sets -> what to use instead
    "num_threads": "each worker uses its own number of threads",
    "num_machines": "it is the number of workers",
}
IN_MEMORY_PARAMS = {  # parameters for rows in memory -> their default, and why it is kept on a cluster
    "eval_set": (None, "Call score on held-out queries after the fit."),
    "early_stopping": (None, "There is no evaluation between rounds."),
    "callback": (None, "Workers do not stop between rounds."),
    "checkpoint": (None, "LightGBM cannot resume training there."),
    "warm_start": (False, "LightGBM cannot continue from earlier trees there."),
    "categorical_features": ("from_dtype", "Categories may differ between partitions."),
    "n_jobs": (-1, "Each worker uses its own number of threads."),
}
# LightGBM's defaults
NETWORK_DEFAULTS = {"machines": "", "local_listen_port": 12400, "num_machines": 1, "num_threads": 0}
NETWORK_PARAM = re.compile(rf"^\[({'|'.join(NETWORK_DEFAULTS)}): .*\]$", re.MULTILINE)


def check_cluster_params(params: Mapping[str, Any], X: Any, eval_set: Any, client: Any) -> None:
    """Raise if a parameter needs rows in memory but X is in parts; before any work."""
    if not (isinstance(X, Scan) or is_collection(X)):
        return
    if params["booster"] != "lightgbm":
        raise ParameterError("booster", params["booster"], "'lightgbm' for scans and Dask collections")
    if isinstance(X, Scan) and client is None:
        raise ParameterError.because(
            "Boosted trees need all rows in memory, so a scan needs a cluster: pass "
            "client=distributed.Client(...). "
            "If the data fits in memory here, read it with cc.read_table or cc.read_letor."
        )
    for name, (default, reason) in IN_MEMORY_PARAMS.items():
        value = eval_set if name == "eval_set" else params[name]
        if value is not None and value is not default and value != default:
            raise ParameterError(name, value, f"{default!r} on a cluster", hint=reason)
    by_dtype = params["categorical_features"] is not None
    for name, kind in getattr(X, "dtypes", {}).items() if by_dtype and hasattr(X, "columns") else ():
        if str(kind) == "category":
            raise ParameterError.because(
                f"Column {name!r} is categorical, but on a cluster all features must be numeric. Encode it "
                "first."
            )
    ClusteredLightGBM().check_params(params["params"] or {})


@dataclass(eq=False)
class WorkerObjective:
    """Gradient and curvature at scores, called by LightGBM on a worker; small, as it is sent there.

    LightGBM keeps targets and weights in single precision, as it does gradients.
    """

    surrogate: Surrogate
    curvature: str
    scale: float

    def __post_init__(self) -> None:
        self.bound: tuple[FloatArray, Loss, int] | None = None

    def __call__(self, y_true: FloatArray, y_pred: FloatArray, weight: FloatArray, group: IntArray) -> Slopes:
        """Return the slopes of all rows of the worker, which are several parts of whole queries."""
        if self.bound is None or self.bound[0] is not y_true:
            offsets = np.concatenate(([0], np.cumsum(group)))
            loss = self.surrogate.bind(y_true, offsets, weight)
            self.bound = y_true, loss, worker_threads()
        _, loss, threads = self.bound
        with kernel_threads(threads):
            return slopes(loss, y_pred, self.curvature, self.scale)[1]


@dataclass(eq=False)
class LightGBMCallback:
    """Callback on every worker after each round: stops the training if no tree was added.

    Workers have the same trees, and stop together.
    """

    fit: str  # name of the fit; training also stops if it was abandoned
    random: bool  # True if a round without a split may be followed by a round with one
    announcer: str | None  # address of the worker that reports each round; None: rounds are not reported
    done: int = 0

    def __call__(self, env: Any) -> None:
        """Count the trees, report the round, and stop if needed."""
        from lightgbm.callback import EarlyStopException

        n_trees = int(env.model.current_iteration())
        if self.announcer is not None:
            _announce(self.fit, n_trees, self.announcer)
        if _is_abandoned(self.fit) or not (n_trees > self.done or self.random):
            raise EarlyStopException(env.iteration, [])
        self.done = n_trees


class ClusteredLightGBM(LightGBM):
    """LightGBM for rows in parts that workers hold."""

    def check_params(self, params: Mapping[str, Any]) -> None:
        """Raise if `params` sets what is fixed on a cluster."""
        for name, value in params.items():
            for main_name in self.find_aliases(name) & set(RESERVED_PARAMS):
                reason = RESERVED_PARAMS[main_name]
                raise ParameterError.because(
                    f"params may not set {name}={show_value(value)} on a cluster: {reason}."
                )

    def grow_or_stump_on_cluster(
        self,
        trees: Trees,
        training_set: PartitionedTreeTrainingSet,
        monitor: BoostingMonitor,
        callbacks: tuple[Callable[[Round], object], ...],
    ) -> Any:
        """Grow trees, or a single constant tree if no feature can be split; `callbacks` run each round."""
        model = self.grow_on_cluster(trees, training_set, callbacks) if training_set.varies else None
        n_trees = 0 if model is None else self.n_trees(model)
        for _ in range(max(n_trees, 1)):
            monitor.note(math.nan)
        if not n_trees or (n_trees < trees.n_estimators and not self.is_random(trees)):
            monitor.stopped_by = "no_split"
        return model if n_trees else self.stump(trees, training_set.n_features)

    def grow_on_cluster(
        self,
        trees: Trees,
        training_set: PartitionedTreeTrainingSet,
        callbacks: tuple[Callable[[Round], object], ...],
    ) -> Any:
        """Grow trees by `lightgbm.dask`; None if LightGBM finds no feature to split by."""
        library, fit = self.library(), f"concordant-{uuid4()}"
        client = AttendedClient(training_set.parts.client, training_set.places, run_unlinked, is_broken_link)
        announcer = training_set.places[0] if callbacks else None
        worker_callback = LightGBMCallback(fit, self.is_random(trees), announcer)
        ranker = self.ranker(trees, training_set, client)
        names = list(trees.names) or "auto"
        relay = _relay_rounds(training_set.parts.client, fit, callbacks)
        with _silence_logger(library), relay, client.fitting(fit):
            try:
                ranker.fit(**_dask_columns(training_set), callbacks=[worker_callback], feature_name=names)
            except library.basic.LightGBMError as error:
                if "num_features" in str(error):  # no feature has two bins
                    return None
                if is_broken_link(error):
                    problem = f"a worker was lost while trees were grown (LightGBM: {error})"
                    raise WorkerLostError(problem) from error
                raise
        text = ranker.booster_.model_to_string(num_iteration=-1)
        text = NETWORK_PARAM.sub(lambda line: f"[{line[1]}: {NETWORK_DEFAULTS[line[1]]}]", text)
        return self.from_bytes(text.encode())

    def ranker(self, trees: Trees, training_set: PartitionedTreeTrainingSet, client: AttendedClient) -> Any:
        """Build LightGBM's Dask estimator with the same settings as in memory."""
        from lightgbm.dask import DaskLGBMRanker

        settings = {self.main_name(name): value for name, value in self.settings(trees, training_set).items()}
        del settings["num_threads"]  # set by each worker
        objective = WorkerObjective(training_set.surrogate, training_set.curvature, self.scale(training_set))
        fixed = {"objective": objective, "metric": "None", "n_estimators": trees.n_estimators}
        return DaskLGBMRanker(**settings, **fixed, client=client)

    def main_name(self, name: str) -> str:
        """Return a parameter's main name, since aliases would be overridden by the estimator's defaults."""
        aliases = self.find_aliases(name)
        table = self.library().basic._ConfigAliases.aliases  # noqa: SLF001  nothing public lists them
        return next((main for main in aliases if main in table and name in {main, *table[main]}), name)


def run_unlinked(task: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Run a LightGBM task in a thread without network links, and leave none behind.

    LightGBM keeps the links of a thread's last fit. After a failure they stay, and a fit on a single machine
    would use them; the failed booster frees the links of whichever thread collects it as garbage.
    """
    _free_links()
    try:
        return task(*args, **options)
    except BaseException as error:
        clear_frames(error.__traceback__)  # frees the booster now, not later during another fit
        raise
    finally:
        _free_links()


def _free_links() -> None:
    """Make LightGBM free this thread's network links, if there are any."""
    from lightgbm import basic

    basic._safe_call(basic._LIB.LGBM_NetworkFree())  # noqa: SLF001  needs no booster, which a failed fit lacks


def is_broken_link(error: BaseException) -> bool:
    """True if LightGBM reports that another worker cannot be reached."""
    return str(error).startswith("Socket")


def _dask_columns(training_set: PartitionedTreeTrainingSet) -> dict[str, Any]:
    parts, sizes = training_set.parts, training_set.sizes.tolist()
    rows: list[tuple[float, ...]] = [(size,) for size in sizes]
    cells: list[tuple[float, ...]] = [(size, training_set.n_features) for size in sizes]
    return {
        "X": build_dask_array(parts.start_job(attrgetter("X")), cells),
        "y": build_dask_array(parts.start_job(attrgetter("labels")), rows),
        "sample_weight": build_dask_array(parts.start_job(attrgetter("weights")), rows),
        "group": build_dask_array(parts.start_job(_query_sizes), [(math.nan,)] * len(sizes)),
    }


def _query_sizes(part: TreePart) -> IntArray:
    return np.diff(part.offsets)


def deal_parts(sizes: IntArray, workers: Sequence[str]) -> list[str]:
    """Assign each part to the worker with the fewest rows so far; no worker gets a single row.

    LightGBM finds bins from each worker's rows, so workers get parts from everywhere, not adjacent ones.

    >>> deal_parts(np.array([3, 2, 2, 2]), ["a", "b"]), deal_parts(np.array([3, 1]), ["a", "b"])
    (['a', 'b', 'b', 'a'], ['a', 'a'])
    """
    rows, numbers = np.zeros(len(workers)), []
    for size in sizes:
        numbers.append(int(np.argmin(rows)))
        rows[numbers[-1]] += size
    if (rows == 1).any() and len(workers) > 1:  # LightGBM's estimator does not accept a single row
        return deal_parts(sizes, workers[:-1])
    return [workers[worker] for worker in numbers]


@contextmanager
def _relay_rounds(client: Any, fit: str, callbacks: tuple[Callable[[Round], object], ...]) -> Iterator[None]:
    if not callbacks:
        yield
        return

    def report_round(n_trees: int) -> None:
        for callback in callbacks:
            callback(Round(n_trees, None, n_trees))

    with _subscribed(client, fit, report_round):
        yield


class QuietLogger:
    """Logger that drops LightGBM's messages about ports, and about threads that we did not set."""

    def info(self, message: str) -> None:
        """Drop the message."""

    def warning(self, message: str) -> None:
        """Warn, except about the number of threads."""
        if not message.startswith("Parameter n_jobs"):
            warn_caller(message)


@contextmanager
def _silence_logger(library: Any) -> Iterator[None]:
    """Keep LightGBM from printing, unless the caller registered a logger."""
    basic = library.basic
    logger = basic._LOGGER  # noqa: SLF001  there is no getter
    if type(logger).__module__ != basic.__name__:
        yield
        return
    basic._LOGGER = QuietLogger()  # noqa: SLF001
    try:
        yield
    finally:
        basic._LOGGER = logger  # noqa: SLF001
