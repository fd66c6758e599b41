# SPDX-License-Identifier: Apache-2.0
"""SecretTensor: a torch.Tensor whose elements are shared between parties.

The outer tensor has the logical shape and dtype and no storage; the ring elements lie in ``share``. Every
ATen operator on it goes to the table of ``privml.dispatch``.
"""

from __future__ import annotations

import copy
import dataclasses
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np
import torch

from privml.context import Session
from privml.dispatch import FUNCTIONS, as_step, dispatch
from privml.errors import InvalidInput, SecretLeakError, UnsupportedOperator
from privml.formats import Format, Owned, Placement, Shared, format_text
from privml.tables import Table

Share = tuple[torch.Tensor, ...]
_new_wrapper = torch.Tensor._make_wrapper_subclass
SHARED = Shared()
# In torch's messages about operands that do not broadcast, which name sizes at one dimension.
_SIZES = re.compile(r"broadcast a dimension|size of tensor a .* must match")
# What NumPy's operators on an array and a secret become; arrays are public.
_OPERATORS: dict[str, Callable] = {
    "add": torch.add, "subtract": torch.subtract, "multiply": torch.multiply, "divide": torch.divide,
    "floor_divide": torch.floor_divide, "remainder": torch.remainder, "power": torch.pow, "matmul": torch.matmul,
    "equal": torch.eq, "not_equal": torch.ne, "less": torch.lt, "less_equal": torch.le, "greater": torch.gt,
    "greater_equal": torch.ge, "bitwise_and": torch.bitwise_and, "bitwise_or": torch.bitwise_or,
    "bitwise_xor": torch.bitwise_xor,
}  # fmt: skip


class Cell:
    """What all aliases of one storage have in common; a write through any of them changes it for all."""

    __slots__ = ("format", "placement", "version")

    def __init__(self, format: Format, placement: Placement) -> None:
        self.format, self.placement, self.version = format, placement, 0


class SecretTensor(torch.Tensor):
    """What ``privml.share`` gives and operators compute with, of the value's shape and dtype.

    ``share``: the engine's tensors; ``format``, ``placement``, ``session``: see ``privml.formats`` and
    ``privml.context``; ``aux``: by-product of the operator that made it, kept for its backward operator; ``mark``: its
    name in the session's transcript. Arrays of NumPy are public operands, as tensors are.
    Raises SecretLeakError for whatever would show the value (``numpy()``, ``item()``, ``if x:``, pickling), and
    UnsupportedOperator for an operator without a secure implementation.
    """

    __slots__ = ("_aux", "_operand", "_share", "cell", "mark", "session")
    cell: Cell
    session: Session
    mark: Any
    _share: Share | Callable[[], Share]
    _aux: Any
    _operand: Any

    @staticmethod
    def __new__(
        cls,
        share: Share | Callable[[], Share],
        format: Format,
        placement: Placement,
        session: Session,
        dtype: torch.dtype = torch.float32,
        requires_grad: bool = False,
        cell: Cell | None = None,
        shape: Sequence[int] | None = None,
    ) -> SecretTensor:
        if shape is None:
            assert isinstance(share, tuple)
            like = share[0]
            self = _new_wrapper(
                cls,
                like.shape,
                strides=like.stride(),
                storage_offset=like.storage_offset(),
                dtype=dtype,
                device=like.device,
                requires_grad=requires_grad,
            )
        else:
            self = _new_wrapper(cls, tuple(shape), dtype=dtype, device=torch.device("cpu"), requires_grad=requires_grad)
        self._share = share
        self._aux = self._operand = self.mark = None
        self.cell = Cell(format, placement) if cell is None else cell
        self.session = session
        return self

    # ---- what it consists of
    @property
    def share(self) -> Share:
        """The ring elements (int64) or bits (uint8) that this process holds, one tensor per component."""
        share = self._share
        if not isinstance(share, tuple):  # a by-product nobody had asked for yet
            share = self._share = share()
        return share

    @property
    def is_deferred(self) -> bool:
        """Whether the value is a by-product that is computed when ``share`` is first read."""
        return type(self._share) is not tuple

    @property
    def format(self) -> Format:
        """What number a ring element stands for."""
        return self.cell.format

    @property
    def placement(self) -> Placement:
        """Who knows the value: ``Owned(party)``, or nobody."""
        return self.cell.placement

    @property
    def aux(self) -> Any:
        """None once the storage was written to."""
        aux = self._aux
        return aux[1] if aux is not None and aux[0] == self.cell.version else None

    @aux.setter
    def aux(self, value: Any) -> None:
        self._aux = None if value is None else (self.cell.version, value)

    # ---- torch protocols
    @classmethod
    def __torch_function__(cls, func: Callable, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        function = FUNCTIONS.get(func)
        try:
            with torch._C.DisableTorchFunctionSubclass():
                if function is not None:
                    result = as_step(func.__name__, _applied, function, args, kwargs or {})
                    if result is not NotImplemented:
                        return result
                return func(*args, **(kwargs or {}))
        except RuntimeError as error:
            if type(error) is RuntimeError and _SIZES.search(str(error)):
                _refuse_shapes(func.__name__, args)
            raise

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        return dispatch(func, args, kwargs or {})

    def __tensor_flatten__(self) -> NoReturn:
        """What tracers call first on a tensor: nothing has been computed yet."""
        raise _untraceable()

    @staticmethod
    def __tensor_unflatten__(inner: dict, meta: Any, outer_size: Any, outer_stride: Any) -> NoReturn:
        raise _untraceable()

    def summary(self) -> Table:
        """What all parties know of it: shape, dtype, number format, who knows the value; never values."""
        known = f"party {self.placement.party} alone" if isinstance(self.placement, Owned) else "no party"
        rows = (
            ("shape", str(tuple(self.shape))),
            ("dtype", str(self.dtype)),
            ("numbers", format_text(self.format)),
            ("known to", known),
            ("requires a gradient", "yes" if self.requires_grad else "no"),
        )
        return Table("SecretTensor", ("of the tensor", "value"), rows)

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        where = "shared" if not isinstance(self.placement, Owned) else f"owned by party {self.placement.party}"
        text = f"SecretTensor(shape={tuple(self.shape)}, dtype={self.dtype}, {_short(self.format)}, {where}"
        return text + (", requires_grad=True)" if self.requires_grad else ")")

    __str__ = __repr__

    def __format__(self, specification: str) -> str:
        if specification:
            _refuse(f"formatting with {specification!r}")
        return repr(self)

    def __deepcopy__(self, memo: dict) -> SecretTensor:
        if id(self) in memo:
            return memo[id(self)]
        self.session.step("deepcopy", self)
        share = tuple(component.clone() for component in self.share)
        result = SecretTensor(share, self.format, self.placement, self.session, self.dtype, self.requires_grad)
        if isinstance(self, torch.nn.Parameter):
            result._is_param = True
        self.session.name(result)
        memo[id(self)] = result
        if self.grad is not None:
            result.grad = copy.deepcopy(self.grad, memo)
        return result

    # ---- what would reveal it, or hand out memory it does not have
    def numpy(self, *args: Any, **kwargs: Any) -> NoReturn:
        _refuse("numpy()")

    def __array__(self, *args: Any, **kwargs: Any) -> NoReturn:
        _refuse("conversion to a NumPy array")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **settings: Any) -> Any:
        """``array + secret`` and NumPy's other operators, as torch computes them."""
        function = _OPERATORS.get(ufunc.__name__)
        if function is None or method != "__call__" or settings:
            _refuse_numpy(ufunc.__name__)
        return function(*(torch.tensor(v) if isinstance(v, (np.ndarray, np.generic)) else v for v in inputs))

    def __array_function__(self, func: Callable, types: Any, args: tuple, kwargs: dict) -> Any:
        if func in (np.shape, np.ndim, np.size):
            return func(np.broadcast_to(0, self.shape), *args[1:], **kwargs)
        _refuse_numpy(func.__name__)

    def tolist(self) -> NoReturn:
        _refuse("tolist()")

    def __dlpack__(self, *args: Any, **kwargs: Any) -> NoReturn:
        _refuse("DLPack export")

    __dlpack_device__ = __dlpack__

    def apply_(self, *args: Any) -> NoReturn:
        _refuse("calling a Python function on every element")

    def map_(self, *args: Any) -> NoReturn:
        self.apply_()

    def map2_(self, *args: Any) -> NoReturn:
        self.apply_()

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise SecretLeakError(
            "pickling (torch.save, multiprocessing) would write this process's shares, in one process the "
            "values themselves; save a converted program, or privml.reveal() to its owner first"
        )

    def share_memory_(self) -> NoReturn:
        raise SecretLeakError(
            "share_memory_() would hand other processes memory that a SecretTensor does not have; in a DataLoader set "
            "num_workers=0, elsewhere open a session in each process"
        )


