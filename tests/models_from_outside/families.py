# SPDX-License-Identifier: Apache-2.0
"""Models of the library ``transformers``, unmodified, with random weights: small widths and vocabularies, two layers
and more, heads of 64 numbers."""

from __future__ import annotations

from collections.abc import Callable

import torch
import transformers

Inputs = dict[str, torch.Tensor]
VOCABULARY, WIDTH, HEADS, INNER, LENGTH = 100, 128, 2, 256, 8


def _ids(rows: int = 4, length: int = LENGTH, seed: int = 0) -> torch.Tensor:
    return torch.randint(3, VOCABULARY, (rows, length), generator=torch.Generator().manual_seed(seed))


def _encoder(config: type, model: type, **more: object) -> torch.nn.Module:
    return model(
        config(
            vocab_size=VOCABULARY, hidden_size=WIDTH, num_hidden_layers=2, num_attention_heads=HEADS,
            intermediate_size=INNER, max_position_embeddings=32, **more,
        )
    )  # fmt: skip


def bert() -> tuple[torch.nn.Module, Inputs]:
    return _encoder(transformers.BertConfig, transformers.BertForSequenceClassification), {"input_ids": _ids()}


def bert_embeddings() -> tuple[torch.nn.Module, Inputs]:
    """With the padding mask that a tokenizer returns."""
    mask = torch.ones(4, LENGTH, dtype=torch.int64)
    mask[1, 5:] = 0
    mask[2, 3:] = 0
    model = _encoder(transformers.BertConfig, transformers.BertModel)
    return model, {"input_ids": _ids() * mask, "attention_mask": mask}


def distilbert() -> tuple[torch.nn.Module, Inputs]:
    config = transformers.DistilBertConfig(
        vocab_size=VOCABULARY, dim=WIDTH, n_layers=2, n_heads=HEADS, hidden_dim=INNER, max_position_embeddings=32
    )
    return transformers.DistilBertForSequenceClassification(config), {"input_ids": _ids()}


def roberta() -> tuple[torch.nn.Module, Inputs]:
    model = _encoder(transformers.RobertaConfig, transformers.RobertaForSequenceClassification)
    return model, {"input_ids": _ids()}


def gpt2() -> tuple[torch.nn.Module, Inputs]:
    config = transformers.GPT2Config(
        vocab_size=VOCABULARY, n_embd=WIDTH, n_layer=2, n_head=HEADS, n_positions=32, bos_token_id=0, eos_token_id=1
    )
    return transformers.GPT2LMHeadModel(config), {"input_ids": _ids()}


def llama() -> tuple[torch.nn.Module, Inputs]:
    """Grouped queries: two heads share one of keys and values."""
    model = _encoder(transformers.LlamaConfig, transformers.LlamaForCausalLM, num_key_value_heads=1)
    return model, {"input_ids": _ids()}


def vit() -> tuple[torch.nn.Module, Inputs]:
    config = transformers.ViTConfig(
        hidden_size=WIDTH, num_hidden_layers=2, num_attention_heads=HEADS, intermediate_size=INNER, image_size=16,
        patch_size=8,
    )  # fmt: skip
    return transformers.ViTForImageClassification(config), {"pixel_values": _pixels(16)}


def whisper() -> tuple[torch.nn.Module, Inputs]:
    config = transformers.WhisperConfig(
        vocab_size=VOCABULARY, d_model=WIDTH, encoder_layers=2, encoder_attention_heads=HEADS, encoder_ffn_dim=INNER,
        max_source_positions=8, num_mel_bins=20, pad_token_id=0, bos_token_id=1, eos_token_id=2,
        decoder_start_token_id=1,
    )  # fmt: skip
    encoder = transformers.models.whisper.modeling_whisper.WhisperEncoder(config)
    return encoder, {"input_features": torch.randn(4, 20, 16, generator=torch.Generator().manual_seed(0))}


def t5() -> tuple[torch.nn.Module, Inputs]:
    config = transformers.T5Config(
        vocab_size=VOCABULARY, d_model=WIDTH, d_kv=64, d_ff=INNER, num_layers=2, num_heads=HEADS
    )
    inputs = {"input_ids": _ids(), "decoder_input_ids": _ids(length=4, seed=1)}
    return transformers.T5ForConditionalGeneration(config), inputs


def resnet() -> tuple[torch.nn.Module, Inputs]:
    config = transformers.ResNetConfig(embedding_size=16, hidden_sizes=[16, 32, 32, 32], depths=[2, 2, 2, 2])
    return transformers.ResNetForImageClassification(config), {"pixel_values": _pixels()}


def mobilenet() -> tuple[torch.nn.Module, Inputs]:
    config = transformers.MobileNetV2Config(image_size=32, depth_multiplier=0.35)
    return transformers.MobileNetV2ForImageClassification(config), {"pixel_values": _pixels()}


def efficientnet() -> tuple[torch.nn.Module, Inputs]:
    """With gains of one in batch norms, where training begins: the library draws them around zero, at 0.02, with which
    all values vanish (to 1e-36 at the outputs)."""
    config = transformers.EfficientNetConfig(
        image_size=32, width_coefficient=0.25, depth_coefficient=0.5, hidden_dim=320
    )
    model = transformers.EfficientNetForImageClassification(config)
    for part in model.modules():
        if isinstance(part, torch.nn.BatchNorm2d):
            torch.nn.init.ones_(part.weight)
        elif isinstance(part, torch.nn.Conv2d):
            torch.nn.init.kaiming_normal_(part.weight)
    return model, {"pixel_values": _pixels()}


def convnext() -> tuple[torch.nn.Module, Inputs]:
    config = transformers.ConvNextConfig(hidden_sizes=[16, 16, 32, 32], depths=[2, 2, 2, 2], image_size=32)
    return transformers.ConvNextForImageClassification(config), {"pixel_values": _pixels()}


def _pixels(size: int = 32) -> torch.Tensor:
    return torch.rand(4, 3, size, size, generator=torch.Generator().manual_seed(0))


FAMILIES: dict[str, Callable[[], tuple[torch.nn.Module, Inputs]]] = {
    each.__name__: each
    for each in (
        bert, bert_embeddings, distilbert, roberta, gpt2, llama, vit, whisper, t5, resnet, mobilenet, efficientnet,
        convnext,
    )
}  # fmt: skip


def built(name: str) -> tuple[torch.nn.Module, Inputs]:
    """Model and inputs of a family."""
    torch.manual_seed(0)
    model, inputs = FAMILIES[name]()
    return settled(model, lambda model: model(**inputs)), inputs


def settled(model: torch.nn.Module, run: Callable[[torch.nn.Module], object]) -> torch.nn.Module:
    """The model in evaluation mode. Running statistics are those of the inputs that ``run`` gives, as training leaves
    them: with random weights alone values would vanish from layer to layer."""
    norms = [part for part in model.modules() if isinstance(part, torch.nn.modules.batchnorm._BatchNorm)]
    if norms:
        for norm in norms:
            norm.momentum = None
            norm.train()
        with torch.no_grad():
            for _ in range(2):
                run(model)
    return model.eval()


def clear(model: torch.nn.Module, inputs: Inputs) -> torch.Tensor:
    with torch.no_grad():
        result = model(**inputs)
    return result.logits if "logits" in result else result.last_hidden_state
