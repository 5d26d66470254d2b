"""Training of a model: the loop, checkpoints, several processes, memory."""
