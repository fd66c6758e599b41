# SPDX-License-Identifier: Apache-2.0
"""Strays that come one after another do not keep a listening party waiting beyond its deadline."""

from __future__ import annotations

import time

import pytest

from privml import _core
from privml.errors import PeerDisconnected
from privml.session.callers import first_caller
from privml.session.session import Settings

pytestmark = pytest.mark.filterwarnings("ignore:a connection to port")
DEADLINE, MANY = 1.0, 60


class Crowded:
    """A listener at whose port somebody is always there who says nothing."""

    port = 1

    def __init__(self):
        self.accepted, self.strays = 0, []

    def accept(self, seconds, **link):
        assert self.accepted < MANY, "it accepts without end"
        self.accepted += 1
        stray, channel = _core.memory_pair()
        self.strays.append(stray)
        time.sleep(0.01)
        return channel


def test_a_crowd_of_strays():
    with pytest.raises(PeerDisconnected, match="nobody else connected"):
        first_caller(Crowded(), lambda: Settings().hello(0, "party"), DEADLINE)
