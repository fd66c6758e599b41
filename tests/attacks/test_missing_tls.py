# SPDX-License-Identifier: Apache-2.0
"""A party without TLS at a server with TLS hears that TLS is missing, whatever the length of what it says first."""

from __future__ import annotations

import pytest
import torch
from certified import SERVER, ends, make_certificates, tls
from ports import reserved
from services import query, serve
from small_network import Net

import privml
from privml import _core
from privml.errors import IdentityError, ProtocolError
from privml.service.events import Stop

SECONDS = 20.0


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return make_certificates(tmp_path_factory.mktemp("certificates"))


# 0x0316 = 790 bytes: the header of such a frame begins like a record of TLS.
@pytest.mark.parametrize("length", [1, 21, 22, 400, 768, 789, 790, 791, 1023, 4096, 65536])
def test_the_first_frame_may_have_any_length(files, length):
    listener = _core.TcpListener("127.0.0.1", 0)

    def server():
        channel = listener.accept(SECONDS, identity=tls(files, SERVER).identity(1))
        channel.set_deadline(SECONDS)
        return channel.read(1)

    def client():
        channel = _core.connect_tcp("127.0.0.1", listener.port, SECONDS)
        channel.set_deadline(SECONDS)
        channel.write(bytes(length))
        return channel.read(1)

    at_server, at_client = ends(server, client)
    assert isinstance(at_server, IdentityError) and "does not speak TLS" in str(at_server)
    assert isinstance(at_client, ProtocolError) and "speaks TLS and this party does not" in str(at_client)


def test_a_query_without_certificates(files):
    program = privml.convert(Net().eval(), calibration=torch.randn(16, 4))
    stop = Stop()
    with reserved(1) as (address,):

        def client():
            try:
                return query(program, address, torch.zeros(1, 4), deadline=SECONDS)
            finally:
                stop.ask()

        _, at_client = ends(
            lambda: serve(program, address, tls=tls(files, SERVER), stop=stop, log=lambda text: None), client
        )
    assert isinstance(at_client, ProtocolError) and "speaks TLS" in str(at_client)
