"""The families of models that are known here, one file each.

A file describes a configuration of its family (`family.Description`) and says how the library's
network is measured (`family.Opening`). It may name the encoding that its models have.
"""

from farfield.validation.outside.families.bloom import BLOOM
from farfield.validation.outside.families.falcon import FALCON
from farfield.validation.outside.families.gpt_neox import GPT_NEOX
from farfield.validation.outside.families.llama import LLAMA
from farfield.validation.outside.families.mpt import MPT
from farfield.validation.outside.families.t5 import T5
from farfield.validation.outside.family import Family

FAMILIES: dict[str, Family] = {
    kind: family for family in (BLOOM, FALCON, GPT_NEOX, LLAMA, MPT, T5) for kind in family.kinds
}
"""Every family by the value of `model_type`."""
