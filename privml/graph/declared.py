# SPDX-License-Identifier: Apache-2.0
"""What a user declares as a model's state, brought into the form that ``privml.graph.state`` describes."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import fx

from privml.errors import ConfigError, InvalidInput
from privml.graph.batches import Batch
from privml.graph.ir import dtype_of, placeholders, shape_of
from privml.graph.passes.steps import Steps

# Steps of the clear model whose states join the calibration data, and those after which it is looked whether a state
# still grows: by how much of the first half's largest number it is then larger, on so many rows.
ROLLED, LOOKED, GROWN, LOOKED_ROWS = 8, 64, 1.25, 32
# Rows on which the calls of a session are judged.
WALKED_ROWS = 8


@dataclass(frozen=True, slots=True)
class Declared:
    """A state ``name``: an input of the model and one of its outputs, by name or number; ``grows``: the dimension along
    which the output is appended to it, up to ``most`` (None: it takes its place)."""

    name: str
    input: str
    output: str | int
    grows: int | None = None
    most: int | None = None


def declared_of(given: Mapping[str, Any] | None) -> tuple[Declared, ...]:
    """``{name: (input, output)}``, or ``{name: (input, output, dimension, most)}`` for one that grows; ConfigError for
    anything else."""
    result = []
    for name, pair in (given or {}).items():
        parts = list(pair) if isinstance(pair, Sequence) and not isinstance(pair, str) else []
        kinds = [isinstance(part, kind) for part, kind in zip(parts, (str, (str, int), int, int), strict=False)]
        if len(parts) not in (2, 4) or not all(kinds) or not isinstance(name, str) or not name:
            raise ConfigError(
                f"state {name!r}: {pair!r} is not (INPUT, OUTPUT), the names of an input and of an output or its "
                "number, nor (INPUT, OUTPUT, DIMENSION, MOST) for one that grows along a dimension"
            )
        if len(parts) == 4 and not 0 < parts[3] < 2**31:
            raise ConfigError(f"state {name!r}: its greatest length {parts[3]} must be from 1 to {2**31 - 1}")
        result.append(Declared(name, *parts))
    for part in ("input", "output"):
        used = [getattr(each, part) for each in result]
        if len(set(used)) < len(used):
            raise ConfigError(f"two states have the {part} {max(used, key=used.count)!r}")
    return tuple(result)


def completed(batch: Batch, names: Sequence[str], shapes: Sequence[Any], declared: Sequence[Declared]) -> Batch:
    """A batch with zeros for states that it does not have. ``names``, ``shapes``: those of all inputs of the model,
    None for a size that varies and where nothing is known."""
    states = {each.input for each in declared}
    others = [name for name in names if name not in states]
    given = dict(
        zip(batch.names or (names if len(batch.tensors) == len(names) else others), batch.tensors, strict=False)
    )
    first = next(iter(given.values()), None)
    if first is None or not first.dim() or set(given) & states == states:
        return batch
    for name, shape in zip(names, shapes, strict=True):
        if name in states and name not in given and shape is not None:
            given[name] = torch.zeros([first.shape[0] if n is None else n for n in shape])
    return Batch(tuple(given.values()), tuple(given))


def growing(
    batch: Batch, declared: Sequence[Declared], inputs: Sequence[str] | None
) -> tuple[Batch, dict[int, tuple[int, int]], tuple[Declared, ...]]:
    """Examples in which states that grow have some length, for tracing, that no other size has: 0 and 1 would be
    taken for fixed; where they are and how long they may become, as ``privml.graph.tracing`` takes it; and
    ``declared``, with dimensions counted from the front. ``inputs``: the names of the examples, if these are known."""
    examples, lengths, settled = list(batch.tensors), {}, []
    sizes = {n for x in examples for n in x.shape}
    for each in declared:
        if each.grows is not None:
            place = _input(each, list(inputs or ()))
            if place >= len(examples) or not -examples[place].dim() <= each.grows < examples[place].dim():
                raise InvalidInput(
                    f"state {each.name!r}: the examples of input {each.input!r} have no dimension {each.grows}"
                )
            each = replace(each, grows=each.grows % examples[place].dim())
            shape = list(examples[place].shape)
            shape[each.grows] = next(n for n in itertools.count(5, 2) if n not in sizes)
            lengths[place] = each.grows, each.most
            examples[place] = torch.randn(shape).to(examples[place].dtype)
        settled.append(each)
    return Batch(tuple(examples), batch.names), lengths, tuple(settled)


def _input(each: Declared, names: Sequence[str]) -> int:
    if each.input not in names:
        raise ConfigError(f"state {each.name!r}: the model has no input {each.input!r}; there are {', '.join(names)}")
    return names.index(each.input)


def state_last(
    module: fx.GraphModule, declared: Sequence[Declared], inputs: Sequence[str] | None, outputs: Sequence[str] | None
) -> list[int]:
    """Puts the inputs and outputs of states behind all others, in the order in which they are declared; changes
    ``module`` and returns the order of the inputs. ``inputs``, ``outputs``: their names in the model, if these are
    known.

    ConfigError for names that there are not, InvalidInput for a state whose output differs in shape or dtype.
    """
    graph = module.graph
    nodes, out = placeholders(graph), graph.output_node()
    (results,) = out.args
    names = list(inputs or (node.name for node in nodes))
    chosen, taken = [], []
    for each in declared:
        node, place = nodes[_input(each, names)], _place(each, results, outputs)
        if each.grows is not None:
            added = _added(node, results[place], each.grows)
            results = (*results[:place], added, *results[place + 1 :])
        _check(each, node, results[place], nodes)
        node.meta.update(held=True, grows=each.grows is not None)
        chosen.append(node)
        taken.append(place)
    if len(chosen) == len(nodes) or len(taken) == len(results):
        raise ConfigError("a model with state needs an input and an output besides the state")
    ordered = [node for node in nodes if node not in chosen] + chosen
    for before, node in zip(ordered, ordered[1:], strict=False):
        before.append(node)
    out.args = (tuple(r for i, r in enumerate(results) if i not in taken) + tuple(results[i] for i in taken),)
    graph.lint()
    module.recompile()
    return [nodes.index(node) for node in ordered]


def without_output(module: fx.GraphModule, place: int) -> None:
    """Leaves out an output, and what only it needs."""
    graph = module.graph
    (results,) = graph.output_node().args
    graph.output_node().args = (results[:place] + results[place + 1 :],)
    graph.eliminate_dead_code()
    module.recompile()


def _place(each: Declared, results: Sequence[fx.Node], names: Sequence[str] | None) -> int:
    if isinstance(each.output, int):
        if not 0 <= each.output < len(results):
            raise ConfigError(
                f"state {each.name!r}: the model has {len(results)} output(s), not one of number {each.output}"
            )
        return each.output
    if names is None or each.output not in names:
        known = "its outputs have no names, give a number" if names is None else f"there are {', '.join(names)}"
        raise ConfigError(f"state {each.name!r}: the model has no output {each.output!r}; {known}")
    return list(names).index(each.output)


def _added(node: fx.Node, result: fx.Node, dim: int) -> fx.Node:
    """What a call appends to a state: of the state with more at its end only that."""
    if result.target is torch.ops.aten.cat.default:
        parts, along = result.args[0], result.args[1] if len(result.args) > 1 else 0
        if len(parts) == 2 and parts[0] is node and along % len(shape_of(node)) == dim:
            return parts[1]
    return result


def _check(each: Declared, node: fx.Node, result: fx.Node, inputs: Sequence[fx.Node]) -> None:
    wanted, made = (shape_of(node), dtype_of(node)), (shape_of(result), dtype_of(result))
    if each.grows is not None:
        others = [[n for dim, n in enumerate(shape) if dim != each.grows] for shape in (wanted[0], made[0])]
        size = result.meta["val"].shape[each.grows] if len(made[0]) == len(wanted[0]) else 0
        open_sizes = {str(n) for x in inputs if x is not node for n in x.meta["val"].shape if not isinstance(n, int)}
        known = isinstance(size, int) or str(size) in open_sizes - {str(node.meta["val"].shape[each.grows])}
        if others[0] != others[1] or wanted[1] != made[1] or not known:
            raise InvalidInput(
                f"state {each.name!r}: output {each.output!r}, {_text(*made)}, is neither what a call appends to input "
                f"{each.input!r}, {_text(*wanted)}, along dimension {each.grows}, nor torch.cat of that input and of "
                "what it appends"
            )
        return
    if wanted != made:
        raise InvalidInput(
            f"state {each.name!r}: input {each.input!r} is {_text(*wanted)}, but output {each.output!r} is "
            f"{_text(*made)}"
        )


def _text(shape: Sequence[int | None], dtype: torch.dtype) -> str:
    sizes = ", ".join("any" if n is None else str(n) for n in shape)
    return f"{str(dtype).removeprefix('torch.')} of shape ({sizes})"


@torch.no_grad()
def stepped(
    module: fx.GraphModule, data: Sequence[torch.Tensor], declared: Sequence[Declared]
) -> tuple[list[torch.Tensor], list[list[torch.Tensor]], Sequence[str]]:
    """``data`` with the states that steps of the clear model lead to, such batches with states of other lengths, and
    notes on states for which no format has room."""
    if any(each.grows is not None for each in declared):
        return _lengthened(module, data, declared)
    tensors, notes = _rolled(module, data, declared)
    return tensors, [], notes


def _rolled(
    module: fx.GraphModule, data: Sequence[torch.Tensor], declared: Sequence[Declared]
) -> tuple[list[torch.Tensor], list[str]]:
    """``data`` with the states that the clear model comes to in some steps, so that formats have room for them: the
    rows of the other inputs are given again, each time with the state that rows before them have left. And a note on
    every state that is larger the more steps there are, for which no format has room."""
    count = len(declared)
    shapes = [shape_of(node) for node in placeholders(module.graph)]
    places = [next((dim for dim, n in enumerate(shape) if n is None), None) for shape in shapes]
    varies = None not in places
    if not varies and len({shape[:1] for shape in shapes}) == 1:  # a batch that is fixed
        places = [0] * len(shapes)
        data = [value[: shape[0]] for value, shape in zip(data, shapes, strict=True)]
    batches = _run(module, data, declared, places, ROLLED)
    known = batches[0] if not varies else [_rows(x, place) for x, place in zip(data, places, strict=True)]
    later = _run(module, known, declared, places, LOOKED)
    notes = _growing(declared, [batch[len(batch) - count :] for batch in later])
    if None in places:
        return batches[-1] if notes else later[-1], notes
    batches += [] if notes else [later[-1]]
    return [torch.cat(parts, place) for parts, place in zip(zip(*batches, strict=True), places, strict=True)], notes


def sessions(module: fx.GraphModule, data: Sequence[torch.Tensor], declared: Sequence[Declared], count: int) -> Steps:
    """``count`` calls on rows of ``data``, or as many as a state that grows has room for; every call begins with others
    of the rows. Of ``data`` only the shapes of states matter: the first call finds zeros."""
    nodes, inputs = placeholders(module.graph), len(data) - len(declared)
    grows = [None] * inputs + [each.grows for each in declared]
    shapes = [shape_of(node) for node in nodes]
    places = [
        next((dim for dim, n in enumerate(shape) if n is None and dim != along), None)
        for shape, along in zip(shapes, grows, strict=True)
    ]
    begun = [
        torch.zeros([0 if dim == along else n for dim, n in enumerate(_some(x, place, shape).shape)], dtype=x.dtype)
        for x, place, shape, along in list(zip(data, places, shapes, grows, strict=True))[inputs:]
    ]
    calls = [
        [
            _some(x if place is None else x.roll(step, place), place, shape)
            for x, place, shape in zip(data[:inputs], places, shapes, strict=False)
        ]
        for step in range(count)
    ]
    for each, added in zip(declared, module(*calls[0], *begun)[-len(declared) :], strict=True):
        if each.grows is not None:
            calls = calls[: each.most // max(added.shape[each.grows], 1)]
    return Steps(calls, begun, grows[inputs:])


def _some(value: torch.Tensor, place: int | None, shape: Sequence[int | None]) -> torch.Tensor:
    """The first rows of a batch, as many as the graph takes where that is fixed."""
    if place is not None:
        return value.narrow(place, 0, min(value.shape[place], WALKED_ROWS))
    return value[: shape[0]] if shape else value


def _rows(value: torch.Tensor, place: int | None) -> torch.Tensor:
    return value if place is None else value.narrow(place, 0, min(value.shape[place], LOOKED_ROWS))


def _lengthened(
    module: fx.GraphModule, data: Sequence[torch.Tensor], declared: Sequence[Declared]
) -> tuple[list[torch.Tensor], list[list[torch.Tensor]], list[str]]:
    """``data`` with states as long as some steps of the clear model make them, then what some of the steps before are
    given, whose states are shorter, and the notes of ``_rolled``; for models of which some state grows."""
    count, nodes = len(declared), placeholders(module.graph)
    places = [
        next((dim for dim, n in enumerate(shape_of(node)) if n is None and dim != grows), None)
        for node, grows in zip(nodes, [None] * (len(nodes) - count) + [each.grows for each in declared], strict=True)
    ]
    data = [_rows(x, place) for x, place in zip(data, places, strict=True)]
    rooms = []
    for each, now, result in zip(declared, data[-count:], module(*data)[-count:], strict=True):
        if each.grows is not None:
            length, by = now.shape[each.grows], result.shape[each.grows]
            if length + by > each.most:
                raise InvalidInput(
                    f"state {each.name!r} of the calibration data is {length} long: {by} more exceed {each.most}"
                )
            rooms.append(((each.most - length) // by, by))
    if len({by for _, by in rooms}) > 1:
        raise ConfigError("all states that grow must grow by the same length in a call")
    batches = _run(module, data, declared, places, min(LOOKED, *(room for room, _ in rooms)))
    notes = _growing(declared, [batch[-count:] for batch in batches])
    kept = [2**i - 1 for i in range(len(batches).bit_length()) if 2**i < len(batches)]
    return batches[-1], [batches[i] for i in kept], notes


def _run(
    module: fx.GraphModule,
    data: Sequence[torch.Tensor],
    declared: Sequence[Declared],
    places: Sequence[int | None],
    steps: int,
) -> list[list[torch.Tensor]]:
    """What each of so many steps is given, if the last inputs are the states ``declared``."""
    count = len(declared)
    visible, state, batches = list(data[: len(data) - count]), list(data[len(data) - count :]), []
    for step in range(steps):
        shifted = [x if place is None else x.roll(step, place) for x, place in zip(visible, places, strict=False)]
        batches.append(shifted + state)
        results = module(*batches[-1])
        state = [
            new if each.grows is None else torch.cat([old, new], each.grows)
            for each, old, new in zip(declared, state, results[len(results) - count :], strict=True)
        ]
    return batches


def _growing(declared: Sequence[Declared], states: Sequence[Sequence[torch.Tensor]]) -> list[str]:
    """Notes on those whose values in steps, one after another, become larger and larger."""
    notes = []
    for each, values in zip(declared, zip(*states, strict=True), strict=True):
        sizes = [float(value.abs().max()) if value.numel() and value.dtype != torch.bool else 0.0 for value in values]
        half, whole = max(sizes[: len(sizes) // 2]), max(sizes)
        if not whole <= GROWN * half:  # also for what is no number
            notes.append(
                f"state {each.name!r} grows from step to step: it reaches {half:.3g} in {len(sizes) // 2} steps of "
                f"the calibration data and {whole:.3g} in {len(sizes)}. No format has room for any number of steps: in "
                "a session of many steps, answers are wrong without an error"
            )
    return notes
