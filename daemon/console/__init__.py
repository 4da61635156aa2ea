"""The technicians' console: web pages, metrics and alerts of a site, out of what the broker says."""
