"""What the command line does, one file to a command."""
