# SPDX-License-Identifier: Apache-2.0
"""Decision trees and support vector machines of given shapes, with random parameters, and what a query of them costs
on an engine: the shapes of Damgard et al., "New Primitives for Actively-Secure MPC over Rings", tables II and III."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from onnx import ModelProto, TensorProto, helper

from privml.conversion import convert
from privml.measure.answers import local_settings
from privml.memory import peak_memory
from privml.program import INPUT_OWNER, Program
from privml.session.ledger import Snapshot
from privml.session.local import local
from privml.sharing import reveal
from privml.spec import SessionSpec

Params = Mapping[str, Any]
CALIBRATION = 64
SCALE, WEIGHT_BITS = 10, 12


def model(params: Params) -> ModelProto:
    """The ONNX model of a row: a complete ``tree`` (``depth``, ``features``) or a ``machine`` (``classes``,
    ``features``)."""
    rng = np.random.default_rng(0)
    if params["model"] == "tree":
        node = _tree(rng, params["depth"], params["features"])
    else:
        node = _machine(rng, params["classes"], params["features"])
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, params["features"]])]
    outputs = [helper.make_tensor_value_info("label", TensorProto.INT64, [None])]
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", 3)]
    graph = helper.make_graph([node], params["model"], inputs, outputs)
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def _tree(rng: np.random.Generator, depth: int, features: int) -> Any:
    inner, total = (1 << depth) - 1, (2 << depth) - 1
    numbers = np.arange(total)
    leaves = numbers[inner:]
    thresholds = np.where(numbers < inner, rng.normal(size=total) / 2, 0)
    below = np.where(numbers < inner, 2 * numbers + 1, 0)
    columns = np.where(numbers < inner, rng.integers(features, size=total), 0)
    return helper.make_node(
        "TreeEnsembleClassifier", ["x"], ["label", "scores"], domain="ai.onnx.ml",
        nodes_treeids=[0] * total, nodes_nodeids=numbers.tolist(), nodes_featureids=columns.tolist(),
        nodes_values=thresholds.tolist(), nodes_modes=["BRANCH_LEQ"] * inner + ["LEAF"] * len(leaves),
        nodes_truenodeids=below.tolist(), nodes_falsenodeids=np.where(numbers < inner, below + 1, 0).tolist(),
        class_treeids=[0] * len(leaves), class_nodeids=leaves.tolist(),
        class_ids=rng.integers(3, size=len(leaves)).tolist(), class_weights=[1.0] * len(leaves),
        classlabels_int64s=[0, 1, 2],
    )  # fmt: skip


def _machine(rng: np.random.Generator, classes: int, features: int) -> Any:
    rows = rng.normal(size=(classes, features)) / features**0.5
    return helper.make_node(
        "LinearClassifier", ["x"], ["label", "scores"], domain="ai.onnx.ml",
        coefficients=rows.ravel().tolist(), intercepts=(rng.normal(size=classes) / 2).tolist(),
        classlabels_ints=list(range(classes)),
    )  # fmt: skip


def inputs(params: Params, batch: int) -> torch.Tensor:
    return torch.randn(batch, params["features"], generator=torch.Generator().manual_seed(1))


def program(params: Params, bits: int) -> Program:
    return convert(
        model(params),
        calibration=inputs(params, CALIBRATION),
        numerics={"bits": bits, "scale": SCALE, "weight_bits": WEIGHT_BITS},
        tree_structure=params.get("structure", "public"),
    )


def query(converted: Program, values: torch.Tensor, spec: SessionSpec, repeats: int) -> dict[str, Any]:
    """Phases of one query as the client sees it, seconds the median of ``repeats`` after one warm-up, all parties in
    this process. The setup is that of the session, with the weights shared and whatever they have to prove."""
    numerics = converted.numerics
    formats = {"bits": numerics.bits, "scale": numerics.scale, "exp": numerics.exp}
    with local(spec.backend.name, **formats, **local_settings(spec)) as session:
        begun = time.perf_counter()
        first = _once(converted, session, values)
        setup = time.perf_counter() - begun
        runs = []
        for _ in range(repeats):
            before, start = session.ledger.snapshot(), time.perf_counter()
            label = _once(converted, session, values)
            runs.append((time.perf_counter() - start, session.ledger.snapshot() - before))
            if not torch.equal(label, first):
                raise ArithmeticError(f"{spec.backend.name} gave different results for the same query")
    seconds, costs = zip(*runs, strict=True)
    counts: Snapshot = costs[0]
    return {
        "seconds": statistics.median(seconds),
        "first_seconds": setup,
        "phases": {
            name: {
                "seconds": statistics.median(getattr(cost, name).seconds for cost in costs),
                "bytes": getattr(counts, name).bytes,
                "sent": None,
                "party0": None,
                "depth": None,  # a chain of messages through several queries is not the sum of theirs
            }
            for name in ("preprocess", "online")
        },
        "peak_rss_bytes": peak_memory(),
    }


def _once(converted: Program, session: Any, values: torch.Tensor) -> torch.Tensor:
    return reveal(converted.run(session, values), to=INPUT_OWNER)
