# SPDX-License-Identifier: Apache-2.0
"""Settings are checked before a verb starts: their defaults pass, and numbers must be numbers."""

from __future__ import annotations

import pytest
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from privml.cli import VERBS, settings
from privml.cli.paths import config_directory
from privml.errors import ConfigError

CONFIGS = sorted(path.stem for path in config_directory().glob("*.yaml") if path.stem in VERBS)


def composed(verb, *overrides):
    with initialize_config_dir(str(config_directory()), version_base="1.3"):
        config = compose(verb, overrides=overrides)
    for name in list(config):
        if OmegaConf.is_missing(config, name):
            config[name] = "given"
    return config


@pytest.mark.parametrize("verb", CONFIGS)
def test_defaults_pass_and_no_number_is_left_unchecked(verb):
    config = composed(verb)
    settings.check(config)
    numbers = {name for name in config if type(config[name]) in (int, float, bool)}
    assert numbers - {"bits", "k"} <= set(settings.SETTINGS), "bits and k are numbers or lists of them"


@pytest.mark.parametrize("name", ["session_seconds", "queue_seconds", "drain_seconds", "deadline", "sessions_per_name"])
@pytest.mark.parametrize("value", ["soon", "-1", ".inf", ".nan"])
def test_what_is_no_number_is_named(name, value):
    with pytest.raises(ConfigError, match=f"{name}=.* must be"):
        settings.check(composed("serve", f"{name}={value}"))


@pytest.mark.parametrize("name, fits", [("session_seconds", True), ("sessions_per_name", True), ("deadline", False)])
def test_nothing_is_a_number_where_it_has_a_meaning(name, fits):
    config = composed("serve", f"{name}=0")
    if fits:
        settings.check(config)
    else:
        with pytest.raises(ConfigError, match=f"{name}=0 must be a positive number"):
            settings.check(config)
