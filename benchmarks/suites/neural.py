"""Epochs of NeuralRanker, against a matrix product and a copy that the same device does in the same run.

On a GPU at the size of MSLR-WEB30K; where there is none, small and on the CPU, which shows that it runs.
"""

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

import concordant as cc
from benchmarks.shared.devices import Device, waited, without_torch
from benchmarks.shared.shapes import Set
from benchmarks.shared.tables import Table
from benchmarks.shared.timing import race
from concordant.surrogates import Pairwise, Softmax, Surrogate

if TYPE_CHECKING:
    import torch

    from concordant.rankers.networks.epochs import Course, Trainer

HIDDEN = (256, 128)
BATCHES, SMALL_BATCHES = (1024, 16_384, 262_144), (64, 256, 1024)
SIDE, SMALL_SIDE = 8192, 256  # of the matrices of the product
COPIED, SMALL_COPIED = 2**30, 2**22  # bytes of the copy
PRODUCT, COPY = "product", "copy"
COLUMNS = (
    "surrogate", "batch_rows", "amp", "dropout", "ms per epoch", "TFLOP/s", "/ product", "GB/s", "/ copy",
)  # fmt: skip
SOFTMAX, PAIRWISE = Softmax(), Pairwise()


@dataclass(frozen=True)
class Case:
    """Settings that change between rows of the table."""

    batch_rows: int
    surrogate: Surrogate = SOFTMAX
    amp: bool = True
    dropout: float = 0.0

    def bytes_per_row(self, widths: tuple[int, ...]) -> int:
        """Bytes that the kernels of a step read and write for a row, as the table's note counts them."""
        size, hidden = 2 if self.amp else 4, sum(widths[1:-1])
        layers = sum(n_in + n_out for n_in, n_out in pairwise(widths))
        # Gathered; a layer's scores, weights' and inputs' gradients, not the first one's; rectifiers, biases.
        numbers = 2 * widths[0] + 3 * layers - sum(widths[:2]) + 6 * hidden
        return size * numbers + (hidden * (4 * size + 2) if self.dropout else 0)


def _flops_per_row(widths: tuple[int, ...]) -> int:
    """2 a weight for the scores, for its gradient and, but in the first layer, for that of its inputs."""
    first, *others = (n_in * n_out for n_in, n_out in pairwise(widths))
    return 4 * first + 6 * sum(others)


def run(*, quick: bool) -> list[Table]:
    """All tables of this suite."""
    if absent := without_torch("Epochs"):
        return absent
    device = Device.best(quick=quick)
    few, usual, many = SMALL_BATCHES if device.small else BATCHES
    default = cc.NeuralRanker().dropout
    others = Case(usual, dropout=default), Case(usual, amp=False), Case(usual, PAIRWISE)
    return [_epochs(device.draw_set(), device, (Case(few), Case(usual), Case(many), *others))]


def _epochs(data: Set, device: Device, cases: tuple[Case, ...]) -> Table:
    """Time of an epoch, and what it reaches of what the device can do."""
    side, copied = (SMALL_SIDE, SMALL_COPIED) if device.small else (SIDE, COPIED)
    widths, n_rows = (data.X.shape[1], *HIDDEN, 1), len(data.y)
    calls = _limits(device.device, side, copied) | dict(_trained(data, device.device, cases))
    often = {"rounds": 1, "enough": 0.0} if device.quick else {"rounds": 5}
    seconds = race(calls, title="epochs", **often).median
    most = 2 * side**3 / seconds(PRODUCT) / 1e12, 2 * copied / seconds(COPY) / 1e9
    table = Table("Epochs", _note(data, device, widths, most, (side, copied)), COLUMNS)
    for case in cases:
        took, amp = seconds(repr(case)), "on" if case.amp else "off"
        work = n_rows * _flops_per_row(widths) / took / 1e12
        moved = n_rows * case.bytes_per_row(widths) / took / 1e9
        reached = work, work / most[0], moved, moved / most[1]
        table.rows.append((case.surrogate.name, case.batch_rows, amp, case.dropout, 1e3 * took, *reached))
    return table


def _limits(device: "torch.device", side: int, copied: int) -> dict[str, Callable[[], object]]:
    """A product of bfloat16 matrices, and a copy."""
    import torch

    left, right = torch.randn((2, side, side), device=device).bfloat16()
    product = torch.empty_like(left)
    source = torch.ones(copied, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    return {
        PRODUCT: waited(lambda: torch.mm(left, right, out=product)),
        COPY: waited(lambda: target.copy_(source)),
    }


def _trained(
    data: Set, device: "torch.device", cases: tuple[Case, ...]
) -> Iterator[tuple[str, Callable[[], object]]]:
    """For each case what goes on by one epoch, in another order each time."""
    from concordant.rankers.networks.batches import loss_of_batch
    from concordant.rankers.networks.epochs import Course, recorder_for

    pools = {amp: _trainer(data, device, amp=amp) for amp in sorted({case.amp for case in cases})}
    for case in cases:
        begun = pools[case.amp]
        scorer, course = copy.deepcopy(begun.scorer), Course(0)
        scorer.set_dropout(case.dropout)
        case_trainer = replace(
            begun,
            scorer=scorer,
            loss=loss_of_batch(case.surrogate, device),
            batch_rows=case.batch_rows,
            recorder=recorder_for(case.surrogate, begun.pool),
        )
        yield repr(case), waited(partial(_go_on, case_trainer, course))


def _go_on(case_trainer: "Trainer", course: "Course") -> None:
    """Train for one more epoch."""
    course.losses.append(case_trainer.epoch(course))


def _trainer(data: Set, device: "torch.device", *, amp: bool) -> "Trainer":
    """Trainer of NeuralRanker on all queries."""
    from concordant.rankers.folds import FitRows
    from concordant.rankers.networks.epochs import Course
    from concordant.rankers.networks.network_training_set import NetworkTrainingSet
    from concordant.rankers.networks.start import build_trainer

    ranker = cc.NeuralRanker("ndcg@10", hidden=HIDDEN, amp=amp, device=device)
    metric, surrogate = ranker.checked_parameters()
    rows = FitRows.from_columns(data.X, data.y, data.qid, None, None)
    lesson = NetworkTrainingSet.from_rows(metric, surrogate, rows, None, None)
    return build_trainer(ranker.get_params(deep=False), metric, lesson, None, Course(0), None)


def _note(
    data: Set, device: Device, widths: tuple[int, ...], most: tuple[float, float], sizes: tuple[int, int]
) -> str:
    """Describe what was measured where, and how its work is counted."""
    side, copied = sizes
    return (
        f"{data} {device} NeuralRanker('ndcg@10', hidden={HIDDEN}), layers "
        f"{'-'.join(map(str, widths))}, features there; whole epochs: order of the queries, minibatches, "
        "scores, loss, gradients and AdamW, without validation. "
        f"/ product: share of the {most[0]:.3g} TFLOP/s of a product of {side:,} x {side:,} bfloat16 "
        "matrices in this run, without amp too, where layers are float32. "
        f"/ copy: share of the {most[1]:,.0f} GB/s, read and written, of a copy of {copied:,} bytes in this "
        f"run. FLOPs of a row: {_flops_per_row(widths):,}, 2 a weight for the scores, for its gradient and, "
        "but in the first layer, for that of its inputs; nothing else. Bytes of a row: gathering it, "
        "inputs and outputs of each layer, bias, rectifier and dropout, forwards and backwards, 2 bytes a "
        "number with amp, 4 without, as if no cache held any of it; not weights, loss and AdamW."
    )
