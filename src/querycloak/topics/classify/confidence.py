"""How sure an answer is: from evidence to the share of right answers that such evidence gave on examples."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from querycloak.topics.classify.result import FloatArray

URL = 0.8  # a clicked address tells less than the query itself
FORM = 0.9  # an e-mail address, a phone number
CONFIDENT = 0.6


def calibrate(chance: FloatArray, how: npt.NDArray[np.int8]) -> FloatArray:
    """Turn the model's probability into the precision measured on the labelled set's development half."""
    return np.where(how > 0, chance, 0.0)
