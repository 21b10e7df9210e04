"""LightGBM on a Dask cluster, through `lightgbm.dask`, told gradients and curvatures of our losses.

Workers grow the same trees together: each builds histograms of its own rows, which they add up over links of
their own. LightGBM does not survive the loss of one: the others may wait for it for ever. So their tasks are
attended to, and where one fails the links of the others are cut.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from traceback import clear_frames
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np

from concordant._segments import kernel_threads
from concordant.exceptions import ParameterError, WorkerLostError
from concordant.rankers.boosters.booster import Trees
from concordant.rankers.boosters.lightgbm import LightGBM
from concordant.rankers.boosters.plan import Slopes, slopes
from concordant.rankers.boosters.watch import Round, Watch
from concordant.solvers.partitioned.attended import Attended, announced, heard, is_abandoned, own_threads
from concordant.solvers.partitioned.cluster import is_collection
from concordant.solvers.partitioned.pieces import array_of
from concordant.supervision.scans.scan import Scan
from concordant.surrogates import Loss, Surrogate
from concordant.types import FloatArray, IntArray

if TYPE_CHECKING:
    from concordant.rankers.partitioned.boosted import PartedLesson, TreePart

__all__ = ["ClusteredLightGBM", "dealt"]

OWN = {  # parameters that lightgbm.dask sets -> what says it instead
    "num_threads": "each worker's own number of threads is taken",
    "num_machines": "it is the number of workers",
}
ALONE = {  # parameters for rows in memory -> what they are by default, and why they stay it
    "eval_set": (None, "there are no scores between rounds; use score on held-out queries after the fit"),
    "early_stopping": (None, "there are no scores between rounds"),
    "callback": (None, "workers do not wait for it between rounds"),
    "checkpoint": (None, "LightGBM cannot go on there from what was written"),
    "warm_start": (False, "LightGBM cannot begin there with the trees of another fit"),
    "categorical_features": ("from_dtype", "categories would have to be the same in all partitions"),
    "n_jobs": (-1, "each worker's own number of threads is taken"),
}
NOWHERE = {"machines": "", "local_listen_port": 12400, "num_machines": 1, "num_threads": 0}  # by default
PLACE = re.compile(rf"^\[({'|'.join(NOWHERE)}): .*\]$", re.MULTILINE)


def refuse_alone(given: Mapping[str, Any], X: Any, eval_set: Any, client: Any) -> None:
    """Refuse parameters that are for rows in memory, where X is in parts; before any work."""
    if not (isinstance(X, Scan) or is_collection(X)):
        return
    if given["booster"] != "lightgbm":
        raise ParameterError("booster", given["booster"], "'lightgbm' for scans and collections")
    if isinstance(X, Scan) and client is None:
        wanted = (
            "a distributed.Client: trees want all rows in memory, here that of a cluster's workers; or read "
            "the files (cc.read_table, cc.read_letor), if they fit in that of this process"
        )
        raise ParameterError("client", None, wanted)
    for name, (usual, why) in ALONE.items():
        value = eval_set if name == "eval_set" else given[name]
        if value is not None and value is not usual and value != usual:
            raise ParameterError(name, value, f"{usual!r} on a cluster: {why}")
    typed = given["categorical_features"] is not None
    for name, kind in getattr(X, "dtypes", {}).items() if typed and hasattr(X, "columns") else ():
        if str(kind) == "category":
            raise ParameterError("X", f"column {name!r} of categories", "of numbers alone on a cluster")
    ClusteredLightGBM().check_params(given["params"] or {})


@dataclass(eq=False)
class Slope:
    """Gradient and curvature at scores, as LightGBM asks for them on a worker; small, to be sent there.

    LightGBM keeps targets and weights in single precision, as it does gradients.
    """

    surrogate: Surrogate
    curvature: str
    scale: float

    def __post_init__(self) -> None:
        self.bound: tuple[FloatArray, Loss, int] | None = None

    def __call__(self, y_true: FloatArray, y_pred: FloatArray, weight: FloatArray, group: IntArray) -> Slopes:
        """Of all rows of the worker, several parts of whole queries."""
        if self.bound is None or self.bound[0] is not y_true:
            offsets = np.concatenate(([0], np.cumsum(group)))
            loss = self.surrogate.bind(y_true, offsets, weight)
            self.bound = y_true, loss, own_threads()
        _, loss, threads = self.bound
        with kernel_threads(threads):
            return slopes(loss, y_pred, self.curvature, self.scale)[1]


@dataclass(eq=False)
class Told:
    """Called by LightGBM after each round, on every worker: ends the growing where no tree was added.

    Workers have the same trees, and end together.

    Attributes
    ----------
    fit
        Its name; if it was abandoned, that is the end, too.
    random
        Whether a round that finds no split may be followed by one that does.
    announcer
        Address of the worker that tells of each round; None: nobody asks.
    """

    fit: str
    random: bool
    announcer: str | None
    done: int = 0

    def __call__(self, env: Any) -> None:
        """Count the trees."""
        from lightgbm.callback import EarlyStopException

        n_trees = int(env.model.current_iteration())
        if self.announcer is not None:
            announced(self.fit, n_trees, self.announcer)
        if is_abandoned(self.fit) or not (n_trees > self.done or self.random):
            raise EarlyStopException(env.iteration, [])
        self.done = n_trees


class ClusteredLightGBM(LightGBM):
    """LightGBM whose rows are in parts that workers hold."""

    def check_params(self, params: Mapping[str, Any]) -> None:
        """Refuse what is not the caller's to choose on a cluster."""
        for name, value in params.items():
            for meant in self.names_of(name) & set(OWN):
                raise ParameterError("params", {name: value}, f"without {name!r} on a cluster: {OWN[meant]}")

    def raised(
        self, trees: Trees, lesson: PartedLesson, watch: Watch, told: tuple[Callable[[Round], object], ...]
    ) -> Any:
        """Do as `planted`; `told` hear of each round."""
        model = self.grown(trees, lesson, told) if lesson.varies else None
        found = 0 if model is None else self.n_trees(model)
        for _ in range(max(found, 1)):
            watch.note(math.nan)
        if not found or (found < trees.n_estimators and not self.draws(trees)):
            watch.stopped_by = "no_split"
        return model if found else self.stump(trees, lesson.n_features)

    def grown(self, trees: Trees, lesson: PartedLesson, told: tuple[Callable[[Round], object], ...]) -> Any:
        """Through `lightgbm.dask`; None: it finds no feature that it could split by."""
        library, fit = self.library(), f"concordant-{uuid4()}"
        client = Attended(lesson.parts.client, lesson.places, unlinked, is_broken_link)
        callback = Told(fit, self.draws(trees), lesson.places[0] if told else None)
        ranker = self.ranker(trees, lesson, client)
        names = list(trees.names) or "auto"
        with quiet(library), listening(lesson.parts.client, fit, told), client.fitting(fit):
            try:
                ranker.fit(**rows_of(lesson), callbacks=[callback], feature_name=names)
            except library.basic.LightGBMError as error:
                if "num_features" in str(error):  # none has two bins
                    return None
                if is_broken_link(error):
                    problem = f"a worker was lost while trees were grown (LightGBM: {error})"
                    raise WorkerLostError(problem) from error
                raise
        text = ranker.booster_.model_to_string(num_iteration=-1)
        return self.read(PLACE.sub(lambda found: f"[{found[1]}: {NOWHERE[found[1]]}]", text).encode())

    def ranker(self, trees: Trees, lesson: PartedLesson, client: Attended) -> Any:
        """Give LightGBM's estimator, set as in memory."""
        from lightgbm.dask import DaskLGBMRanker

        settings = {self.main_name(name): value for name, value in self.settings(trees, lesson).items()}
        del settings["num_threads"]  # which are each worker's own
        slope = Slope(lesson.surrogate, lesson.curvature, self.scale(lesson))
        own = {"objective": slope, "metric": "None", "n_estimators": trees.n_estimators}
        return DaskLGBMRanker(**settings, **own, client=client)

    def main_name(self, name: str) -> str:
        """Give the first name of a parameter: others would be taken for the estimator's defaults."""
        known = self.names_of(name)
        table = self.library().basic._ConfigAliases.aliases  # noqa: SLF001  nothing public lists them
        return next((main for main in known if main in table and name in {main, *table[main]}), name)


