"""Facts about the model, the engine and the machine, each with where it came from."""
