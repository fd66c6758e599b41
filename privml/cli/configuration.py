# SPDX-License-Identifier: Apache-2.0
"""From a verb's settings (schemas.py) and a call's overrides to a configuration whose values are checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from privml.cli.fields import WrongCall, typed
from privml.cli.groups import Model, SuiteRow, schema_of
from privml.cli.overrides import is_simple
from privml.cli.schemas import MODEL, NESTED, SCHEMAS, places, settings_of
from privml.engines.interface import BUILT_IN, backend
from privml.engines.interface import names as engine_names

if TYPE_CHECKING:
    from omegaconf import DictConfig

_QUIET = [{"override hydra/job_logging": "disabled"}, {"override hydra/hydra_logging": "disabled"}]


def is_plain(verb: str, overrides: Sequence[str]) -> bool:
    """Whether the verb's settings need no Hydra: it chooses from no groups, and all its values are simple."""
    return not SCHEMAS[verb].GROUPS and all(map(is_simple, overrides))


def plain(verb: str, overrides: Sequence[str]) -> DictConfig:
    """The configuration of a verb that ``is_plain``."""
    from omegaconf import OmegaConf

    values: Any = OmegaConf.to_container(OmegaConf.structured(SCHEMAS[verb]))
    types = {each.name: str(each.type) for each in fields(SCHEMAS[verb])}
    for each in overrides:
        name, _, text = each.partition("=")
        if text in ("null", "true", "false"):
            values[name] = {"null": None, "true": True, "false": False}[text]
        else:
            values[name] = int(text) if types[name].startswith("int") and text.isdecimal() else text
    return OmegaConf.create(values)


def register(verb: str) -> None:
    """Makes a verb's settings known to Hydra, as the configuration of this name."""
    from hydra.core.config_store import ConfigStore
    from omegaconf import OmegaConf

    schema = SCHEMAS[verb]
    defaults = [*({name: choice} for name, choice in schema.GROUPS.items()), "common", *_QUIET, "_self_"]
    values: Any = OmegaConf.to_container(OmegaConf.structured(schema))
    node = {"defaults": defaults, **{each.name: values[each.name] for each in settings_of(schema)}}
    hydra = {"hydra": schema.HYDRA} if hasattr(schema, "HYDRA") else {}
    ConfigStore.instance().store(name=verb, node={**node, **hydra})


def register_engines(overrides: Sequence[str]) -> None:
    """Makes the settings of engines from outside privml that ``overrides`` choose known to Hydra; those of privml's own
    are in configs/engine."""
    from hydra.core.config_store import ConfigStore
    from omegaconf import OmegaConf

    chosen = {name for each in overrides if each.startswith("engine=") for name in each[len("engine=") :].split(",")}
    for name in chosen & set(engine_names()) - set(BUILT_IN):
        defaults = OmegaConf.to_container(OmegaConf.structured(backend(name).Config()))
        ConfigStore.instance().store(group="engine", name=name, node={"name": name, **defaults})


def checked(verb: str, config: DictConfig) -> DictConfig:
    """``config`` with every value of its type. Raises WrongCall that names the first setting that is missing, of
    another type than its verb reads, or out of range."""
    from omegaconf import OmegaConf

    missing = [name for name in config if OmegaConf.is_missing(config, name)]
    if missing:
        raise WrongCall(missing_text(verb, missing))
    values: dict[str, Any] = OmegaConf.to_container(config)  # type: ignore[assignment]
    if isinstance(values.get("model"), str):
        values["model"] = {**MODEL, "name": values["model"]}
    own = [each.name for each in fields(SCHEMAS[verb])]
    values |= typed(SCHEMAS[verb], {name: values[name] for name in own})
    if "model" in values:
        values["model"] = typed(Model, values["model"], "model.")
    for name, schema in NESTED.items():
        if name in values:
            values[name] = typed(schema, values[name], f"{name}.")
    result = OmegaConf.create(values)
    for place, group in places(verb).items():
        chosen, schema = OmegaConf.select(result, place), schema_of(group)
        if chosen is not None and schema is not None:
            given = {name: value for name, value in chosen.items() if name != "name"}
            OmegaConf.update(result, place, typed(schema, given, f"{place}."))
            for name, row in given.get("operators", {}).items() if group == "suite" else ():
                typed(SuiteRow, row, f"{place}.operators.{name}.")
    OmegaConf.set_struct(result, True)
    return result


def missing_text(verb: str, missing: Sequence[str]) -> str:
    """What to add to a call that lacks settings, with an example."""
    if verb == "certs":
        return "say what to do: privml certs init, privml certs issue name=NAME, or privml certs show file=FILE"
    words = " and ".join([", ".join(missing[:-1]), missing[-1]] if len(missing) > 1 else missing)
    verb_is = "is" if len(missing) == 1 else "are"
    return (
        f"{words} {verb_is} missing: add {' '.join(f'{name}=...' for name in missing)}, as in {SCHEMAS[verb].EXAMPLE}"
    )
