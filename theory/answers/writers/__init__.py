"""One writer a medium: a terminal, a page, a notebook. Each takes blocks and adds no words."""
