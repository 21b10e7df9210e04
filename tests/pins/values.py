"""Golden values of what is computed, not fitted: metrics, losses, regret, bounds, decoders, aggregates."""

import itertools
import json
import warnings

import numpy as np

import concordant as cc
from tests.pins.golden import GAMES, NAMES, ORDERS, PAIRS, RESULTS, TOY, VOTES, listed

JUDGED = cc.synthetic.grades(n_queries=6, n_items=(1, 6), n_features=2, seed=5)
SCORES = np.round(2.0 * JUDGED.X[:, 0]) / 2.0  # with ties
TWO_GRADES = (JUDGED.y > 1.0) * 1.0  # some queries have nothing relevant
GRADED = (
    "dcg",
    "ndcg",
    "err",
    "ap",
    "p@2",
    "rr",
    "eru",
    "pd",
    "wpd",
    "auc",
    "dcg@3",
    "ndcg@3",
    "err@2",
    "ap@3",
)
CONVENTIONS = (
    *cc.metrics.PRESETS,
    "ties=random,seed=3",
    "ties=best,empty=nan",
    "discount=mslr,gain=linear",
    "relevant_from=2,max_grade=data",
)


def flat(array):
    """Plain numbers of an array, in which text and None stay."""
    return [float(number) for number in np.ravel(np.asarray(array, dtype=float))]


def attempt(compute, *arguments, **options):
    """The value, or the name of the error that is raised instead."""
    try:
        return compute(*arguments, **options)
    except cc.ConcordantError as error:
        return type(error).__name__


def mean_and_values(metric, y, scores, qid):
    """Mean, numbers of queries, and the value of each query."""
    value = metric(y, scores, qid=qid)
    return [float(value), value.n_queries, value.n_skipped, *flat(metric.per_query(y, scores, qid=qid))]


def metrics():
    """Each metric under each preset, on grades, preferences, orders and pairs."""
    table = {}
    for name, style in itertools.product(GRADED, CONVENTIONS):
        metric = cc.metric(name, convention=style)
        labels = TWO_GRADES if style == "catboost" and name.startswith("err") else JUDGED.y
        table[f"{name} {style}"] = attempt(mean_and_values, metric, labels, SCORES, JUDGED.qid)
    for name, style in itertools.product(("pd", "wpd"), CONVENTIONS):
        metric, scores = cc.metric(name, convention=style), np.round(VOTES.X[:, 0])
        table[f"{name} of preferences, {style}"] = attempt(
            mean_and_values, metric, VOTES.y, scores, VOTES.qid
        )
    for style in CONVENTIONS:
        metric, scores = cc.metric("zero_one", convention=style), np.round(3.0 * ORDERS.X[:, 0])
        table[f"zero_one {style}"] = attempt(mean_and_values, metric, ORDERS.y, scores, ORDERS.qid)
    decisions = np.round(PAIRS.pairs[:, 1, 0] - PAIRS.pairs[:, 0, 0], 1)
    for name in ("comparison_error", "comparison_auc"):
        table[name] = float(cc.metric(name)(PAIRS.y, decisions))
    return table


def evaluations():
    """`evaluate` with all metrics of grades under all presets at once, with weights of queries."""
    weight = 1.0 + JUDGED.qid % 3
    names = [
        f"{name}[{style}]"
        for name in GRADED
        for style in CONVENTIONS
        if (name[:3], style) != ("err", "catboost")
    ]
    options = {"qid": JUDGED.qid, "query_weight": weight, "metrics": names}
    result = cc.evaluate(lambda rows: np.round(2.0 * rows[:, 0]) / 2.0, JUDGED.X, JUDGED.y, **options)
    return {"names": list(result), "means": flat(list(result.values())), "queries": flat(result.ids)}


def targets():
    """The standardization of each metric, where there is one."""
    table = {}
    for name, labels in itertools.product(GRADED, ("grades", "relevance")):
        y = JUDGED.y if labels == "grades" else TWO_GRADES
        assume = "P_reinforce" if name.startswith("ap") else "low_noise" if "pd" in name else None
        result = attempt(cc.standardize, name, y, qid=JUDGED.qid, assume=assume)
        table[f"{name}, {labels}"] = result if isinstance(result, str) else flat(result)
    return table


