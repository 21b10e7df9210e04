"""Outcomes of pairs and their probabilities, curves, and learning from a stream: typed naively."""

import decimal
import itertools
import math

import numpy as np

# ---------------------------------------------------------------- comparisons with ties


def comparison_error(outcomes, decisions, tau):
    def predict(d):
        return 0 if abs(d) <= tau else (1 if d > 0 else -1)

    return sum(predict(d) != y for y, d in zip(outcomes, decisions, strict=True)) / len(outcomes)


def comparison_area(outcomes, decisions, *, ignore_inversions=False):
    """Points at every threshold from infinity down to 0, joined by straight lines, then flat to rate 1."""
    points = [(0.0, 0.0)]
    ties = [d for y, d in zip(outcomes, decisions, strict=True) if y == 0]
    rest = [(y, d) for y, d in zip(outcomes, decisions, strict=True) if y != 0]
    for tau in sorted({abs(d) for d in decisions} - {0.0}, reverse=True):
        false = sum(abs(d) >= tau for d in ties) / len(ties)
        true = sum(abs(d) >= tau and (ignore_inversions or y * d > 0) for y, d in rest) / len(rest)
        points.append((false, true))
    points.append((1.0, points[-1][1]))
    return sum((x1 - x0) * (y0 + y1) / 2 for (x0, y0), (x1, y1) in itertools.pairwise(points))


# ---------------------------------------------------------------- pairs of items, outcomes, probabilities


def all_item_pairs(labels, groups):
    """Set of (row, row, sign) of every pair of one group, rows ascending."""
    rows = range(len(labels))
    return {
        (i, j, (labels[j] > labels[i]) - (labels[j] < labels[i]))
        for i, j in itertools.combinations(rows, 2)
        if groups[i] == groups[j]
    }


def confusion(outcomes, decisions, tau):
    """Counts by outcome and prediction, each -1, 0, 1."""
    counts = [[0] * 3 for _ in range(3)]
    for y, d in zip(outcomes, decisions, strict=True):
        predicted = 0 if abs(d) <= tau else (1 if d > 0 else -1)
        counts[y + 1][predicted + 1] += 1
    return counts


def outcome_scores(outcomes, probabilities, floor):
    """Means of log-loss, Brier score and ranked probability score."""
    logs, briers, ranked = [], [], []
    for y, p in zip(outcomes, probabilities, strict=True):
        logs.append(-math.log(max(p[y + 1], floor)))
        briers.append(sum((p[k] - (y == k - 1)) ** 2 for k in range(3)))
        ranked.append(((p[0] - (y <= -1)) ** 2 + (p[0] + p[1] - (y <= 0)) ** 2) / 2)
    return tuple(math.fsum(values) / len(outcomes) for values in (logs, briers, ranked))


def calibration_bins(outcomes, probabilities, n_bins):
    """(outcome, mean probability, share, count) of the bins: value number k of n is in bin k n_bins // n."""
    rows = []
    for column, outcome in enumerate((-1, 0, 1)):
        values, bins = [p[column] for p in probabilities], {}
        for value, y in zip(values, outcomes, strict=True):
            number = sum(other < value for other in values) * n_bins // len(values)
            bins.setdefault(number, []).append((value, y == outcome))
        for _, entries in sorted(bins.items()):
            means = (math.fsum(part) / len(entries) for part in zip(*entries, strict=True))
            rows.append((outcome, *means, len(entries)))
    return rows


def resampled_area_differences(outcomes, first, second, resamples):
    """Difference of the ROC areas on each list of rows; those without a tie or a difference are left out."""
    differences = []
    for rows in resamples:
        y, a, b = ([values[row] for row in rows] for values in (outcomes, first, second))
        if 0 < sum(outcome == 0 for outcome in y) < len(y):
            differences.append(comparison_area(y, a) - comparison_area(y, b))
    return differences


def sushi_pairs(scores):
    """The two lowest-scored items that are left, again and again: (item, item, sign); -1 is unscored."""
    left, pairs = [item for item, score in enumerate(scores) if score >= 0], []
    while len(left) >= 2:
        first, second = sorted(left, key=lambda item: scores[item])[:2]  # stable: the lower number first
        pairs.append((first, second, (scores[second] > scores[first]) - (scores[second] < scores[first])))
        left = [item for item in left if item not in (first, second)]
    return pairs


