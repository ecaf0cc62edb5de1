"""Streams whose concept changes: AutoBoost, River and CapyMOA."""
