# SPDX-License-Identifier: Apache-2.0
"""Settings as they are written on the command line: what a verb does not know is refused before it starts, with what
was probably meant."""

from __future__ import annotations

import re
from collections.abc import Sequence

import privml.cli.groups as groups
import privml.cli.schemas as schemas
from privml.cli.fields import WrongCall, did_you_mean, nearest
from privml.cli.paths import model_names

# Verb -> a folder of configs whose files change several of its settings.
BESIDE = {"experiment": "experiment"}
# Keys that name one file or, as KEY.NAME, one for each input.
KEYS = ("input", "calibration")
_NAMED = re.compile(rf"({'|'.join(KEYS)})\.([A-Za-z_][A-Za-z0-9_]*)=(.+)\Z")
# Former name -> name.
_RENAMED = {
    "network.tls": "identity.tls",
    "network.insecure": "identity.insecure",
    "network@link": "link",
    "identity@network": "identity",
    "network": "link",
}
# Hydra's options that a verb takes, and whether a value follows.
_OPTIONS = {
    "-m": False, "--multirun": False, "--resolve": False, "--hydra-help": False, "-c": True, "--cfg": True,
    "-p": True, "--package": True, "-i": False, "--info": False,
}  # fmt: skip
_NOTHING = ("null", "none", "")


def gathered(arguments: Sequence[str]) -> list[str]:
    """Arguments with those such as ``input.ids=a.npy`` and ``input.mask=b.npy`` joined to one, which Hydra reads as a
    mapping. WrongCall for a key given in both forms."""
    found: dict[str, dict[str, str]] = {}
    others = []
    for argument in arguments:
        match = _NAMED.match(argument)
        if match is None:
            others.append(argument)
        else:
            key, name, path = match.groups()
            found.setdefault(key, {})[name] = path
    for key, files in found.items():
        if any(other.startswith(f"{key}=") for other in others):
            raise WrongCall(f"give {key}=FILE or {', '.join(f'{key}.{name}=FILE' for name in files)}, not both")
        quoted = (f"{name}:'" + path.replace("'", "\\'") + "'" for name, path in files.items())
        others.append(f"{key}={{{','.join(quoted)}}}")
    return others


def checked(verb: str, arguments: Sequence[str]) -> list[str]:
    """``arguments`` as Hydra takes them. WrongCall for the first one that ``verb`` would not read, which says what was
    probably meant and where it belongs."""
    found, follows = [], False
    for argument in arguments:
        if follows or argument.startswith("-"):
            if not follows:
                _refuse_option(verb, argument)
            follows = not follows and _OPTIONS.get(argument, False)
            found.append(argument)
        else:
            found.append(_checked(verb, argument, arguments))
    _refuse_two_models(verb, arguments)
    _refuse_grammar(found)
    return found


def chosen(verb: str, arguments: Sequence[str]) -> dict[str, str | None]:
    """The choice of each of the verb's groups by where it is read into; the first one of several."""
    places = schemas.places(verb)
    result = dict(zip(places, schemas.SCHEMAS[verb].GROUPS.values(), strict=True))
    for argument in arguments:
        key, _, value = argument.lstrip("+").partition("=")
        place = _place(places, key)
        if place is not None:
            result[place] = None if value in _NOTHING else value.split(",")[0]
    return result


def _place(places: dict[str, str], key: str) -> str | None:
    """Where the group is read into that ``key`` chooses of; None if it is no group."""
    name, _, at = key.partition("@")
    place = at or name
    return place if places.get(place) == name else None


