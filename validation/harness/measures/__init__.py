"""What is measured on a model, and the statistics of repeated measurements."""
