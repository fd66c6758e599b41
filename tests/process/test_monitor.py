# SPDX-License-Identifier: Apache-2.0
"""What a service tells those who run it: health, metrics, logs; and what it never tells."""

from __future__ import annotations

import contextlib
import http.client
import io
import json
import socket
import threading
import time
import urllib.error
import urllib.request
from functools import partial

import pytest
import torch
from patience import PATIENCE
from prometheus_client.parser import text_string_to_metric_families
from running import LONG, Paused, Running
from services import query, serve

from privml.conversion import convert
from privml.engines.correlations import OtChoice
from privml.errors import ConfigError, HandshakeMismatch, ServiceBusy
from privml.service import metrics as metrics_module
from privml.service.events import Event, json_lines
from privml.service.metrics import Metrics, Monitor
from privml.service.options import Capacity
from privml.session.handshake import PROTOCOL_VERSION

VALUE = torch.tensor([[1.2345678, -0.8765432, 1.4142135, -0.5772156]])
WEIGHT = 0.6180339


@pytest.fixture(scope="module")
def program():
    torch.manual_seed(4)
    net = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.ReLU(), torch.nn.Linear(6, 3)).eval()
    with torch.no_grad():
        net[0].weight[0, 0] = WEIGHT
    return convert(net, calibration=torch.randn(64, 4) * 2)


@pytest.fixture
def free_address():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


def get(address, path):
    """(status, body)"""
    try:
        with urllib.request.urlopen(f"http://{address}{path}", timeout=LONG) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def metrics(address):
    """Samples of privml by name and labels, which stand in the order of their names."""
    status, text = get(address, "/metrics")
    assert status == 200
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    return {(s.name, *s.labels.values()): s.value for s in samples if s.name.startswith("privml_")}


def idle_metrics(address):
    """Those of a service that has noticed that nothing is under way any more."""
    end = time.monotonic() + PATIENCE
    while (found := metrics(address))["privml_running",] and time.monotonic() < end:
        time.sleep(0.05)
    return found


def test_health_follows_the_service(program, free_address):
    capacity = Capacity(workers=1, queue=1)
    with Running(partial(serve, program, "127.0.0.1:0"), monitor=free_address, capacity=capacity) as running:
        assert get(free_address, "/healthz") == (200, "alive\n") and get(free_address, "/readyz") == (200, "ready\n")
        assert get(free_address, "/")[0] == 404 and get(free_address, "/metrics/../etc")[0] == 404
        paused = [Paused(program, running.address, VALUE).there()]  # which has the worker
        paused.append(Paused(program, running.address, VALUE))
        running.wait("queued", 2)
        assert get(free_address, "/readyz")[0] == 503, "the queue is full"
        now = metrics(free_address)
        assert now["privml_running",] + now["privml_waiting",] == 2 and now["privml_ready",] == 0
        with pytest.raises(ServiceBusy):
            query(program, running.address, VALUE)
        for each in paused:
            assert not isinstance(each.go(), Exception)
        running.wait("ended", 2)
        assert get(free_address, "/readyz")[0] == 200
        last = Paused(program, running.address, VALUE).there()
        running.stop.ask()
        running.wait("draining")
        assert get(free_address, "/readyz")[0] == 503 and get(free_address, "/healthz")[0] == 200
        assert not isinstance(last.go(), Exception) and running.result() == 3
    with pytest.raises(urllib.error.URLError):
        get(free_address, "/healthz")


def test_metrics_count_what_happened(program, free_address):
    with Running(partial(serve, program, "127.0.0.1:0"), monitor=free_address) as running:
        before = metrics(free_address)
        assert before["privml_sessions_total", "answered"] == 0 and before["privml_refusals_total", "busy"] == 0
        costs = [query(program, running.address, VALUE).ledger.snapshot() for _ in range(3)]
        with pytest.raises(HandshakeMismatch):
            query(program, running.address, VALUE, ot=OtChoice(k=7))
        with pytest.raises(KeyError):
            query(program, running.address, VALUE, progress=lambda *step: {}["gone"])
        running.wait("ended", 3)
        running.wait("failed")
        running.wait("refused")
        lost = running.kinds("failed")[0].fields["phases"]
        now = idle_metrics(free_address)
    assert now["privml_sessions_total", "answered"] == now["privml_queries_total",] == 3
    assert now["privml_sessions_total", "failed"] == 1 and now["privml_sessions_total", "aborted"] == 0
    assert now["privml_refusals_total", "mismatch"] == 1 and now["privml_refusals_total", "protocol"] == 0
    for phase in ("setup", "preprocess", "online"):
        for direction, theirs in (("sent", "received"), ("received", "sent")):
            told = now["privml_bytes_total", direction, phase]
            assert told == sum(getattr(getattr(cost, phase), theirs) for cost in costs) + lost[phase][direction]
        assert now["privml_phase_seconds_count", phase] == 3
        assert 0 <= now["privml_phase_seconds_sum", phase] <= now["privml_query_seconds_sum",]
    assert now["privml_query_seconds_count",] == 3 and now["privml_wait_seconds_count",] == 4
    assert now["privml_running",] == now["privml_waiting",] == now["privml_half_open",] == 0


