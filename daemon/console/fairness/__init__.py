"""Statistics of results, and their conclusions about devices.

Called by: daemon/console/app.py and pages.
May import: assets, auth, live, shapes, site and the packages below them.
"""
