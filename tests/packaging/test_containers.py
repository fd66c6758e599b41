# SPDX-License-Identifier: Apache-2.0
"""Dockerfile and compose files, without an engine: their words are valid, their steps work in plain folders."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from hydra import compose as settings_of
from hydra import initialize_config_dir

from privml.cli import VERBS, configuration, settings
from privml.cli.paths import config_directory

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))
from scripts import container_steps as steps  # noqa: E402

FILES = ["compose.yaml", "compose.three.yaml"]
DOCKERFILE = (ROOT / "Dockerfile").read_text()


@pytest.fixture(params=FILES)
def read(request):
    return steps.compose(ROOT / "deploy" / request.param, {})


def test_the_image_is_built_of_files_that_exist_and_runs_as_nobody_special() -> None:
    words = list(steps.instructions(DOCKERFILE))
    copied = [rest for word, rest in words if word == "COPY" and "--from" not in rest]
    sources = {source for rest in copied for source in rest.split()[:-1]}
    assert all((ROOT / source).exists() for source in sources)
    let_through = re.findall(r"^!(.+)$", (ROOT / ".dockerignore").read_text(), re.MULTILINE)
    assert sources == set(let_through)
    assert [rest for word, rest in words if word == "FROM"] == ["${PYTHON} AS build", "${PYTHON} AS runtime"]
    assert dict(words)["USER"].split(":")[0] != "0" and dict(words)["ENTRYPOINT"] == '["privml"]'
    uid = dict(words)["USER"].split(":")[0]
    assert f"--uid {uid}" in next(rest for word, rest in words if "useradd" in rest)


def test_every_command_is_a_verb_with_settings_it_has(read) -> None:
    for service in read["services"].values():
        verb, *overrides = service["command"]
        assert verb in VERBS
        configuration.register(verb)
        with initialize_config_dir(str(config_directory()), version_base="1.3"):
            config = settings_of(verb, overrides=overrides)
        config = configuration.checked(verb, config)
        identity = settings.identity_of(config)
        assert identity["tls"] is not None and identity["tls"].names


def test_every_container_is_confined(read) -> None:
    for service in read["services"].values():
        assert service["read_only"] is True and service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"] and service["ulimits"]["core"] == 0
        assert service["mem_limit"] and service["cpus"] and service["pids_limit"]
        assert service["user"] == "10001:10001" and "ports" not in service and service["networks"] == ["parties"]
        assert (ROOT / "deploy" / service["build"]["context"] / "Dockerfile").exists()
    assert read["networks"]["parties"]["internal"] is True


def test_paths_of_commands_are_mounted_and_writable_where_written(read) -> None:
    for service in read["services"].values():
        places = steps.mounts(service, read["secrets"], Path("/base"))
        readonly = [volume.split(":")[1] for volume in service["volumes"] if volume.endswith(":ro")]
        for word in service["command"]:
            key, _, value = word.partition("=")
            if value.startswith("/"):
                place = next((place for place in places if value == place or value.startswith(place + "/")), None)
                assert place is not None, word
                assert key != "out" or place not in readonly, word
    weights = [
        name for name, service in read["services"].items() if "weights.safetensors" in " ".join(service["command"])
    ]
    assert weights == ["server"]


def test_who_is_called_listens_is_awaited_and_has_the_name_that_is_expected(read) -> None:
    services = read["services"]
    listening = {}
    for name, service in services.items():
        own = dict(word.split("=", 1) for word in service["command"][1:])
        if "listen" in own:
            host, port = own["listen"].split(":")
            assert host == "0.0.0.0" and service["expose"] == [port]
            asked = f"http://{own['monitor']}/healthz" if "monitor" in own else f":{int(port):04X} "
            assert asked in service["healthcheck"]["test"][-1]
            listening[name] = port
        assert own["identity.tls.certificate"].endswith(f"/{name}_certificate")
    for name, service in services.items():
        own = dict(word.split("=", 1) for word in service["command"][1:])
        for role in ("server", "dealer"):
            if role in own:
                assert own[role] == f"{role}:{listening[role]}"
                assert own[f"identity.tls.names.{role}"] == role
        assert set(service.get("depends_on", {})) <= set(listening), name
        assert all(how == {"condition": "service_healthy"} for how in service.get("depends_on", {}).values())
    assert steps.in_order(services)[-1] == "client"


def test_variables_and_extensions_are_filled_in() -> None:
    assert steps.expanded("${A:-x}/${B}/${C:-}", {"B": "y"}) == "x/y/"
    assert steps.merged({"a": [1], "b": {"c": 1}, "d": 1}, {"a": [2], "b": {"e": 2}, "d": 3}) == {
        "a": [1, 2], "b": {"c": 1, "e": 2}, "d": 3,
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_the_steps_of_image_and_services_work_in_plain_folders(tmp_path: Path) -> None:
    script = ROOT / "scripts/container_steps.py"
    done = subprocess.run([sys.executable, script, tmp_path / "steps"], capture_output=True, text=True, timeout=3500)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert done.stdout.count("answer: as in the clear") == 2 and "apt-get" in done.stdout
