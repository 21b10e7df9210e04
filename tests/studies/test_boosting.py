"""`studies boosting`: the experiment is what it says, on made-up files in the layout of the real sets."""

import json
import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from typer.testing import CliRunner

import concordant as cc
from concordant import synthetic
from concordant.data.queries import Queries
from concordant.exceptions import (
    DatasetNotFoundError,
    EmptyDataError,
    MissingExtraError,
    ParameterError,
    UnknownNameError,
)
from studies.__main__ import app
from studies.boosting import results as boosting_results
from studies.boosting import runs as boosting_runs
from studies.boosting import study as boosting
from studies.boosting import trees as boosting_trees
from studies.boosting.contrasts import interval
from studies.boosting.methods import LIBRARIES, PEERS, SURROGATES, Boosted, Linear, Peer, default_trees
from studies.boosting.results import BASE, CHOSEN, DEFAULT, StageChoice, default_row
from studies.boosting.runs import METRICS, Run, Spot
from studies.boosting.trees import Parts, Plan, Shape

for library in LIBRARIES:
    pytest.importorskip(library, reason="boosting is compared with the peers")
pytestmark = pytest.mark.slow

PLAN = Plan(12, 4)
SHAPES = (Shape(7), Shape(3))


def five_parts(folder, *, seed=0, poisoned=()):
    """Five parts of made-up lists of 8 items, a few of them without anything relevant."""
    folder.mkdir(parents=True)
    for number in range(1, 6):
        toy = synthetic.grades(n_queries=14, n_items=8, n_features=4, seed=10 * seed + number)
        y = toy.y * (toy.qid % 7 != 0)
        if number in poisoned:
            y = y.max() - y
        lines = []
        for grade, query, row in zip(y, toy.qid, toy.X, strict=True):
            features = " ".join(f"{column + 1}:{value:.6f}" for column, value in enumerate(row))
            lines.append(f"{grade:.0f} qid:{100 * number + int(query)} {features}\n")
        (folder / f"S{number}.txt").write_text("".join(lines))


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("data")
    for seed, name in enumerate(("mq2008", "ohsumed", "mq2007-partial")):
        five_parts(root / name, seed=seed)
    return root


@pytest.fixture(scope="module", autouse=True)
def small():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(boosting, "PLAN", PLAN)
        patch.setattr(boosting, "QUICK", Plan(6, 2))
        patch.setattr(boosting, "SHAPES", SHAPES)
        patch.setattr(boosting.buffoni, "folds_of", lambda _, quick: 1 if quick else 2)
        yield


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def study(root, cache):
    return boosting.reproduce(["ohsumed", "mq2007"], ["ndcg@10", "ap"], folder=root, cache=cache)


@pytest.fixture(scope="module")
def second(root):
    return Parts.from_fold(cc.datasets.load("ohsumed", fold=2, folder=root))


def call(*arguments):
    return CliRunner().invoke(app, ["boosting", *map(str, arguments)])


def choices(study):
    """Everything that validation decided."""
    return {
        (dataset.data, metric, name, fold): (choice.method, choice.shape, choice.stage, choice.validation)
        for dataset in study.sets
        for metric, rows in dataset.choices_by_row.items()
        for name, folds in rows.items()
        for fold, choice in zip(dataset.folds, folds, strict=True)
    }


def values(study):
    """All values of test queries."""
    return {
        (dataset.data, metric, name): column
        for dataset in study.sets
        for metric in study.metrics
        for name, column in dataset.column(metric).items()
    }


def assert_same(first, second):
    assert choices(first) == choices(second)
    for key, column in values(first).items():
        np.testing.assert_array_equal(column, values(second)[key], err_msg=str(key))


# --- trees


def own_scores(library, model, X, trees):
    """The library's own prediction with so many trees."""
    if library == "lightgbm":
        return model.predict(X, num_iteration=trees, raw_score=True)
    if library == "xgboost":
        import xgboost

        return model.predict(xgboost.DMatrix(X), iteration_range=(0, trees), output_margin=True)
    return model.predict(X, prediction_type="RawFormulaVal", ntree_end=trees)


@pytest.mark.parametrize(
    "method", [*PEERS[::2], Boosted("ap", "softmax", "xgboost"), Boosted("dcg@10", "squared", "catboost")]
)
def test_staged_scores_are_the_librarys_own(second, method):
    plan = Plan(20, 5)
    model = method.train(second.train, Shape(7), plan)
    staged_scores = method.scores(model, second.test.X, plan)
    assert staged_scores.shape == (4, len(second.test.y))
    for stage, scores in zip(method.stages(plan), staged_scores, strict=True):
        expected = own_scores(method.library, model, second.test.X, stage)
        np.testing.assert_allclose(scores, expected, rtol=1e-5, atol=1e-6)
        assert len(np.unique(scores)) > 5


