"""What a comparison found, and how it is told: as JSON, as tables, in words, and as a page to look at."""

from querycloak.report.comparison.result import Comparison

__all__ = ["Comparison"]
