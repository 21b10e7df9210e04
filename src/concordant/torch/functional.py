"""Losses of flat lists with their gradients, without autograd: (values of the queries, gradient of the rows).

Nothing of size n x n is made. On the CPU the package's compiled kernels do the work where numba is installed.
Else, and on GPUs, sums are taken in double precision, of scores relative to their query, so that float32
scores keep their digits wherever they lie.
"""

from __future__ import annotations

import torch
from torch import Tensor

from concordant.surrogates.margins import CLIP, EXPONENTIAL, LOGISTIC, Margin
from concordant.surrogates.margins import margin as read_margin
from concordant.surrogates.surrogate import check_choice
from concordant.torch import host
from concordant.torch.levels import level_codes, overtaken, pair_shares
from concordant.torch.lists import Lists
from concordant.torch.sums import is_short, kernels_serve
from concordant.torch.sweep import sweep, weighted_mean

__all__ = ["pairwise", "position_hinge", "softmax", "squared", "tile_sums", "tiled"]


def pairwise(
    scores: Tensor, weights: Tensor, lists: Lists, margin: str | Margin = "huber_hinge"
) -> tuple[Tensor, Tensor]:
    """Sum over i, j of weights[i] * phi(s_i - s_j), i = j included, as `surrogates.Pairwise` has it.

    O(n log n) time for margins of quadratic and linear pieces, O(n) for the exponential; for the logistic
    nothing below n^2 is known. O(n) memory in each case.

    >>> values, grad = pairwise(torch.zeros(2), torch.tensor([1.0, 0.0]), Lists.one(2), "squared_hinge")
    >>> values.tolist(), grad.tolist()
    ([2.0], [-2.0, 2.0])
    """
    shape = read_margin(margin)
    if host.serves(scores):
        return host.pairwise(scores, weights, lists, shape)
    if tiled(scores, lists.longest, shape):
        return tile_sums(scores, weights, lists, shape)
    if shape.kind == LOGISTIC:
        return logistic(scores, weights, lists)
    if shape.kind == EXPONENTIAL:
        return exponential(scores, weights, lists)
    return sweep(scores, weights, lists, shape)


def tiled(scores: Tensor, longest: int, shape: Margin) -> bool:
    """Whether comparing every pair, a tile at a time, is the fastest way on the device of the scores."""
    if shape.kind == LOGISTIC:
        return kernels_serve(scores)
    return shape.kind == CLIP and is_short(scores, longest)


