"""Rows and labels as users give them, checked and encoded for learners."""
