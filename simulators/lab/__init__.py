"""The laboratory: demo, campaign, benchmarks. The only place above the daemon."""
