# SPDX-License-Identifier: Apache-2.0
"""A converted model: graph and formats, known to all parties, and apart from them the weights of party 0."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import fx

from privml.context import Session
from privml.engines.correlations import DEFAULT_OT, Correlations, OtChoice
from privml.engines.demands import difference
from privml.errors import ConfigError
from privml.formats import Format, Numerics
from privml.graph.body import body_of, digest, formats_of, graph_of
from privml.graph.execution import share_attributes, share_inputs
from privml.graph.file import read_program, read_weights, write_program, write_weights
from privml.graph.ir import calls, dtype_of, placeholders, shape_of
from privml.graph.parallel import Plans, run_graph
from privml.graph.passes.cost import SessionMeter, predict
from privml.session.ledger import Ledger, NodeCallback, Snapshot
from privml.tensor import SecretTensor

WEIGHTS_OWNER = 0
INPUT_OWNER = 1
# Counts of correlations that a program remembers, one for every combination of shapes and settings.
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
    """``run(session, x)`` computes the model on secret tensors.

    Both parties hold the same program (``hash``, ``formats_hash``); only party 0 has ``weights``, float tensors by
    name. ``numerics`` are those that a session for this program is opened with. ``choice`` tells a fresh
    conversion's measured error and its overflow report; it is not saved, for it describes the calibration data.

    Costs are those of one party, from the shapes alone: bytes, depth (messages one way, one after another) and
    correlations. Shapes are one for each of ``inputs``, with a number for each None; ValueError for others.
    """

    def __init__(self, body: Mapping[str, Any], weights: Mapping[str, torch.Tensor] | None = None) -> None:
        self.body = dict(body)
        self.graph, self.constants, self.numerics = graph_of(self.body)
        self.weights: dict[str, torch.Tensor] | None = None
        self.choice: Any = None
        self._correlations: dict[tuple, Correlations] = {}
        self._demands: dict[tuple, dict[str, Any]] = {}
        self._plans: Plans = {}
        self._shared = object()  # under which sessions keep these weights as secrets of theirs
        if weights is not None:
            self.weights = dict(weights)

    @staticmethod
    def of(module: fx.GraphModule, numerics: Numerics, labels: Sequence[Sequence[str] | None] = ()) -> Program:
        """From a graph to which formats were assigned; ``labels``: of each output the strings that it indexes, None
        where there are none."""
        return Program(*body_of(module, numerics, labels))

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
        return tuple(_spec(node, INPUT_OWNER) for node in placeholders(self.graph))

    @cached_property
    def outputs(self) -> tuple[TensorSpec, ...]:
        """In the order in which ``run`` returns them."""
        output = next(node for node in reversed(self.graph.nodes) if node.op == "output")
        return tuple(_spec(node, None) for node in output.args[0])

    @cached_property
    def labels(self) -> tuple[tuple[str, ...] | None, ...]:
        """For each output the strings that its numbers are indices of, None where they are what they are."""
        known = self.body.get("labels") or [None] * len(self.outputs)
        return tuple(None if names is None else tuple(names) for names in known)

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

    # ---- files
    def save(self, folder: str | Path) -> tuple[Path, Path | None]:
        """Writes ``folder/program`` and, if there are weights, ``folder/weights.safetensors`` (readable by the owner
        only); returns their paths."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        program = write_program(folder / "program", self.body)
        if self.weights is None:
            return program, None
        return program, write_weights(folder / "weights.safetensors", self.weights, self.hash)

    @staticmethod
    def load(program: str | Path, weights: str | Path | None = None) -> Program:
        """From files written by ``save``; ``weights`` at party 0 only. Nothing in the files is executed.

        Raises CorruptFile for truncated or altered files, UnsupportedOperator for a program of a release with more
        operators, ConfigError for weights of another program, FileNotFoundError.
        """
        result = Program(read_program(Path(program)))
        return result if weights is None else result.load_weights(weights)

    def load_weights(self, path: str | Path) -> Program:
        """Adds the weights of ``path`` and returns the program; errors as in ``load``."""
        shapes = {spec.name: (spec.shape, spec.dtype) for spec in self.weight_specs}
        self.weights = read_weights(Path(path), shapes, self.hash)
        self._shared = object()
        return self

    # ---- running
    def run(self, session: Session, *inputs: Any) -> SecretTensor | tuple[SecretTensor, ...]:
        """The outputs, as secrets, of ``inputs``: the value at party 1, its shape at the others (a secret tensor
        of the session serves at all).

        The weights are shared once per session. Raises InvalidInput before anything is sent when an input does not
        fit, ConfigError when party 0 has no weights.
        """
        results = self.results(session, *inputs)
        return results[0] if len(results) == 1 else results

    def results(self, session: Session, *inputs: Any) -> tuple[SecretTensor, ...]:
        """``run``, with one output as a tuple too."""
        shared = share_inputs(self.graph, session, inputs, INPUT_OWNER)
        attributes = self.prepare(session)
        weights = [value for value in attributes.values() if isinstance(value, SecretTensor)]
        session.step(f"program {self.hash[:12]}", self.hash, shared, weights)
        results = tuple(run_graph(self.graph, shared, attributes, session, self._plans))
        session.name(results)
        return results

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
        return known

    # ---- what it costs
    def shapes(self, batch: int = 1) -> tuple[tuple[int, ...], ...]:
        """The inputs' shapes, every size that may vary being ``batch``."""
        return tuple(tuple(batch if size is None else size for size in spec.shape) for spec in self.inputs)

    def correlations(self, *shapes: Sequence[int], ot: OtChoice = DEFAULT_OT, threads: int = 1) -> Correlations:
        """Exactly what one run on inputs of these shapes draws from a session with ``ot`` and ``threads`` lanes."""
        key = (tuple(tuple(shape) for shape in shapes), ot, threads)
        known = self._correlations.get(key)  # sessions on other threads may clear them
        if known is None:
            engine = _meter(0, ot, threads)
            self.metered(engine, *shapes)  # without a lock: no client waits for the count of another one
            counts = [engine.lane(index).counters() for index in range(threads)]
            first, *further = (Correlations(c["cots_as_sender"], c["cots_as_receiver"]) for c in counts)
            known = Correlations(first.from0, first.from1, tuple(further))
            if len(self._correlations) >= KEPT_COUNTS:  # clients choose the shapes
                self._correlations.clear()
            self._correlations[key] = known
        return known

    def cost(
        self, *shapes: Sequence[int], ot: OtChoice = DEFAULT_OT, threads: int = 1, rank: int = INPUT_OWNER
    ) -> Ledger:
        """The ledger of party ``rank``, with an entry per layer, of one query of inputs of these shapes: the
        correlations made ahead, as ``serve`` and ``query`` do, the run, and the opening of the outputs."""
        engine = _meter(rank, ot, threads)
        engine.reserve(self.correlations(*shapes, ot=ot, threads=threads).stock)
        return self.metered(engine, *shapes)

    def metered(self, engine: Any, *shapes: Sequence[int], on_node: NodeCallback | None = None) -> Ledger:
        """The ledger of one query on ``engine``, which counts; what it has reserved is its caller's. ``on_node``: see
        ``Ledger``."""
        return predict(
            self.graph, self.constants, self.numerics, engine, shapes=shapes, plans=self._plans, on_node=on_node
        )

    def dealt_cost(self, *shapes: Sequence[int], truncation: str = "auto", rank: int = INPUT_OWNER) -> Ledger:
        """``cost`` between three parties; ``rank`` 2 is the dealer's view."""
        from privml.engines.threepc.backend import meter  # programs load without the compiled core

        return self.metered(meter(rank, truncation), *shapes)

    def demand(
        self, *shapes: Sequence[int], ring: int = 64, truncation: str = "auto", further: bool = False
    ) -> dict[str, Any]:
        """Exactly what one run on inputs of these shapes draws from an actively secure session, by kind; ``further``:
        what a later one draws, for which the weights are shared already."""
        key = (tuple(tuple(shape) for shape in shapes), ring, truncation, further)
        known = self._demands.get(key)  # sessions on other threads may clear them
        if known is None:
            engine = _active_meter(INPUT_OWNER, OtChoice("ideal"), ring, truncation)
            session = self.session_meter(engine)
            session.query(shapes)
            known = engine.drawn()
            if further:
                session.query(shapes)
                known = difference(engine.drawn(), known)
            if len(self._demands) >= KEPT_COUNTS:
                self._demands.clear()
            self._demands[key] = known
        return known

    def session_meter(self, engine: Any) -> SessionMeter:
        """Counts several queries of one session on ``engine``, which counts."""
        return SessionMeter(self.graph, self.constants, self.numerics, engine, self._plans)

    def session_cost(
        self,
        *queries: Sequence[Sequence[int]],
        engine: str = "twopc",
        ot: OtChoice = DEFAULT_OT,
        threads: int = 1,
        ring: int = 64,
        truncation: str = "auto",
        ahead: bool = False,
        rank: int = INPUT_OWNER,
    ) -> list[tuple[Ledger, Snapshot]]:
        """For each of ``queries``, the shapes of its inputs, asked one after another in a session of party ``rank``
        with ``engine`` ("twopc", "threepc", "active"): its ledger, and what was spent on it before it was asked
        (``ahead``: correlations of a query of the same shapes as the one before are made in between). The first one's
        ledger includes the set-up."""
        if engine == "threepc":
            from privml.engines.threepc.backend import meter  # programs load without the compiled core

            counting, stocks = meter(rank, truncation), [(Correlations(), Correlations())] * len(queries)
        elif engine == "active":
            counting = _active_meter(rank, ot, ring, truncation)
            stocks = [
                tuple(
                    self.demand(*shapes, ring=ring, truncation=truncation, further=more) for more in (index > 0, True)
                )
                for index, shapes in enumerate(queries)
            ]
        else:
            counting = _meter(rank, ot, threads)
            stocks = [(self.correlations(*shapes, ot=ot, threads=threads).stock,) * 2 for shapes in queries]
        session, costs, spent = self.session_meter(counting), [], Snapshot()
        for shapes, (stock, next_stock) in zip(queries, stocks, strict=True):
            counting.reserve(stock)
            costs.append((session.query(shapes), spent))
            spent = session.make_ahead(next_stock) if ahead else Snapshot()
        return costs

    def active_cost(
        self,
        *shapes: Sequence[int],
        ot: OtChoice = DEFAULT_OT,
        ring: int = 64,
        truncation: str = "auto",
        rank: int = INPUT_OWNER,
        stored: bool = False,
    ) -> Ledger:
        """``cost`` between two parties secure against one that deviates; ``stored``: on what a store holds, so that
        nothing is made."""
        engine = _active_meter(rank, OtChoice("ideal") if stored else ot, ring, truncation)
        engine.reserve(self.demand(*shapes, ring=ring, truncation=truncation))
        return predict(self.graph, self.constants, self.numerics, engine, shapes=shapes, plans=self._plans)

    def __repr__(self) -> str:
        weights = "without" if self.weights is None else "with"
        return f"Program({len(self.layers)} operations, {weights} weights, hash={self.hash[:12]})"


def _meter(rank: int, ot: OtChoice, threads: int) -> Any:
    from privml.engines.twopc.backend import meter  # programs load without the compiled core

    return meter(rank, ot, threads)


def _active_meter(rank: int, ot: OtChoice, ring: int, truncation: str) -> Any:
    from privml.engines.active.backend import meter  # programs load without the compiled core

    return meter(rank, ot, ring, truncation)


def _spec(node: fx.Node, owner: int | None, name: str | None = None) -> TensorSpec:
    return TensorSpec(name or node.name, shape_of(node), dtype_of(node), node.meta["format"], owner)


def load(program: str | Path, weights: str | Path | None = None) -> Program:
    """A saved program, at party 0 with its weights; see ``Program.load``."""
    return Program.load(program, weights)
