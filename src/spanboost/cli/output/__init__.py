"""The tables, files, plots and reports that commands print and write."""