def unlinked(task: Callable[..., Any], *given: Any, **named: Any) -> Any:
    """Do a task of LightGBM's in a thread without links, and leave none.

    LightGBM has the links of a thread's last fit. Where that failed they stay, and a fit of one machine alone
    would speak through them; a booster that failed lets go of those of whichever thread it is collected in.
    """
    free_links()
    try:
        return task(*given, **named)
    except BaseException as error:
        clear_frames(error.__traceback__)  # in which the booster is: not later, amid another fit
        raise
    finally:
        free_links()


def free_links() -> None:
    """Make LightGBM let go of this thread's links, if it has any."""
    from lightgbm import basic

    basic._safe_call(basic._LIB.LGBM_NetworkFree())  # noqa: SLF001  a booster could, and a failed fit has none


def is_broken_link(error: BaseException) -> bool:
    """Whether LightGBM says that another worker cannot be reached."""
    return str(error).startswith("Socket")


def rows_of(lesson: PartedLesson) -> dict[str, Any]:
    """Give features, targets, weights and numbers of rows of queries, as Dask arrays."""
    parts, sizes = lesson.parts, lesson.sizes.tolist()
    rows: list[tuple[float, ...]] = [(size,) for size in sizes]
    return {
        "X": array_of(parts.begun(features), [(size, lesson.n_features) for size in sizes]),
        "y": array_of(parts.begun(targets), rows),
        "sample_weight": array_of(parts.begun(weights), rows),
        "group": array_of(parts.begun(query_sizes), [(math.nan,)] * len(sizes)),
    }


