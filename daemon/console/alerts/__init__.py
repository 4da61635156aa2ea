"""Incidents, their pages, webhooks and metrics."""
