"""Static word vectors (extra `embeddings`), from a file that comes with the package: nothing is downloaded.

Vectors are whole numbers: sums of them are exact, so nothing depends on what stood beside a text in a batch.
"""

from __future__ import annotations

import importlib.util
from functools import cache
from itertools import chain
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from querycloak.errors import MissingExtra
from querycloak.text import vectors as kernel

#: The length of a vector, and the steps to which the model's values are rounded.
STEPS = 1 << 12
#: Texts to embed at a time, which keeps memory flat.
PIECE = 20_000
_loading = Lock()


def installed() -> bool:
    """Tell whether the extra is there."""
    return importlib.util.find_spec("wordllama") is not None


def require(purpose: str) -> None:
    """Raise MissingExtra before any work is done for nothing."""
    if not installed():
        raise MissingExtra("embeddings", purpose)


def vectors(texts: list[str]) -> npt.NDArray[np.float64]:
    """Embed texts in plain form as rounded vectors of length about `STEPS`; nothing known gives zeros."""
    with _loading:  # two threads would load it twice
        tokenizer, table = _model()
    ids = [each.ids for each in tokenizer.encode_batch_fast(texts, add_special_tokens=False)]
    bounds = np.cumsum([0, *(len(each) for each in ids)])
    rows = np.minimum(np.fromiter(chain.from_iterable(ids), np.int64), table.shape[0] - 1)
    sums = kernel.sum_rows(rows, bounds, table).astype(np.float64)
    length = np.sqrt((sums**2).sum(axis=1, keepdims=True))
    return np.asarray(np.rint(sums / np.maximum(length, 1.0) * STEPS), np.float64)


@cache
def _model() -> tuple[Any, npt.NDArray[np.int32]]:
    """Load the words and their vectors, once."""
    import wordllama

    home = Path(wordllama.__file__).parent
    model = wordllama.WordLlama.load(cache_dir=home, disable_download=True)
    model.tokenizer.no_padding()
    return model.tokenizer, np.rint(model.embedding * STEPS).astype(np.int32)