def surrogates():
    """Values, gradients and Hessian products of the losses."""
    losses = {name: cc.surrogates.surrogate(name) for name in cc.surrogates.SURROGATES}
    margins = ("squared_hinge", "hinge", "logistic", "exponential", "huber_hinge(0.5)")
    losses |= {f"pairwise {name}": cc.surrogates.Pairwise(name) for name in margins}
    losses |= {f"preorder {name}": cc.surrogates.Preorder("pairs", margin=name) for name in margins[:3]}
    losses |= {f"duchi {name}": cc.surrogates.Duchi(name) for name in ("cosh", "square")}
    table, scores = {}, SCORES + 0.1 * JUDGED.X[:, 1]
    vector = np.cos(np.arange(len(scores)))
    for name, loss in losses.items():
        labels = JUDGED.y
        if name == "plackett_luce":
            labels, rows, qid = ORDERS.y.positions, np.round(ORDERS.X[:, 0], 2), ORDERS.qid
        else:
            rows, qid = scores, JUDGED.qid
        result = attempt(loss, rows, labels, qid=qid)
        if isinstance(result, str):
            table[name] = result
            continue
        table[name] = [flat(result[0]), flat(result[1])]
        product = attempt(loss.hessian_product, rows, labels, np.resize(vector, len(rows)), qid=qid)
        table[name].append(product if isinstance(product, str) else flat(product))
    return table


def low_rank():
    """Low-rank surrogates: dimensions, losses, decoded predictions, regrets; signs of directions are free."""
    distance = np.abs(np.arange(6)[:, None] - np.arange(6)) * 1.0
    costly = np.array([[0, 1, 9], [1, 0, 3], [2, 1, 0], [2, 1, 0]], dtype=float)
    ap = cc.theory.lowrank.loss_matrix("ap", cc.theory.lowrank.every_label(4))
    family = {
        "distance": cc.LowRankSurrogate.from_loss_matrix(distance),
        "squares": cc.LowRankSurrogate.from_loss_matrix(distance**2),
        "rough": cc.LowRankSurrogate.from_loss_matrix(distance, tol=0.2),
        "costly": cc.LowRankSurrogate.from_loss_matrix(costly),
        "general": cc.LowRankSurrogate.general(costly),
        "ap": cc.LowRankSurrogate.from_loss_matrix(ap),
        "ap in closed form": cc.theory.lowrank.closed_form("ap", cc.theory.lowrank.every_label(4)),
    }
    table = {name: low_rank_numbers(surrogate) for name, surrogate in family.items()}
    for name in ("ap", "pd", "dcg", "ndcg@2", "p@2", "auc"):
        result = attempt(cc.theory.lowrank.dimensions, name, 3)
        table[f"dimensions {name}"] = result if isinstance(result, str) else repr(result)
    return table


def low_rank_numbers(surrogate):
    """What a low-rank surrogate decodes and loses near the best outputs of some distributions."""
    n_labels = surrogate.n_labels
    shares = 1.0 + np.cos(np.arange(7)[:, None] + 1.7 * np.arange(n_labels) ** 2)
    shares /= shares.sum(axis=1, keepdims=True)
    other = np.roll(shares, 1, axis=1)
    u = (0.8 * shares + 0.2 * other) @ surrogate.targets
    values, _ = surrogate(u, np.arange(7) % n_labels)
    proof = surrogate.proof
    return {
        "dimensions": [surrogate.dimension, proof.smallest_dimension, proof.matrix_rank],
        "proof": [proof.residual, proof.diameter, float(proof.exact_diameter)],
        "losses": flat(surrogate.loss_matrix()[:4, :6]),
        "decoded": [int(number) for number in surrogate.decode(u)],
        "values": flat(values),
        "regret": flat(surrogate.regret(shares, u)),
        "surrogate regret": flat(surrogate.surrogate_regret(shares, u)),
        "bound": flat(proof.regret_bound(surrogate.surrogate_regret(shares, u))),
    }


def decoded(result):
    """An order, what it is worth, and what is proven of it."""
    return [listed(result.order), float(result.value), float(result.bound), str(result.proven)]


