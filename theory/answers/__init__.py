"""Answers, and how they are written.

A question is answered by an `Answer`: a status, a value, a label, a reason with a code. An answer
says what it is in blocks of words and mathematics (`blocks`, `notation`), the first of them in one
plain sentence; `writers` turn blocks into what a terminal, a notebook or a page shows. A program
decides by statuses and codes and never reads a sentence; a writer never builds a text of its own.
"""
