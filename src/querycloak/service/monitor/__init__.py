"""Monitors a service: counts, held records, audits with certificates, an attack on the last lines."""
