"""The writers of pages and notebooks. Each takes blocks and adds no words."""
