# SPDX-License-Identifier: Apache-2.0
"""What a query costs on a meter that a test has made itself."""

from privml.graph.passes.cost import SessionMeter


def one_query(program, meter, batch=1):
    """The ledger of one query of ``batch`` inputs, of a session of its own."""
    session = SessionMeter(program.graph, program.constants, program.numerics, meter)
    return session.query(program.shapes(batch))
