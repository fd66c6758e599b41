# SPDX-License-Identifier: Apache-2.0
"""A party that is dialled is the one that was meant: a certificate of the authority is not enough."""

from __future__ import annotations

import warnings

import pytest
import services
import torch
from certified import CLIENT, DEALER, NAMES, SERVER, ends, make_certificates, tls
from ports import reserved
from services import order, preprocess, serve
from small_network import Net

import privml
from privml.errors import ConfigError, IdentityError, PeerDisconnected

SECONDS = 10.0
# Of sessions in which somebody waits until the end for a connection that nobody else may make.
UNTIL_IT_ENDS = 3.0
ANY = {0: privml.ANY_NAME, 1: privml.ANY_NAME, 2: privml.ANY_NAME}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def program():
    return privml.convert(Net().eval(), calibration=torch.randn(16, 4))


def session_of(rank, place, identity, engine, deadline):
    def run():
        with privml.connect(rank, privml.SessionSpec.of(engine, deadline=deadline, tls=identity), **place) as session:
            x = session.engine.input(torch.tensor([5]) if rank == 0 else None, (1,), 0, 32)
            return session.engine.reveal(x, 32).tolist()

    return run


def two(server, client, deadline=SECONDS):
    with reserved(1) as (address,):
        return ends(
            session_of(0, {"listen": address}, server, "twopc", deadline),
            session_of(1, {"connect": address}, client, "twopc", deadline),
        )


def three(*identities, deadline=SECONDS):
    with reserved(2) as (address, dealer):
        places = [{"listen": address, "dealer": dealer}, {"connect": address, "dealer": dealer}, {"listen": dealer}]
        return ends(
            *(session_of(rank, places[rank], each, "threepc", deadline) for rank, each in enumerate(identities))
        )


def test_who_dials_must_say_whom(files, program, tmp_path):
    def lacks(role, call):
        with pytest.raises(ConfigError, match=f"the {role}, and requires no name of it") as error:
            call()
        assert f"identity.tls.names.{role}=" in error.value.command_line

    nobody, address = tls(files, CLIENT, {}), "127.0.0.1:1"
    server = tls(files, CLIENT, {0: SERVER})
    spec = privml.SessionSpec.of
    lacks("server", lambda: privml.connect(1, spec(tls=nobody), connect=address))
    lacks("client", lambda: privml.connect(0, spec(tls=nobody), connect=address))
    lacks("dealer", lambda: privml.connect(1, spec("threepc", tls=server), connect=address, dealer=address))
    lacks("dealer", lambda: privml.connect(0, spec("threepc", tls=nobody), listen=address, dealer=address))
    lacks("server", lambda: services.client(program, address, tls=nobody))
    lacks("dealer", lambda: services.client(program, address, dealer=address, tls=server))
    lacks("dealer", lambda: serve(program, "127.0.0.1:0", dealer=address, tls=nobody))
    lacks("server", lambda: preprocess(order(program, str(tmp_path / "store"), 1), server=address, tls=nobody))


def test_any_name_is_said_aloud(files):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert two(tls(files, SERVER, {}), tls(files, CLIENT, {0: privml.ANY_NAME})) == [[5], [5]]
    assert any("ANY_NAME for party 0" in str(warning.message) for warning in caught)


@pytest.mark.filterwarnings("ignore:ANY_NAME", "ignore:a connection")
@pytest.mark.parametrize("demanded", [NAMES, ANY], ids=["named", "any name"])
def test_a_dealer_with_the_clients_certificate_is_refused(files, demanded):
    """One party would be two of the three."""
    identities = (tls(files, name, demanded) for name in (SERVER, CLIENT, CLIENT))
    outcomes = three(*identities, deadline=UNTIL_IT_ENDS)
    assert all(isinstance(error, (IdentityError, PeerDisconnected)) for error in outcomes), outcomes
    assert isinstance(outcomes[0], IdentityError), "the server finds it"


@pytest.mark.filterwarnings("ignore:ANY_NAME", "ignore:a connection")
@pytest.mark.parametrize("names", [(SERVER, SERVER, DEALER), (SERVER, CLIENT, SERVER)])
def test_no_two_of_three_have_one_name(files, names):
    outcomes = three(*(tls(files, name, ANY) for name in names), deadline=UNTIL_IT_ENDS)
    assert all(isinstance(error, (IdentityError, PeerDisconnected)) for error in outcomes), outcomes
    assert any("two of the three parties" in str(error) for error in outcomes)


@pytest.mark.filterwarnings("ignore:ANY_NAME")
def test_three_with_names_of_their_own(files):
    assert three(*(tls(files, name) for name in (SERVER, CLIENT, DEALER))) == [[5]] * 3
    assert three(*(tls(files, name, ANY) for name in (SERVER, CLIENT, DEALER))) == [[5]] * 3


@pytest.mark.filterwarnings("ignore:a connection")
def test_a_clients_certificate_is_no_servers(files):
    """Another client of the same authority answers where the server should."""
    outcomes = two(tls(files, DEALER, {}), tls(files, CLIENT), UNTIL_IT_ENDS)
    assert all(isinstance(error, IdentityError) for error in outcomes), outcomes
    assert f"expected is {SERVER}" in str(outcomes[1])