def _checked(verb: str, argument: str, arguments: Sequence[str]) -> str:
    written, equals, value = argument.partition("=")
    key = written.lstrip("+~")
    if key.startswith("hydra"):
        return argument
    if written.startswith("~"):
        if key in schemas.places(verb) and "." in key:
            return argument
        raise WrongCall(f"{argument}: {key} cannot be left out")
    if not equals:
        raise WrongCall(_without_equals(verb, argument))
    _refuse_former(verb, key)
    if key == BESIDE.get(verb):
        _refuse_unknown(f"{key}={value}", value, groups.choices(key))
        return f"+{key}={value}"
    _refuse_key(verb, key)
    place = _place(schemas.places(verb), key)
    if place is not None:
        for choice in _values(value):
            _refuse_unknown(f"{key}={choice}", choice, groups.choices(key.partition("@")[0]))
    elif key in ("model", "model.name"):
        for name in _values(value):
            for each in name.split("+"):
                _refuse_model(verb, key, each)
        return f"model.name={value}"
    elif "." in key:
        return _checked_below(verb, key, value, arguments)
    return f"{key}={value}"


def _checked_below(verb: str, key: str, value: str, arguments: Sequence[str]) -> str:
    """A setting of a group, of ``model.`` or of ``schemas.NESTED``; one that the chosen file does not name is added."""
    place = next((each for each in sorted(schemas.places(verb), reverse=True) if key.startswith(f"{each}.")), None)
    if place is None:
        top, _, name = key.partition(".")
        own = {"model": groups.Model, **schemas.NESTED}.get(top)
        if own is None:
            several = [each.partition(".")[2] for each in schemas.places(verb) if each.startswith(f"{top}.")]
            if not several:
                raise WrongCall(f"{key}={value}: {top} has no settings of its own")
            _refuse_unknown(f"{key}={value}", name.partition(".")[0], several, top)
            raise WrongCall(f"{key}={value}: {key}.NAME=VALUE changes a setting of it, ~{key} leaves it out")
        _refuse_unknown(f"{key}={value}", name, groups.abouts(own), top)
        if top == "model" and schemas.shipped_alone(verb) and value not in _NOTHING:
            raise WrongCall(f"{key}={value}: privml {verb} takes shipped models alone; privml run takes your own, too")
        return f"{key}={value}"
    group, choice, name = schemas.places(verb)[place], chosen(verb, arguments)[place], key[len(place) + 1 :]
    if choice is None:
        return f"{key}={value}"
    known = groups.settings(group, choice)
    if name in known or any(each.startswith(f"{name}.") for each in known):
        return f"{key}={value}"
    own = {each.partition(".")[0] for each in known} | set(groups.own_names(group))
    if name.partition(".")[0] in groups.open_names(group) or name in own:
        return f"++{key}={value}"  # which Hydra adds where it is missing
    having = [each for each in groups.choices(group) if name in groups.settings(group, each)]
    if having:
        words = ", ".join(f"{place}={each}" for each in having)
        raise WrongCall(f"{key}={value}: {place}={choice} has no setting {name}; {words} {_has(having)}")
    meant = {*known, *own}
    if not nearest(name, meant):  # perhaps one of another choice
        others = {each for other in groups.choices(group) for each in groups.settings(group, other)}
        meant = set(nearest(name, others)) or meant
    raise WrongCall(f"{key}={value}: there is no setting {key}{did_you_mean(name, meant, f'{place}.')}")


def _has(names: Sequence[str]) -> str:
    return "has it" if len(names) == 1 else "have it"


def _values(value: str) -> list[str]:
    """What a sweep chooses from; nothing where Hydra works the values out."""
    if value in _NOTHING or not re.fullmatch(r"[\w.+,-]+", value):
        return []
    return [each for each in value.split(",") if each not in _NOTHING]


def _refuse_unknown(argument: str, word: str, known: Sequence[str] | dict[str, str], of: str = "") -> None:
    if word not in known:
        what = f"there is no {f'setting {of}.' if of else argument.partition('=')[0] + ' '}{word}"
        raise WrongCall(f"{argument}: {what}{did_you_mean(word, known, f'{of}.' if of else '')}")


