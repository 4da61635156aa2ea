"""The pages of the console and the fragments that keep them live.

Called by: daemon/console/app.py.
May import: every package of the console except app and front_server.
"""
