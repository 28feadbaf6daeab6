"""Fit the weights of `link-pairs` on logs made up for it; prints what goes into `link_pairs.WEIGHTS`.

Run: python tools/fit_link_pairs.py
"""

from __future__ import annotations

import numpy as np
import polars as pl

import querycloak as qc
from querycloak.attacks.base import AttackerView
from querycloak.attacks.link_pairs import FEATURES, LinkPairs

#: Made-up logs of several sizes (users, seed), protected at several k; tests use other seeds.
LOGS = ((400, 9001), (2_000, 9002), (10_000, 9003))
SETTINGS = {"swap": ({"k": 5}, {"k": 10, "level": 2}, {"k": 20}), "cohort": ({"k": 5}, {"k": 10}, {"k": 20})}
#: Keeps weights of features that hardly vary near zero.
RIDGE = 1.0


def looked_at(method: str, users: int, seed: int, settings: dict[str, int]) -> tuple[np.ndarray, np.ndarray]:
    """Make up and protect a log; give the features of drawn pairs, and whether one person wrote both."""
    log = qc.generate(users, seed=seed, categories=True)
    made = qc.protect(log, method, seed=seed, **settings)
    release = made.log.frame.rename({"row": "released_row"})
    view = AttackerView(release, made.certificate)
    first, second, features = LinkPairs(LinkPairs.Settings(seed=seed)).look(view)
    author = made.truth.sort("released_row")["original_user"].cast(pl.Categorical).to_physical().to_numpy()
    return features, author[first] == author[second]


def fit(features: np.ndarray, same: np.ndarray) -> np.ndarray:
    """Fit a logistic regression by Newton's method, both answers weighing the same."""
    weight = np.where(same, 0.5 / same.mean(), 0.5 / (1 - same.mean()))
    chosen = np.zeros(features.shape[1])
    for _ in range(50):
        likely = 1 / (1 + np.exp(-features @ chosen))
        slope = features.T @ (weight * (same - likely)) - RIDGE * chosen
        bend = (features * (weight * likely * (1 - likely))[:, None]).T @ features
        chosen = chosen + np.linalg.solve(bend + RIDGE * np.eye(chosen.size), slope)
    return chosen


def main() -> None:
    """Fit and print the weights for both kinds of release."""
    for method, choices in SETTINGS.items():
        parts = [looked_at(method, users, seed, s) for users, seed in LOGS for s in choices]
        features = np.concatenate([part[0] for part in parts])
        same = np.concatenate([part[1] for part in parts])
        found = fit(features, same)
        right = np.mean((features @ found > 0) == same)
        print(f'    "{method}": ({", ".join(f"{value:.3f}" for value in found)}),')
        print(f"    # {len(same):,} pairs, {same.mean():.1%} of one author, {right:.1%} told right")
        print("    # " + ", ".join(f"{n} {v:+.2f}" for n, v in zip(FEATURES, found, strict=True)))


if __name__ == "__main__":
    main()
