# SPDX-License-Identifier: Apache-2.0
"""Image models of torchvision, timm and MONAI, unmodified, at reduced depth with random weights."""

import contextlib
import functools

import pytest
import torch
from families import settled

import privml

BATCH = 2
# Operators that torchvision's wheels bring in compiled form, for CUDA's torch alone; models use none of them.
COMPILED = ("nms", "qnms")


@functools.cache
def torchvision():
    """The library, also beside a torch that its wheel was not built for."""
    library = torch.library.Library("torchvision", "FRAGMENT")
    for name in COMPILED:
        with contextlib.suppress(RuntimeError):  # it is there
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    return library, pytest.importorskip("torchvision")


def densenet():
    torchvision()
    from torchvision.models.densenet import DenseNet

    return DenseNet(growth_rate=8, block_config=(2, 2, 2, 2), num_init_features=16)


def densenet_of_blocks():
    """With two classes, and one place left for the mean before them."""
    nets = pytest.importorskip("monai.networks.nets")
    return nets.DenseNet(2, 3, 2, init_features=16, growth_rate=8, block_config=(2, 2, 2, 2))


def mobilenet_v3():
    torchvision()
    from torchvision.models.mobilenetv3 import MobileNetV3, _mobilenet_v3_conf

    parts, _ = _mobilenet_v3_conf("mobilenet_v3_small", width_mult=0.5)
    return MobileNetV3(parts[:6], 64, num_classes=10)


def squeezenet():
    torchvision()
    from torchvision.models.squeezenet import SqueezeNet

    return SqueezeNet("1_1", num_classes=10)


def timm(name, **settings):
    torchvision()
    return pytest.importorskip("timm").create_model(name, num_classes=10, **settings)


def unet():
    """With residual units."""
    nets = pytest.importorskip("monai.networks.nets")
    return nets.UNet(2, in_channels=3, out_channels=2, channels=(8, 16, 32), strides=(2, 2), num_res_units=2)


def unet_of_blocks():
    """With transposed convolutions, leaky ReLU and instance norm."""
    nets = pytest.importorskip("monai.networks.nets")
    return nets.BasicUNet(2, in_channels=3, out_channels=2, features=(8, 8, 16, 16, 32, 8))


FAMILIES = {
    "torchvision DenseNet": densenet,
    "MONAI DenseNet": densenet_of_blocks,
    "torchvision MobileNetV3": mobilenet_v3,
    "torchvision SqueezeNet": squeezenet,
    "timm ResNet": lambda: timm("test_resnet"),
    "timm EfficientNet": lambda: timm("test_efficientnet"),
    "timm ConvNeXt": lambda: timm("test_convnext"),
    "timm ViT, positions resized": lambda: timm("test_vit", img_size=32),
    "timm MobileNetV3": lambda: timm("mobilenetv3_small_050"),
    "MONAI UNet": unet,
    "MONAI BasicUNet": unet_of_blocks,
}
SLOW = {"timm MobileNetV3", "timm ConvNeXt", "timm EfficientNet", "MONAI BasicUNet", "torchvision DenseNet"}


@functools.cache
def converted(name):
    """A program, rows of pixels, and what the clear model says of them."""
    torch.manual_seed(0)
    pixels = torch.rand(4, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    model = settled(FAMILIES[name](), lambda model: model(pixels))
    with torch.no_grad():
        expected = model(pixels)
    return privml.convert(model, calibration=pixels), pixels[:BATCH], expected[:BATCH]


def answer(program, inputs, engine, **settings):
    formats = {"bits": program.numerics.bits, "scale": program.numerics.scale}
    with privml.local(engine, **formats, **settings) as session:
        return privml.reveal(program.run(session, inputs))


def families(slow):
    return [pytest.param(name, marks=[pytest.mark.slow] if name in slow else []) for name in FAMILIES]


@pytest.mark.parametrize("name", families(SLOW))
def test_answers_are_those_of_the_clear_model(name):
    program, pixels, expected = converted(name)
    error = float((answer(program, pixels, "plain") - expected).abs().max() / expected.abs().max())
    assert error <= 2 * program.choice.precision.tolerance
    assert program.inputs[0].shape[0] is None and not any("batch" in note for note in program.notes)


@pytest.mark.parametrize("name", families(set(FAMILIES) - {"MONAI UNet", "timm ResNet"}))
def test_three_parties_give_the_plain_answers(name):
    program, pixels, _ = converted(name)
    expected = answer(program, pixels, "plain", like="threepc")
    assert torch.equal(answer(program, pixels, "threepc", truncation="exact"), expected)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["MONAI UNet", "torchvision MobileNetV3"])
def test_two_parties_give_the_plain_answers(name):
    program, pixels, _ = converted(name)
    assert torch.equal(answer(program, pixels, "twopc", ot="ideal"), answer(program, pixels, "plain"))