def test_where_no_more_trees_can_be_grown_scores_stay(second):
    part = replace(second.train, X=np.zeros_like(second.train.X))
    for peer in (
        Peer("lightgbm", "lambdarank"),
        Peer("xgboost", "rank:ndcg"),
    ):  # CatBoost refuses such features
        scores = peer.scores(peer.train(part, Shape(7), PLAN), second.test.X, PLAN)
        assert scores.shape == (3, len(second.test.y))
        assert (np.ptp(scores, axis=1) == 0.0).all()


def test_each_library_keeps_its_own_regularisation(second):
    """As the documentation of the study says."""
    models = {peer: peer.train(second.train, Shape(7), Plan(1, 1)) for peer in PEERS}
    for peer, model in models.items():
        if peer.library == "lightgbm":
            assert {"[lambda_l2: 0]", "[bagging_fraction: 1]"} <= set(model.model_to_string().splitlines())
        elif peer.library == "xgboost":
            booster = json.loads(model.save_config())["learner"]["gradient_booster"]["tree_train_param"]
            assert (booster["lambda"], booster["min_child_weight"], booster["subsample"]) == ("1", "1", "1")
        else:
            params = model.get_all_params()
            assert params["l2_leaf_reg"] == pytest.approx(0.0 if peer.objective == "YetiRank" else 3.0)
            assert (params["bootstrap_type"], params["subsample"]) == ("MVS", pytest.approx(0.8))
            assert (params["random_strength"], params["min_data_in_leaf"]) == (1, 1)
            steps = ("Gradient", 100) if peer.objective == "QuerySoftMax" else ("Newton", 1)
            assert (params["leaf_estimation_method"], params["leaf_estimation_iterations"]) == steps
    ours = Boosted("ap", "softmax", "catboost").train(second.train, Shape(7), Plan(1, 1)).get_all_params()
    assert (ours["bootstrap_type"], ours["random_strength"]) == ("No", 1)
    assert (ours["leaf_estimation_method"], ours["leaf_estimation_iterations"]) == ("Newton", 1)
    assert cc.BoostedRanker("ap").l2 == 1.0


def test_rows_of_a_query_are_adjacent_and_ids_ascend():
    qid = np.array([5, 2, 5, 2, 9])
    data = cc.data.labels.RankingData(np.arange(5.0)[:, None], np.arange(5.0), qid)
    part = boosting_trees.Part.from_data(data, "train")
    assert part.X[:, 0].tolist() == part.y.tolist() == [1.0, 3.0, 0.0, 2.0, 4.0]
    assert part.queries.sizes.tolist() == [2, 2, 1]
    with pytest.raises(EmptyDataError, match="validation"):
        boosting_trees.Part.from_data(None, "validation")


# --- what is chosen, and by whom


def check_chosen(runs, metric, choice):
    """The choice is the first of the best stages of all runs on validation queries, and its test values."""
    best = max(run.validation[metric].max() for run in runs)
    run = next(run for run in runs if run.validation[metric].max() == best)
    stage = run.validation[metric].tolist().index(best)
    assert choice.validation == best
    assert (choice.method, choice.shape) == (run.spot.method, run.spot.shape)
    assert choice.stage == run.stages[stage]
    np.testing.assert_array_equal(choice.per_query, run.test[metric])


def test_choices_are_the_best_on_validation(study):
    for dataset in study.sets:
        for metric, rows in dataset.rows.items():
            for row in rows:
                for fold, choice in zip(dataset.folds, dataset.choices_by_row[metric][row.name], strict=True):
                    runs = [run for name in row.methods for run in dataset.runs[name, fold]]
                    linear = sum(name.startswith("linear") for name in row.methods)
                    assert len(runs) == len(SHAPES) * (len(row.methods) - linear) + linear
                    check_chosen(runs, metric, choice)


def test_a_choice_by_test_values_is_rejected(study):
    dataset = study.sets[0]
    row = next(row for row in dataset.rows["ap"] if row.name == "peers, chosen")
    wrong = 0
    for fold in dataset.folds:
        runs = [run for name in row.methods for run in dataset.runs[name, fold]]
        peeked = max(runs, key=lambda run: np.nanmean(run.test["ap"]))
        try:
            check_chosen(runs, "ap", StageChoice.from_runs([peeked], "ap"))
        except AssertionError:
            wrong += 1
    assert wrong > 0


