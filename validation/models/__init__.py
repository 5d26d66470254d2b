"""Models of others: what their configurations say, what they keep, and how far they look."""
