"""Texts: bytes or tokens in two parts, and the SHA-256 that names them."""
