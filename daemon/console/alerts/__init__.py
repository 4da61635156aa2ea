"""Incidents, how people handle them, webhooks and metrics.

Called by: daemon/console/app.py and pages.
May import: assets, auth, live, shapes, site and the packages below them.
"""
