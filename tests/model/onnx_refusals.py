# SPDX-License-Identifier: Apache-2.0
"""The node tests of the onnx package whose conversion is refused: what the message must say, and which they are."""

# Part of the message -> patterns of case names (those of expanded cases end in _expanded).
REFUSALS: dict[str, tuple[str, ...]] = {
    "element type U?INT[24]|FLOAT4|FLOAT8": (
        "test_cast*_*INT[24]*", "test_cast*_*FLOAT[48]E*", "test_*quantizelinear_*int[24]",
        "test_*quantizelinear_e[45]m*", "test_*quantizelinear_float4*",
    ),
    "element type UINT(16|32|64)": (
        "test_*_uint16", "test_*_uint32", "test_*_uint64", "test_*_uint16_expanded", "test_*_uint32_expanded",
        "test_*_uint64_expanded", "test_bitwise_*_ui64_*", "test_bitwise_not_3d",
    ),
    "element type STRING": (
        "test_ai_onnx_ml_label_encoder_*", "test_equal_string*", "test_regex_*", "test_string_*",
        "test_strnormalizer_*",
    ),
    "is a (sequence|optional), not a tensor|sequences and optional values": (
        "test_identity_opt", "test_identity_sequence", "test_if_opt", "test_if_seq", "test_loop13_seq",
        "test_loop16_seq_none", "test_optional_get_element_*", "test_optional_has_element_*", "test_sequence_*",
        "test_split_to_sequence_*",
    ),
    "integer arithmetic of quantized models": (
        "test_convinteger_*", "test_*quantizelinear*", "test_matmulinteger", "test_qlinear*",
    ),
    "the shape of its result depends on values": ("test_nonmaxsuppression_*", "test_nonzero_*", "test_unique_*"),
    "it reads at positions that depend on values": (
        "test_*deform_conv_*", "test_maxunpool_*", "test_roialign_*", "test_tensorscatter*", "test_tfidfvectorizer_*",
    ),
    "complex numbers": ("test_dft*", "test_melweightmatrix", "test_stft*"),
    "random results": ("test_bernoulli*",),
    "training_mode": ("test_training_dropout*", "test_batchnorm_*training_mode*"),
    "a training step": ("test_adagrad*", "test_adam*", "test_*momentum*"),
    "it reinterprets the bits": ("test_bitcast_*",),
    "onnx cannot inline its body": ("test_causal_conv_with_state_*", "test_linear_attention_*"),
    "its trip count depends on the values": ("test_range_*_expanded",),
    "no whole size": ("test_resize_downsample_*_align_corners",),
    "Scan of opset 8": ("test_scan_sum",),
    "not supported": ("test_col2im*", "test_flexattention*"),
}  # fmt: skip
