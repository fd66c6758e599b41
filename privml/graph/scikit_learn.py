# SPDX-License-Identifier: Apache-2.0
"""Converts fitted estimators of scikit-learn to ONNX models with skl2onnx."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from privml.errors import ConfigError, InvalidInput, UnsupportedOperator

# Method -> which output of the ONNX model it is, and options of the conversion.
_METHODS: dict[str, tuple[int, dict[str, Any]]] = {
    "predict": (0, {}),
    "predict_proba": (1, {}),
    "decision_function": (1, {"raw_scores": True}),
}
# What skl2onnx writes models in; the import brings them up to date.
_OPSETS = {"": 17, "ai.onnx.ml": 3}
_COMPARED = 512


def is_estimator(model: Any) -> bool:
    """Whether ``model`` is an estimator or pipeline of scikit-learn, or one that behaves like it."""
    return all(hasattr(model, name) for name in ("fit", "predict", "get_params"))


def onnx_of(estimator: Any, examples: Sequence[torch.Tensor], method: str = "predict") -> Any:
    """The ONNX model of ``method`` of a fitted estimator, for inputs like ``examples`` (a float tensor [n, features]).

    Only the output of that method is kept: other scores are neither computed nor revealed. Raises
    ConfigError without skl2onnx and for an unknown method, InvalidInput for an estimator that is not fitted or other
    examples, UnsupportedOperator for one that skl2onnx cannot convert.
    """
    if method not in _METHODS:
        raise ConfigError(f"method must be one of {', '.join(_METHODS)}, got {method!r}")
    if len(examples) != 1 or examples[0].dim() != 2:
        raise InvalidInput("an estimator takes one example input of shape [samples, features]")
    try:
        from skl2onnx import convert_sklearn
        from skl2onnx.common.data_types import FloatTensorType
        from sklearn.exceptions import NotFittedError
        from sklearn.utils.validation import check_is_fitted
    except ImportError as error:
        raise ConfigError(
            f"estimators of scikit-learn need the packages scikit-learn and skl2onnx ({error}): "
            "pip install 'privml[sklearn]'"
        ) from None
    index, options = _METHODS[method]
    last = estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator
    if method != "predict" and not hasattr(estimator, method):
        raise InvalidInput(f"{type(last).__name__} has no method {method}")
    kind = [("x", FloatTensorType([None, examples[0].shape[1]]))]
    try:
        check_is_fitted(last)
        model = convert_sklearn(estimator, initial_types=kind, options={id(last): options}, target_opset=_OPSETS)
    except NotFittedError as error:
        raise InvalidInput(f"fit the estimator before it is converted: {error}") from None
    except Exception as error:  # of many kinds, also for what it has a converter for
        reason = (str(error).strip().splitlines() or [""])[-1]
        raise UnsupportedOperator(
            f"skl2onnx cannot convert {type(last).__name__}: {type(error).__name__}: {reason}"
        ) from error
    if len(model.graph.output) <= index:
        raise InvalidInput(f"{type(last).__name__} has no method {method} in ONNX")
    kept = model.graph.output[index]
    for output in list(model.graph.output):
        if output.name != kept.name:
            model.graph.output.remove(output)
    return model


def require_agreement(estimator: Any, method: str, module: torch.nn.Module, x: torch.Tensor) -> None:
    """UnsupportedOperator unless the converted model gives the estimator's answers on (up to 512 rows of) ``x``: some
    versions of skl2onnx convert some estimators wrongly. A row in fifty may differ, by float32."""
    x = x[:_COMPARED]
    with torch.no_grad():
        found = module(x)
    expected = getattr(estimator, method)(x.numpy())
    names = module.labels[0]
    got = found.numpy() if names is None else np.array(names)[found.numpy()]
    got, expected = (v.reshape(len(x), -1) for v in (got, np.asarray(expected)))
    if got.shape[1] == 2 and expected.shape[1] == 1:  # the decision between two classes, once for each
        got = got[:, 1:]
    if got.shape != expected.shape:
        raise UnsupportedOperator(f"skl2onnx gives results of shape {got.shape} instead of {expected.shape}")
    if expected.dtype.kind in "OUS":
        same = got.astype(str) == expected.astype(str)
    else:
        slack = 1e-3 * max(float(np.abs(expected).max()), 1e-6) if expected.dtype.kind == "f" else 0.0
        same = np.abs(got.astype(float) - expected.astype(float)) <= slack
    wrong = int((~same.all(1)).sum())
    if wrong > (max(1, len(x) // 50) if len(x) >= 10 else 0):
        name = type(estimator).__name__
        raise UnsupportedOperator(
            f"the ONNX model that skl2onnx made of {name}.{method} gives other results than scikit-learn for {wrong} "
            f"of {len(x)} example inputs; convert another estimator, or use another version of skl2onnx"
        )
