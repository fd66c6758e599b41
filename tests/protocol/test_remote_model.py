# SPDX-License-Identifier: Apache-2.0
"""A module whose call is a private query; calls of several threads in one query."""

import copy
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import services
import torch
from serving import plain, serving
from small_network import converted

import privml
from privml.errors import ConfigError, InvalidInput, PeerDisconnected, PrivmlError
from privml.service.remote_model import Gatherer


@pytest.fixture(scope="module")
def program():
    return converted()


@pytest.fixture
def served(program):
    with serving(program) as (server, settings):
        yield server, settings


class TwoOutputs(torch.nn.Module):
    def forward(self, x, y):
        return x + y, x * y


class Total(torch.nn.Module):
    def forward(self, x):
        return x.sum(0)


def test_a_call_is_a_query(program, served, tmp_path):
    server, settings = served
    program.save(tmp_path)
    x = torch.randn(3, 4)
    with services.remote_model(tmp_path, server.address, **settings) as model:
        assert torch.equal(model(x), plain(program, "twopc", x)) and model.queries == 1
        assert torch.equal(model(x.double().numpy()), plain(program, "twopc", x))
        assert torch.equal(torch.nn.Sequential(model, torch.nn.Softmax(1)).eval()(x), model(x).softmax(1))
        assert not model.training and not list(model.parameters()) and server.address in repr(model)


def test_several_inputs_and_outputs():
    program = privml.convert(TwoOutputs(), calibration=(torch.randn(32, 3), torch.randn(32, 3)))
    with serving(program) as (server, settings), services.remote_model(program, server.address, **settings) as model:
        x, y = torch.randn(2, 3), torch.randn(2, 3)
        total, product = model(x, y)
        assert (total - x - y).abs().max() < 0.05 and (product - x * y).abs().max() < 0.05
        with pytest.raises(InvalidInput, match="takes 2"):
            model(x)


def test_what_it_refuses(program):
    model = services.remote_model(program, "127.0.0.1:1", deadline=0.1)
    with pytest.raises(InvalidInput, match="requires a gradient.*detach"):
        model(torch.randn(1, 4, requires_grad=True))
    with pytest.raises(InvalidInput, match="shape"):
        model(torch.randn(1, 5))
    for training in (model.train, torch.nn.Sequential(model).train):
        with pytest.raises(ConfigError, match="eval"):
            training()
    for copied in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(pickle.PicklingError, match="cannot be copied"):
            copied(model)
    assert model.eval() is model
    with pytest.raises(PeerDisconnected):
        model(torch.randn(1, 4))
    model.close()
    model.close()
    with pytest.raises(ConfigError, match="closed"):
        model(torch.randn(1, 4))


@pytest.mark.parametrize("settings", [{"max_batch": 0}, {"max_batch": 1.5}, {"max_wait": -1}, {"retries": -1}], ids=str)
def test_settings_that_are_refused(program, settings):
    with pytest.raises(ConfigError):
        services.remote_model(program, "127.0.0.1:1", **settings)


def test_only_free_rows_are_gathered():
    fixed = privml.convert(Total(), calibration=torch.randn(8, 4))
    assert fixed.outputs[0].shape == (4,)
    with pytest.raises(ConfigError, match="free first dimension"):
        services.remote_model(fixed, "127.0.0.1:1", max_batch=4)


def at_once(calls):
    """The results of ``calls``, all on threads that begin together."""
    gate = threading.Barrier(len(calls))

    def run(call):
        gate.wait(20)
        return call()

    with ThreadPoolExecutor(len(calls)) as executor:
        return [future.result(60) for future in [executor.submit(run, call) for call in calls]]


def test_calls_of_eight_threads_are_one_query(program, served):
    server, settings = served
    rows = torch.randn(8, 1, 4)
    with services.remote_model(program, server.address, max_batch=8, max_wait=30.0, **settings) as model:
        outputs = at_once([lambda x=x: model(x) for x in rows])
        assert model.queries == 1 and server.answers(1)[0].shapes == ((8, 4),)
        for x, output in zip(rows, outputs, strict=True):
            assert torch.equal(output, plain(program, "twopc", x))


