"""Studies: one idea for a bias, or many, with all that theory and small models say of them.

`prediction` holds the predictions for one encoding, and `place` its rank in the catalogue.
`study` joins both with what trained models measured. The entry of an encoding in the catalogue has
its label, its training and its representative heads.
"""

from farfield.validation.study.study import Study, survey

__all__ = ["Study", "survey"]
