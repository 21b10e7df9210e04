"""Losses of `concordant.torch`: on the CPU against the peers, on a GPU against the n x n form."""

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.shared.devices import without_torch
from benchmarks.shared.tables import Table
from benchmarks.shared.timing import race

if TYPE_CHECKING:
    import torch

OURS, KERNEL, DENSE = "ours", "numba kernel", "n x n in torch"
CPU_GOAL, GPU_GOALS = 50.0, {10_000: 8.0, 40_000: 100.0}
SHARE = 0.01  # of the memory of the n x n form
CALLS = 20  # a GPU is given so many before it is waited for
MSLR_LISTS = 31_531


def run(*, quick: bool) -> list[Table]:
    """All tables of this suite."""
    if absent := without_torch("torch losses"):
        return absent
    import torch

    tables = [_on_cpu([200, 400] if quick else [1_000, 10_000, 100_000], 1 if quick else 3)]
    if torch.cuda.is_available():
        about = f"On {torch.cuda.get_device_name()}, torch {torch.__version__}; float32."
        rounds = 1 if quick else 5
        tables.append(_one_list(about, [500] if quick else [1_000, 10_000, 40_000, 1_000_000], rounds))
        tables.append(_every_loss(about, [500] if quick else [10_000, 40_000, 1_000_000], rounds))
        tables.append(_many_lists(about, 300 if quick else MSLR_LISTS, rounds))
    return tables


def _dense(scores: "torch.Tensor", targets: "torch.Tensor") -> "torch.Tensor":
    """The Huber hinge of all pairs, as one would write it in torch."""
    ahead = 1.5 - (scores[:, None] - scores[None, :])
    near = ahead.clamp(0.0, 1.0)
    return (targets[:, None] * (0.5 * near * (2.0 * ahead.clamp(min=0.0) - near))).sum()


def _stepping(loss: Callable, scores: "torch.Tensor", *labels: Any, **options: Any) -> Callable[[], float]:
    """Forward and backward."""

    def call() -> None:
        scores.grad = None
        loss(scores, *labels, **options).backward()

    return call


