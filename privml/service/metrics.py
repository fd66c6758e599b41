# SPDX-License-Identifier: Apache-2.0
"""Health and metrics of a service over HTTP on this machine: /healthz, /readyz, /metrics (the format of Prometheus).

Labels are constants of this module: phases, directions, results, reasons. Nothing depends on a secret, and nothing
distinguishes clients.
"""

from __future__ import annotations

import socket
import socketserver
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol

from privml.errors import ConfigError
from privml.service.events import REASONS, Event
from privml.session.identity import is_loopback, parse_address
from privml.session.ledger import PHASES
from privml.session.preprocessing import StoreHalf

SECONDS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
RESULTS = ("answered", "failed", "late", "aborted")
DIRECTIONS = ("sent", "received")
# A connection that sends no request within this time is closed.
_REQUEST_SECONDS = 5.0
# Requests at a time; further connections are closed.
_REQUESTS = 16


class Watched(Protocol):
    """The state of a service, as the monitor reads it."""

    @property
    def ready(self) -> bool: ...
    @property
    def half_open(self) -> int: ...
    @property
    def waiting(self) -> int: ...
    @property
    def running(self) -> int: ...


class Monitor:
    """``with Monitor("127.0.0.1:9100") as monitor``: answers from then on; 503 until ``observe`` is called.
    ``note`` counts what happens. Raises ConfigError for an address that is not this machine's, a port in use, and if
    prometheus_client is missing."""

    def __init__(self, address: str) -> None:
        host, port = parse_address(address)
        if not is_loopback(host):
            raise ConfigError(f"monitor={address}: health and metrics are for this machine alone, as 127.0.0.1:9100")
        self._metrics = Metrics()
        self._service: Watched | None = None
        try:
            self._server = _HttpServer((host, port), self._answer)
        except OSError as error:
            raise ConfigError(f"monitor={address}: {error.strerror}; choose another port") from None
        self._thread = threading.Thread(target=self._server.serve_forever, name="monitor", daemon=True)

    def __enter__(self) -> Monitor:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def port(self) -> int:
        return self._server.server_address[1]

    def observe(self, service: Watched, preprocessing: StoreHalf | None = None) -> None:
        """Reports on ``service`` and its store from here on."""
        self._metrics.read(service, preprocessing)
        self._service = service

    def note(self, event: Event) -> None:
        self._metrics.note(event)

    def _answer(self, path: str) -> tuple[int, str, bytes]:
        """Status, type and body for a path."""
        plain = "text/plain; charset=utf-8"
        if path == "/healthz":
            return 200, plain, b"alive\n"
        if path == "/readyz":
            ready = self._service is not None and self._service.ready
            return (200, plain, b"ready\n") if ready else (503, plain, b"takes no session now\n")
        if path == "/metrics":
            return 200, *self._metrics.text()
        return 404, plain, b"/healthz, /readyz, /metrics\n"


class Metrics:
    """The counters of one service; see docs/serving.md for what each one means."""

    def __init__(self) -> None:
        try:
            import prometheus_client as prometheus
        except ImportError:
            raise ConfigError("monitor needs prometheus_client: pip install 'privml[service]'") from None
        self._prometheus = prometheus
        self._registry = prometheus.CollectorRegistry()
        prometheus.ProcessCollector(registry=self._registry)
        self._sessions = self._counter("sessions", "Ended sessions, by result.", result=RESULTS)
        self._queries = self._counter("queries", "Queries answered.")
        self._refusals = self._counter("refusals", "Refused connections, by reason.", reason=REASONS)
        self._bytes = self._counter("bytes", "Bytes of ended sessions.", phase=PHASES, direction=DIRECTIONS)
        self._phases = self._histogram("phase_seconds", "Seconds of answered queries, by phase.", phase=PHASES)
        self._answers = self._histogram("query_seconds", "Seconds from a query's start to its answer.")
        self._waits = self._histogram("wait_seconds", "Seconds that sessions waited for a worker.")

    def note(self, event: Event) -> None:
        """Counts an event."""
        fields = event.fields
        if event.kind == "refused":
            self._refusals.labels(fields["reason"]).inc()
        elif event.kind == "started":
            self._waits.observe(fields["waited"])
        elif event.kind == "answered":
            self._queries.inc()
            self._answers.observe(fields["seconds"])
            for phase in PHASES:
                self._phases.labels(phase).observe(fields["phases"][phase]["seconds"])
        elif event.kind in ("ended", "failed"):
            self._sessions.labels(fields["result"]).inc()
            for phase in PHASES:
                for direction in DIRECTIONS:
                    self._bytes.labels(phase, direction).inc(fields["phases"][phase][direction])

    def read(self, service: Watched, preprocessing: StoreHalf | None) -> None:
        """Adds gauges that read the state of ``service`` and its store."""
        self._gauge("ready", "1 if a new client would be accepted.", lambda: float(service.ready))
        self._gauge("running", "Sessions under way.", lambda: service.running)
        self._gauge("waiting", "Sessions in the queue.", lambda: service.waiting)
        self._gauge("half_open", "Connections whose hello is not complete.", lambda: service.half_open)
        if preprocessing is None:
            return
        store = preprocessing.store
        self._gauge("store_queries", "Queries that the store still holds.", lambda: store.queries_left)
        for rank in range(0 if preprocessing.stores.whole else 2):  # of whole queries their number says all
            name = f"store_correlations_from_{('server', 'client')[rank]}"
            self._gauge(name, "Correlations left in the store, by sender.", lambda rank=rank: store.left()[rank])

    def text(self) -> tuple[str, bytes]:
        """Content type and text of all metrics."""
        return self._prometheus.CONTENT_TYPE_LATEST, self._prometheus.generate_latest(self._registry)

    def _counter(self, name: str, what: str, **labels: tuple[str, ...]) -> Any:
        return _with_labels(
            self._prometheus.Counter(f"privml_{name}", what, list(labels), registry=self._registry), labels
        )

    def _histogram(self, name: str, what: str, **labels: tuple[str, ...]) -> Any:
        made = self._prometheus.Histogram(
            f"privml_{name}", what, list(labels), registry=self._registry, buckets=SECONDS
        )
        return _with_labels(made, labels)

    def _gauge(self, name: str, what: str, value: Callable[[], float]) -> None:
        self._prometheus.Gauge(f"privml_{name}", what, registry=self._registry).set_function(value)


def _with_labels(metric: Any, labels: dict[str, tuple[str, ...]]) -> Any:
    """The metric with every combination of its labels there from the start."""
    combinations: list[tuple[str, ...]] = [()]
    for values in labels.values():
        combinations = [(*before, value) for before in combinations for value in values]
    for combination in combinations if labels else ():
        metric.labels(*combination)
    return metric


class _HttpServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, address: tuple[str, int], answer: Callable[[str], tuple[int, str, bytes]]) -> None:
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self.answer = answer
        self._allowance = threading.BoundedSemaphore(_REQUESTS)
        super().__init__(address, _Request)

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._allowance.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._allowance.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._allowance.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that disconnect early are not logged."""

    def server_bind(self) -> None:
        socketserver.TCPServer.server_bind(self)  # HTTPServer's asks the resolver for a name that nothing here uses


class _Request(BaseHTTPRequestHandler):
    timeout = _REQUEST_SECONDS
    server_version, sys_version = "privml", ""

    def do_GET(self) -> None:
        status, kind, body = self.server.answer(self.path.partition("?")[0])
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Requests are not logged: their text is the caller's."""
