"""The families of models that are known here, one file each.

A file describes a configuration of its family (`family.Description`) and says how the library's
network is measured (`family.Opening`). It may name the encoding that its models have.
"""

from farfield.validation.outside.families.bloom import BLOOM
from farfield.validation.outside.families.falcon import FALCON
from farfield.validation.outside.families.gemma import GEMMA_2, GEMMA_3, GEMMA_3_PICTURES
from farfield.validation.outside.families.gpt2 import GPT_2
from farfield.validation.outside.families.gpt_neox import GPT_NEOX
from farfield.validation.outside.families.gpt_oss import GPT_OSS
from farfield.validation.outside.families.gptj import GPT_J
from farfield.validation.outside.families.llama import LLAMA
from farfield.validation.outside.families.mistral import MISTRAL
from farfield.validation.outside.families.mpt import MPT
from farfield.validation.outside.families.opt import OPT
from farfield.validation.outside.families.phi import PHI
from farfield.validation.outside.families.qwen import QWEN
from farfield.validation.outside.families.t5 import T5
from farfield.validation.outside.family import ModelFamily

FAMILIES: dict[str, ModelFamily] = {
    kind: family
    for family in (
        BLOOM,
        FALCON,
        GEMMA_2,
        GEMMA_3,
        GEMMA_3_PICTURES,
        GPT_2,
        GPT_J,
        GPT_NEOX,
        GPT_OSS,
        LLAMA,
        MISTRAL,
        MPT,
        OPT,
        PHI,
        QWEN,
        T5,
    )
    for kind in family.kinds
}
"""Every family by the value of `model_type`."""
