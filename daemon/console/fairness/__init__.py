"""Statistics of results and what they say of a device."""
