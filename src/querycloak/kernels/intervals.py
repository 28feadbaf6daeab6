"""Sums over clusters: how far records that belong together go astray together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Clusters:
    """What a mean's uncertainty needs to know of each cluster: members, their sum, their squares' sum."""

    sizes: FloatArray
    sums: FloatArray
    squares: FloatArray

    @classmethod
    def of(cls, codes: IntArray, values: FloatArray) -> Clusters:
        """Add up the values of each cluster; codes are small and not negative."""
        sizes = np.bincount(codes)
        weighed = (np.bincount(codes, weights=part) for part in (values, values * values))
        present = sizes > 0
        sums, squares = (part.astype(np.float64, copy=False)[present] for part in weighed)
        return cls(sizes[present].astype(np.float64), sums, squares)

    @property
    def mean(self) -> float:
        """The mean over all members."""
        return float(self.sums.sum() / self.sizes.sum())

    def effective(self) -> float:
        """Count clusters as if they were equally large (Kish): one that holds nearly all counts as one."""
        shares = self.sizes / self.sizes.sum()
        return 1.0 / float(np.dot(shares, shares))

    def jackknife_variance(self) -> float:
        """Estimate the variance of the mean by leaving out each cluster in turn."""
        count, left = self.sizes.size, self.sizes.sum() - self.sizes
        if count < 2:
            return 0.0
        moved = (self.sums - self.sizes * self.mean) / left
        return float((count - 1) / count * np.dot(moved, moved))

    def pooled_variance(self) -> float:
        """Estimate it as if members of every cluster, large or small, agreed as much as they do on average.

        The jackknife hears of the largest clusters only what they happened to do; this one knows from
        the others what they might have done.
        """
        total, mean = self.sizes.sum(), self.mean
        spread = float(self.squares.sum() / total) - mean * mean
        several = self.sizes >= 2
        if spread <= 0 or not several.any():
            return 0.0
        n, sums, squares = self.sizes[several], self.sums[several], self.squares[several]
        own = squares - 2 * mean * sums + n * mean * mean
        together = ((sums - n * mean) ** 2 - own) / n
        agreement = min(1.0, max(0.0, float(together.sum() / (n - 1).sum()) / spread))
        return spread * float((self.sizes * (1 + (self.sizes - 1) * agreement)).sum()) / float(total) ** 2
