# SPDX-License-Identifier: Apache-2.0
"""``numerics.exp``: every form of e^x, x <= 0, on every engine, and where the choice is written down."""

import pytest
import torch

import privml
from privml import _core
from privml.engines.catalogue import exp_negative_function
from privml.errors import ConfigError, CorruptFile
from privml.formats import EXPONENTIALS, FixedPoint, Numerics
from privml.graph.body import graph_of
from privml.session.session import Settings
from privml.spec import SessionSpec

X = torch.randn(6, 30, generator=torch.Generator().manual_seed(3)) * 3


def softmax_on(engine: str, exp: str, bits: int = 32, scale: int = 12) -> torch.Tensor:
    with privml.local(engine, bits=bits, scale=scale, exp=exp):
        return privml.reveal(torch.softmax(privml.share(X / 2, 0) + privml.share(X / 2, 1), -1))


@pytest.mark.parametrize("exp", EXPONENTIALS)
def test_softmax_is_right_and_the_same_on_all_engines(exp):
    plain, secure = softmax_on("plain", exp), softmax_on("twopc", exp)
    unit = 2.0**-12
    assert (plain - torch.softmax(X, -1)).abs().max() <= 3 * unit
    assert torch.equal(plain, secure)


def test_auto_takes_the_cheapest_form_whose_results_are_certain():
    paper, fine = FixedPoint(32, 12), FixedPoint(32, 24)
    assert exp_negative_function("auto", paper, paper) == "exp_negative_exact"
    assert exp_negative_function("auto", fine, fine) == "exp_negative_spline"
    assert exp_negative_function("exact", fine, fine) == "exp_negative_spline"
    for form, name in (
        ("table", "exp_negative"),
        ("spline", "exp_negative_spline"),
    ):
        assert exp_negative_function(form, paper, paper) == name


def bytes_of(exp: str) -> int:
    from privml.engines.twopc import backend as twopc

    with privml.Session(twopc.meter(), Numerics(32, 12, exp=exp)) as session, torch.no_grad():
        torch.softmax(privml.share(X, 0) + privml.share(X, 1), -1)
        return sum(session.engine.counters()[phase]["sent"] for phase in ("preprocess", "online"))


def test_the_choice_decides_the_bytes():
    assert bytes_of("auto") < bytes_of("table")


def test_wrong_forms_are_refused():
    with pytest.raises(ConfigError, match="exp must be one of table, spline"):
        privml.local("plain", exp="taylor")
    with pytest.raises(ConfigError, match="exp must be one of table, spline"):
        privml.convert(torch.nn.Softmax(-1), calibration=X, numerics={"exp": "taylor"})
    with pytest.raises(ConfigError, match="exp=product is withdrawn.*use exp=exact"):
        privml.local("twopc", exp="product")
    with pytest.raises(ValueError, match="exp_negative_spline"):
        _core.fixmath.exp_negative_function("spline", 99, 3, 16, 12)


def test_a_program_and_a_hello_say_which_form():
    programs = [privml.convert(torch.nn.Softmax(-1), calibration=X, numerics={"exp": exp}) for exp in ("auto", "table")]
    assert [program.numerics.exp for program in programs] == ["auto", "table"]
    assert programs[0].formats_hash != programs[1].formats_hash
    hellos = [
        Settings(SessionSpec(numerics=Numerics(32, 12, exp=exp))).hello(0, "party").numerics
        for exp in ("auto", "table")
    ]
    assert hellos[0] != hellos[1] and "exp=table" in hellos[1]
    body = dict(programs[0].body)
    body["numerics"] = {**body["numerics"], "exp": "taylor"}
    with pytest.raises(CorruptFile, match="taylor"):
        graph_of(body)
