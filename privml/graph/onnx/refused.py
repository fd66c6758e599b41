# SPDX-License-Identifier: Apache-2.0
"""Why operators that ONNX has are not here, and what to do instead."""

from __future__ import annotations

_SHAPE = "the shape of its result depends on values and would reveal them"
_QUANTIZED = "integer arithmetic of quantized models; convert the floating-point model"
_RANDOM = "random results, on which the parties would have to agree; make them an input"
_SEQUENCE = "sequences and optional values; only tensors are computed"
_STRING = "strings; only numbers are computed"
_TRAINING = "a training step; train the module with torch.optim instead"
_SPECTRUM = "complex numbers; write the transform as a product with a constant matrix"
_PLACES = "it reads at positions that depend on values"

REASONS: dict[str, str] = {
    **dict.fromkeys(("NonMaxSuppression", "NonZero", "Unique"), _SHAPE),
    **dict.fromkeys(
        ("ConvInteger", "DequantizeLinear", "DynamicQuantizeLinear", "MatMulInteger", "QLinearConv",
         "QLinearMatMul", "QuantizeLinear"),
        _QUANTIZED,
    ),
    **dict.fromkeys(
        ("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"),
        _RANDOM,
    ),
    **dict.fromkeys(
        ("ConcatFromSequence", "Optional", "OptionalGetElement", "OptionalHasElement", "SequenceAt",
         "SequenceConstruct", "SequenceEmpty", "SequenceErase", "SequenceInsert", "SequenceLength", "SequenceMap",
         "SplitToSequence"),
        _SEQUENCE,
    ),
    **dict.fromkeys(
        ("CastMap", "CategoryMapper", "DictVectorizer", "RegexFullMatch", "StringConcat", "StringNormalizer",
         "StringSplit"),
        _STRING,
    ),
    **dict.fromkeys(("Adagrad", "Adam", "Gradient", "Momentum"), _TRAINING),
    **dict.fromkeys(("DFT", "MelWeightMatrix", "STFT"), _SPECTRUM),
    **dict.fromkeys(("DeformConv", "MaxRoiPool", "MaxUnpool", "RoiAlign", "TensorScatter", "TfIdfVectorizer"), _PLACES),
    **dict.fromkeys(
        ("CausalConvWithState", "LinearAttention"),
        "onnx cannot inline its body when an optional operand is left out",
    ),
    "BitCast": "it reinterprets the bits of a number, which a share does not have",
    "ImageDecoder": "it decodes a file; decode before sharing",
}  # fmt: skip
