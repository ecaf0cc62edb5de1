"""Read rows from files, pipes, URLs and data frames."""