def decoders():
    """Orders of pair scores by each method."""
    places = np.arange(7)
    weights = np.round(5.0 * (1.0 + np.sin(places[:, None] * 2.3 + places * 1.1)))
    symmetric = np.cos(places[:, None] * places) + np.diag(1.0 + np.sin(places))
    table = {}
    for method in ("auto", "borda", "edge-deletion", "insertion"):
        table[f"feedback_arc {method}"] = decoded(cc.decoders.feedback_arc(weights, method=method))
    for method in ("auto", "beam", "diagonal"):
        result = attempt(cc.decoders.average_precision, symmetric, method=method)
        table[f"average_precision {method}"] = result if isinstance(result, str) else decoded(result)
    table["positions"] = listed(cc.decoders.positions(SCORES, qid=JUDGED.qid))
    return table


def aggregates():
    """Rankings of votes: orders with ties and gaps, a matrix with a cycle, comparisons."""
    orders = [
        ["tea", "milk", "water", "juice"],
        ["milk", "tea"],
        ["juice", {"milk", "tea"}],
        ["water", "juice", "tea"],
    ]
    matrix = np.array([[0, 3, 1, 2], [1, 0, 4, 0], [3, 1, 0, 5], [2, 2, 1, 0]])
    games = cc.Comparisons(GAMES[0], GAMES[1], RESULTS)
    table = {}
    for method in ("kemeny", "borda", "edge-deletion", "insertion"):
        for name, votes, options in (
            ("orders", orders, {}),
            ("orders, unranked last", orders, {"unranked": "last"}),
            ("matrix", matrix, {"names": NAMES.tolist()}),
            ("games", games, {}),
        ):
            table[f"{method}, {name}"] = aggregate_numbers(cc.aggregate(votes, method=method, **options))
    return table


def aggregate_numbers(result):
    """What an aggregate says."""
    return {
        "names": list(result.names),
        "order": listed(result.order),
        "numbers": [float(result.disagreement), float(result.agreement), float(result.gap)],
        "proof": [str(result.proven), result.proof],
        "winner": result.condorcet_winner,
        "cycle": None if result.majority_cycle is None else len(result.majority_cycle),
        "borda": [float(row["borda"]) for row in result.table()],
    }


COMPARERS = {
    "poly hinge": {"kernel": "poly", "C": 0.5, "gamma": 0.5, "degree": 3, "coef0": 0.5},
    "poly nystroem": {"kernel": "poly", "loss": "squared_hinge", "n_components": 15},
    "rbf logistic": {"kernel": "rbf", "loss": "logistic", "approximation": "nystroem", "n_components": 15},
    "rbf exact squared hinge": {"kernel": "rbf", "loss": "squared_hinge", "approximation": "exact"},
    "rbf lp": {"kernel": "rbf", "formulation": "lp", "C": 2.0},
    "rank": {"method": "rank", "C": 2.0},
    "rank2": {"method": "rank2", "C": 2.0},
    "rank2 rbf": {"kernel": "rbf", "method": "rank2", "C": 2.0},
    "sgd": {"loss": "logistic", "solver": "sgd", "max_iter": 3},
}
STREAMS = {
    "linear logistic": {"loss": "logistic"},
    "linear hinge": {"loss": "hinge", "C": 2.0},
    "rbf": {"kernel": "rbf", "loss": "logistic", "n_components": 15},
}


def comparers():
    """Decisions of comparers of other kernels, methods and solvers."""
    return {
        name: machine_numbers(cc.Comparer(calibration=0, **options).fit(PAIRS.pairs, PAIRS.y))
        for name, options in COMPARERS.items()
    }


def machine_numbers(model):
    """Decisions on some pairs, threshold, bias and objective."""
    machine = model.machine_
    numbers = [machine.threshold, machine.bias, machine.value]
    return [flat(model.decision_function(PAIRS.pairs[:15])), numbers, [machine.method, machine.solver]]


def streams():
    """What `partial_fit` has learned after each of three batches."""
    table = {}
    for name, options in STREAMS.items():
        model, stages = cc.Comparer(**options), []
        for batch in np.array_split(np.arange(len(PAIRS.y)), 3):
            model.partial_fit(PAIRS.pairs[batch], PAIRS.y[batch])
            numbers = [model.threshold_, *flat(model.decision_function(PAIRS.pairs[:8]))]
            stages.append([numbers, flat(model.predict_proba(PAIRS.pairs[:4]))])
        table[name] = stages
    return table


