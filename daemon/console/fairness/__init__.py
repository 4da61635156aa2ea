"""Statistics of results and what they say of a device.

Called by: daemon/console/app.py and pages.
May import: assets, auth, live, shapes, site and what stands below them.
"""
