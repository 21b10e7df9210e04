"""Losses of flat lists with their gradients, without autograd: (values of queries, gradient of rows).

Needs no n x n memory. On the CPU the package's compiled kernels are used if numba is installed. Otherwise,
and on GPUs, sums are in double precision, of scores relative to their query, so that float32 scores keep
their digits at any level.
"""

from __future__ import annotations

import torch
from torch import Tensor

from concordant._base.validate import check_choice
from concordant.surrogates.margins import CLIP, EXPONENTIAL, LOGISTIC, Margin
from concordant.surrogates.margins import margin as read_margin
from concordant.torch import host
from concordant.torch.lists import Lists, is_short, kernels_serve
from concordant.torch.torch_sweep import prefix_sums, rank_levels, sweep, weighted_mean

# Pairs of items of different levels, by halving the levels: each half is a single sweep over sorted scores.
#
# Levels are ranked and pairs counted as in `surrogates`, but in torch, so that rows stay on the device.

SHORT = 32_768  # items up to which, on a GPU, comparing every pair is faster than halving the levels


def _level_codes(grades: Tensor, lists: Lists) -> tuple[Tensor, Tensor]:
    """Rank each row's level within its query, the lowest 0; also return the number of levels per query.

    >>> codes, levels = _level_codes(torch.tensor([2.0, 0.0, 2.0, 5.0]), Lists.from_offsets([0, 3, 4]))
    >>> codes.tolist(), levels.tolist()
    ([1.0, 0.0, 1.0, 0.0], [2.0, 1.0])
    """
    codes = rank_levels(grades if grades.is_floating_point() else grades.double(), lists)[0].double()
    return codes, lists.highest(codes).clamp(min=-1.0) + 1.0


def _pair_shares(codes: Tensor, lists: Lists, reduction: str) -> Tensor:
    """Return the weight of a pair in each query."""
    sizes = lists.sizes.double()
    if reduction == "sum":
        return torch.ones_like(sizes)
    counts = 0.5 * sizes * (sizes - 1.0)
    if reduction == "pairs":
        # A query has at most as many levels as rows: each level is counted in the slot of one of its rows.
        slots = torch.bincount(codes.long() + lists.starts, minlength=lists.n_rows)
        counts = 0.5 * (sizes**2 - lists.sums(slots.double() ** 2))
    return 1.0 / counts.clamp(min=1.0)


def _overtaking_loss(shifted: Tensor, weights: Tensor, codes: Tensor, lists: Lists) -> tuple[Tensor, Tensor]:
    """Sum over pairs of codes i > j of weights[i] * (shifted_j - shifted_i)_+, with gradient."""
    grad, values = torch.zeros_like(shifted), torch.zeros_like(shifted)
    if lists.n_rows == 0:
        return shifted.new_zeros(lists.n_queries), grad
    if kernels_serve(shifted) and lists.longest <= SHORT:
        from concordant.torch.triton_tiles import level_pairs

        values, grad = level_pairs(shifted, weights, codes, lists.offsets, lists.longest)
        return lists.sums(values), grad
    order = torch.sort(codes, descending=True, stable=True).indices  # equal scores: the higher level first
    order = _by_score(shifted, order, lists)
    z, numbers = shifted - shifted[order][lists.starts], codes.long()
    for bit in range(int(numbers.max()).bit_length()):
        groups = lists.owner * lists.longest + (numbers >> (bit + 1))
        sorted_rows = order[torch.sort(groups[order], stable=True).indices]
        value, slope = _half_pairs(
            z[sorted_rows],
            weights[sorted_rows],
            (numbers[sorted_rows] >> bit) & 1,
            groups[sorted_rows],
            lists,
        )
        values[sorted_rows] += value
        grad[sorted_rows] += slope
    lost = shifted - shifted  # 0, or NaN if a score is not finite: comparisons would hide it
    return lists.sums(values + lost), grad + lost


def _by_score(scores: Tensor, order: Tensor, lists: Lists) -> Tensor:
    """Sort the rows of each query by score, highest first; ties keep the given order."""
    order = order[torch.sort(scores[order], descending=True, stable=True).indices]
    if lists.n_queries == 1:
        return order
    return order[torch.sort(lists.owner[order], stable=True).indices]


def _half_pairs(z: Tensor, w: Tensor, upper: Tensor, groups: Tensor, lists: Lists) -> tuple[Tensor, Tensor]:
    """Return value and slope of the pairs between the halves of each group, by sorted row."""
    first, last = torch.searchsorted(groups, groups), torch.searchsorted(groups, groups, right=True)
    high, low = upper.double(), 1.0 - upper.double()
    sums = prefix_sums(lists, low, low * z, high * w)
    here = sums.upto(torch.arange(lists.n_rows, device=z.device))
    above, depth, _ = (here - sums.upto(first)).unbind(1)
    value = high * w * (depth - above * z)
    return value, low * (sums.upto(last) - here)[:, 2] - high * w * above


