# SPDX-License-Identifier: Apache-2.0
"""TLS between parties: data both ways, names, and what each side is told about every certificate that is wrong."""

import shutil
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone

import pytest
import torch
from ports import reserved

import privml
from privml import Tls, _core
from privml.errors import ConfigError, IdentityError, PeerDisconnected, ProtocolError
from privml.service import certificates
from privml.service.certificates import describe, issue, make_authority
from privml.spec import SessionSpec

SERVER, CLIENT, DEALER = "hospital-a", "lab-b", "helper-c"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("certs")
    make_authority(folder)
    for name in (SERVER, CLIENT, DEALER):
        issue(folder, name)
    other = folder / "other"
    make_authority(other)
    issue(other, CLIENT)
    return folder


def tls(folder, name, authority=None, **names):
    return Tls(
        (authority or folder) / "authority.pem",
        folder / f"{name}.pem",
        folder / f"{name}.key",
        {int(rank.removeprefix("party")): some for rank, some in names.items()},
    )


def exchange(listening, connecting, serve=None, ask=None):
    """What both sides of one connection end with: a value or an exception. Identities may be None."""
    listener = _core.TcpListener("127.0.0.1", 0)

    def default(channel):
        channel.set_deadline(5.0)
        channel.write(b"x")
        return channel.read(1), channel.peer_name

    def run(make, body):
        try:
            channel = make()
            try:
                return (body or default)(channel)
            finally:
                channel.close()
        except Exception as error:
            return error

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(run, lambda: listener.accept(5.0, identity=listening), serve)
        second = pool.submit(run, lambda: _core.connect_tcp("127.0.0.1", listener.port, 5.0, identity=connecting), ask)
        results = first.result(20), second.result(20)
    listener.close()
    return results


def test_both_sides_prove_their_names(files):
    results = exchange(tls(files, SERVER, party1=CLIENT).identity(1), tls(files, CLIENT, party0=SERVER).identity(0))
    assert results == ((b"x", CLIENT), (b"x", SERVER))


def test_large_messages_cross(files):
    """Both sides write before they read."""
    mine, theirs = (
        torch.randint(256, (3_000_000,), dtype=torch.uint8),
        torch.randint(256, (2_500_000,), dtype=torch.uint8),
    )

    def body(out, length):
        def run(channel):
            channel.set_deadline(20.0)
            channel.write_array(out.numpy())
            return torch.from_numpy(channel.read_array(length).copy())

        return run

    identities = tls(files, SERVER).identity(1), tls(files, CLIENT).identity(0)
    got = exchange(*identities, body(mine, len(theirs)), body(theirs, len(mine)))
    assert torch.equal(got[0], theirs) and torch.equal(got[1], mine)


def expired(folder, name):
    """A certificate whose time is over."""
    from cryptography import x509
    from cryptography.hazmat.primitives import serialization

    out = folder / "expired"
    if not (out / f"{name}.pem").exists():
        signer = x509.load_pem_x509_certificate((folder / "authority.pem").read_bytes())
        signing = serialization.load_pem_private_key((folder / "authority.key").read_bytes(), None)
        key, now = certificates._new_key(), datetime.now(timezone.utc)
        builder = (
            x509.CertificateBuilder()
            .subject_name(certificates._subject(name))
            .issuer_name(signer.subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=9))
            .not_valid_after(now - timedelta(days=2))
            .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        )
        out.mkdir(exist_ok=True)
        certificates._write(certificates.Issued(out / f"{name}.pem", out / f"{name}.key"), builder, key, signing)
    return Tls(folder / "authority.pem", out / f"{name}.pem", out / f"{name}.key")


@pytest.mark.parametrize("wrong_side", ["client", "server"])
@pytest.mark.parametrize("fault", ["name", "authority", "expired"])
def test_a_wrong_certificate_is_an_error_at_both_parties(files, wrong_side, fault):
    server, client = tls(files, SERVER, party1=CLIENT), tls(files, CLIENT, party0=SERVER)
    if fault == "name" and wrong_side == "client":
        client = tls(files, DEALER, party0=SERVER)
    elif fault == "name":
        server = tls(files, DEALER, party1=CLIENT)
    elif fault == "authority" and wrong_side == "client":
        client = tls(files / "other", CLIENT, authority=files)
    elif fault == "authority":
        shutil.copy(files / "other" / f"{CLIENT}.pem", files / "other" / f"{SERVER}.pem")
        shutil.copy(files / "other" / f"{CLIENT}.key", files / "other" / f"{SERVER}.key")
        server = tls(files / "other", SERVER, authority=files)
    elif wrong_side == "client":
        client = expired(files, CLIENT)
    else:
        server = expired(files, SERVER)
    at_server, at_client = exchange(server.identity(1), client.identity(0))
    assert isinstance(at_server, IdentityError) and isinstance(at_client, IdentityError)
    finds, told = (at_server, at_client) if wrong_side == "client" else (at_client, at_server)
    words = {"name": "expected is", "authority": "refused", "expired": "expired"}[fault]
    assert words in str(finds)
    assert "refuses this party" in str(told)


