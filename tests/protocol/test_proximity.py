# SPDX-License-Identifier: Apache-2.0
"""The proximity example: errors of the clear functions, protocols equal to them, bytes below the published ones."""

import numpy as np
import pytest

from scripts.proximity import clear as clear_operation
from scripts.proximity import distance, errors, exact_delta, near, operands, random_points, run_protocols, threshold

PUBLISHED = {"known": 75.27, "shared": 211.26}  # KiB per pair: SecFloat, table VII
PAIRS = 20_000
SECRET_PAIRS = 200


@pytest.mark.parametrize("scenario", PUBLISHED)
def test_proximity(scenario):
    points = random_points(PAIRS)
    a, b = operands(scenario, points)
    delta, below = near(scenario, clear_operation, a, b, 0)
    found = errors(delta, points)
    assert found["mean ULP"] < 1.5
    assert found["mean metres"] < 2
    exact = exact_delta(points)
    clearly = np.abs(exact - threshold()) > 1e-5
    assert np.array_equal(below[clearly] != 0, exact[clearly] < threshold())

    part = [x[:SECRET_PAIRS] for x in a], [x[:SECRET_PAIRS] for x in b]
    secret, answers, sent = run_protocols(scenario, *part)
    assert np.array_equal(secret, delta[:SECRET_PAIRS])
    assert np.array_equal(answers, below[:SECRET_PAIRS])
    assert sent["bytes"] / SECRET_PAIRS / 1024 < PUBLISHED[scenario] / 2


def test_distance_of_known_points():
    points = [np.array([x], dtype=np.float32) for x in (0.0, 0.0, 0.0, 0.5)]  # a quarter of the equator
    assert distance(exact_delta(points))[0] == pytest.approx(np.pi / 2 * 6_371_000)
