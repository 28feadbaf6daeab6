"""Watches a service: counts, delays, audits with certificates, and an attack on what it has just released."""
