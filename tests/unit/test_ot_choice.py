# SPDX-License-Identifier: Apache-2.0
"""Which correlated transfers can be chosen."""

import pytest

from privml.engines.correlations import OtChoice
from privml.errors import ConfigError


@pytest.mark.parametrize("security", ["semi_honest", "malicious"])
@pytest.mark.parametrize("k", range(1, 11))
def test_every_degree_and_security(k, security):
    choice = OtChoice("softspoken", k, security)
    assert (choice.k, choice.security) == (k, security)
    assert choice.tag == f"softspoken-k{k}" + ("-malicious" if security == "malicious" else "")


def test_silent_transfers_have_no_degree():
    choice = OtChoice("silent", 4, "malicious")
    assert (choice.k, choice.tag) == (0, "silent-malicious")
    assert OtChoice("silent", 4) == OtChoice("silent", 8)


@pytest.mark.parametrize(
    "wrong", [{"k": 0}, {"k": 11}, {"k": "4"}, {"security": "none"}, {"provider": "other"}], ids=str
)
def test_what_does_not_exist_is_refused(wrong):
    with pytest.raises(ConfigError):
        OtChoice(**wrong)
