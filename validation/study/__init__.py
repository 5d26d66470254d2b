"""A study: what the theory predicts of encodings, and what trained models measure, together."""

from farfield.validation.study.study import demo_encodings, survey

__all__ = ["demo_encodings", "survey"]