def test_poisoned_test_labels_change_no_choice(root, tmp_path):
    """Fold 1 is tested on the fifth part alone."""
    five_parts(tmp_path / "mq2008", seed=0, poisoned=(5,))
    plain, poisoned = (
        boosting.reproduce(["mq2008"], ["ap"], folder=folder, quick=True) for folder in (root, tmp_path)
    )
    assert choices(plain) == choices(poisoned)
    assert any(not np.array_equal(column, values(poisoned)[key]) for key, column in values(plain).items())
    five_parts(tmp_path / "other" / "mq2008", seed=0, poisoned=(4,))  # the validation part: now they change
    other = boosting.reproduce(["mq2008"], ["ap"], folder=tmp_path / "other", quick=True)
    assert choices(plain) != choices(other)


def test_undefined_means_are_never_chosen():
    nan, spot = np.array([np.nan, 0.1, np.nan, 0.1]), Spot("toy", 1, "a", "")
    run = Run(spot, (1.0, 2.0, 3.0, 4.0), {"ap": nan}, {"ap": np.ones(2)})
    assert (run.best("ap"), run.validation_mean("ap")) == (1, 0.1)
    empty = Run(spot, (1.0,), {"ap": np.array([np.nan])}, {"ap": np.zeros(2)})
    assert boosting_runs.best_of([empty, run], "ap") is run


# --- the experiment


def test_every_row_and_fold_is_there(study):
    assert [(dataset.data, dataset.folds, dataset.n_queries) for dataset in study.sets] == [
        ("ohsumed", (1, 2), 28),
        ("mq2007-partial", (1, 2), 28),
    ]
    names = [row.name for row in boosting.rows("ap")]
    assert [BASE in names, DEFAULT in names, len(names)] == [True, True, len(PEERS) + 6]
    assert tuple(names[:2]) == CHOSEN
    assert sum("(default)" in name for name in names) == 1 + len(LIBRARIES)
    for dataset in study.sets:
        assert list(dataset.choices_by_row) == ["ndcg@10", "ap"]
        assert all(list(rows) == names for rows in dataset.choices_by_row.values())


@pytest.mark.parametrize("name", [BASE, *(default_row(learner) for learner in ("linear", *LIBRARIES))])
@pytest.mark.filterwarnings("ignore::concordant.exceptions.GuaranteeWarning")
def test_values_are_those_of_a_fresh_fit(study, second, name):
    """What is told of a fold is what the public classes give with the shape and the trees told."""
    choice = study.sets[0].choices_by_row["ap"][name][1]
    train, qid = second.train, second.train.queries
    if "linear" in name:
        model = cc.LinearRanker("ap", alpha=choice.stage, tol=1e-9, max_iter=10_000)
        scores = model.fit(train.X, train.y, qid=qid).predict(second.test.X)
    elif name == BASE:
        import lightgbm

        model = lightgbm.LGBMRanker(
            n_estimators=int(choice.stage),
            learning_rate=0.05,
            num_leaves=int(choice.shape.split()[0]),
            deterministic=True,
            force_row_wise=True,
            verbosity=-1,
            random_state=0,
            n_jobs=1,
        )
        scores = model.fit(train.X, train.y, group=qid.sizes).predict(second.test.X)
    else:
        method = next(candidate for candidate in boosting.boosted("ap") if candidate.name == choice.method)
        shape = Shape(int(choice.shape.split()[0]))
        model = method.ranker(shape, int(choice.stage)).fit(train.X, train.y, qid=qid)
        scores = model.predict(second.test.X)
    expected = cc.metric("ap").per_query(second.test.y, scores, qid=second.test.queries)
    np.testing.assert_allclose(choice.per_query, expected, atol=0.02 if "linear" in name else 1e-9)


def test_our_candidates_are_consistent_and_no_more_than_the_peers():
    for metric in METRICS:
        ours = boosting.ours(metric)
        assert len({candidate.name for candidate in ours}) == len(ours) == 7 < len(PEERS)
        assert {candidate.metric for candidate in ours} == {metric}
        assert {candidate.library for candidate in ours if candidate.shaped} == set(LIBRARIES)
        assert Linear(metric) in ours
        for library in LIBRARIES:
            assert default_trees(metric, library) in ours
        row = next(row for row in boosting.rows(metric) if row.name == CHOSEN[0])
        assert set(row.methods) == {candidate.name for candidate in ours}


