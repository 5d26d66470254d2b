"""The model, its positional encodings on tensors, its attention."""
