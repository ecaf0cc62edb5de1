"""Models: boosters, AutoBoost, committees, and their files."""