def features(part: TreePart) -> Any:
    """Give X of a part, which is not copied."""
    return part.X


def targets(part: TreePart) -> FloatArray:
    """Give the targets of a part."""
    return part.labels


def weights(part: TreePart) -> FloatArray:
    """Give the weight of each row of a part."""
    return part.weights


def query_sizes(part: TreePart) -> IntArray:
    """Give the number of rows of each query of a part."""
    return np.diff(part.offsets)


def dealt(sizes: IntArray, workers: Sequence[str]) -> list[str]:
    """Deal parts out, each to the worker with the fewest rows so far; none is left with a single row.

    Bins are found from each worker's own rows, so they get parts from everywhere rather than adjacent ones.

    >>> dealt(np.array([3, 2, 2, 2]), ["a", "b"]), dealt(np.array([3, 1]), ["a", "b"])
    (['a', 'b', 'b', 'a'], ['a', 'a'])
    """
    rows, places = np.zeros(len(workers)), []
    for size in sizes:
        places.append(int(np.argmin(rows)))
        rows[places[-1]] += size
    if (rows == 1).any() and len(workers) > 1:  # LightGBM's estimator refuses it
        return dealt(sizes, workers[:-1])
    return [workers[place] for place in places]


@contextmanager
def listening(client: Any, fit: str, told: tuple[Callable[[Round], object], ...]) -> Iterator[None]:
    """Tell of each round that workers tell of."""
    if not told:
        yield
        return

    def hear(n_trees: int) -> None:
        for one in told:
            one(Round(n_trees, None, n_trees))

    with heard(client, fit, hear):
        yield


class Silence:
    """Takes what LightGBM logs of ports, and of threads that we did not ask for."""

    def info(self, message: str) -> None:
        """Nobody asks."""

    def warning(self, message: str) -> None:
        """Warn of everything else."""
        if not message.startswith("Parameter n_jobs"):
            warnings.warn(message, UserWarning, stacklevel=3)


@contextmanager
def quiet(library: Any) -> Iterator[None]:
    """Keep LightGBM from printing, unless the caller has a logger of his own there."""
    basic = library.basic
    usual = basic._LOGGER  # noqa: SLF001  what is registered cannot be asked for
    if type(usual).__module__ != basic.__name__:
        yield
        return
    basic._LOGGER = Silence()  # noqa: SLF001
    try:
        yield
    finally:
        basic._LOGGER = usual  # noqa: SLF001
