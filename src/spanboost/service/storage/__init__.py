"""The state folder of the service: journal, snapshots and pending rows."""