@pytest.mark.parametrize("metric", [*METRICS, "auc", "pd", "err", "zero_one"])
def test_the_default_is_that_of_the_ranker(metric):
    for library in LIBRARIES:
        plan, _ = cc.BoostedRanker(metric, booster=library).checked_parameters()
        assert SURROGATES[default_trees(metric, library).surrogate] == plan.surrogate


def test_trained_for_one_metric_and_measured_by_another(study):
    dataset = study.sets[1]
    means = dataset.crossed()
    for metric in ("ndcg@10", "ap"):
        assert list(means[metric]) == ["ndcg@10", "ap"]
        assert means[metric][metric].mean == pytest.approx(np.nanmean(dataset.column(metric)[DEFAULT]))
        assert sum(entry.best for entry in means[metric].values()) == 1


def test_contrasts_are_paired_tests_of_all_queries(study):
    from scipy import stats

    for metric in study.metrics:
        columns = {
            name: np.concatenate([dataset.column(metric)[name] for dataset in study.sets])
            for name in study.column(metric)
        }
        found_over_all = study.against_choice(metric)[-1:], study.against_base(metric)
        for contrasts in (*found_over_all, study.against_peers(metric)):
            for contrast in contrasts:
                assert contrast.data == "all sets"
                of_sets = [
                    np.nanmean(c[contrast.first] - c[contrast.second]) for c in study.columns(metric).values()
                ]
                assert contrast.by_set == pytest.approx(np.mean(of_sets), abs=1e-12)
                d = columns[contrast.first] - columns[contrast.second]
                d = d[~np.isnan(d)]
                assert contrast.test.difference == pytest.approx(d.mean(), abs=1e-12)
                low, high = stats.ttest_1samp(d, 0.0).confidence_interval(0.95)
                assert (contrast.low, contrast.high) == (pytest.approx(low), pytest.approx(high))
                assert (contrast.wins, contrast.ties, contrast.losses) == (
                    (d > 0).sum(),
                    (d == 0).sum(),
                    (d < 0).sum(),
                )
        families = study.against_choice(metric), study.against_base(metric), study.against_peers(metric)
        assert [len(family) for family in families] == [1 + len(study.sets), 5, len(PEERS)]
        for family in families:
            adjusted = stats_holm([contrast.test.t_test for contrast in family])
            assert [contrast.adjusted for contrast in family] == pytest.approx(adjusted)
        assert {contrast.second for contrast in study.against_base(metric)} == {BASE}
        assert {contrast.first for contrast in study.against_base(metric)} == {
            row.name for row in boosting.rows(metric) if row.side == "ours"
        }


def stats_holm(p):
    order, raised = np.argsort(p, kind="stable"), {}
    for rank, index in enumerate(order):
        before = raised.get(order[rank - 1], 0.0) if rank else 0.0
        raised[index] = min(max(p[index] * (len(p) - rank), before), 1.0)
    return [raised[index] for index in range(len(p))]


def test_losses_are_all_reported(study):
    behind = study.behind()
    lost_duels = {(contrast.data, contrast.metric, contrast.first, contrast.second) for contrast in behind}
    for dataset in study.sets:
        for metric in study.metrics:
            columns = dataset.column(metric)
            for first, second in boosting_results.duels(dataset.rows[metric]):
                lost = np.nanmean(columns[first] - columns[second]) < 0.0
                assert lost == ((dataset.data, metric, first, second) in lost_duels)
    assert len(study.cells) == len(study.sets) * len(study.metrics) * (len(PEERS) + 1)


def test_a_better_peer_is_reported(study, monkeypatch):
    dataset = study.sets[0]
    runs = {
        key: [
            replace(run, test={name: per_query + 0.5 for name, per_query in run.test.items()})
            for run in fold_runs
        ]
        if key[0] == "XGBoost rank:pairwise"
        else fold_runs
        for key, fold_runs in dataset.runs.items()
    }
    better = replace(study, sets=(replace(dataset, runs=runs), *study.sets[1:]))
    first = [
        contrast for contrast in better.behind() if contrast.data == dataset.data and contrast.adjusted < 0.05
    ]
    assert {contrast.second for contrast in first if contrast.first == DEFAULT} == {"XGBoost rank:pairwise"}
    best, tied = better.standing(DEFAULT)
    assert best <= tied <= 2
    monkeypatch.setattr(boosting, "reproduce", lambda *_, **__: better)
    shown = call("--data", "ohsumed").stdout
    table = shown.partition("\nohsumed: 28 test queries")[2].split("\n\n")[0]
    (row,) = (line for line in table.splitlines() if line.startswith(DEFAULT))
    assert row.count("↓") == 2
    first, second = (
        line
        for line in shown.partition("ours less theirs")[2].partition("ohsumed: 28")[0].splitlines()
        if "XGBoost rank:pairwise" in line
    )
    assert (first.startswith("ohsumed"), first.count("**")) == (True, 2)
    assert second.startswith("mq2007-partial")