def test_tls_against_a_peer_without(files):
    at_server, at_client = exchange(tls(files, SERVER).identity(1), None)
    assert isinstance(at_server, IdentityError) and "TLS" in str(at_server)
    assert isinstance(at_client, (PeerDisconnected, ProtocolError))
    at_server, at_client = exchange(None, tls(files, CLIENT).identity(0))
    assert isinstance(at_server, ProtocolError) and "certificate" in str(at_server)
    assert isinstance(at_client, IdentityError)


def test_a_silent_caller_ends_with_the_deadline(files):
    def impatient(channel):
        channel.set_deadline(0.2)
        return channel.read(1)

    done = threading.Event()

    def silent(channel):
        done.wait(5.0)

    listener = _core.TcpListener("127.0.0.1", 0)
    plain = _core.connect_tcp("127.0.0.1", listener.port, 5.0)
    channel = listener.accept(5.0, identity=tls(files, SERVER).identity(1))
    with pytest.raises(PeerDisconnected, match="no answer"):
        impatient(channel)
    done.set()
    plain.close()


def test_files_that_cannot_be_used(files):
    with pytest.raises(ConfigError, match="authority's certificate"):
        Tls(files / "nothing.pem", files / f"{SERVER}.pem", files / f"{SERVER}.key").identity(1)
    with pytest.raises(ConfigError, match="private key"):
        Tls(files / "authority.pem", files / f"{SERVER}.pem", files / f"{CLIENT}.key").identity(1)


def test_keys_are_for_their_owner_alone(files):
    assert (files / f"{SERVER}.key").stat().st_mode & 0o777 == 0o600
    assert describe(files / f"{SERVER}.pem")["names"] == SERVER
    with pytest.raises(ConfigError, match="already exists"):
        issue(files, SERVER)
    with pytest.raises(ConfigError, match="not a valid name"):
        issue(files, "../x")


def run_parties(*bodies):
    with ThreadPoolExecutor(len(bodies)) as pool:
        return [future.result(60) for future in [pool.submit(body) for body in bodies]]


@pytest.fixture
def addresses():
    with reserved(2) as addresses:
        yield addresses


def test_sessions_of_two_and_three_parties(files, addresses):
    address, dealer = addresses
    names = {"party0": SERVER, "party1": CLIENT, "party2": DEALER}
    identities = [tls(files, name, **names) for name in (SERVER, CLIENT, DEALER)]

    def party(rank, place, **settings):
        def run():
            spec = SessionSpec.of(deadline=30.0, tls=identities[rank], **settings)
            with privml.connect(rank, spec, **place) as session:
                x = session.engine.input(torch.tensor([5]) if rank == 0 else None, (1,), 0, 32)
                return session.engine.reveal(session.engine.multiply_public(x, 3, 32), 32)

        return run

    two = run_parties(party(0, {"listen": address}, threads=2), party(1, {"connect": address}, threads=2))
    assert [int(x) for x in two] == [15, 15]
    places = [{"listen": address, "dealer": dealer}, {"connect": address, "dealer": dealer}, {"listen": dealer}]
    three = run_parties(*(party(rank, place, engine="threepc") for rank, place in enumerate(places)))
    assert [int(x) for x in three] == [15, 15, 15]


def test_a_dealer_takes_no_party_for_another(files, addresses):
    """Parties 0 and 1 have swapped their certificates towards the dealer."""
    address, dealer = addresses
    swapped = {"party0": CLIENT, "party1": SERVER, "party2": DEALER}
    right = {"party0": SERVER, "party1": CLIENT, "party2": DEALER}

    def end(rank, place, identity):
        def run():
            try:
                with privml.connect(rank, SessionSpec.of("threepc", deadline=3.0, tls=identity), **place):
                    return None
            except Exception as error:
                return error

        return run

    ends = run_parties(
        end(0, {"listen": address, "dealer": dealer}, tls(files, CLIENT, **swapped)),
        end(1, {"connect": address, "dealer": dealer}, tls(files, SERVER, **swapped)),
        end(2, {"listen": dealer}, tls(files, DEALER, **right)),
    )
    assert all(isinstance(error, (IdentityError, PeerDisconnected)) for error in ends)
    assert "is not that of party" in str(ends[2])


def test_other_machines_need_tls():
    with pytest.raises(ConfigError, match="without TLS"):
        privml.connect(0, listen="0.0.0.0:0")
    with warnings.catch_warnings(record=True) as caught, pytest.raises(PeerDisconnected):
        warnings.simplefilter("always")
        privml.connect(0, SessionSpec.of(insecure=True, deadline=0.1), listen="0.0.0.0:0")
    assert any("no TLS" in str(warning.message) for warning in caught)