def _refuse_model(verb: str, key: str, name: str) -> None:
    known = model_names()
    if known and name not in known and not (verb == "evaluate" and name == "all"):
        file = re.search(r"\.(onnx|py|pt|pth|safetensors)\b", name)
        kind = "" if file is None or schemas.shipped_alone(verb) else "onnx" if file[1] == "onnx" else "torch"
        own = f"; a file of your own is model.{kind}={name}" if kind else ""
        raise WrongCall(f"{key}={name}: there is no shipped model {name}{own or did_you_mean(name, known)}")


def _refuse_two_models(verb: str, arguments: Sequence[str]) -> None:
    """WrongCall for a shipped model beside one of the user's, or for a model beside the program of one."""
    if "model" not in schemas.names(verb):
        return
    sources = ("model", "model.name", "model.onnx", "model.torch", "program")
    given = [each for each in arguments if each.partition("=")[0] in sources and each.partition("=")[2] not in _NOTHING]
    if len(given) > 1:
        raise WrongCall(f"{' and '.join(given)}: choose one of them")


def _refuse_key(verb: str, key: str) -> None:
    top = (key.partition("@")[2] or key).partition(".")[0]
    known = schemas.names(verb)
    if top in known:
        return
    other = [f"`privml {each}`" for each in schemas.SCHEMAS if top in schemas.names(each)]
    hint = f"; {', '.join(other)} {_has(other)}" if other else did_you_mean(top, [*_written(verb)])
    raise WrongCall(f"there is no setting {key}{hint} (privml {verb} --help lists all)")


def _written(verb: str) -> list[str]:
    """All keys of a verb, those of its groups by their full names."""
    found = sorted(schemas.names(verb))
    for place, group in schemas.places(verb).items():
        for choice in groups.choices(group) if group != "suite" else ():
            found += [f"{place}.{name}" for name in groups.settings(group, choice)]
    own = "model" in found and not schemas.shipped_alone(verb)
    return found + ([f"model.{name}" for name in groups.abouts(groups.Model)] if own else [])


def _without_equals(verb: str, word: str) -> str:
    how = f"{word}: a setting is written KEY=VALUE"
    if "model" in schemas.names(verb) and word in model_names():
        return f"{how}; did you mean model={word}?"
    if word in schemas.names(verb):
        return f"{how}; did you mean {word}=...?"
    return f"{how} (privml {verb} --help lists all settings)"


def _refuse_option(verb: str, option: str) -> None:
    name = option.partition("=")[0]
    if name in _OPTIONS:
        return
    key = name.lstrip("-").replace("-", "_")
    hint = f"; did you mean {key}=...?" if key in schemas.names(verb) else did_you_mean(name, [*_OPTIONS, "--help"])
    raise WrongCall(f"there is no option {name}{hint} (privml {verb} --help lists the settings)")


def _refuse_former(verb: str, key: str) -> None:
    if key in ("truncation", "device", "ring") and "engine" in schemas.names(verb) and key not in schemas.names(verb):
        raise WrongCall(f"{key} is a setting of the engine: write engine.{key}=...")
    for former, name in _RENAMED.items():
        if key == former or key.startswith(f"{former}."):
            raise WrongCall(f"{key} is called {name}{key.removeprefix(former)} now")


def is_simple(override: str) -> bool:
    """Whether no part of a value means something to Hydra, which takes longer to load than some verbs to run."""
    return re.fullmatch(r"\w+=[\w./@+-]+( [\w./@+-]+)*", override, re.ASCII) is not None


def _refuse_grammar(arguments: Sequence[str]) -> None:
    """WrongCall for values that Hydra cannot read."""
    arguments = [each for each in arguments if "=" in each and not each.startswith("-") and not is_simple(each)]
    if not arguments:
        return
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    parser = OverridesParser.create()
    for argument in arguments:
        try:
            parser.parse_override(argument)
        except HydraException as error:
            first = str(error.__cause__ or error).splitlines()[0]
            raise WrongCall(
                f"{argument.lstrip('+')}: the value cannot be read ({first}); put text with special characters between "
                "quotes, as in 'key=\"a, b\"'"
            ) from None
