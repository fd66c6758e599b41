# SPDX-License-Identifier: Apache-2.0
"""What the pages say of the repository is so: files and tests that they name, quoted code, commands, the API."""

import contextlib
import importlib
import inspect
import io
import re
import sys
from dataclasses import fields
from functools import cache
from pathlib import Path

import pytest

import models
import privml
from privml.cli import groups, schemas
from privml.cli.overrides import BESIDE

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts")]

from pages import options, papers  # noqa: E402

PAGES = sorted([*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"])
NAMED = re.compile(r"`((?:csrc|privml|tests|scripts|configs|benchmarks|docs|models)/[\w./-]+)(?::([\w.]+))?`")
QUOTED = re.compile(r'^```\w+ title="([^"]+)"\n(.*?)^```$', re.M | re.S)
BLOCK = re.compile(r"^```(?!python|text|cpp|ini)[a-z]*\n(.*?)^```$|^((?: {4}privml .*\n)+)", re.M | re.S)
# Places that are not in the repository, and files that runs write.
ELSEWHERE = ("privml/store.key", "experiments/", "build/")


def ids(page):
    return str(page.relative_to(ROOT))


def defined(file, name):
    """Whether a file of the repository has a test or function of this name."""
    text = file.read_text()
    if file.suffix == ".py":
        return re.search(rf"^\s*(?:def|class) {name}\b", text, re.M) is not None
    suite, _, test = name.partition(".")
    if test:
        return re.search(rf"TEST(?:_P)?\({suite}, {test}\)", text) is not None
    return re.search(rf"\b{name}\(", text) is not None


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_files_and_tests_that_a_page_names_exist(page):
    for path, name in NAMED.findall(page.read_text()):
        if path.startswith(ELSEWHERE) or (ROOT / path).is_dir():
            continue
        # `csrc/twopc/compare/relu` stands for a header and its source
        file = next((f for f in (ROOT / path, (ROOT / path).with_suffix(".h")) if f.is_file()), None)
        assert file is not None, f"{path} does not exist"
        assert not name or defined(file, name), f"{path} has no {name}"


@pytest.mark.parametrize("page", [p for p in PAGES if QUOTED.search(p.read_text())], ids=ids)
def test_quoted_code_is_that_of_the_repository(page):
    for file, code in QUOTED.findall(page.read_text()):
        assert code in (ROOT / file).read_text(), f"{file} has not:\n{code}"


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_the_first_example_prints_what_it_says(page):
    pytest.importorskip("privml._core")
    code = re.search(r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.M | re.S)[1]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, page, "exec"), {})
    assert printed.getvalue().strip() == "tensor([0.7500, 0.0000, 0.0000])"


# ---- commands
def commands(text):
    """Every call of privml in the blocks of a page: (verb, arguments)."""
    for match in BLOCK.finditer(text):
        block = (match[1] or match[2]).replace("\\\n", " ")
        for line in block.splitlines():
            found = re.match(r"\s*(?:ExecStart=\S*/)?privml\s+(\w+)\s*(.*)", line.partition("#")[0])
            if found and found[1] in options.VERBS:
                # an argument goes on behind blanks in quotes or braces only
                yield found[1], re.findall(r"(?:'[^']*'|\S)+", re.split(r" {3,}", found[2])[0])


@cache
def known(verb):
    """Names that a verb's command line takes."""
    names = schemas.names(verb) | {BESIDE.get(verb)} | {f"training.{each.name}" for each in fields(schemas.Training)}
    for place, group in schemas.places(verb).items():
        names |= {group, f"{group}@{place}"}
        for choice in groups.choices(group):
            names |= {f"{place}.{setting}" for setting in groups.settings(group, choice)}
        if group == "numerics":
            names |= {f"{place}.layers", f"{place}.floating"}
    return names | {f"model.{each.name}" for each in fields(groups.Model)}


def test_the_page_of_settings_says_what_each_is():
    rows = [line for line in options.pages()["reference/settings.md"].splitlines() if line.startswith("| `")]
    assert len(rows) > 150 and not [row for row in rows if row.endswith("|  |") or "|  |" in row or "``" in row]


def test_the_page_of_settings_has_what_names_a_model_of_the_user_s_own():
    parts = options.pages()["reference/settings.md"].split("\n## ")
    rows = {part.split()[1]: re.findall(r"^\| `(model[.\w]*)` \| `(.*?)` \|", part, re.M) for part in parts[1:-1]}
    own = [(f"model.{name}", "null") for name in ("onnx", "torch", "factory", "input_shape")]
    assert rows["run"] == rows["convert"] == [("model", "???"), *own] and rows["cost"] == [("model", "null"), *own]
    assert rows["evaluate"] == [("model", "all")] and rows["experiment"] == [("model", "lenet")]