# ---------------------------------------------------------------- outcome curves, and learning from a stream


def cumulative_logit(level, cut, digits=30):
    """P(y = -1, 0, +1) by definition."""
    with decimal.localcontext(prec=digits, Emin=-(10**9), Emax=10**9):
        level, cut = decimal.Decimal(level), decimal.Decimal(cut)
        lost, won = (1 / (1 + (cut - side * level).exp()) for side in (-1, 1))
        return [float(lost), float(1 - lost - won), float(won)]


def curve_loss(slope, cut, decision, y, weight, prior=1.0):
    """Minus log-likelihood of a curve, with half a pair won and half a pair lost at the median decision."""
    sizes = sorted((abs(d), w) for d, w in zip(decision, weight, strict=True) if d != 0 and w > 0)
    half, total, typical = sum(w for _, w in sizes) / 2, 0.0, 0.0
    for size, w in sizes:
        total, typical = total + w, size
        if total >= half:
            break
    rows = [*zip(decision, y, weight, strict=True), (typical, 1, prior / 2), (typical, -1, prior / 2)]
    loss = 0.0
    for d, outcome, w in rows:
        if w > 0:
            probability = cumulative_logit(slope * d, cut)[outcome + 1]
            loss -= w * math.log(probability) if probability > 0 else -math.inf
    return loss


def flipped_logistic(joint, d, tie, C, weight=None):
    """1/2 u.u + C * logistic losses on flipped differences; its gradient. The bias stands last."""
    u, b, c = joint[:-1], joint[-1], C * (np.ones(len(d)) if weight is None else weight)
    g = d @ u
    value, by_g, by_b = 0.5 * u @ u, np.zeros(len(d)), np.zeros(len(d))
    for rows, sign_b, sign_g in ((~tie, -1, -1), (tie, 1, 1), (tie, 1, -1)):
        s = sign_b * b + sign_g * g
        value += (c * np.logaddexp(0, s))[rows].sum()
        slope = np.where(rows, c * np.exp(-np.logaddexp(0, -s)), 0)
        by_g, by_b = by_g + sign_g * slope, by_b + sign_b * slope
    return value, np.r_[u + d.T @ by_g, by_b.sum()]


def online_steps(pairs, y, C, *, scaled=True):
    """Averaged weights (own units) and bias after one logistic step per pair."""
    n, _, p = pairs.shape
    w, mean_w, fisher, widest = np.zeros(p + 1), np.zeros(p + 1), np.zeros(p + 1), np.zeros(p)
    for t in range(1, n + 1):
        items = pairs[:t].reshape(-1, p)
        variance = items.var(axis=0)
        varies = np.sqrt(variance) > 1e-10 * np.abs(items.mean(axis=0))
        for j in np.flatnonzero(varies & (variance > widest)):
            shrink = math.sqrt(widest[j] / variance[j])
            w[j], mean_w[j], widest[j] = w[j] * shrink, mean_w[j] * shrink, variance[j]
        outcome = y[t - 1]
        row = (pairs[t - 1, 1] - pairs[t - 1, 0]) * (outcome or 1)
        scale = np.where(varies, np.sqrt(variance) if scaled else 1.0, np.inf)
        u, z = np.r_[w[:-1] * np.where(varies, scale, 0), w[-1]], row / scale
        g, b = w[:-1] @ row, w[-1]
        if outcome:
            slope = bias_slope = -1 / (1 + math.exp(b + g))
        else:
            up, down = 1 / (1 + math.exp(-(b - g))), 1 / (1 + math.exp(-(b + g)))
            slope, bias_slope = down - up, down + up
        grad = np.r_[slope * z, bias_slope]
        fisher += grad**2
        rate = np.divide(3 * t ** (1 / 3), fisher, out=np.zeros(p + 1), where=fisher > 0)
        reach = (rate * np.r_[z, 1.0] ** 2).sum() * (0.5 if outcome == 0 else 0.25)
        rate /= max(reach, 1.0)
        u = (u - rate * grad) / (1 + rate * np.r_[np.full(p, 1 / (C * t)), 0.0])
        w = np.where(np.r_[varies, True], u / np.r_[np.where(varies, scale, 1), 1.0], w)
        mean_w += 3 / (t + 2) * (w - mean_w)
    return mean_w