def test_labels_are_known_beforehand(program, free_address):
    """So none can depend on what a client sends."""
    with Running(partial(serve, program, "127.0.0.1:0"), monitor=free_address) as running:
        before = set(metrics(free_address))
        query(program, running.address, VALUE)
        with pytest.raises(HandshakeMismatch):
            query(program, running.address, VALUE, ot=OtChoice(k=7))
        running.wait("ended")
        assert set(metrics(free_address)) == before


@pytest.mark.parametrize("result, error", [("aborted", "SecurityAbort"), ("late", "PeerDisconnected")])
def test_how_a_session_failed_is_counted(result, error):
    made = Metrics()
    phases = {phase: {"seconds": 0.0, "sent": 1, "received": 2} for phase in ("setup", "preprocess", "online")}
    assert f'privml_sessions_total{{result="{result}"}} 0.0' in made.text()[1].decode()
    made.note(Event("failed", "abc", {"result": result, "error": error, "phases": phases}))
    assert f'privml_sessions_total{{result="{result}"}} 1.0' in made.text()[1].decode()


@pytest.mark.parametrize("address", ["0.0.0.0:0", "192.0.2.1:9100", "example.org:80", "[::]:0"])
def test_a_monitor_is_for_this_machine_alone(address):
    with pytest.raises(ConfigError, match="this machine alone"):
        Monitor(address)


def test_a_monitor_whose_port_is_in_use(free_address):
    with Monitor(free_address), pytest.raises(ConfigError, match=free_address):
        Monitor(free_address)
    with Monitor(free_address) as monitor:
        assert get(f"127.0.0.1:{monitor.port}", "/readyz")[0] == 503, "nobody is observed yet"


# ---- logs
FIELDS = {
    "listening": {"port", "program"},
    "queued": {"session", "waiting"},
    "started": {"session", "peer", "address", "waited"},
    "answered": {"session", "peer", "address", "number", "turn", "shapes", "seconds", "source", "phases"},
    "ended": {"session", "peer", "address", "seconds", "result", "why", "phases"},
    "failed": {"session", "peer", "address", "seconds", "result", "phases", "error", "message"},
    "refused": {"reason", "peer", "address", "error", "message"},
    "draining": {"running", "waiting"},
    "stopped": {"count", "cut"},
}


def test_logs_tell_what_happened_and_nothing_else(program):
    stream = io.StringIO()
    with Running(partial(serve, program, "127.0.0.1:0"), on_event=json_lines(stream)) as running:
        answer = query(program, running.address, VALUE)
        with pytest.raises(HandshakeMismatch):
            query(program, running.address, VALUE, ot=OtChoice(k=7))
        with pytest.raises(KeyError):
            query(program, running.address, VALUE, progress=lambda *step: {}["gone"])
        running.wait("failed")
        running.wait("refused")
    text = stream.getvalue()
    lines = [json.loads(line) for line in text.splitlines()]
    assert {line["event"] for line in lines} == set(FIELDS)
    for line in lines:
        assert set(line) - {"event", "timestamp", "level"} == FIELDS[line["event"]], line
        assert line["timestamp"].endswith("Z")
        assert line["level"] == ("warning" if line["event"] in ("failed", "refused") else "info")
    mine = [line["event"] for line in lines if line.get("session") == lines[1]["session"]]
    assert mine == ["queued", "started", "answered", "ended"]
    answered = next(line for line in lines if line["event"] == "answered")
    assert answered["shapes"] == [[1, 4]] and answered["phases"]["online"]["sent"] > 0
    secrets = [*VALUE.flatten().tolist(), *answer.outputs[0].flatten().tolist(), WEIGHT]
    assert not any(f"{abs(number):.6f}"[:7] in text for number in secrets)


def test_a_peer_cannot_forge_a_line(program):
    """Whatever bytes stand where a name or a version should be, a log has one line an event."""
    stream, forged = io.StringIO(), "x\n\x1b[2K{}\u202e"
    watch = json_lines(stream)
    running = Running(partial(serve, program, "127.0.0.1:0"), on_event=watch)
    with running:
        with socket.create_connection(("127.0.0.1", int(running.address.split(":")[1])), LONG) as stranger:
            body = json.dumps({"version": forged, "protocol": PROTOCOL_VERSION}).encode()
            hello = b"privml\x00\x01" + len(body).to_bytes(4, "little") + body
            stranger.sendall(len(hello).to_bytes(4, "little") + bytes(12) + hello)
            refused = running.wait("refused", reason="mismatch")
        assert forged not in refused.text and "\\x1b[2K" in refused.text
    assert len(stream.getvalue().splitlines()) == len(running.events)
    for text in (stream.getvalue(), *running.lines):
        assert all(c.isprintable() or c == "\n" for c in text)
    assert all("\n" not in line for line in running.lines)


def test_requests_beyond_its_limit_are_closed():
    server = metrics_module._HttpServer(("127.0.0.1", 0), lambda path: (200, "text/plain", b"well"))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        silent = [socket.create_connection(server.server_address) for _ in range(metrics_module._REQUESTS)]
        with socket.create_connection(server.server_address) as late:  # calls are taken in the order in which they came
            assert late.recv(1) == b""
        for each in silent:
            each.close()
        while True:  # as soon as a thread has seen that its caller left
            with contextlib.suppress(OSError, http.client.HTTPException):
                answer = urllib.request.urlopen(f"http://127.0.0.1:{server.server_address[1]}/healthz", timeout=5)
                assert answer.read() == b"well"
                break
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