def check_argument(verb, argument):
    key, equals, value = argument.strip("'").partition("=")
    if not equals or key.startswith(("+", "~", "-", "hydra")) or "..." in argument:
        return
    name = key.split("@")[0]
    assert key in known(verb) or any(key.startswith(f"{k}.") for k in known(verb) if "." not in str(k)), (
        f"{verb} has no {key}"
    )
    if name == "model" and value != "all":
        assert set(re.split("[+,]", value)) <= set(models.names()), f"there is no model {value}"
    if (options.CONFIGS / name).is_dir() and re.fullmatch(r"[\w,-]+", value):
        for choice in value.split(","):
            assert (options.CONFIGS / name / f"{choice}.yaml").exists(), f"{name} has no {choice}"


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_commands_name_verbs_settings_and_choices_that_exist(page):
    for verb, arguments in commands(page.read_text()):
        for argument in arguments:
            check_argument(verb, argument)


def test_the_check_of_commands_finds_what_is_wrong():
    ((verb, arguments),) = commands("```\nprivml run   model=lenet engine=threpc nonsense=1    # all parties\n```\n")
    assert (verb, arguments) == ("run", ["model=lenet", "engine=threpc", "nonsense=1"])
    check_argument(verb, arguments[0])
    for argument in arguments[1:]:
        with pytest.raises(AssertionError):
            check_argument(verb, argument)


@pytest.mark.parametrize("page", [*PAGES, *sorted((ROOT / "docs").rglob("*.ipynb"))], ids=ids)
def test_nobody_copies_a_program_s_numbers_into_a_session(page):
    """``privml.local(program, ...)`` takes them."""
    assert not re.search(r"bits=\w*program\w*\.numerics", page.read_text())


# ---- the API
API = (ROOT / "docs" / "reference" / "api.md").read_text()
DOCUMENTED = re.findall(r"^::: ([\w.]+)(?:\n    options:\n((?:      .*\n)+))?", API, re.M)


def test_every_public_name_is_in_the_reference():
    shown = {m for _, settings in DOCUMENTED for m in re.findall(r"heading: privml\.(\w+)$", settings, re.M)}
    assert set(privml.__all__) - {"errors", "formats", "__version__"} == shown
    assert {"privml.errors", "privml.formats"} <= {path for path, _ in DOCUMENTED}


@pytest.mark.parametrize("path", [path for path, _ in DOCUMENTED])
def test_what_the_reference_shows_exists_and_says_what_it_is(path):
    module, _, name = path.rpartition(".")
    found = getattr(__import__(module, fromlist=[name]), name, None)
    if found is None:
        found = __import__(path, fromlist=["_"])
    assert len(inspect.getdoc(found) or "") > 20, f"{path} has no docstring"


NOTEBOOKS = sorted((ROOT / "docs").rglob("*.ipynb"))


def exists(name):
    """Whether the dotted name is a module, or something in one."""
    found, path = privml, "privml"
    for part in name.split(".")[1:]:
        path += f".{part}"
        if not hasattr(found, part):
            try:
                importlib.import_module(path)
            except ModuleNotFoundError:
                return False
        found = getattr(found, part)
    return True


def names_in(text):
    return sorted(set(re.findall(r"\bprivml(?:\.[A-Za-z_]\w*)+", text)))


@pytest.mark.parametrize("page", [*PAGES, *NOTEBOOKS], ids=ids)
def test_names_that_a_page_gives_exist(page):
    pytest.importorskip("privml._core")
    missing = [name for name in names_in(page.read_text()) if not exists(name)]
    assert not missing


def test_the_check_of_names_finds_what_is_wrong():
    assert names_in("`privml.engines.twopc.meter()`, privml.local.") == ["privml.engines.twopc.meter", "privml.local"]
    assert exists("privml.engines.twopc.backend.meter") and exists("privml.errors.ConfigError")
    assert not exists("privml.nothing") and not exists("privml.Program.nothing")


def test_errors_say_when_they_are_raised():
    kinds = [kind for kind in vars(privml.errors).values() if inspect.isclass(kind)]
    assert len(kinds) > 10 and all(kind.__doc__ for kind in kinds)


def test_the_map_of_papers_covers_every_algorithm():
    """The numbered algorithms and figures of protocols, of which the map must have an entry each."""
    expected = {
        "sirnn": [f"Algorithm {i}" for i in range(1, 8)] + [f"Figure {i}" for i in range(2, 7)],
        "realnumber": [f"Algorithm {i}" for i in range(1, 7)] + ["Theorem 1", "Theorem 2"],
        "secfloat": [f"Figure {i}" for i in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18)],
        "mizar": [f"Figure {i}" for i in (2, 3, 4, 5, 8, 10, 11)] + ["Theorem 1", "Theorem 2"],
        "spdz2k": [f"Figure {i}" for i in (1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 14, 15, 16, 17)],
    }
    for paper in papers.load():
        text = " ".join(item["what"] for item in paper["items"])
        kinds = {kind: numbers(text, kind) for kind in ("Algorithm", "Figure", "Theorem")}
        for entry in expected[paper["key"]]:
            kind, number = entry.split()
            assert int(number) in kinds[kind], f"{paper['key']}: {entry} is missing"


def numbers(text, kind):
    """The numbers in "Figures 4 and 9", "Algorithm 4, a^x; Algorithm 5", "Figures 1 to 3"."""
    found = set()
    for run in re.findall(rf"{kind}s? (\d+(?:(?:, | and | to )\d+)*)", text):
        for part in re.split(r", | and ", run):
            first, _, last = part.partition(" to ")
            found |= set(range(int(first), int(last or first) + 1))
    return found
