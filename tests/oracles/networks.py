"""Networks: definitions, typed naively."""

import math


def signed_log(value):
    """sign(x) log(1 + abs(x))."""
    return math.copysign(math.log(1.0 + abs(value)), value)


def share_below(value, column):
    """Share of a column that lies below: the middle of equal ones, straight lines between different ones."""
    rows = sorted(column)
    if value <= rows[0]:
        return 0.0
    if value >= rows[-1]:
        return 1.0
    equal = [index for index, row in enumerate(rows) if row == value]
    if equal:
        return sum(equal) / len(equal) / (len(rows) - 1)
    left = max(index for index, row in enumerate(rows) if row < value)
    return (left + (value - rows[left]) / (rows[left + 1] - rows[left])) / (len(rows) - 1)


def network(features, layers):
    """Score of one item: layers (weights, biases), rectifiers between them."""
    outputs = list(features)
    for depth, (weights, biases) in enumerate(layers):
        inputs = outputs if depth == 0 else [max(x, 0.0) for x in outputs]
        outputs = [
            sum(w * x for w, x in zip(row, inputs, strict=True)) + b
            for row, b in zip(weights, biases, strict=True)
        ]
    return outputs[0]
