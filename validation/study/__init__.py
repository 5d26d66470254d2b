"""Studies: one idea for a bias, or many, with all that theory and small models say of them.

`prediction` holds what the theory says of one encoding, `place` where it stands among the
catalogue, `findings` what came true of it in trained models, `study` joins them. The entry
of an encoding in the catalogue has its label, its training and its representative heads.
"""

from farfield.validation.study.study import Study, demo_encodings, survey

__all__ = ["Study", "demo_encodings", "survey"]
