# SPDX-License-Identifier: Apache-2.0
"""Services and clients with every setting as a keyword, for tests that vary them: ``serve(program, listen, ring=32)``.

``ring`` or ``dealer`` names the engine if ``engine`` does not.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import privml
from privml.service import client as asker
from privml.service import dealer, server
from privml.service import preprocess as maker
from privml.service.options import Addresses, Hooks, Limits, Retries
from privml.service.preprocess import Order
from privml.spec import Identity, LinkProfile, SessionSpec


def spec_of(options: dict[str, Any]) -> SessionSpec:
    """The specification that ``options`` name; takes its settings out of them."""
    ring, dealt = options.get("ring"), options.get("dealer")
    name = options.pop("engine", None) or ("active" if ring else "threepc" if dealt else "twopc")
    own = {each: options.pop(each) for each in ("truncation", "device", "ring", "linear", "noise") if each in options}
    given = {each: options.pop(each) for each in ("ot", "threads", "deadline", "on_wait") if each in options}
    for keyword, field in (("link_profile", "link"), ("network", "simulated")):
        link = options.pop(keyword, None)
        if link is not None:
            given[field] = link if isinstance(link, LinkProfile) else LinkProfile(**link)
    engine = privml.engine(name, **{each: value for each, value in own.items() if value is not None})
    if name == "active" and "ot" in given:
        given["ot"] = replace(given["ot"], security="malicious")
    return SessionSpec(engine, identity=Identity(**_taken(Identity, options)), **given)


def _taken(kind: type, options: dict[str, Any]) -> dict[str, Any]:
    return {each.name: options.pop(each.name) for each in fields(kind) if each.name in options}


def serve(program: Any, listen: str, **options: Any) -> int:
    spec, place = spec_of(options), Addresses(listen, options.pop("dealer", None))
    limits = options.pop("limits", None) or Limits(**_taken(Limits, options))
    return server.serve(program, place, spec, limits=limits, hooks=Hooks(**_taken(Hooks, options)), **options)


def deal(program: Any, listen: str, **options: Any) -> int:
    spec, hooks = spec_of({"engine": "threepc"} | options), Hooks(**_taken(Hooks, options))
    given = {each: options[each] for each in ("sessions", "capacity") if each in options}
    return dealer.deal(program, listen, spec, hooks=hooks, **given)


def _for_client(server: str, options: dict[str, Any]) -> tuple[Addresses, SessionSpec, Retries]:
    spec, place = spec_of(options), Addresses(server, options.pop("dealer", None))
    options |= {"count": options.pop("retries", 0)}
    return place, spec, Retries(**_taken(Retries, options))


def query(program: Any, server: str, inputs: Any, **options: Any) -> Any:
    place, spec, retries = _for_client(server, options)
    return asker.query(program, place, inputs, spec, retries=retries, **options)


def client(program: Any, server: str, **options: Any) -> privml.Client:
    place, spec, retries = _for_client(server, options)
    return privml.Client(program, place, spec, retries=retries, **options)


def remote_model(program: Any, server: str, **options: Any) -> privml.RemoteModel:
    place, spec, retries = _for_client(server, options)
    return privml.RemoteModel(program, place, spec, retries=retries, **options)


def order(program: Any, folder: Any, count: int, batch: int = 1, key_file: Any = None, **options: Any) -> Order:
    return Order(program, folder, count, batch, spec_of(options), key_file, options.pop("products", None))


def preprocess(order: Order, **options: Any) -> Any:
    own = {each: options.pop(each) for each in ("deadline",) if each in options}
    identity = Identity(**_taken(Identity, options))
    order = replace(order, spec=replace(order.spec, identity=identity, **own))
    return maker.preprocess(order, **options)
