"""How sure an answer is: the share of right answers that equal evidence gave where answers are known.

The table was read off, and rounded, from the development half of the labelled set and from phrases of the
lexicon that were hidden from the classifier. The hidden phrases are harder, as a strange log would be, and
far more in number, so the table errs on the side of caution. It is checked by
`python -m benchmarks classify-reliability`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from querycloak.text.classify.result import HOW, FloatArray

CONFIDENT = 0.6
"""Answers from this confidence on are right at level 1 at least six times in ten."""

FORM = 0.9  # an e-mail address, a phone number
URL = 0.8  # a clicked address tells less than the query itself
SPELLING = 0.85  # what looks like an error may be a name
_MODEL = np.array([0.0, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.97, 1.0])
_RIGHT = np.array([0.10, 0.24, 0.30, 0.38, 0.45, 0.50, 0.55, 0.66, 0.72, 0.85, 0.95])


def calibrate(chance: FloatArray, how: npt.NDArray[np.int8]) -> FloatArray:
    """Turn the model's probability of its topic into the share of right answers that it stands for."""
    right = np.interp(chance, _MODEL, _RIGHT)
    right = np.where(how == HOW.index("spelling"), right * SPELLING, right)
    return np.where(how > 0, right, 0.0)
