"""Ingestion: request bodies to typed columns, pseudonyms, idempotency keys, group commit."""
