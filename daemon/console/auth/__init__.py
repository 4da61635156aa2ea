"""Users, sessions, second factors and rights of the console.

Called by: daemon/console/app.py, context and pages.
May import: site, config.model, protocols.
"""
