# SPDX-License-Identifier: Apache-2.0
"""The help of every verb, and what the command line says to settings that there are not."""

from __future__ import annotations

import re
import shlex
from dataclasses import asdict, fields

import pytest

from privml.cli import VERBS, configuration, groups, help, overrides, schemas
from privml.cli.fields import WrongCall
from privml.engines.correlations import OtChoice
from privml.measure.suites import KINDS
from privml.spec import LinkProfile


@pytest.mark.parametrize("verb", VERBS)
def test_help_has_every_setting_with_its_meaning_and_only_groups_of_the_verb(verb):
    text = help.text(verb, width=100)
    assert all(len(line) <= 100 for line in text.splitlines() if "privml" not in line)
    flat = " ".join(text.split())
    for each in fields(schemas.SCHEMAS[verb]):
        for own in fields(schemas.NESTED[each.name]) if each.name in schemas.NESTED else ():
            assert f" {each.name}.{own.name}=" in flat and " ".join(own.metadata["about"].split()) in flat
        if each.name not in ("action", *schemas.NESTED):
            assert f" {each.name}" in flat
            assert " ".join(each.metadata["about"].split()) in flat
    shown = {place.partition(".")[0] for place in schemas.places(verb)}
    for group in groups.ABOUT:
        assert bool(re.search(rf"\n  {group}[= ]", text)) == (group in shown), group
    assert "???" not in text and "Hydra" not in text


@pytest.mark.parametrize("verb", VERBS)
def test_the_example_of_a_verb_is_a_call_that_it_takes(verb):
    program, name, *rest = shlex.split(schemas.SCHEMAS[verb].EXAMPLE)
    assert (program, name) == ("privml", verb)
    overrides.checked(verb, [each for each in rest if "=" in each])


@pytest.mark.parametrize("verb", ["query", "serve", "convert"])
def test_help_tells_required_settings_from_the_others(verb):
    required, others = help.text(verb).split("settings, with their defaults:")
    for each in fields(schemas.SCHEMAS[verb]):
        needed = each.default == schemas.MISSING or bool(each.metadata.get("required"))
        assert (f"\n  {each.name} " in required) == needed
        assert needed or re.search(rf"\n  {each.name}{'[.]' if each.name in schemas.NESTED else '='}", others)


def test_help_shows_the_settings_of_the_choice_that_the_call_makes():
    assert "engine.device=cpu" not in help.text("run")
    assert "engine.device=cpu" in help.text("run", ["engine=threepc"])


@pytest.mark.parametrize("group", [group for group in groups.ABOUT if group != "suite"])
def test_every_setting_of_a_group_has_a_meaning(group):
    for choice in groups.choices(group):
        assert groups.head_of(group, choice), choice
        about = groups.meanings(group, choice)
        for name in groups.settings(group, choice):
            assert about.get(name) or about.get(name.rpartition(".")[0]), f"{group}={choice} {name}"


def test_schemas_of_groups_agree_with_what_reads_them():
    assert asdict(groups.Link()) == asdict(LinkProfile())
    assert set(groups.KINDS) == set(KINDS)
    assert set(groups.settings("ot", "softspoken")) == {each.name for each in fields(OtChoice)}


@pytest.mark.parametrize(
    "call, words",
    [
        ("query progran=x", "progran; did you mean program?"),
        ("run model=lenett", "did you mean lenet?"),
        ("run model=lenet engine=twopcc", "engine=twopcc: there is no engine twopcc; did you mean twopc?"),
        ("run link=wam", "did you mean wan?"),
        ("run ot.kk=8", "did you mean ot.k?"),
        ("run model.onx=f", "did you mean model.onnx?"),
        ("run model=my.onnx", "model.onnx=my.onnx"),
        ("evaluate model.onnx=my.onnx", "privml evaluate takes shipped models alone"),
        ("experiment model.torch=my.py:net", "privml experiment takes shipped models alone"),
        ("evaluate model=my.onnx", "there is no shipped model my.onnx"),
        ("run lenet", "did you mean model=lenet?"),
        ("run count", "did you mean count=...?"),
        ("run nothing_like_it=3", "privml run --help"),
        ("run engine.truncation=exact", "engine=twopc has no setting truncation; engine=active"),
        ("advise formats.fixd32.scale=3", "did you mean formats.fixed32 or"),
        ("advise formats.mixed=null", "~formats.mixed leaves it out"),
        ("run engine.truncaton=exact", "did you mean engine.truncation?"),
        ("run engine.xyz=3", "there are: engine.linear, engine.noise"),
        ("run weights=w", "`privml serve`, `privml preprocess` have it"),
        ("run preprocess.ahead=1", "`privml serve` has it"),
        ("serve preprocess.aheadd=1", "did you mean preprocess.ahead?"),
        ("query --program=x", "did you mean program=...?"),
        ("bench suite=twopcx", "did you mean twopc?"),
        ("bench suite.operator.relu32.n=3", "did you mean suite.operators.relu32.n"),
        ("train train=logistc", "did you mean logistic?"),
        ("train train.epoch=3", "did you mean train.epochs?"),
        ("evaluate model=lenet+mpl", "did you mean mlp?"),
        ("experiment experiment=lenet_engine", "did you mean lenet_engines?"),
        ("experiment training.step=3", "did you mean training.steps?"),
        ("convert model=lenet model.onnx=f.onnx", "choose one of them"),
        ("cost model=lenet program=lenet/program", "choose one of them"),
        ("cost model=lenett program=lenet/program", "did you mean lenet?"),
        ("run input=a,b:(", "cannot be read"),
        ("run ~engine", "engine cannot be left out"),
        ("serve truncation=exact", "engine.truncation="),
        ("serve network.insecure=true", "identity.insecure"),
    ],
)
def test_a_wrong_call_says_what_was_probably_meant(call, words):
    verb, *rest = call.split()
    with pytest.raises(WrongCall) as error:
        overrides.checked(verb, rest)
    assert words in str(error.value) and "+" not in str(error.value).replace("lenet+mpl", "")


@pytest.mark.parametrize(
    "verb, written, passed",
    [
        ("run", "model=lenet", "model.name=lenet"),
        ("run", "+count=3", "count=3"),
        ("train", "train.eps=1e-8", "++train.eps=1e-8"),
        ("train", "train.settings.hidden=[8]", "++train.settings.hidden=[8]"),
        ("convert", "numerics.layers={a:float32}", "++numerics.layers={a:float32}"),
        ("experiment", "experiment=lenet_engines", "+experiment=lenet_engines"),
        ("cost", "ot.k=1,8", "ot.k=1,8"),
        ("run", "engine=plain,twopc", "engine=plain,twopc"),
        ("advise", "formats.mixed.layers={a:float32}", "formats.mixed.layers={a:float32}"),
        ("serve", "identity.tls.names.client=[a,b]", "identity.tls.names.client=[a,b]"),
        ("advise", "~formats.bfloat16", "~formats.bfloat16"),
        ("run", "hydra.verbose=true", "hydra.verbose=true"),
    ],
)
def test_settings_reach_hydra_as_it_takes_them(verb, written, passed):
    assert overrides.checked(verb, [written]) == [passed]


@pytest.mark.parametrize(
    "verb, words",
    [
        ("query", "program, server and input are missing: add program=... server=... input=..., as in privml query"),
        ("convert", "out is missing"),
        ("certs", "privml certs issue name=NAME"),
    ],
)
def test_what_is_missing_is_told_with_an_example(verb, words):
    missing = [each.name for each in fields(schemas.SCHEMAS[verb]) if each.default == schemas.MISSING]
    assert words in configuration.missing_text(verb, missing)