def test_interval_needs_two_differences():
    assert np.isnan(interval(np.array([0.5]))).all()


# --- files


def test_a_kept_run_is_read_and_not_trained_again(study, root, cache, monkeypatch):
    def refuse(*_):
        raise AssertionError("trained again")

    monkeypatch.setattr(boosting_runs, "run", refuse)
    again = boosting.reproduce(["ohsumed", "mq2007"], ["ndcg@10", "ap"], folder=root, cache=cache)
    assert_same(study, again)


def test_an_interrupted_study_goes_on_where_it_was(root, tmp_path, monkeypatch):
    names = {"names": ["mq2008"], "metrics": ["ap"], "folder": root, "quick": True}
    fresh, train, done = boosting.reproduce(**names), boosting_runs.run, []

    def broken(*arguments):
        if len(done) == 4:
            raise KeyboardInterrupt
        done.append(arguments[0])
        return train(*arguments)

    monkeypatch.setattr(boosting_runs, "run", broken)
    with pytest.raises(KeyboardInterrupt):
        boosting.reproduce(**names, cache=tmp_path / "new")
    assert len(list((tmp_path / "new").iterdir())) == 4
    first, *_ = sorted((tmp_path / "new").iterdir())
    first.write_bytes(first.read_bytes()[:100])  # damaged: done again
    done.clear()
    monkeypatch.setattr(boosting_runs, "run", lambda *arguments: (done.append(1), train(*arguments))[1])
    assert_same(fresh, boosting.reproduce(**names, cache=tmp_path / "new"))
    assert len(done) == boosting.n_steps(["mq2008"], ["ap"], folder=root, quick=True) - 3


def test_a_run_of_other_data_or_trees_is_not_taken(second, tmp_path):
    spot, method = Spot("toy", 2, PEERS[0].name, "7 leaves"), PEERS[0]
    run = boosting_runs.run_or_read(spot, method, Shape(7), second, PLAN, tmp_path)
    turned = replace(
        second, validation=replace(second.validation, y=second.validation.y.max() - second.validation.y)
    )
    for parts, plan in ((turned, PLAN), (second, Plan(8, 4))):
        other = boosting_runs.run_or_read(spot, method, Shape(7), parts, plan, tmp_path)
        assert not np.array_equal(run.validation["ap"], other.validation["ap"])
    assert len(list(tmp_path.iterdir())) == 3


@pytest.fixture
def forgotten():
    """What was read of other code is forgotten when the test ends."""
    yield
    boosting_runs.code_of.cache_clear()


@pytest.mark.parametrize("method", [PEERS[0], Linear("ap"), Boosted("ap", "squared", "lightgbm")])
@pytest.mark.usefixtures("forgotten")
def test_a_run_of_other_code_is_not_taken(second, tmp_path, monkeypatch, method):
    for pattern in method.sources:
        root, _, inside = pattern.partition("/")
        assert list(boosting_runs.ROOTS[root].glob(inside)), pattern
    keys = [boosting_runs.key_of(Spot("toy", 2, method.name, ""), method, Shape(7), second, PLAN)]
    monkeypatch.setattr(boosting_runs, "ROOTS", {name: tmp_path / name for name in boosting_runs.ROOTS})
    boosting_runs.code_of.cache_clear()
    for path in (
        "studies/boosting/trees.py",
        "concordant/metrics/kernels/a.py",
        "concordant/rankers/recipe.py",
        "concordant/rankers/neural.py",
    ):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("1")
        boosting_runs.code_of.cache_clear()
        keys.append(boosting_runs.key_of(Spot("toy", 2, method.name, ""), method, Shape(7), second, PLAN))
    boosting_runs.code_of.cache_clear()
    ours = not isinstance(method, Peer)
    assert [key != other for key, other in pairwise(keys)] == [True, True, ours, False]
    monkeypatch.setitem(boosting_runs.METRICS, "ap", cc.metric("p@1"))
    other = boosting_runs.key_of(Spot("toy", 2, method.name, ""), method, Shape(7), second, PLAN)
    assert other != keys[-1]


