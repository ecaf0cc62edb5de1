"""A worker that moves messages from streams to the engine, and predictions to a stream."""
