# SPDX-License-Identifier: Apache-2.0
"""Schedules of task graphs over lanes."""

import random

import pytest

from privml.graph.schedule import Cost, Stage, schedule

SMALL, LARGE, LOCAL = Cost(4, 1000), Cost(4, 50_000_000), Cost()


def lists(costs, inputs, lanes):
    return [stage.lanes for stage in schedule(costs, inputs, lanes)]


def test_a_chain_runs_on_all_lanes_together():
    inputs = [[], [0], [1], [2]]
    assert lists([SMALL, LOCAL, SMALL, SMALL], inputs, 3) == [((0, 1, 2, 3),)]


def test_branches_overlap_between_what_is_serial():
    # 0 -> (1 -> 3, 2 -> 4) -> 5
    inputs = [[], [0], [0], [1], [2], [3, 4]]
    assert lists([SMALL] * 6, inputs, 2) == [((0,),), ((1, 3), (2, 4)), ((5,),)]


def test_one_lane_keeps_the_graphs_order():
    inputs = [[], [0], [0], [1], [2], [3, 4]]
    assert lists([SMALL] * 6, inputs, 1) == [((0, 1, 2, 3, 4, 5),)]


def test_large_branches_are_divided_rather_than_overlapped():
    # three equal branches on two lanes: overlapping takes two rounds of work, dividing one and a half
    inputs = [[], [0], [0], [0], [1, 2, 3]]
    assert lists([SMALL, LARGE, LARGE, LARGE, SMALL], inputs, 2) == [((0, 1, 2, 3, 4),)]


def test_a_long_branch_starts_first_and_short_ones_share_a_lane():
    inputs = [[], [], [], [0, 1, 2]]
    assert lists([SMALL, SMALL, Cost(9, 0), SMALL], inputs, 2) == [((2,), (0, 1)), ((3,),)]


def test_local_tasks_stay_with_what_they_need():
    # two branches of a view and a protocol each
    inputs = [[], [], [0], [1], [2], [3]]
    stages = lists([LOCAL, LOCAL, SMALL, SMALL, LOCAL, LOCAL], inputs, 2)
    assert [set(lane) >= pair for lane, pair in zip(stages[0], ({2, 4}, {3, 5}), strict=True)] == [True, True]


@pytest.mark.parametrize("seed", range(30))
def test_every_task_runs_once_after_what_it_needs(seed):
    source = random.Random(seed)
    count = source.randrange(1, 40)
    inputs = [[j for j in range(i) if source.random() < 2 / (i + 1)] for i in range(count)]
    costs = [source.choice([LOCAL, SMALL, LARGE, Cost(source.randrange(9), source.randrange(10**6))]) for _ in inputs]
    lanes = source.randrange(1, 5)
    stages = schedule(costs, inputs, lanes)
    assert stages == schedule(costs, inputs, lanes)
    done = set()
    for stage in stages:
        assert len(stage.lanes) in (1, lanes)
        left = [list(lane) for lane in stage.lanes]
        while any(left):  # some lane can always go on
            ready = [lane for lane in left if lane and all(j in done for j in inputs[lane[0]])]
            assert ready, "the lanes wait for each other"
            task = ready[0].pop(0)
            assert task not in done
            done.add(task)
    assert done == set(range(count))


def test_stages_say_whether_their_lanes_overlap():
    assert Stage(((1,), (2,))).overlaps and not Stage(((1, 2),)).overlaps