def ratings():
    """Ratings with advantages, priors and other treatments of ties; statistics of a history."""
    weight = 1.0 + np.arange(len(RESULTS)) % 2
    family = {
        "bradley-terry, ties dropped": cc.ratings.BradleyTerry(ties="drop", alpha=0.2),
        "bradley-terry, advantage": cc.ratings.BradleyTerry(alpha=0.2, advantage=True),
        "davidson, advantage": cc.ratings.Davidson(alpha=0.2, advantage=True),
        "rao-kupper, alpha": cc.ratings.RaoKupper(alpha=0.2),
        "elo, fide": cc.ratings.Elo("fide", advantage=20.0),
        "glicko, c": cc.ratings.Glicko(c=30.0, floor=50.0),
    }
    table = {}
    for name, model in family.items():
        model.fit(*GAMES, RESULTS, sample_weight=weight)
        model.update(GAMES[0][:4], GAMES[1][:4], -RESULTS[:4])
        probabilities = flat(model.predict_proba(*GAMES)[:5])
        table[name] = [flat(model.ratings_), probabilities, listed(model.rank_bounds())]
        if hasattr(model, "covariance"):
            covariances = [flat(model.covariance(method)) for method in ("information", "robust")]
            table[name] += [model.parameter_errors(), *covariances, float(model.value_)]
    table["features"] = flat(cc.ratings.to_features(*GAMES, RESULTS).pairs[-2:])
    return table


REGRET = (
    "dcg",
    "ndcg",
    "err",
    "ap",
    "p@2",
    "rr",
    "eru",
    "pd",
    "wpd",
    "auc",
    "ndcg@2[lightgbm]",
    "err[max_grade=data]",
)


def regrets():
    """Exact regret, expected values and the best ones, on a known distribution of labels."""
    table = {}
    for name in REGRET:
        space = cc.synthetic.grades(n_queries=4, n_items=(2, 5), n_features=3, seed=2)
        scores = np.round(2.0 * space.X[:, 0]) / 2.0
        result = attempt(cc.theory.regret.regret, name, space.distribution, scores)
        if isinstance(result, str):
            table[name] = result
            continue
        best = cc.theory.regret.bayes(name, space.distribution)
        expected = cc.theory.regret.expected(name, space.distribution, scores)
        table[name] = [flat(result), flat(best.values), flat(expected)]
    space = cc.synthetic.preferences(n_queries=3, n_items=4, n_features=3, seed=2)
    for name in ("pd", "wpd"):
        table[f"{name} of preferences"] = flat(
            cc.theory.regret.regret(name, space.distribution, space.X[:, 0])
        )
    space = cc.synthetic.permutations(n_queries=3, n_items=4, n_features=3, seed=2)
    table["zero_one"] = flat(cc.theory.regret.regret("zero_one", space.distribution, space.X[:, 0]))
    shares = np.array([[0.2, 0.5, 0.3], [0.1, 0.1, 0.8], [0.4, 0.4, 0.2]])
    table["comparisons"] = flat(cc.theory.regret.comparison_regret(shares, [0, -1, 1]))
    return table


def bounds():
    """Risk bounds in all versions: excess, its logarithm, terms, and the queries that are needed."""
    room, versions, table = cc.theory.bounds, ("published", "corrected", "sharp", "tight"), {}
    setting = {"n": 1700, "B": 1.5, "M": 0.8, "delta": 0.1}
    for version in versions:
        for reduction, error in itertools.product(("sum", "pairs"), ("margin", "plain")):
            options = setting | {"version": version, "reduction": reduction}
            words = f"{version}, {reduction}, {error}"
            table[f"pairwise, {words}"] = bound_numbers(room.pairwise, m=6, error=error, **options)
            table[f"multipartite, {words}"] = bound_numbers(
                room.multipartite, levels=(2, 3, 4), error=error, **options
            )
            table[f"bipartite, {version}, {reduction}"] = bound_numbers(
                room.bipartite, rel=3, nrel=5, **options
            )
        for mode in ("max", "softmax", "sum"):
            options = setting | {"version": version, "mode": mode, "temperature": 0.5}
            table[f"listwise, {version}, {mode}"] = bound_numbers(room.listwise, m=8, **options)
            table[f"listwise ndcg, {version}, {mode}"] = bound_numbers(
                room.listwise, m=8, metric="ndcg", **options
            )
            table[f"ap, {version}, {mode}"] = bound_numbers(room.average_precision, m=8, rel=3, **options)
    table["kappa"] = [room.kappa(items) for items in range(2, 8)]
    for version, penalty in itertools.product(("sharp", "tight"), ("auto", 2.0)):
        for loss in (cc.surrogates.PositionHinge(), cc.surrogates.ListwiseHinge(cc.metric("ndcg"))):
            result = room.empirical(
                Weights(), TOY.X, TOY.y, TOY.qid, loss=loss, version=version, B=penalty, delta=0.1
            )
            numbers = [
                result.value,
                result.excess,
                result.empirical,
                result.measured,
                result.worst,
                result.B,
                result.M,
            ]
            table[f"empirical, {type(loss).__name__}, {version}, {penalty}"] = flat(numbers)
    return table


