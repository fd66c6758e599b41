# SPDX-License-Identifier: Apache-2.0
"""A converted model: graph and formats, known to all parties, and apart from them the weights of party 0."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import torch
from torch import fx

from privml.context import Session, current_session
from privml.engines.correlations import Correlations
from privml.errors import ConfigError, InvalidInput, StateLost
from privml.formats import Format, Numerics, format_text
from privml.graph.body import body_of, client_of, digest, formats_of, graph_of, kept_of
from privml.graph.file import read_program, read_weights, write_program, write_weights
from privml.graph.ir import calls, dtype_of, misfit, placeholders, shape_of, sizes_text
from privml.graph.lanes import Plans, over_lanes
from privml.graph.passes.cost import SessionMeter
from privml.graph.run import format_of, run_graph, share_attributes, share_inputs
from privml.graph.state import ELEMENT_BYTES, State
from privml.ops.choices import CHECKED_INDEX
from privml.session.ledger import Ledger, NodeCallback, PhaseCount, Snapshot
from privml.sharing import reveal
from privml.spec import SessionSpec, describe
from privml.tables import Progress, Table, notebook_bar, size_text
from privml.tensor import SecretTensor
from privml.transcript import printable

WEIGHTS_OWNER = 0
# The file of the tables that the client has.
TABLES = "tables.safetensors"
INPUT_OWNER = 1
DEALER = 2
# Of each input its shape.
Shapes = Sequence[Sequence[int]]
# Counts that a program remembers, one for every combination of shapes and settings.
KEPT_COUNTS = 256


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """An input, output or weight: ``shape`` has None where a size may vary."""

    name: str
    shape: tuple[int | None, ...]
    dtype: torch.dtype
    format: Format
    owner: int | None = None


class Program:
    """``with privml.local(program, engine=name): program(x)`` answers as the model does; ``run(session, x)`` leaves
    the outputs secret.

    Both parties hold the same program (``hash``, ``formats_hash``); only party 0 has ``weights``, float tensors by
    name. ``numerics`` are those that a session for this program is opened with. ``choice`` says of a fresh
    conversion's measured error and its overflow report, which are not saved, for they describe the calibration
    data; ``notes`` what it decided about the model, for all parties. What the client computes before by itself is
    ``client``, and ``tables`` what it has of the model for that. ``state``: what a call leaves, as shares, to the
    next one of the same session, which
    is therefore a step of it.

    Costs are those of one party, from the shapes alone: bytes, depth (messages one way, one after another) and
    correlations. Shapes are one for each of ``inputs``, with a number for each None, and of a program with state those
    of ``complete`` (or as of a first step); ValueError for others.
    """

    def __init__(self, body: Mapping[str, Any], weights: Mapping[str, torch.Tensor] | None = None) -> None:
        self.body = dict(body)
        self.graph, self.constants, self.numerics = graph_of(self.body)
        self.state = kept_of(self.body, self.graph)
        self.client = client_of(self.body)
        self.tables: dict[str, torch.Tensor] | None = None
        self.notes: tuple[str, ...] = tuple(self.body.get("notes", ()))
        self.weights: dict[str, torch.Tensor] | None = None
        self.choice: Any = None
        self._counts: dict[tuple, Any] = {}  # of correlations, demands and layers' bytes
        self._plans: Plans = {}
        self._shared = object()  # under which sessions keep these weights as secrets of theirs
        self._held = object()  # under which sessions keep the state
        self._digest: tuple[list[Any], list[Any], bytes] | None = None  # of which tensors, in which versions
        if weights is not None:
            self.weights = dict(weights)

    @staticmethod
    def of(
        module: fx.GraphModule,
        numerics: Numerics,
        labels: Sequence[Sequence[str] | None] = (),
        client: fx.GraphModule | None = None,
        state: Sequence[Mapping[str, Any]] = (),
        notes: Sequence[str] = (),
    ) -> Program:
        """From a graph to which formats were assigned; ``labels``: of each output the strings that it indexes, None
        where there are none; ``client``: what the client computes before; ``state``: see ``privml.graph.body``;
        ``notes``: what parties should know of it."""
        body, weights, tables = body_of(module, numerics, labels, client, state, notes)
        program = Program(body, weights)
        program.tables = tables
        return program

    # ---- what it is
    @cached_property
    def hash(self) -> str:
        """SHA-256, in hex, of graph, constants and formats."""
        return digest(self.body)

    @cached_property
    def calibrated_layers(self) -> tuple[str, ...]:
        """The layers whose results are taken to keep the calibrated range (numerics.bounds=calibrated), in order; all
        others rely on what formats and operators prove."""
        nodes = [n for n in self.graph.nodes if getattr(n.meta.get("request"), "bound", None) is not None]
        return tuple(dict.fromkeys(str(n.meta.get("layer", n.name)) for n in nodes))

    @cached_property
    def formats_hash(self) -> str:
        """SHA-256, in hex, of the formats alone."""
        return digest(formats_of(self.body))

    @cached_property
    def inputs(self) -> tuple[TensorSpec, ...]:
        """In the order in which ``run`` takes them."""
        nodes = self._entering if self.client is None else placeholders(self.client.graph)
        return tuple(_spec(node, INPUT_OWNER) for node in nodes)

    @cached_property
    def _entering(self) -> list[fx.Node]:
        """The graph's inputs but for the state."""
        nodes = placeholders(self.graph)
        return nodes[: len(nodes) - len(self.state)]

    @cached_property
    def public_inputs(self) -> tuple[str, ...]:
        """The names of the inputs that all parties learn."""
        return tuple(node.name for node in placeholders(self.graph) if not node.meta["secret"])

    def notices(self, dealt: bool = False) -> tuple[str, ...]:
        """What each party should know before it takes part, one line each: inputs that are not secret, and the notes.
        ``dealt``: whether there is a dealer, which learns public inputs like the others."""
        public = ", ".join(self.public_inputs)
        who = "all parties, the dealer too," if dealt else "all parties"
        lines = (f"{who} learn these inputs of the program: {public}",) if public else ()
        return tuple(printable(line, 2000) for line in (*lines, *self.notes))

    @property
    def told(self) -> NoReturn:
        """The former name of ``notices``."""
        raise AttributeError("Program.told is called Program.notices now")

    @cached_property
    def outputs(self) -> tuple[TensorSpec, ...]:
        """In the order in which ``run`` returns them."""
        nodes: Any = self.graph.output_node().args[0]
        return tuple(_spec(node, None) for node in nodes[: len(nodes) - len(self.state)])

    @cached_property
    def labels(self) -> tuple[tuple[str, ...] | None, ...]:
        """For each output the strings that its numbers are indices of, None where they are what they are."""
        known = self.body.get("labels") or [None] * len(self.outputs)
        return tuple(None if names is None else tuple(names) for names in known[: len(self.outputs)])

    def decode(self, outputs: Any) -> Any:
        """Revealed outputs (a tensor or a tuple of several), those that index strings as NumPy arrays of these."""
        if isinstance(outputs, torch.Tensor):
            return self.decode((outputs,))[0]
        return tuple(
            value if names is None or value is None else np.array(names)[value.numpy()]
            for value, names in zip(outputs, self.labels, strict=True)
        )

    @cached_property
    def weight_specs(self) -> tuple[TensorSpec, ...]:
        """The weights by name, whether they are there or not."""
        secret = [n for n in self.graph.nodes if n.op == "get_attr" and n.meta["secret"]]
        return tuple(_spec(n, WEIGHTS_OWNER, n.target) for n in secret)

    @cached_property
    def layers(self) -> tuple[str, ...]:
        """Names of the secret operations in the order in which they run."""
        return tuple(n.meta["layer"] for n in calls(self.graph) if n.meta["secret"])

    def weights_digest(self) -> bytes:
        """SHA-256 of the weights, which are known here; to be kept as secret as they are. It is worked out again if one
        of them was replaced or changed in place by torch."""
        values = sorted((self.weights or {}).items())
        seen = [(name, id(value), 0 if value.is_inference() else value._version) for name, value in values]
        if self._digest is None or self._digest[0] != seen:
            total = hashlib.sha256()
            for name, value in values:
                total.update(f"{name} {value.dtype} {list(value.shape)};".encode())
                total.update(value.detach().cpu().contiguous().numpy().tobytes())
            self._digest = (seen, values, total.digest())  # with the tensors, so that no other one gets their ids
        return self._digest[2]

    # ---- files
    def save(self, folder: str | Path) -> tuple[Path, Path | None]:
        """Writes ``folder/program``, ``folder/weights.safetensors`` (readable by the owner only) if there are weights,
        and for a client that looks up ids by itself ``folder/tables.safetensors``; returns the first two paths."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        program = write_program(folder / "program", self.body)
        if self.tables:
            write_weights(folder / TABLES, self.tables, self.hash)
        if self.weights is None:
            return program, None
        return program, write_weights(folder / "weights.safetensors", self.weights, self.hash)

    @staticmethod
    def load(program: str | Path, weights: str | Path | None = None) -> Program:
        """From files written by ``save``; ``weights`` at party 0 only, the client's tables where they lie beside the
        program. Nothing in the files is executed.

        Raises CorruptFile for truncated or altered files, UnsupportedOperator for a program of a release with more
        operators, ConfigError for weights of another program, FileNotFoundError.
        """
        result = Program(read_program(Path(program)))
        tables = (Path(program) if Path(program).is_dir() else Path(program).parent) / TABLES
        if result.client is not None and result.client.tables and tables.is_file():
            result.tables = read_weights(tables, result.client.tables, result.hash)
        return result if weights is None else result.load_weights(weights)

    def load_weights(self, path: str | Path) -> Program:
        """Adds the weights of ``path`` and returns the program; errors as in ``load``."""
        shapes = {spec.name: (spec.shape, spec.dtype) for spec in self.weight_specs}
        self.weights = read_weights(Path(path), shapes, self.hash)
        self._shared = object()
        return self

    # ---- running
    def __call__(self, *inputs: Any) -> Any:
        """The outputs for ``inputs`` of party 1, revealed to party 1: a tensor, or a tuple of several; None at others.

        It runs in the session entered last; inputs as ``run`` takes them. Raises ConfigError without a session and in
        one of other formats, and what ``run`` raises.
        """
        session = current_session()
        if describe(session.numerics) != describe(self.numerics):
            raise ConfigError(
                f"this session computes with {describe(session.numerics)}, the program with {describe(self.numerics)}: "
                "open it with privml.local(program, engine=...), privml.connect(rank, program=program, ...) or "
                "privml.SessionSpec.of(..., numerics=program.numerics)"
            )
        with self._shown(session, inputs):
            outputs = tuple(reveal(secret, to=INPUT_OWNER) for secret in self.results(session, *inputs))
        return outputs[0] if len(outputs) == 1 else outputs

    @contextmanager
    def _shown(self, session: Session, inputs: Sequence[Any]) -> Iterator[None]:
        """In a notebook a bar that moves whenever a layer ends."""
        callbacks: list[NodeCallback] = [] if session.ledger is None else session.ledger.on_node
        given = inputs[0].values() if len(inputs) == 1 and isinstance(inputs[0], Mapping) else inputs
        show = notebook_bar("query")
        on_node = self.follow([_claimed_shape(value) for value in given], show)
        callbacks.append(on_node)
        try:
            yield
        finally:
            callbacks.remove(on_node)
            show(1, 1, "")

    def follow(self, shapes: Shapes, progress: Progress) -> NodeCallback:
        """For ``Ledger.on_node`` of one query on inputs of these shapes: calls ``progress`` with what is done, what is
        to be done in all and the node that begins, and at the end "done". Both are predicted bytes of the nodes'
        messages if these were counted (``layer_bytes``), else numbers of nodes."""
        sizes, left, done = self.layer_bytes(shapes), len(self.layers), 0
        total = sum(sizes.get(layer, 0) for layer in self.layers)
        if total == 0:
            sizes, total = dict.fromkeys(self.layers, 1), left

        def on_node(event: str, name: str) -> None:
            nonlocal done, left
            if event == "start":
                progress(done, total, name)
                return
            done, left = done + sizes.get(name, 0), left - 1
            if left == 0:
                progress(total, total, "done")

        return on_node

    def run(self, session: Session, *inputs: Any) -> SecretTensor | tuple[SecretTensor, ...]:
        """The outputs, as secrets, of ``inputs``: the value at party 1, its shape at the others (a secret tensor
        of the session serves at all); or a mapping with that for each input's name.

        The weights are shared once per session. Raises InvalidInput before anything is sent when an input does not
        fit, ConfigError when party 0 has no weights.
        """
        results = self.results(session, *inputs)
        return results[0] if len(results) == 1 else results

    def results(self, session: Session, *inputs: Any) -> tuple[SecretTensor, ...]:
        """``run``, with one output as a tuple too."""
        if len(inputs) == 1 and isinstance(inputs[0], Mapping):
            inputs = tuple(self.ordered(inputs[0]))
        state, size = self.held(session), 1
        begun: list[SecretTensor] = []
        if state is not None:
            if len(inputs) != len(self.inputs):
                raise InvalidInput(f"the program takes {len(self.inputs)} input(s), got {len(inputs)}")
            size = self.open_size([_shape_of(value) for value in inputs])
            begun = state.begin(size, session)
        entered = self._entered(session, inputs)
        shared = share_inputs(self.graph, session, [*entered, *begun], INPUT_OWNER)
        attributes, number = self.prepare(session), session.kept[self._shared, "number"]
        weights = [value for value in attributes.values() if isinstance(value, SecretTensor)]
        try:
            session.step(f"program {self.hash[:12]}", self.hash, shared, weights)
            scheduler = over_lanes(session, self._plans)
            results = tuple(run_graph(self.graph, shared, attributes, session, scheduler, number))
            session.name(results)
            if state is not None:
                shown = len(results) - len(self.state)
                state.keep(begun, results[shown:], size, session)
                results = results[:shown]
        except BaseException as error:
            if state is not None:
                state.lose(error)
            raise
        return results

    # ---- state
    def held(self, session: Session) -> State | None:
        """What ``session`` keeps of this program for its next call; None for a program without state. StateLost if the
        session has ended, or the program has got other weights since."""
        if not self.state:
            return None
        if getattr(session, "ended", False):
            raise StateLost("the state is gone: the session has ended")
        state = session.kept.get(self._held)
        if state is None:
            state = session.kept[self._held] = State(self.state, self._shared)
        if state.weights is not self._shared:
            raise StateLost("the state is gone: it belongs to weights that the program no longer has")
        return state

    def complete(self, shapes: Shapes, length: int = 0) -> tuple[tuple[int, ...], ...]:
        """``shapes`` of ``inputs``, and after them those of the state that a call on them finds, if what grows is
        ``length`` long. Shapes that are complete stay as they are."""
        known = _checked(shapes)
        if not self.state or len(known) == len(self.inputs) + len(self.state):
            return known
        size = self.open_size(known)
        return (*known, *(spec.shape_at(size, length) for spec in self.state))

    def state_bytes(self, shapes: Shapes) -> int:
        """What a party keeps, at most, after a call on inputs of these shapes."""
        return sum(ELEMENT_BYTES * math.prod(shape) for shape in self.following(shapes)[len(self.inputs) :])

    def following(self, shapes: Shapes) -> tuple[tuple[int, ...], ...]:
        """``complete`` shapes of a next call on inputs of the same shapes as that with these."""
        known = self.complete(shapes)
        size, count = self.open_size(known), len(self.inputs)
        later = [
            tuple(n + spec.added(size) * (dim == spec.grows) for dim, n in enumerate(shape))
            for spec, shape in zip(self.state, known[count:], strict=True)
        ]
        return (*known[:count], *later)

    def open_size(self, shapes: Shapes) -> int:
        """The size of the inputs that may vary, 1 if none does."""
        pairs = zip(self.inputs, shapes, strict=False)
        return next((n for spec, given in pairs for w, n in zip(spec.shape, given, strict=False) if w is None), 1)

    def check_ids(self, values: Sequence[torch.Tensor]) -> None:
        """InvalidInput for ids outside their tables, among values of all inputs; ConfigError without the client's
        tables. What all parties learn is looked at before they do."""
        entered = list(values) if self.client is None else self.client.run(values, self.tables)
        for node, value in zip(self._entering, entered, strict=True):
            for user in node.users if not node.meta["secret"] else ():
                if user.target is CHECKED_INDEX:
                    try:
                        CHECKED_INDEX(value.to(dtype_of(node)), user.args[1])
                    except IndexError as error:
                        raise InvalidInput(f"input {node.name!r}: an id {error}") from None

    def _entered(self, session: Session, inputs: Sequence[Any]) -> Sequence[Any]:
        """The graph's inputs, of the program's: values where they are known, else shapes."""
        if self.client is None:
            return inputs
        if len(inputs) != len(self.inputs):
            raise InvalidInput(f"the program takes {len(self.inputs)} input(s), got {len(inputs)}")
        shapes = [_fitting(spec, value) for spec, value in zip(self.inputs, inputs, strict=True)]
        if session.rank in (None, INPUT_OWNER):
            return self.client.run(inputs, self.tables)
        return self._entered_shapes(shapes)

    def _entered_shapes(self, shapes: Shapes) -> Shapes:
        """The shapes of the graph's inputs, of those of the program's and its state."""
        if self.client is None:
            return shapes
        size, state = self.open_size(shapes), shapes[len(self.inputs) :]
        return (*(tuple(size if n is None else n for n in shape_of(node)) for node in self._entering), *state)

    def prepare(self, session: Session) -> dict[str, Any]:
        """Weights as secrets of ``session``, and the constants; done by ``run`` when it was not done before."""
        known = session.kept.get(self._shared)
        if known is None:
            if session.rank in (None, WEIGHTS_OWNER) and self.weights is None and self.weight_specs:
                raise ConfigError(
                    f"party {WEIGHTS_OWNER} runs this program with weights: load them from weights.safetensors"
                )
            values = {**self.constants, **(self.weights or {})}
            known = session.kept[self._shared] = share_attributes(self.graph, session, values, WEIGHTS_OWNER)
            session.kept[self._shared, "number"] = sum(isinstance(key, tuple) for key in session.kept)
        return known

    # ---- what it costs
    def ordered(self, inputs: Any) -> list[Any]:
        """``inputs`` (one value, a tuple or list with one per input, or a mapping from the inputs' names) in the order
        of ``inputs``; InvalidInput naming what is missing, and what the program does not take."""
        if isinstance(inputs, Mapping):
            names = [spec.name for spec in self.inputs]
            require_names(inputs, names, "the program takes")
            return [inputs[name] for name in names]
        values = list(inputs) if isinstance(inputs, (tuple, list)) else [inputs]
        if len(values) != len(self.inputs):
            known = ", ".join(spec.name for spec in self.inputs)
            raise InvalidInput(f"the program takes {len(self.inputs)} input(s) ({known}), got {len(values)}")
        return values

    def shapes(self, batch: int = 1) -> tuple[tuple[int, ...], ...]:
        """The inputs' shapes, every size that may vary being ``batch``."""
        return tuple(tuple(batch if size is None else size for size in spec.shape) for spec in self.inputs)

    def correlations(self, shapes: Shapes, spec: SessionSpec | None = None) -> Correlations:
        """Exactly what one run on inputs of these shapes draws from a session of ``spec`` (None:
        ``SessionSpec()``), whose engine must draw transfers."""
        spec = SessionSpec() if spec is None else spec

        def counted() -> Correlations:
            engine = spec.backend.meter(spec, 0)
            self.metered(engine, *shapes)
            counts = [engine.lane(index).counters() for index in range(spec.threads)]
            first, *further = (Correlations(c["cots_as_sender"], c["cots_as_receiver"]) for c in counts)
            return Correlations(first.from0, first.from1, tuple(further))

        return self._once(counted, "correlations", shapes, spec)

    def demand(self, shapes: Shapes, spec: SessionSpec | None = None, further: bool = False) -> Any:
        """What a session of ``spec`` (None: ``SessionSpec()``) makes ahead of a query on inputs of these shapes, its
        first one or a ``further`` one, for which the weights are shared already; None if it makes nothing."""
        spec = SessionSpec() if spec is None else spec
        return self._once(lambda: spec.backend.demand(self, shapes, spec, further), "demand", shapes, spec, further)

    def dealt(self, shapes: Shapes, spec: SessionSpec) -> tuple[int, int]:
        """Of a query on inputs of these shapes: the bytes that a dealer sends ahead of it, and those that it sends and
        receives while it runs."""
        beside = replace(spec, stored=False, prepared=frozenset())

        def counted() -> tuple[int, int]:
            cost = self.cost(shapes, beside, rank=DEALER).snapshot()
            return cost.preprocess.sent, cost.online.bytes

        return self._once(counted, "dealt", shapes, beside)

    def _once(self, count: Callable[[], Any], kind: str, shapes: Shapes, spec: SessionSpec, *more: Any) -> Any:
        link = spec.expected_link if spec.backend.uses_link(spec) else None
        key = (kind, self.complete(shapes), spec.engine, spec.ot, spec.threads, link, spec.prepared, spec.stored, *more)
        known = self._counts.get(key)  # sessions on other threads may clear them
        if known is None:
            known = count()  # without a lock: no client waits for the count of another one
            self._keep(key, known)
        return known

    def _keep(self, key: tuple, count: Any) -> None:
        if len(self._counts) >= KEPT_COUNTS:  # clients choose the shapes
            self._counts.clear()
        self._counts[key] = count

    def cost(self, shapes: Shapes, spec: SessionSpec | None = None, rank: int = INPUT_OWNER) -> Ledger:
        """The ledger of party ``rank``, with an entry per layer, of one query on inputs of these shapes in a session
        of ``spec`` (None: ``SessionSpec()``): what is made ahead, as ``serve`` and ``query`` do, the run, and the
        opening of the outputs. With ``OtChoice("ideal")`` nothing is made, as for a query on a store."""
        return self.session_cost([shapes], spec, rank=rank)[0][0]

    def session_cost(
        self,
        queries: Sequence[Shapes],
        spec: SessionSpec | None = None,
        *,
        ahead: bool = False,
        rank: int = INPUT_OWNER,
    ) -> list[tuple[Ledger, Snapshot]]:
        """``cost`` of several queries of one session, each given by its inputs' shapes: its ledger, and what was spent
        before it was asked (``ahead``: on what a query of the same shapes as the one before draws). The first ledger
        includes the set-up. Of a program with state they are steps, each of which finds what those before have left."""
        spec = SessionSpec() if spec is None else spec
        meter = spec.backend.meter(spec, rank)
        session, costs, spent = self.session_meter(meter), [], Snapshot()
        length = 0
        for turn, given in enumerate(queries):
            shapes = self.complete(given, length)
            stock = self.demand(shapes, spec, further=turn > 0)
            if stock is not None:
                meter.reserve(stock)
            costs.append((session.query(shapes), spent))
            length += max((each.added(self.open_size(shapes)) for each in self.state), default=0)
            stock = self.demand(self.following(shapes), spec, further=True) if ahead else None
            spent = Snapshot() if stock is None else session.make_ahead(stock)
        return costs

    def metered(
        self,
        engine: Any,
        *shapes: Sequence[int],
        on_node: NodeCallback | None = None,
        weights: Mapping[str, torch.Tensor] | None = None,
    ) -> Ledger:
        """The ledger of one query on ``engine``, which counts; what it has reserved is its caller's. ``on_node``: see
        ``Ledger``; ``weights``: see ``SessionMeter``."""
        return self.session_meter(engine, weights).query(self.complete(shapes), on_node)

    def session_meter(self, engine: Any, weights: Mapping[str, torch.Tensor] | None = None) -> SessionMeter:
        """Counts several queries of one session on ``engine``, which counts."""
        values = {**self.constants, **(weights or {})}
        meter = SessionMeter(self.graph, values, self.numerics, engine, self._plans, self._entered_shapes, self.state)
        meter.on_counted = self._remember
        return meter

    def layer_bytes(self, shapes: Shapes) -> Mapping[str, int]:
        """What each layer sends and receives online, as the newest count of a query of these shapes has it; nothing if
        none was counted, which is not done for this."""
        return self._counts.get(("layers", _checked(shapes)), {})

    def _remember(self, shapes: Shapes, ledger: Ledger) -> None:
        self._keep(("layers", _checked(shapes)), {r.name: r.cost.online.bytes for r in ledger.records.values()})

    # ---- to look at
    def summary(self, shapes: Shapes | None = None, spec: SessionSpec | None = None) -> Table:
        """Its layers, the number format of each result, and what a query on inputs of these ``shapes`` (None: one
        sample) costs the client in a session of ``spec`` (None: ``SessionSpec()``)."""
        shapes = self.shapes() if shapes is None else _checked(shapes)
        spec = SessionSpec() if spec is None else spec
        total, online = self._once(lambda: self._layer_costs(shapes, spec), "summary", shapes, spec)
        found: dict[str, tuple[str, Format]] = {}
        for node in calls(self.graph):
            if node.meta["secret"]:
                found[node.meta["layer"]] = str(node.target), node.meta["format"]
        rows = []
        for layer, (operator, fmt) in found.items():
            size, depth = online.get(layer, (0, 0))
            operator = operator.removeprefix("aten.").removeprefix("privml.").split(".")[0]
            rows.append((layer, operator, format_text(fmt), size_text(size), str(depth)))
        inputs = ", ".join(f"{each.name} {sizes_text(each.shape)}, {format_text(each.format)}" for each in self.inputs)
        asked = ", ".join(str(tuple(shape)) for shape in shapes[: len(self.inputs)])
        notes = (
            f"input: {inputs}",
            f"a query on {asked} with engine={spec.engine.engine}: {size_text(total.bytes)} in both directions at the "
            f"client, {total.depth} messages in sequence, with set-up and preprocessing",
            *self.notes,
            *(
                f"state {spec.name} {sizes_text(spec.shape)}, {format_text(spec.format)}, kept as shares"
                for spec in self.state
            ),
        )
        columns = ("layer", "operator", "numbers", "sent and received online", "messages in sequence")
        return Table(repr(self), columns, tuple(rows), notes)

    def _layer_costs(self, shapes: Shapes, spec: SessionSpec) -> tuple[PhaseCount, dict[str, tuple[int, int]]]:
        ledger = self.cost(shapes, spec)
        online = {name: (each.cost.online.bytes, each.cost.online.depth) for name, each in ledger.records.items()}
        return ledger.snapshot().total, online

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()

    def __repr__(self) -> str:
        weights = "without" if self.weights is None else "with"
        return f"Program({len(self.layers)} operations, {weights} weights, hash={self.hash[:12]})"


def require_names(given: Iterable[Any], names: Sequence[str], who: str) -> None:
    """InvalidInput naming what is missing among the ``given`` inputs' names, and what is not among ``names``, which is
    what ``who`` says."""
    given = set(map(str, given))
    missing, unknown = [name for name in names if name not in given], sorted(given - set(names))
    if missing or unknown:
        text = [f"without {', '.join(missing)}"] if missing else []
        text += [f"with {', '.join(unknown)}"] if unknown else []
        raise InvalidInput(f"inputs {' and '.join(text)}: {who} {', '.join(names)}")


def _checked(shapes: Shapes) -> tuple[tuple[int, ...], ...]:
    try:
        return tuple(tuple(shape) for shape in shapes)
    except TypeError:
        raise ValueError(f"shapes are one for each input, such as [(1, 28, 28)], not {shapes!r}") from None


def _shape_of(value: Any) -> tuple[int, ...]:
    """Of an input, given as it is or as a shape."""
    return tuple(value if isinstance(value, tuple) else torch.as_tensor(value).shape)


def _claimed_shape(value: Any) -> tuple[int, ...]:
    """As ``_shape_of``, of anything at all: what is no input is refused elsewhere."""
    sizes = value if isinstance(value, tuple) else getattr(value, "shape", ())
    return tuple(size for size in sizes if isinstance(size, int))


def _spec(node: fx.Node, owner: int | None, name: str | None = None) -> TensorSpec:
    return TensorSpec(name or node.name, shape_of(node), dtype_of(node), format_of(node), owner)


def _fitting(spec: TensorSpec, value: Any) -> tuple[int, ...]:
    """The shape of an input, given as it is or as a shape; InvalidInput for one that does not fit."""
    if isinstance(value, SecretTensor):
        raise InvalidInput(f"input {spec.name!r}: the client computes with it first, so it cannot be secret yet")
    shape = _shape_of(value)
    wrong = misfit(shape, spec.shape)
    if wrong is not None:
        raise InvalidInput(f"input {spec.name!r}: {wrong}")
    return shape


def load(program: str | Path, weights: str | Path | None = None) -> Program:
    """A saved program, at party 0 with its weights; see ``Program.load``."""
    return Program.load(program, weights)
