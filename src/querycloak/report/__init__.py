"""Render results for readers: pages, charts, tables and terminal text. Nothing is decided here."""
