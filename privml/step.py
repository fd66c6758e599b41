# SPDX-License-Identifier: Apache-2.0
"""A training step as one graph: traced once in the clear, rewritten, and run on secret tensors in few rounds."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.func import functionalize
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._pytree import TreeSpec, tree_flatten, tree_unflatten

from privml.context import Session
from privml.dispatch import is_supported
from privml.engines.base import Engine
from privml.errors import InvalidInput, UnsupportedOperator
from privml.formats import Boolean, Numerics
from privml.graph.batched import batched
from privml.graph.ir import calls, source_line
from privml.graph.passes.training import KEEPING, PASSES, secret_nodes
from privml.graph.run import run_graph
from privml.session.ledger import Snapshot
from privml.tensor import SecretTensor

aten = torch.ops.aten


class CompiledStep:
    """``step(*args)`` as the function that was compiled, on arguments of the same structure and shapes: secret tensors
    of one session, and public ones where the example had them."""

    def __init__(self, module: fx.GraphModule, inputs: TreeSpec, outputs: TreeSpec, shapes: Sequence[Any]) -> None:
        self.module, self.graph = module, module.graph
        self._inputs, self._outputs, self._shapes = inputs, outputs, shapes
        attributes = {node.target for node in self.graph.nodes if node.op == "get_attr"}
        self._attributes = {name: getattr(module, name) for name in sorted(attributes)}  # alike at all parties

    def __call__(self, *args: Any) -> Any:
        """Raises InvalidInput for arguments of another structure or shape."""
        values, structure = tree_flatten(args)
        shapes = [_shape(value) for value in values]
        if structure != self._inputs or shapes != self._shapes:
            raise InvalidInput(
                f"the step was compiled for {self._inputs} of shapes {self._shapes}, got {structure} of {shapes}; "
                "compile it again for other shapes"
            )
        secret = next((value for value in values if isinstance(value, SecretTensor)), None)
        if secret is None:
            results = self.module(*values)
        else:
            session = secret.session
            session.step("compiled step", values, self._attributes)
            results = run_graph(self.graph, values, self._attributes, session, batched)
            session.name(results)
        return tree_unflatten(list(results), self._outputs)

    def cost(self, meter: Engine, *example: Any, numerics: Numerics | None = None) -> Snapshot:
        """What one step costs on a meter (``privml.engines.twopc.backend.meter``), from the shapes, formats
        and placements of arguments as the step gets them; their sharing is not counted. ``numerics``:
        those of the session that it will run in. Raises InvalidInput as a call does."""
        session = Session(meter, numerics)
        values, structure = tree_flatten(example)
        counted = [_zeros_like(value, session) for value in values]
        before = Snapshot.of(meter.counters())
        self(*tree_unflatten(counted, structure))
        return Snapshot.of(meter.counters()) - before

    def __repr__(self) -> str:
        return f"CompiledStep({sum(1 for _ in calls(self.graph))} operations)"


def compile_step(step: Callable[..., Any], *example: Any, rewrite: bool = True) -> CompiledStep:
    """One graph of ``step``, a function of tensors (in dictionaries, lists, tuples) that computes a loss, its gradients
    (``torch.func.grad``, ``torch.autograd.grad``) and new weights, and changes nothing in place that it was given.

    ``example``: arguments as the step will get them, of which shapes and dtypes count; secret ones may stand there.
    ``rewrite``: apply ``privml.graph.passes.training``; without, the graph is what eager execution would compute.
    Raises UnsupportedOperator, naming all operators without a rule, and InvalidInput where the step cannot be traced.
    """
    values, structure = tree_flatten(example)
    outputs: list[TreeSpec] = []

    def flat(*tensors: torch.Tensor) -> list[Any]:
        results, spec = tree_flatten(step(*tree_unflatten(list(tensors), structure)))
        outputs.append(spec)
        return results

    module = _traced(flat, values)
    if rewrite:
        for change in PASSES:
            module = change(module)
    secret = {i for i, value in enumerate(values) if isinstance(value, SecretTensor)} or set(range(len(values)))
    _refuse_unknown(module.graph, secret)
    for node in module.graph.nodes:
        # which arguments are secret shows at the call; a step of the transcript is every operation, on public ones too
        node.meta |= {"secret": node.op == "call_function", "keeps": node.target in KEEPING}
    return CompiledStep(module, structure, outputs[-1], [_shape(value) for value in values])


def _traced(flat: Callable[..., Any], values: Sequence[Any]) -> fx.GraphModule:
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    fake = []
    for value in values:
        if not isinstance(value, torch.Tensor):
            raise InvalidInput(
                f"a step takes tensors, got {type(value).__name__}; close over numbers, or pass a tensor"
            )
        with mode:
            fake.append(torch.empty(tuple(value.shape), dtype=value.dtype))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with torch.backends.mkldnn.flags(enabled=False), sdpa_kernel(SDPBackend.MATH), mode:
                return make_fx(functionalize(flat, remove="mutations_and_views"))(*fake)
        except UnsupportedOperator:
            raise
        except Exception as error:
            reason = str(error).strip().splitlines()
            raise InvalidInput(
                f"the step cannot be traced: {type(error).__name__}: {reason[0] if reason else ''}; it must branch on "
                "no tensor's value and take everything secret as an argument"
            ) from error


def _refuse_unknown(graph: fx.Graph, secret: set[int]) -> None:
    unknown = {
        f"  {node.target} ({source_line(node) or 'source unknown'})"
        for node in secret_nodes(graph, secret)
        if isinstance(node.target, torch._ops.OpOverload) and not is_supported(node.target)
    }
    if unknown:
        raise UnsupportedOperator(
            "the step has operators without a secure implementation:\n" + "\n".join(sorted(unknown))
        )


def _shape(value: Any) -> Any:
    return tuple(value.shape) if isinstance(value, torch.Tensor) else None


def _zeros_like(value: Any, session: Session) -> Any:
    if not isinstance(value, SecretTensor):
        return value
    kind = torch.uint8 if isinstance(value.format, Boolean) else torch.int64
    zeros = tuple(torch.zeros(tuple(value.shape), dtype=kind) for _ in range(session.engine.components))
    return SecretTensor(zeros, value.format, value.placement, session, value.dtype)
