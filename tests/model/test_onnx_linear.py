# SPDX-License-Identifier: Apache-2.0
"""Linear models, support vectors and the preparation of features of ai.onnx.ml, against onnxruntime."""

import numpy as np
import pytest
import torch
from onnx import helper
from onnx_ml import FLOAT, INT64, LABELLED, POSTS, check, compute, floats, model, support_vectors

from privml.errors import UnsupportedOperator
from privml.graph.onnx.module import OnnxModule


@pytest.mark.parametrize("post", POSTS)
@pytest.mark.parametrize("classes", [2, 3])
def test_linear_classifier(rng, x, post, classes):
    extra = {"coefficients": floats(rng, classes, 5), "intercepts": floats(rng, classes)}
    labels = [4, 1, 7][:classes]
    check(model("LinearClassifier", LABELLED, classlabels_ints=labels, post_transform=post, **extra), x)


@pytest.mark.parametrize("post", ["NONE", "LOGISTIC"])
def test_linear_classifier_of_one_score(rng, x, post):
    extra = {"coefficients": floats(rng, 5), "intercepts": floats(rng, 1)}
    check(model("LinearClassifier", LABELLED, classlabels_ints=[3, 7], post_transform=post, **extra), x)


@pytest.mark.parametrize("post", POSTS)
def test_linear_regressor(rng, x, post):
    extra = {"coefficients": floats(rng, 2, 5), "intercepts": floats(rng, 2)}
    check(model("LinearRegressor", targets=2, post_transform=post, **extra), x)


KERNELS = ["LINEAR", "POLY", "RBF", "SIGMOID"]


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("one_class", [0, 1])
def test_svm_regressor(rng, x, kernel, one_class):
    extra = {"support_vectors": floats(rng, 7, 5), "coefficients": floats(rng, 7), "n_supports": 7, "rho": [0.3]}
    kernel = {"kernel_type": kernel, "kernel_params": [0.3, 0.2, 3.0]}
    check(model("SVMRegressor", one_class=one_class, **kernel, **extra), x)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("counts", [[3, 2], [3, 2, 4], [2, 1, 3, 2]])
@pytest.mark.parametrize("post", ["NONE", "LOGISTIC"])
def test_svm_classifier(rng, x, kernel, counts, post):
    kernel = {"kernel_type": kernel, "kernel_params": [0.3, 0.2, 3.0]}
    check(model("SVMClassifier", LABELLED, post_transform=post, **kernel, **support_vectors(rng, counts)), x)


def test_svm_classifier_with_probabilities(rng, x):
    extra = support_vectors(rng, [3, 2])
    # onnxruntime iterates towards the sigmoid, to about a thousandth.
    extra |= {"kernel_type": "LINEAR", "kernel_params": [0.0, 0.0, 0.0]}
    check(model("SVMClassifier", LABELLED, prob_a=[-1.2], prob_b=[0.3], **extra), x, 2e-3)
    with pytest.raises(UnsupportedOperator, match="more than two classes"):
        extra = support_vectors(rng, [3, 2, 2])
        OnnxModule(model("SVMClassifier", LABELLED, prob_a=[1.0] * 3, prob_b=[0.0] * 3, **extra))


# ---- features
@pytest.mark.parametrize("norm", ["MAX", "L1", "L2"])
def test_normalizer(x, norm):
    check(model("Normalizer", norm=norm), x + 0.03)


@pytest.mark.parametrize("columns", [1, 5])
def test_scaler(rng, x, columns):
    check(model("Scaler", offset=floats(rng, columns), scale=floats(rng, columns)), x)


def test_binarizer(x):
    check(model("Binarizer", threshold=0.3), x)


def test_imputer(x):
    x[::2, 1] = np.nan
    values = [1.0, 2.0, 3.0, 4.0, 5.0]
    check(model("Imputer", imputed_value_floats=values, replaced_value_float=float("nan")), x)


@pytest.mark.parametrize(
    ("kind", "output", "attributes"),
    [
        ("Scaler", FLOAT, {"offset": [0.5], "scale": [2.0]}),
        ("OneHotEncoder", FLOAT, {"cats_int64s": [0, 2, 3], "zeros": 1}),
        ("LabelEncoder", INT64, {"keys_int64s": [0, 2, 3], "values_int64s": [7, 8, 9], "default_int64": -5}),
        ("LabelEncoder", FLOAT, {"keys_int64s": [0, 2, 3], "values_floats": [7.5, 8.0, 9.0]}),
        ("Imputer", INT64, {"imputed_value_int64s": [9], "replaced_value_int64": 2}),
    ],
)
def test_integer_features(rng, kind, output, attributes):
    x = rng.integers(0, 5, size=(6, 3))
    check(model(kind, [("Y", output)], INT64, 3, **attributes), x)


def test_zip_map_is_dropped(rng, x):
    """The scores stay a tensor where onnxruntime makes a list of dictionaries of them."""
    proto = model("LinearClassifier", LABELLED, classlabels_ints=[0, 1, 2], coefficients=floats(rng, 3, 5))
    (_, scores) = compute(proto, x)
    proto.graph.node.append(helper.make_node("ZipMap", ["Z"], ["P"], domain="ai.onnx.ml", classlabels_int64s=[0, 1, 2]))
    kind = helper.make_sequence_type_proto(helper.make_map_type_proto(INT64, helper.make_tensor_type_proto(FLOAT, [])))
    proto.graph.output[1].CopyFrom(helper.make_value_info("P", kind))
    torch.testing.assert_close(compute(proto, x)[1], scores)
