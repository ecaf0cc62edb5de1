"""The paper's experiments: its 14 data sets, its tables, its protocol."""