def test_calls_of_many_sizes_all_get_their_rows(program, served):
    server, settings = served
    sizes = [1, 2, 3, 1, 7, 2, 1, 1]
    inputs = [torch.randn(size, 4) for size in sizes]
    with services.remote_model(program, server.address, max_batch=4, max_wait=0.2, **settings) as model:
        for _ in range(2):
            outputs = at_once([lambda x=x: model(x) for x in inputs])
            for x, output in zip(inputs, outputs, strict=True):
                assert torch.equal(output, plain(program, "twopc", x))
        assert 4 * 2 <= model.queries <= 8 * 2
        assert all(answer.shapes[0][0] <= 4 or answer.shapes == ((7, 4),) for answer in server.answered)


# ---- gathering alone
def doubled(inputs):
    return (inputs[0] * 2,)


def test_more_rows_than_fit_go_alone_and_others_together():
    asked, lock = [], threading.Lock()

    def query(inputs):
        with lock:
            asked.append(inputs[0].shape[0])
        return doubled(inputs)

    gather = Gatherer(query, 4, 0.05)
    inputs = [torch.full((n, 2), float(i)) for i, n in enumerate([9, 2, 2, 1])]
    for x, (y,) in zip(inputs, at_once([lambda x=x: gather([x]) for x in inputs]), strict=True):
        assert torch.equal(y, 2 * x)
    assert sum(asked) == 14 and 9 in asked


def test_calls_of_other_shapes_and_dtypes_stay_apart():
    seen = []

    def query(inputs):
        seen.append((inputs[0].dtype, tuple(inputs[0].shape[1:])))
        return doubled(inputs)

    gather = Gatherer(query, 8, 0.05)
    inputs = [torch.ones(1, 2), torch.ones(1, 3), torch.ones(1, 2, dtype=torch.int64)] * 2
    for x, (y,) in zip(inputs, at_once([lambda x=x: gather([x]) for x in inputs]), strict=True):
        assert torch.equal(y, 2 * x) and y.dtype == x.dtype
    assert set(seen) == {(torch.float32, (2,)), (torch.float32, (3,)), (torch.int64, (2,))}


def test_an_error_reaches_every_call_in_it_and_nobody_else():
    def query(inputs):
        if (inputs[0] < 0).any():
            raise PeerDisconnected("for this test")
        return doubled(inputs)

    gather = Gatherer(query, 2, 30.0)
    for _ in range(2):
        for outcome in at_once([lambda: outcome_of(gather, -torch.ones(1, 1))] * 2):
            assert isinstance(outcome, PeerDisconnected)
        for outcome in at_once([lambda: outcome_of(gather, torch.ones(1, 1))] * 2):
            assert torch.equal(outcome, torch.full((1, 1), 2.0))


def outcome_of(gather, x):
    try:
        return gather([x])[0]
    except PrivmlError as error:
        return error


def test_outputs_must_have_the_rows_of_the_inputs():
    gather = Gatherer(lambda inputs: (inputs[0].flatten(),), 2, 30.0)
    for outcome in at_once([lambda: outcome_of(gather, torch.ones(1, 3))] * 2):
        assert isinstance(outcome, ConfigError) and "max_batch=1" in str(outcome)


def test_an_interrupt_is_its_own_threads_alone():
    began, outcomes = threading.Event(), []

    def query(inputs):
        raise KeyboardInterrupt

    gather = Gatherer(query, 2, 30.0)

    def other():
        began.set()
        try:
            outcomes.append(gather([torch.ones(1, 1)]))
        except BaseException as error:
            outcomes.append(error)

    thread = threading.Thread(target=other)
    thread.start()
    began.wait(20)
    try:
        outcomes.append(gather([torch.ones(1, 1)]))
    except BaseException as error:
        outcomes.append(error)
    thread.join(20)
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["KeyboardInterrupt", "PeerDisconnected"]


def test_outputs_are_no_views_of_what_others_got():
    gather = Gatherer(lambda inputs: (inputs[0],), 2, 30.0)
    first, second = at_once([lambda i=i: gather([torch.full((1, 1), float(i))]) for i in range(2)])
    assert first[0].untyped_storage().data_ptr() != second[0].untyped_storage().data_ptr()
    assert first[0].untyped_storage().nbytes() == 4
