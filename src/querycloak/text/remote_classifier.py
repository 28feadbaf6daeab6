"""An operator's own classifier over HTTP: `POST {"queries": [...]}` returns `{"categories": [...]}`."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import polars as pl

from querycloak.errors import DataError, ParameterError
from querycloak.text.classifier import Classification, Evidence
from querycloak.text.lexicon import UNKNOWN
from querycloak.text.taxonomy import Taxonomy, load

BATCH = 1000
LARGEST_ANSWER = 16 << 20  # bytes


class _Stay(urllib.request.HTTPRedirectHandler):
    """Handler that refuses redirects: queries go to the address that the operator named only."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


class RemoteClassifier:
    """Sends distinct queries in batches to one endpoint, which returns a path or null for each."""

    reads_urls = False

    def __init__(self, taxonomy: Taxonomy | None = None, *, url: str = "", timeout: float = 30.0) -> None:
        if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).netloc:
            raise ParameterError(
                "the classifier `http` needs an address that begins with http:// or https://",
                hint="give it as the setting `url`",
            )
        if not timeout > 0:
            raise ParameterError("`timeout` must be above 0 seconds")
        self.taxonomy = taxonomy or load()
        self._url, self._timeout = url, timeout
        self._opener = urllib.request.build_opener(_Stay)

    def classify(self, queries: pl.Series) -> Classification:
        """Return the endpoint's answer for each query; clicked URLs are not sent."""
        distinct = queries.unique(maintain_order=True).to_list()
        nodes: dict[str, int] = {}
        for i in range(0, len(distinct), BATCH):
            asked = distinct[i : i + BATCH]
            paths = self._categories(self._ask(asked), len(asked))
            nodes.update(zip(asked, (self._node(path) for path in paths), strict=True))
        category = np.array([nodes[query] for query in queries], np.int64)
        known = category != UNKNOWN
        evidence = np.where(known, Evidence.REMOTE, Evidence.NONE).astype(np.int8)
        return Classification(category, np.where(known, 1.0, 0.0), evidence)

    def classify_urls(self, urls: pl.Series) -> Classification:
        """Return no answer: URLs are not sent."""
        return Classification.empty(urls.len())

    def _ask(self, queries: list[str]) -> bytes:
        body = json.dumps({"queries": queries}).encode()
        request = urllib.request.Request(  # noqa: S310 (the scheme was checked)
            self._url, body, {"Content-Type": "application/json", "Accept": "application/json"}
        )
        try:
            with self._opener.open(request, timeout=self._timeout) as answer:
                return bytes(answer.read(LARGEST_ANSWER + 1))
        except urllib.error.HTTPError as error:
            code = error.code
            error.close()
            raise DataError(f"the classifier's endpoint answered with status {code}") from None
        except (OSError, ValueError) as error:
            raise DataError(f"the classifier's endpoint did not answer ({type(error).__name__})") from None

    @staticmethod
    def _categories(answer: bytes, expected: int) -> list[Any]:
        if len(answer) > LARGEST_ANSWER:
            raise DataError(f"the classifier's answer is larger than {LARGEST_ANSWER:,} bytes")
        try:
            paths = json.loads(answer)["categories"]
        except (ValueError, KeyError, TypeError):
            raise DataError("the classifier's answer is not JSON with a list `categories`") from None
        if not isinstance(paths, list) or len(paths) != expected:
            raise DataError(
                f"the classifier's endpoint must answer {expected} categories, one for each query"
            )
        return paths

    def _node(self, path: Any) -> int:
        """Return the node of a path, or of the longest beginning of it that the taxonomy has."""
        while isinstance(path, str) and path:
            if path in self.taxonomy:
                return self.taxonomy.node(path)
            path = path.rpartition("/")[0]
        return UNKNOWN
