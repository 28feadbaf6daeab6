"""The report of a comparison: a page, Markdown, CSV, charts and terminal text."""
