"""One writer a medium: a terminal, a page, a notebook. Each takes blocks and adds nothing of its own."""
