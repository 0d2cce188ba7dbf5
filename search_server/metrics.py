"""Figures for Prometheus: questions, times per stage, lists that were missing, the word index, the load."""

from __future__ import annotations

from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from search_server.service import SearchService

_BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5)


class Metrics:
    """One registry a server, so that several in one process do not meet."""

    def __init__(self, service: SearchService) -> None:
        self._service = service
        self.registry = CollectorRegistry()
        self._seconds = Histogram(
            "brain_search_seconds",
            "Time of a stage of a question.",
            ["stage"],
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self._degraded = Counter(
            "brain_search_degraded",
            "Lists that were missing from an answer.",
            ["list", "reason"],
            registry=self.registry,
        )
        self._requests = Counter(
            "brain_http_requests", "Requests by route and status.", ["route", "status"], registry=self.registry
        )
        self._gauges = {
            name: Gauge(f"brain_{name}", text, registry=self.registry)
            for name, text in (
                ("word_index_passages", "Passages in the word index."),
                ("word_index_lag_seconds", "Time since the word index was last in step."),
                ("word_index_rebuilds", "How often the word index was built anew."),
                ("encoder_ready", "1 when questions can be encoded."),
                ("questions_running", "Questions being answered."),
                ("questions_waiting", "Questions that wait."),
                ("questions_refused", "Questions refused because too many waited."),
                ("ef_search", "hnsw.ef_search of searching sessions."),
                (
                    "recall_at_20",
                    "Recall of the vector list against exact search, sampled; -1 before the first sample.",
                ),
            )
        }
        service.listeners.append(self.on_answer)

    def on_answer(self, answer: dict[str, Any]) -> None:
        """Count one answered question."""
        for stage, ms in answer["took_ms"].items():
            if ms:
                self._seconds.labels(stage).observe(ms / 1000)
        for missing in answer["degraded"]:
            self._degraded.labels(missing["list"], missing["reason"]).inc()

    def on_request(self, route: str, status: int) -> None:
        """Count one request."""
        self._requests.labels(route, str(status)).inc()

    def text(self) -> bytes:
        """The exposition text."""
        service, index = self._service, self._service.words.state
        values: dict[str, float] = {
            "word_index_passages": index.n_passages,
            "word_index_lag_seconds": index.lag_s if index.lag_s is not None else -1,
            "word_index_rebuilds": index.n_rebuilds,
            "encoder_ready": 1 if service.encoder.ready else 0,
            "questions_running": service.gate.running,
            "questions_waiting": service.gate.waiting,
            "questions_refused": service.gate.n_refused,
            "ef_search": service.state.scan.ef_search,
            "recall_at_20": -1 if service.audit.recall is None else service.audit.recall,
        }
        for name, value in values.items():
            self._gauges[name].set(value)
        return generate_latest(self.registry)
