# SPDX-License-Identifier: Apache-2.0
"""Products of secrets that wait for their truncation, on engines that make both as one."""

from __future__ import annotations

from dataclasses import dataclass, replace

from privml.engines.base import Engine, Operand, Share
from privml.engines.shares import Shift, Window


@dataclass(frozen=True, slots=True)
class Product:
    """A product of two factors in Z_2^bits, which ``name`` says (see ``Engine.shifts_products``), plus an ``addend``,
    which is broadcast."""

    name: str
    factors: tuple[Operand, Operand]
    bits: int
    window: Window | None = None
    addend: Share | None = None

    def plus(self, addend: Share) -> Product:
        """With an addend, of which a product has one."""
        assert self.addend is None
        return replace(self, addend=addend)

    def reduced(self, bits: int) -> Product:
        """In the smaller ring Z_2^bits."""
        return replace(self, bits=bits)

    def shifted(self, engine: Engine, bits: int, shift: Shift) -> Share:
        """Reduced to Z_2^bits, then divided."""
        return engine.shifted_product(self.name, *self.factors, bits, shift, self.addend, self.window)

    def computed(self, engine: Engine) -> Share:
        """As it is."""
        window = [] if self.window is None else [self.window]
        share = getattr(engine, self.name)(*self.factors, *window, self.bits)
        if self.addend is None:
            return share
        shape = share[0].shape
        return engine.add(share, tuple(c.expand(shape) for c in self.addend), self.bits)


def product(
    engine: Engine, name: str, factors: tuple[Operand, Operand], bits: int, window: Window | None = None
) -> Product | Share:
    """The share of a product in Z_2^bits; if the engine makes truncations with such products, the product itself."""
    waiting = Product(name, factors, bits, window)
    return waiting if name in engine.shifts_products else waiting.computed(engine)


def as_share(engine: Engine, value: Product | Share) -> Share:
    """A share, computed if it waits."""
    return value.computed(engine) if isinstance(value, Product) else value