def test_several_at_a_time_give_the_same(study, root, cache, monkeypatch):
    """Threads stand for the processes, which take seconds to begin; what travels to them can be pickled."""
    monkeypatch.setattr(boosting, "ProcessPoolExecutor", lambda jobs, **_: ThreadPoolExecutor(jobs))
    names = {"names": ["ohsumed", "mq2007"], "metrics": ["ndcg@10", "ap"], "folder": root, "cache": cache}
    assert_same(study, boosting.reproduce(**names, jobs=2))
    for task in boosting.tasks(["ohsumed"], ["ap"], PLAN, root, cache, quick=True):
        assert pickle.loads(pickle.dumps(task)) == task  # noqa: S301
    run = study.sets[0].runs[BASE, 1][0]
    assert pickle.loads(pickle.dumps(run)).spot == run.spot  # noqa: S301


# --- the command


def test_tables_and_json_agree(root, cache):
    options = ("--data", "ohsumed", "--metric", "ap", "--folder", root, "--cache", cache, "--jobs", 1)
    output = call(*options, "--json")
    assert output.exit_code == 0, output.output
    output = json.loads(output.stdout)
    assert (output["trees"], output["every"], output["shapes"]) == (12, 4, ["7 leaves", "3 leaves"])
    shown = call(*options).stdout
    assert shown.startswith("ohsumed: concordant, chosen less peers, chosen\n")
    for remark in ("(default): chosen on these sets", "rank:map for ap", "1 family of tests", "one seed"):
        assert remark in shown.split("\n\n")[0]
    (block,) = (part.splitlines() for part in shown.split("\n\n") if part.startswith("ohsumed: 28 test"))
    for entry in output["sets"][0]["results"]:
        (row,) = (line for line in block if line.startswith(f"{entry['method']} "))
        assert f"{entry['mean']:.4f}" in row
        assert len(entry["folds"]) == 2
    for name in ("chosen", "against_lambdarank", "against_peers", "set_by_set"):
        for entry in output[name]:
            assert f"{entry['test']['difference']:+.4f}" in shown
    assert "trained for one metric" in shown
    assert "look, not a result" not in shown
    assert call(*options, "--quiet").stdout.count("Holm's correction") == 0


def test_a_look_says_that_it_is_one(root):
    shown = call("--metric", "p@10", "--folder", root, "--quick", "--trees", 5)
    assert shown.exit_code == 0, shown.output
    assert "\nmq2008: 14 test queries\n" in shown.stdout
    assert "a look, not a result" in shown.stdout
    assert "up to 4 trees" in shown.stdout


def test_steps_are_counted(root):
    steps = []
    boosting.reproduce(["ohsumed"], ["dcg@10"], folder=root, quick=True, step=steps.append)
    assert len(steps) == boosting.n_steps(["ohsumed"], ["dcg@10"], folder=root, quick=True)
    assert steps[0] == f"ohsumed, fold 1: {BASE}"


def test_wrong_requests_are_refused(root, tmp_path, monkeypatch):
    with pytest.raises(UnknownNameError, match="mq2009"):
        boosting.reproduce(["mq2009"], folder=root)
    with pytest.raises(UnknownNameError, match="map"):
        boosting.reproduce(["mq2008"], ["map"], folder=root)
    with pytest.raises(ParameterError, match="jobs"):
        boosting.reproduce(["mq2008"], folder=root, jobs=0)
    with pytest.raises(ParameterError, match="trees"):
        boosting.reproduce(["mq2008"], folder=root, trees=0)
    with pytest.raises(DatasetNotFoundError):
        boosting.reproduce(["mq2008"], folder=tmp_path)
    monkeypatch.setattr(boosting_trees, "find_spec", lambda name: None if name == "catboost" else object())
    with pytest.raises(MissingExtraError, match="catboost"):
        boosting.reproduce(["mq2008"], folder=root)


def test_linear_paths_have_penalties_for_stages(second):
    method = Linear("ndcg@10")
    stages = method.stages(PLAN)
    coefs = method.train(second.train, Shape(7), PLAN)
    assert method.scores(coefs, second.test.X, PLAN).shape == (len(stages), len(second.test.y))
    assert list(stages) == sorted(stages, reverse=True)
    assert isinstance(second.train.queries, Queries)