def _untraceable() -> UnsupportedOperator:
    text = (
        "torch.compile and torch.export cannot trace secret tensors: they run a model on tensors without values. Call "
        "the module or function as it is; privml.compile_step(step, *example) compiles a training step, and "
        "privml.convert a model for inference (before its weights are made secret)"
    )
    dynamo: Any = sys.modules.get("torch._dynamo.exc")
    if not hasattr(dynamo, "ShortenTraceback"):
        return UnsupportedOperator(text)

    class Untraceable(UnsupportedOperator, dynamo.ShortenTraceback):
        """What torch.compile hands on; it takes other errors for its own and explains them on a page."""

        def remove_dynamo_frames(self) -> UnsupportedOperator:
            return UnsupportedOperator(text)

    return Untraceable(text)


def _applied(function: Callable, args: tuple, kwargs: dict) -> Any:
    return function(*args, **kwargs)


def _refuse_shapes(name: str, args: tuple) -> None:
    """InvalidInput with the shapes of ``args`` if they do not broadcast."""
    shapes = [tuple(each.shape) for each in args if isinstance(each, torch.Tensor)]
    try:
        torch.broadcast_shapes(*shapes)
    except RuntimeError:
        raise InvalidInput(f"{name.strip('_')}: shapes {' and '.join(map(str, shapes))} do not fit") from None


def _short(fmt: Format) -> str:
    """The format without what has its default value."""
    fields = [f for f in dataclasses.fields(fmt) if f.name in ("bits", "scale") or getattr(fmt, f.name) != f.default]
    return f"{type(fmt).__name__}({', '.join(f'{f.name}={getattr(fmt, f.name)}' for f in fields)})"


def _refuse(what: str) -> NoReturn:
    raise SecretLeakError(f"{what} would reveal a secret; call privml.reveal(x, to=party) if that is wanted")


def _refuse_numpy(name: str) -> NoReturn:
    instead = f"torch.{name}()" if hasattr(torch, name) else "torch's functions"
    raise SecretLeakError(
        f"numpy.{name}() would reveal a secret, because NumPy computes in the clear; call {instead}, or "
        "privml.reveal(x, to=party) first if that is wanted"
    )
