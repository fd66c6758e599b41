# SPDX-License-Identifier: Apache-2.0
"""Settings are checked before a verb starts: their defaults pass, and numbers must be numbers."""

from __future__ import annotations

from dataclasses import asdict, fields

import pytest
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from privml.cli import VERBS, configuration, schemas
from privml.cli.paths import config_directory
from privml.engines.interface import BUILT_IN, backend
from privml.errors import ConfigError


def composed(verb, *overrides):
    configuration.register(verb)
    with initialize_config_dir(str(config_directory()), version_base="1.3"):
        config = compose(verb, overrides=overrides)
    for name in list(config):
        if OmegaConf.is_missing(config, name):
            config[name] = "given"
    return config


@pytest.mark.parametrize("verb", VERBS)
def test_defaults_pass_and_every_setting_says_what_it_is(verb):
    config = composed(verb, *(["action=init"] if verb == "certs" else []))
    found = configuration.checked(verb, config)
    left_out = {name for name, choice in schemas.SCHEMAS[verb].GROUPS.items() if choice is None}
    assert set(found) == schemas.names(verb) - left_out
    for each in fields(schemas.SCHEMAS[verb]):
        assert each.metadata["about"], each.name


def test_every_verb_has_its_settings():
    assert set(schemas.SCHEMAS) == set(VERBS)


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_group_of_an_engine_has_its_settings_and_their_defaults(name):
    config = OmegaConf.load(config_directory() / "engine" / f"{name}.yaml")
    assert config.pop("name") == name
    own = asdict(backend(name).config())
    assert dict(config) == {key: own[key] for key in config}
    assert set(config) == set(own) or name == "plain", "whose settings are those of tests"


def test_values_have_the_types_of_their_settings():
    found = configuration.checked("serve", composed("serve", "deadline=5", "listen=9000", "link.delay_ms=3"))
    assert (type(found.deadline), found.listen, type(found.link.delay_ms)) == (float, "9000", float)


@pytest.mark.parametrize("written", ["model=lenet", "model.name=lenet"])
def test_a_model_goes_by_its_name(written):
    assert configuration.checked("run", composed("run", written)).model.name == "lenet"


@pytest.mark.parametrize("name", ["session_seconds", "queue_seconds", "drain_seconds", "deadline", "sessions_per_name"])
@pytest.mark.parametrize("value", ["soon", "-1", ".inf", ".nan"])
def test_what_is_no_number_is_named(name, value):
    with pytest.raises(ConfigError, match=f"{name}=.* must be"):
        configuration.checked("serve", composed("serve", f"{name}={value}"))


@pytest.mark.parametrize("name, fits", [("session_seconds", True), ("sessions_per_name", True), ("deadline", False)])
def test_nothing_is_a_number_where_it_has_a_meaning(name, fits):
    config = composed("serve", f"{name}=0")
    if fits:
        configuration.checked("serve", config)
    else:
        with pytest.raises(ConfigError, match=f"{name}=0 must be a positive number"):
            configuration.checked("serve", config)
