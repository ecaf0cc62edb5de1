"""A learning service: predict now, label later, lose nothing."""
