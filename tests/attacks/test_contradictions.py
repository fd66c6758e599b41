# SPDX-License-Identifier: Apache-2.0
"""Settings that contradict each other, or that a verb would not read, end before anything is revealed, with an error
that names them as they were written."""

import pytest
import services
from omegaconf import OmegaConf
from services import deal, serve
from small_network import converted

import privml
from privml.cli import main
from privml.cli.settings import identity_of
from privml.engines.correlations import OtChoice
from privml.errors import ConfigError
from privml.service import dealer as dealers
from privml.service import server as servers
from privml.service.preprocess import Order, preprocess
from privml.service.worker import plain_spec
from privml.spec import SessionSpec

SERVE = ["serve", "program=program", "weights=weights"]
QUERY = ["query", "program=program", "server=127.0.0.1:1", "input=x.npy"]
DEAL = ["deal", "program=program"]
DEALER = "dealer=127.0.0.1:2"
PREPROCESS = ["preprocess", "program=program"]
REFUSED = {
    "threepc without dealer, serve": ([*SERVE, "engine=threepc"], "dealer=host:port"),
    "threepc without dealer, query": ([*QUERY, "engine=threepc"], "dealer=host:port"),
    "plain": ([*SERVE, "engine=plain"], "engine=plain"),
    "plain, query": ([*QUERY, "engine=plain"], "engine=plain"),
    "twopc with dealer": ([*SERVE, "engine=twopc", DEALER], "engine=twopc has no dealer"),
    "active with dealer": ([*QUERY, "engine=active", DEALER], "engine=active has no dealer"),
    "a cluster": ([*SERVE, "cluster=local", "engine=threepc"], "dealer=host:port"),
    "a dealer of two": ([*DEAL, "engine=twopc"], "engine=twopc has no dealer"),
    "a store of three without their dealer": ([*PREPROCESS, "engine=threepc"], "engine=threepc has a dealer"),
    "a store of two with a dealer": ([*PREPROCESS, DEALER], "engine=twopc has no dealer"),
    "truncation of two": ([*SERVE, "engine.truncation=exact"], "engine.truncation=exact"),
    "device of two": ([*QUERY, "engine.device=cuda"], "engine.device=cuda"),
    "no such truncation": ([*DEAL, "engine.truncation=sloppy"], "engine.truncation=sloppy"),
    "no such device": ([*DEAL, "engine.device=tpu"], "engine.device=tpu"),
    "truncation beside the engine": ([*SERVE, DEALER, "truncation=exact"], "engine.truncation="),
    "truncation added": ([*QUERY, DEALER, "+truncation=exact"], "engine.truncation="),
    "truncation of preprocessing": ([*PREPROCESS, "truncation=exact"], "engine.truncation="),
    "device beside the engine": ([*DEAL, "device=cuda"], "engine.device="),
    "workers without a cluster": ([*SERVE, "worker_sessions=2"], "worker_sessions=2 applies to clusters only"),
    "a name of workers without a cluster": (
        [*SERVE, "advertise=a.example"],
        "advertise=a.example applies to clusters only",
    ),
    "Ray without a cluster": ([*SERVE, "ray_address=auto"], "ray_address=auto applies to clusters only"),
    "Ray in a local cluster": ([*SERVE, "cluster=local", "ray_address=auto"], "choose cluster=ray"),
    "an empty store that there is not": ([*SERVE, "when_empty=make"], "when_empty=make applies to stores only"),
    "a key of no store": ([*QUERY, "store_key=key"], "store_key=key applies to stores only"),
    "a link of a server": ([*SERVE, "network.delay_ms=40"], "link.delay_ms"),
    "a link of a server, added": ([*SERVE, "+network.delay_ms=40"], "link.delay_ms"),
    "a network of a server": ([*SERVE, "network=wan"], "is called link now"),
    "a link by its former name": ([*SERVE, "network@link=wan"], "is called link now"),
    "a network where all is here": (["run", "model=mlp", "network.delay_ms=40"], "link.delay_ms"),
    "certificates by their former name": ([*QUERY, "network.tls.key=key.pem"], "is called identity.tls.key now"),
    "without TLS by its former name": ([*DEAL, "network.insecure=true"], "is called identity.insecure now"),
    "a link of a client": ([*QUERY, "+link=wan"], "there is no setting link; `privml serve`"),
    "certificates where all is here": (
        ["run", "model=mlp", "+identity.tls.key=key.pem"],
        "no setting identity.tls.key",
    ),
    "without TLS where all is here": (["cost", "model=mlp", "identity.insecure=true"], "no setting identity.insecure"),
    "no such delay": (["run", "model=mlp", "link.delay_ms=long"], "link.delay_ms=long must be a number"),
    "no such transfers": (["run", "model=mlp", "ot.k=many"], "ot.k=many must be a whole number"),
    "no such ring": (
        ["run", "model=mlp", "engine=active", "engine.ring=all"],
        "engine.ring=all must be a whole number",
    ),
    "no such format": (["run", "model=mlp", "numerics.narrow=much"], "numerics.narrow=much must be true or false"),
    "no such threat": (["advise", "model=mlp", "threat=some"], "threat=some must be one of semi_honest, malicious"),
    "a foreign setting": (["run", "model=mlp", "+dealer=127.0.0.1:2"], "there is no setting dealer; `privml serve`"),
    "a misspelt one, forced": (["run", "model=mlp", "++cuont=2"], "no setting cuont; did you mean count?"),
    "a device that is not predicted": (["cost", "model=mlp", "engine=threepc", "engine.device=cuda"], "engine.device"),
    "an engine that a suite does not read": (["bench", "suite=twopc", "engine=threepc"], "engine=threepc"),
    "a ring that a suite does not read": (["bench", "suite=twopc", "bits=32"], "bits=32"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_the_command_line(case, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    command, named = REFUSED[case]
    with pytest.raises(SystemExit) as ended:
        main(command)
    told = capsys.readouterr().err
    beginning = {1: "ConfigError: ", 2: f"privml {command[0]}: "}[ended.value.code]
    assert told.startswith(beginning) and named in told and len(told.splitlines()) == 1, told


def test_what_does_not_contradict_itself_is_read(capsys, tmp_path, monkeypatch):
    """These get as far as their files."""
    monkeypatch.chdir(tmp_path)
    for command in (
        [*SERVE, DEALER, "engine.truncation=exact"],
        [*SERVE, "engine=threepc", DEALER, "engine.truncation=exact"],
        [*QUERY, "engine=active", "engine.truncation=exact"],
        [*DEAL, "engine.truncation=exact"],
        [*SERVE, "preprocessing=store", "store_key=key"],
        [*SERVE, "cluster=local", "worker_sessions=2"],
    ):
        with pytest.raises(SystemExit):
            main(command)
        assert "program=program: no such file" in (told := capsys.readouterr().err), told


@pytest.mark.parametrize("insecure", [False, True])
def test_names_without_certificates_prove_nothing(insecure):
    tls = {"authority": None, "certificate": None, "key": None, "names": {"server": "alice", "client": None}}
    with pytest.raises(ConfigError, match="identity.tls.authority is missing"):
        identity_of(OmegaConf.create({"identity": {"tls": tls, "insecure": insecure}}))


@pytest.fixture(scope="module")
def program():
    return converted()


@pytest.mark.parametrize("wrong", [{"truncation": "exact"}, {"device": "cuda"}, {"truncation": "sloppy", "ring": 64}])
def test_python(program, wrong):
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        serve(program, "127.0.0.1:0", ot=OtChoice("ideal"), **wrong)
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        services.client(program, "127.0.0.1:1", **wrong)


def test_python_three_parties_are_not_secure_against_one_that_deviates(program):
    ot = OtChoice(security="malicious")
    with pytest.raises(ConfigError, match="threepc is semi-honest"):
        serve(program, "127.0.0.1:0", ot=ot, dealer="127.0.0.1:2")
    with pytest.raises(ConfigError, match="threepc is semi-honest"):
        services.client(program, "127.0.0.1:1", ot=ot, dealer="127.0.0.1:2")
    with pytest.raises(ConfigError, match="threepc is semi-honest"):
        privml.SessionSpec("threepc", ot)


@pytest.mark.parametrize("field", ["link", "simulated"])
def test_python_links_are_profiles(field):
    for wrong in ("wan", 40.0):
        with pytest.raises(ConfigError, match=f"^{field}={wrong!r} must be a LinkProfile"):
            privml.SessionSpec(**{field: wrong})
    assert privml.SessionSpec(**{field: privml.LinkProfile(40.0)})


@pytest.mark.parametrize("field", ["ot", "numerics", "identity"])
def test_python_parts_of_a_specification_are_of_their_classes(field):
    with pytest.raises(ConfigError, match=f"^{field}=7 must be of the class"):
        privml.SessionSpec(**{field: 7})


def test_python_transfers_may_be_named():
    assert privml.SessionSpec(ot="silent").ot == OtChoice("silent")
    assert privml.SessionSpec("active", ot="silent").ot == OtChoice("silent", security="malicious")
    with pytest.raises(ConfigError, match="sofspoken"):
        privml.SessionSpec(ot="sofspoken")


def test_python_dealers(program):
    for wrong in ({"truncation": "sloppy"}, {"device": "tpu"}):
        with pytest.raises(ConfigError, match=f"^{next(iter(wrong))}"):
            deal(program, "127.0.0.1:0", **wrong)


@pytest.mark.parametrize(("old", "new"), [
    ({"ot": OtChoice()}, "SessionSpec"), ({"deadline": 1.0}, "SessionSpec"), ({"truncation": "exact"}, "privml.engine"),
    ({"ring": 32}, "privml.engine"), ({"tls": None}, "Identity"), ({"network": {}}, "simulated"),
    ({"dealer": "127.0.0.1:2"}, "Addresses"),
], ids=str)  # fmt: skip
def test_names_of_earlier_releases_name_the_new_ones(program, tmp_path, old, new):
    order, here = Order(program, tmp_path, 1), "127.0.0.1:0"
    for call in (
        lambda: servers.serve(program, here, **old),
        lambda: dealers.deal(program, here, SessionSpec("threepc"), **old),
        lambda: privml.Client(program, here, **old),
        lambda: privml.RemoteModel(program, here, **old),
    ):
        with pytest.raises(ConfigError, match=new):
            call()
    with pytest.raises(ConfigError, match="twopc has no dealer" if "dealer" in old else new):
        preprocess(order, listen=here, **old)
    with pytest.raises(ConfigError, match="Retries"):
        privml.Client(program, here, retries=3)
    with pytest.raises(ConfigError, match="limits=Limits"):
        servers.serve(program, here, queries=1)
    with pytest.raises(TypeError, match="misspelt"):
        servers.serve(program, here, misspelt=1)


def test_python_engines_and_their_dealers(program):
    here, dealer = "127.0.0.1:0", "127.0.0.1:2"
    for engine in ("twopc", "active"):
        with pytest.raises(ConfigError, match=f"{engine} has no dealer"):
            servers.serve(program, privml.Addresses(here, dealer), SessionSpec(engine))
        with pytest.raises(ConfigError, match=f"{engine} has no dealer"):
            privml.Client(program, privml.Addresses(here, dealer), SessionSpec(engine))
        with pytest.raises(ConfigError, match=f"{engine} has no dealer"):
            dealers.deal(program, here, SessionSpec(engine))
    with pytest.raises(ConfigError, match="threepc has a dealer"):
        servers.serve(program, here, SessionSpec("threepc"))
    with pytest.raises(ConfigError, match="threepc has a dealer"):
        privml.Client(program, here, SessionSpec("threepc"))


def test_python_numerics_are_the_programs(program):
    with pytest.raises(ConfigError, match="numerics"):
        privml.Client(program, "127.0.0.1:1", SessionSpec(numerics=privml.Numerics(bits=24, scale=8)))


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: SessionSpec(deadline=0), "deadline=0 must be a positive"),
        (lambda: SessionSpec("threepc", ot=OtChoice(refill="background")), "makes no transfers"),
        (lambda: privml.connect(0, "threepc", listen="127.0.0.1:0"), "needs a privml.SessionSpec"),
    ],
)
def test_python_specifications(make, words):
    with pytest.raises(ConfigError, match=words):
        make()


def test_services_take_specifications_alone(program):
    with pytest.raises(ConfigError, match="needs a privml.SessionSpec"):
        servers.serve(program, "127.0.0.1:0", OtChoice())
    with pytest.raises(ConfigError, match="needs a privml.SessionSpec"):
        privml.Client(program, "127.0.0.1:9", "twopc")


def test_what_gives_no_security_is_not_kept(program, tmp_path):
    """A store outlives the machine that a seed for tests is allowed on."""
    order = Order(program, tmp_path / "store", 1, spec=SessionSpec(test_seed=7))
    with pytest.raises(ConfigError, match="test_seed gives no security"):
        preprocess(order, listen="127.0.0.1:0")
    with pytest.raises(ConfigError, match="test_seed gives no security"):
        plain_spec(SessionSpec(test_seed=7))


def test_callbacks_are_no_part_of_what_a_session_is():
    assert SessionSpec(on_wait=print) == SessionSpec() and hash(SessionSpec(on_wait=print)) == hash(SessionSpec())
