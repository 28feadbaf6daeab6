"""Compare protections on one log: plan, processes, typed results, decisions, gate, recommendation."""

from querycloak.compare.result import CandidateResult, Comparison

__all__ = ["CandidateResult", "Comparison"]
