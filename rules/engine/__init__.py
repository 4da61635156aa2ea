"""What all rulesets have in common."""