class Weights:
    """A linear ranker as far as bounds read it."""

    coef_ = np.array([0.3, -0.2, 0.1, 0.4, 0.0])


def bound_numbers(bound, **options):
    """The numbers of a bound, or the error that it raises."""
    result = attempt(bound, **options)
    if isinstance(result, str):
        return result
    terms = [(term.value, term.log10, float(term.count)) for term in result.parts]
    numbers = [result.excess, result.log10, result.multiplier, result.largest, *itertools.chain(*terms)]
    return [flat(numbers), str(result.queries_needed(0.1)), result.statement]


def torch_losses():
    """Values and gradients of the losses of `concordant.torch` in double precision, and its metrics."""
    import torch

    import concordant.torch as room

    offsets = torch.as_tensor(np.append(0, np.cumsum(np.bincount(JUDGED.qid))))
    y, two_grades = torch.as_tensor(JUDGED.y), torch.as_tensor(TWO_GRADES)
    scores = SCORES + 0.1 * JUDGED.X[:, 1]
    margins = ("huber_hinge", "squared_hinge", "hinge", "logistic", "exponential")
    losses = {f"pairwise {name}": room.OrderPreservingLoss("ndcg@3", margin=name) for name in margins}
    losses |= {
        "pairwise without a metric": room.OrderPreservingLoss(normalize=True),
        "softmax": room.SoftmaxLoss("dcg"),
        "softmax err": room.SoftmaxLoss("err", reduction="sum"),
        "squared": room.SquaredLoss("ndcg@3"),
        "squared, not centred": room.SquaredLoss("p@2", centred=False),
        **{
            f"position hinge, {pairs}": room.PositionHingeLoss(pairs=pairs)
            for pairs in ("sum", "pairs", "all_pairs")
        },
    }
    table = {}
    for name, loss in losses.items():
        labels = two_grades if name == "squared, not centred" else y
        inputs = torch.tensor(scores, dtype=torch.float64, requires_grad=True)
        value = loss(inputs, labels, offsets=offsets)
        value.backward()
        table[name] = [float(value.detach()), flat(inputs.grad)]
    left = torch.tensor(np.stack([scores, JUDGED.X[:, 1]], axis=1), requires_grad=True)
    right = torch.tensor(np.stack([JUDGED.X[:, 1], scores], axis=1), requires_grad=True)
    for name, labels in (("ap", two_grades), ("pd", y)):
        value = room.PairSquaredLoss(name, normalize=True)((left, right), labels, offsets=offsets)
        gradients = torch.autograd.grad(value, [left, right])
        table[f"pairs {name}"] = [float(value.detach()), *(flat(gradient) for gradient in gradients)]
    for name, style in itertools.product(GRADED, ("concordant", "lightgbm", "mslr", "ties=best")):
        metric = room.metric(name, convention=style)
        numbers = metric.per_query(torch.tensor(SCORES), y, offsets=offsets)
        table[f"{name} {style}"] = flat(numbers)
    return table


TOPICS = {
    "metrics": metrics,
    "evaluations": evaluations,
    "targets": targets,
    "surrogates": surrogates,
    "low rank": low_rank,
    "decoders": decoders,
    "aggregates": aggregates,
    "comparers": comparers,
    "streams": streams,
    "ratings": ratings,
    "regrets": regrets,
    "bounds": bounds,
    "torch": torch_losses,
}


def of_topic(topic):
    """The values of a topic, as JSON holds them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return json.loads(json.dumps(TOPICS[topic]()))


def all_topics():
    """The values of all topics; torch has to be installed."""
    return {topic: of_topic(topic) for topic in TOPICS}
