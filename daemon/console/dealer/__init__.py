"""The dealer's page as an FDL device: keys, presses and the socket of the edge.

Called by: daemon/console/app.py and pages.
May import: assets, auth, live, shapes, site and the packages below them.
"""