def tile_sums(
    scores: Tensor, weights: Tensor, lists: Lists, shape: Margin, mask: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """`pairwise` by tiles; rows off the mask are none."""
    from concordant.torch.kernels.tiles import all_pairs

    weights = weights.to(scores.dtype).contiguous()
    values, grad = all_pairs(scores.contiguous(), weights, lists.offsets, lists.longest, mask, shape)
    return lists.sums(values), grad


def softmax(scores: Tensor, weights: Tensor, lists: Lists) -> tuple[Tensor, Tensor]:
    """Minus the sum of weights[i] * log softmax(s)_i.

    >>> softmax(torch.zeros(2), torch.tensor([1.0, 0.0]), Lists.one(2))[1].tolist()
    [-0.5, 0.5]
    """
    if host.serves(scores):
        return host.softmax(scores, weights, lists)
    s, w = scores.double(), weights.double()
    below = s - lists.spread(lists.highest(s))
    powers = below.exp()
    totals = lists.sums(powers)
    whole = lists.sums(w)
    values = whole * totals.clamp(min=1.0).log() - lists.sums(w * below)
    grad = lists.spread(whole / totals.clamp(min=1.0)) * powers - w
    return values.to(scores.dtype), grad.to(scores.dtype)


def squared(
    scores: Tensor, targets: Tensor, weights: Tensor, lists: Lists, *, centred: bool = True
) -> tuple[Tensor, Tensor]:
    """Sum of weights * (d - mean d)^2 with d = scores - targets; not centred: of weights * d^2.

    >>> squared(torch.tensor([5.0, 6.0]), torch.tensor([0.0, 1.0]), torch.ones(2), Lists.one(2))[0].tolist()
    [0.0]
    """
    if host.serves(scores):
        return host.squared(scores, targets, weights, lists, centred=centred)
    off, w = scores.double() - targets.double(), weights.double()
    if centred:
        off = off - off[lists.starts]  # large levels cancel
        off = off - lists.spread(weighted_mean(off, w, lists))
    values, grad = lists.sums(w * off * off), 2.0 * w * off
    return values.to(scores.dtype), grad.to(scores.dtype)


def exponential(scores: Tensor, weights: Tensor, lists: Lists) -> tuple[Tensor, Tensor]:
    """`pairwise` for phi(t) = exp(-t), which factorises: linear time."""
    s, w = scores.double(), weights.double()
    counted = w > 0
    top = lists.spread(lists.highest(s))
    low = lists.lowest(s.where(counted, torch.inf))
    low = lists.spread(low.where(low.isfinite(), 0.0))
    above = lists.spread(lists.sums((s - top).exp()).log())  # log of the sum of exp(s_j - top)
    heights = (w * (low - s).exp()).where(counted, 0.0)
    below = lists.spread(lists.sums(heights).log())  # of weights * exp(low - s_i)
    up = torch.where(counted, w * ((top - s) + above).exp(), 0.0)
    down = ((s - low) + below).exp()
    return lists.sums(up).to(scores.dtype), (down - up).to(scores.dtype)


def logistic(scores: Tensor, weights: Tensor, lists: Lists) -> tuple[Tensor, Tensor]:
    """`pairwise` for phi(t) = log(1 + exp(-t)), in blocks of rows: n^2 time, O(n) memory."""
    s, w, owner = scores.double(), weights.double(), lists.owner
    values, grad = torch.empty_like(s), torch.empty_like(s)
    step = max(min(max(lists.longest, 32), 2**19 // max(lists.longest, 1)), 1)
    first, last = lists.starts[::step].tolist(), lists.ends[step - 1 :: step].tolist()
    last += [lists.n_rows] * (len(first) - len(last))
    for block, (begin, end) in enumerate(zip(first, last, strict=True)):
        rows = slice(block * step, min((block + 1) * step, lists.n_rows))
        ahead = s[rows, None] - s[begin:end]
        same = owner[rows, None] == owner[begin:end]
        behind = torch.sigmoid(-ahead)
        pull = w[rows, None] * behind - w[begin:end] * torch.sigmoid(ahead)
        grad[rows] = -torch.where(same, pull, 0.0).sum(1)
        losses = torch.nn.functional.softplus(-ahead, threshold=700.0)
        values[rows] = w[rows] * torch.where(same, losses, 0.0).sum(1)
    return lists.sums(values).to(scores.dtype), grad.to(scores.dtype)


def position_hinge(
    scores: Tensor, grades: Tensor, weights: Tensor, lists: Lists, *, reduction: str = "sum"
) -> tuple[Tensor, Tensor]:
    """Sum over pairs of different grades of weights * (m/y_i - m/y_j - (s_i - s_j))_+, `y` the rank labels.

    As `surrogates.PositionHinge`; weights[i] of the better item. O(n log n) per halving of the levels.

    >>> position_hinge(torch.zeros(3), torch.tensor([2.0, 1.0, 0.0]), torch.ones(3), Lists.one(3))[0].tolist()
    [4.0]
    """
    check_choice("reduction", reduction, ("sum", "pairs", "all_pairs"))
    if host.serves(scores):
        return host.position_hinge(scores, grades, weights, lists, reduction=reduction)
    codes, levels = level_codes(grades, lists)
    shift = lists.spread(levels) / (lists.spread(levels) - codes)
    shares = weights.double() * lists.spread(pair_shares(codes, lists, reduction))
    values, grad = overtaken(scores.double() - shift, shares, codes, lists)
    return values.to(scores.dtype), grad.to(scores.dtype)