def _peers(grades: np.ndarray, scores: np.ndarray) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield the peers that are installed: rax, allRank, and our own compiled kernel."""
    if find_spec("numba") is None:
        return
    from benchmarks.peers.losses import allrank, rax
    from concordant.surrogates import Pairwise

    bound = Pairwise().bind(grades, np.array([0, len(grades)]))
    yield KERNEL, lambda: bound.value_and_grad(scores)
    for make in (rax, allrank):
        try:
            peer = make(grades)[0]
        except ImportError:
            continue
        yield peer.name, lambda peer=peer: peer.call(scores)


def _on_cpu(lengths: list[int], rounds: int) -> Table:
    """One list on the CPU; what makes n x n tables is left out of the longest."""
    import torch

    from concordant.torch import OrderPreservingLoss

    rng, most = np.random.default_rng(0), lengths[1]
    rows, names = [], [OURS, KERNEL, DENSE, "rax", "allRank"]
    for n in lengths:
        grades, scores = rng.integers(0, 5, n).astype(float), rng.standard_normal(n)
        tensor = torch.tensor(scores, dtype=torch.float32, requires_grad=True)
        targets = torch.tensor(grades, dtype=torch.float32)
        calls = {OURS: _stepping(OrderPreservingLoss(), tensor, targets), **dict(_peers(grades, scores))}
        if n > most:
            calls = {name: calls[name] for name in (OURS, KERNEL) if name in calls}
        else:
            calls[DENSE] = _stepping(_dense, tensor, targets)
        timings = race(calls, title=f"{n:,} items on the CPU", rounds=rounds, enough=0.05)
        times = [1e3 * timings.median(name) if name in calls else None for name in names]
        ratios = [timings.ratio(name, OURS) if name in calls else None for name in names[2:]]
        rows.append((n, *times, *ratios))
    missing = [name for name in names[1:] if all(row[1 + names.index(name)] is None for row in rows)]
    absent = f" Not installed: {', '.join(missing)}." if missing else ""
    note = (
        f"ms of value and gradient of one list, {torch.get_num_threads()} threads of torch; "
        "`OrderPreservingLoss` (Huber hinge, forward and backward, float32), the compiled kernel behind "
        "`surrogates.Pairwise`, the same loss as n x n tensors of torch, rax's pairwise hinge and allRank's "
        "lambdaLoss without weights, both with their gradients; and how many times longer than ours. "
        f"Goal: {CPU_GOAL:g} times at 10,000 items against rax and allRank.{absent}"
    )
    columns = ("items", *(f"{name}, ms" for name in names), *(f"{name} / ours" for name in names[2:]))
    return Table("One list on the CPU", note, columns, rows)


def _timed(calls: dict[str, Callable[[], object]], title: str, rounds: int) -> dict[str, float]:
    """Milliseconds of each call, of many given to the GPU one after another."""
    import torch

    def batch(call: Callable[[], object], number: int) -> Callable[[], None]:
        def repeated() -> None:
            for _ in range(number):
                call()
            torch.cuda.synchronize()

        return repeated

    timings = race({name: batch(call, CALLS) for name, call in calls.items()}, title=title, rounds=rounds)
    return {name: 1e3 * timings.median(name) / CALLS for name in calls}


def _memory(call: Callable[[], object]) -> float:
    """MiB that a call has at most in use on the GPU, beyond what was there."""
    import torch

    call()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    call()
    torch.cuda.synchronize()
    return (torch.cuda.max_memory_allocated() - before) / 2**20


def _one_list(about: str, lengths: list[int], rounds: int) -> Table:
    """A list on the GPU, against the n x n form."""
    import torch

    from concordant.torch import OrderPreservingLoss

    goals = ", ".join(f"{goal:g} times at {n:,}" for n, goal in GPU_GOALS.items())
    table = Table(
        "One list on the GPU",
        f"{about} Forward and backward of `OrderPreservingLoss`, of the same with `ndcg@10` targets made "
        f"of grades each time, and of the n x n form; peak memory. Goal: {goals} items, at most "
        f"{SHARE:g} of the memory.",
        (
            "items",
            "ours, ms",
            "ndcg@10, ms",
            "n x n, ms",
            "n x n / ours",
            "ours, MiB",
            "n x n, MiB",
            "share",
            "reached",
        ),
    )
    for n in lengths:
        scores = torch.randn(n, device="cuda", requires_grad=True)
        grades = torch.randint(0, 5, (n,), device="cuda").float()
        calls = {
            OURS: _stepping(OrderPreservingLoss(), scores, grades),
            "ndcg@10": _stepping(OrderPreservingLoss("ndcg@10"), scores, grades),
        }
        if n <= 40_000:
            calls[DENSE] = _stepping(_dense, scores, grades)
        times = _timed(calls, f"{n:,} items", rounds)
        space = {name: _memory(call) for name, call in calls.items() if name != "ndcg@10"}
        ratio = times[DENSE] / times[OURS] if DENSE in times else None
        share = space[OURS] / space[DENSE] if DENSE in times else None
        reached = None
        if n in GPU_GOALS and ratio is not None and share is not None:
            reached = "yes" if ratio >= GPU_GOALS[n] and share <= SHARE else "no"
        ms = [times[OURS], times["ndcg@10"], times.get(DENSE)]
        table.rows.append((n, *ms, ratio, space[OURS], space.get(DENSE), share, reached))
        torch.cuda.empty_cache()
    return table


def _losses() -> Iterator[tuple[str, Callable]]:
    """Every loss of lists, targets given."""
    from concordant.torch import OrderPreservingLoss, PositionHingeLoss, SoftmaxLoss, SquaredLoss

    for margin in ("huber_hinge", "squared_hinge", "hinge", "exponential", "logistic"):
        yield f"OrderPreservingLoss(margin={margin!r})", OrderPreservingLoss(margin=margin)
    yield "SoftmaxLoss()", SoftmaxLoss()
    yield "SquaredLoss()", SquaredLoss()
    yield "PositionHingeLoss()", PositionHingeLoss()


def _every_loss(about: str, lengths: list[int], rounds: int) -> Table:
    """Every loss of one list."""
    import torch

    table = Table(
        "Every loss",
        f"{about} ms, forward and backward of one list, by items. The logistic margin compares every pair: "
        "left out of a million.",
        ("loss", *(f"{n:,}" for n in lengths)),
    )
    cells: dict[str, list[float | None]] = {name: [] for name, _ in _losses()}
    for n in lengths:
        scores = torch.randn(n, device="cuda", requires_grad=True)
        grades = torch.randint(0, 5, (n,), device="cuda").float()
        calls = {
            name: _stepping(loss, scores, grades)
            for name, loss in _losses()
            if n <= 100_000 or "logistic" not in name
        }
        times = _timed(calls, f"losses of {n:,}", rounds)
        for name, row in cells.items():
            row.append(times.get(name))
    table.rows.extend((name, *row) for name, row in cells.items())
    return table


def _many_lists(about: str, number: int, rounds: int) -> Table:
    """As many lists as MSLR-WEB30K has, of 40 to 199 items."""
    import torch

    from concordant.torch import Lists, OrderPreservingLoss

    sizes = torch.randint(40, 200, (number,), generator=torch.Generator().manual_seed(0))
    lists = Lists.from_sizes(sizes).to("cuda")
    scores = torch.randn(lists.n_rows, device="cuda", requires_grad=True)
    grades = torch.randint(0, 5, (lists.n_rows,), device="cuda").float()
    calls = {name: _stepping(loss, scores, grades, offsets=lists) for name, loss in _losses()}
    calls["OrderPreservingLoss('ndcg@10')"] = _stepping(
        OrderPreservingLoss("ndcg@10"), scores, grades, offsets=lists
    )
    times = _timed(calls, "many lists", rounds)
    table = Table(
        "Many lists",
        f"{about} {lists.n_rows:,} rows in {number:,} lists, the shape of MSLR-WEB30K; forward and backward.",
        ("loss", "ms", "MiB"),
    )
    table.rows.extend((name, times[name], _memory(call)) for name, call in calls.items())
    return table