def pairwise(
    scores: Tensor, weights: Tensor, lists: Lists, margin: str | Margin = "huber_hinge"
) -> tuple[Tensor, Tensor]:
    """Sum over i, j of weights[i] * phi(s_i - s_j), including i = j; see `surrogates.Pairwise`.

    O(n log n) time for margins of quadratic and linear pieces, O(n) for the exponential; for the logistic no
    way faster than n^2 is known. O(n) memory in each case.

    >>> values, grad = pairwise(torch.zeros(2), torch.tensor([1.0, 0.0]), Lists.single(2), "squared_hinge")
    >>> values.tolist(), grad.tolist()
    ([2.0], [-2.0, 2.0])
    """
    shape = read_margin(margin)
    if host.serves(scores):
        return host.pairwise(scores, weights, lists, shape)
    if is_tiled(scores, lists.longest, shape):
        return tile_sums(scores, weights, lists, shape)
    if shape.kind == LOGISTIC:
        return logistic(scores, weights, lists)
    if shape.kind == EXPONENTIAL:
        return exponential(scores, weights, lists)
    return sweep(scores, weights, lists, shape)


def is_tiled(scores: Tensor, longest: int, shape: Margin) -> bool:
    """True if comparing every pair, a tile at a time, is fastest on the device of the scores."""
    if shape.kind == LOGISTIC:
        return kernels_serve(scores)
    return shape.kind == CLIP and is_short(scores, longest)


def tile_sums(
    scores: Tensor, weights: Tensor, lists: Lists, shape: Margin, mask: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Compute `pairwise` by tiles, ignoring masked rows."""
    from concordant.torch.triton_tiles import all_pairs

    weights = weights.to(scores.dtype).contiguous()
    values, grad = all_pairs(scores.contiguous(), weights, lists.offsets, lists.longest, mask, shape)
    return lists.sums(values), grad


def softmax(scores: Tensor, weights: Tensor, lists: Lists) -> tuple[Tensor, Tensor]:
    """Minus the sum of weights[i] * log softmax(s)_i.

    >>> softmax(torch.zeros(2), torch.tensor([1.0, 0.0]), Lists.single(2))[1].tolist()
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

    >>> lists = Lists.single(2)
    >>> squared(torch.tensor([5.0, 6.0]), torch.tensor([0.0, 1.0]), torch.ones(2), lists)[0].tolist()
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
    """Compute `pairwise` for phi(t) = exp(-t), which factorises: linear time."""
    s, w = scores.double(), weights.double()
    has_weight = w > 0
    top = lists.spread(lists.highest(s))
    low = lists.lowest(s.where(has_weight, torch.inf))
    low = lists.spread(low.where(low.isfinite(), 0.0))
    above = lists.spread(lists.sums((s - top).exp()).log())  # log of the sum of exp(s_j - top)
    heights = (w * (low - s).exp()).where(has_weight, 0.0)
    below = lists.spread(lists.sums(heights).log())  # log of the sum of weights * exp(low - s_i)
    up = torch.where(has_weight, w * ((top - s) + above).exp(), 0.0)
    down = ((s - low) + below).exp()
    return lists.sums(up).to(scores.dtype), (down - up).to(scores.dtype)


def logistic(scores: Tensor, weights: Tensor, lists: Lists) -> tuple[Tensor, Tensor]:
    """Compute `pairwise` for phi(t) = log(1 + exp(-t)) in blocks of rows: n^2 time, O(n) memory."""
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

    See `surrogates.PositionHinge`; weights[i] is of the better item. O(n log n) per halving of the levels.

    >>> lists = Lists.single(3)
    >>> position_hinge(torch.zeros(3), torch.tensor([2.0, 1.0, 0.0]), torch.ones(3), lists)[0].tolist()
    [4.0]
    """
    check_choice("reduction", reduction, ("sum", "pairs", "all_pairs"))
    if host.serves(scores):
        return host.position_hinge(scores, grades, weights, lists, reduction=reduction)
    codes, levels = _level_codes(grades, lists)
    shift = lists.spread(levels) / (lists.spread(levels) - codes)
    shares = weights.double() * lists.spread(_pair_shares(codes, lists, reduction))
    values, grad = _overtaking_loss(scores.double() - shift, shares, codes, lists)
    return values.to(scores.dtype), grad.to(scores.dtype)
