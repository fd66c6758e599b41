# SPDX-License-Identifier: Apache-2.0
"""The onnx package's own node tests: in the clear, and on secret tensors."""

import re
from fnmatch import fnmatchcase

import pytest
from onnx_backend import cases, convert, differences, is_finite, run, run_secret, tolerance
from onnx_refusals import REFUSALS

import privml
from privml.errors import InvalidInput, UnsupportedOperator
from privml.graph.onnx.table import supported_operators

SUPPORTED = sorted(name for names in supported_operators().values() for name in names)
# Operators of which every case that can be shared at all runs on secret tensors.
SECRET = [
    "Abs", "Add", "And", "ArgMax", "ArgMin", "ArrayFeatureExtractor", "Attention", "AveragePool",
    "BatchNormalization", "Binarizer", "Ceil", "Celu", "Clip", "Compress", "Concat", "Conv", "Cos", "CumProd",
    "CumSum", "DepthToSpace", "Dropout", "Einsum", "Elu", "Equal", "Erf", "Exp", "Expand", "EyeLike", "Flatten",
    "Floor", "GRU", "Gather", "GatherElements", "GatherND", "Gelu", "Gemm", "GlobalAveragePool", "GlobalMaxPool",
    "Greater", "GreaterOrEqual", "GroupNormalization", "HardSigmoid", "HardSwish", "Hardmax", "Identity",
    "InstanceNormalization", "LRN", "LSTM", "LayerNormalization", "LeakyRelu", "Less", "LessOrEqual", "Log",
    "LogSoftmax", "Loop", "LpNormalization", "LpPool", "MatMul", "Max", "Mean", "Min", "Mish", "Mul", "Neg", "Not",
    "OneHot", "Or", "PRelu", "Pad", "RMSNormalization", "RNN", "Reciprocal", "ReduceL1", "ReduceL2", "ReduceLogSum",
    "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare", "Relu",
    "Reshape", "Resize", "ReverseSequence", "Scan", "Selu", "Shape", "Shrink", "Sigmoid", "Sign", "Sin", "Size",
    "Slice", "Softmax", "Softplus", "Softsign", "SpaceToDepth", "Split", "Sqrt", "Squeeze", "Sub", "Sum", "Swish",
    "Tanh", "ThresholdedRelu", "Tile", "Transpose", "TreeEnsemble", "Trilu", "Unsqueeze", "Where", "Xor",
]  # fmt: skip


def refusal(name):
    """What the refusal of this case must say (a pattern), or None when it must be converted."""
    reasons = [why for why, names in REFUSALS.items() if any(fnmatchcase(name, n) for n in names)]
    return "|".join(reasons) or None


def check_in_the_clear(case):
    """What is wrong with a case, or None. A refusal is right only if it is on the list, with its reason."""
    try:
        module = convert(case)
    except UnsupportedOperator as error:
        reason = refusal(case.name)
        if reason is None or not re.search(reason, str(error)):
            return f"{case.name} is refused: {error}"
        return None
    wrong = list(differences(case, run(case, module)))
    return f"{case.name}: {wrong}" if wrong else None


@pytest.mark.parametrize("operator", SUPPORTED)
def test_supported_operators_in_the_clear(operator):
    wrong = [problem for problem in map(check_in_the_clear, cases().get(operator, [])) if problem]
    assert not wrong, "\n".join(wrong)


def test_all_other_operators_are_computed_or_refused():
    others = [case for operator, group in cases().items() if operator not in SUPPORTED for case in group]
    assert len(others) > 200
    wrong = [problem for problem in map(check_in_the_clear, others) if problem]
    assert not wrong, "\n".join(wrong)


def test_function_bodies_in_the_clear():
    """Every composite operator once more, the way onnx itself writes it with simpler ones."""
    expanded = [case for group in cases(expanded=True).values() for case in group]
    assert len(expanded) > 400
    wrong = [problem for problem in map(check_in_the_clear, expanded) if problem]
    assert not wrong, "\n".join(wrong)


def test_every_listed_refusal_happens():
    """The list of refusals has no entry that nothing needs."""
    refused = set()
    for expanded in (False, True):
        for group in cases(expanded).values():
            for case in group:
                if refusal(case.name):
                    try:
                        convert(case)
                    except UnsupportedOperator:
                        refused.add(case.name)
    idle = [n for names in REFUSALS.values() for n in names if not any(fnmatchcase(c, n) for c in refused)]
    assert not idle


def converted(operator):
    for case in cases().get(operator, []):
        try:
            yield case, convert(case)
        except UnsupportedOperator:
            continue


@pytest.mark.parametrize("operator", SUPPORTED)
def test_secret_is_right_or_refused(operator):
    wrong, refused, done = [], [], 0
    with privml.local("plain"):
        for case, module in converted(operator):
            if not module.input_names or not is_finite(case):
                continue
            try:
                problems = list(differences(case, run_secret(case, module), tolerance(case), tolerance(case)))
            except UnsupportedOperator as error:
                refused.append(f"{case.name}: {error}")
                continue
            except InvalidInput:  # infinities and numbers beyond the format cannot be shared
                continue
            done += 1
            wrong += [f"{case.name}: {problem}" for problem in problems]
    assert not wrong, "\n".join(wrong)
    if operator in SECRET:
        assert done and not refused, "\n".join(refused)


SAMPLE = [
    "test_add", "test_and2d", "test_argmax_default_axis_example", "test_averagepool_2d_default",
    "test_batchnorm_example", "test_clip", "test_concat_2d_axis_1", "test_basic_conv_with_padding",
    "test_conv_with_strides_and_asymmetric_padding", "test_convtranspose", "test_flatten_axis1", "test_gather_0",
    "test_gemm_all_attributes", "test_globalaveragepool", "test_greater", "test_hardsigmoid", "test_leakyrelu",
    "test_matmul_2d", "test_max_example", "test_maxpool_2d_ceil", "test_mul", "test_prelu_broadcast",
    "test_reduce_mean_keepdims_example", "test_relu", "test_reshape_reordered_all_dims",
    "test_resize_upsample_scales_linear", "test_slice", "test_split_equal_parts_1d_opset13", "test_sum_example",
    "test_ai_onnx_ml_tree_ensemble_single_tree", "test_where_example", "test_softmax_example",
    "test_logsoftmax_example_1", "test_layer_normalization_default_axis", "test_gelu_default_1",
    "test_sigmoid_example", "test_tanh_example", "test_exp_example", "test_log_example", "test_sqrt_example",
    "test_reciprocal_example", "test_softplus_example", "test_elu_example", "test_div_example",
    "test_instancenorm_example",
]  # fmt: skip


@pytest.mark.parametrize("name", SAMPLE)
def test_sample_on_every_engine(name, open_session):
    (case,) = [case for group in cases().values() for case in group if case.name == name]
    if max((x.size for x in case.inputs.values()), default=0) > 5000:
        pytest.fail(f"{name} is too large for a sample")
    with open_session():
        assert not list(differences(case, run_secret(case, convert(case)), tolerance(case), tolerance(case)))
