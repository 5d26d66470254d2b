"""The families of models that are known here, one file each.

A file describes a configuration of its family (`family.Description`) and says how the library's
network is measured (`family.Opening`). It may name the encoding that its models have.
"""

from farfield.validation.checkpoints.families.bloom import BLOOM
from farfield.validation.checkpoints.families.falcon import FALCON
from farfield.validation.checkpoints.families.gemma import GEMMA_2, GEMMA_3, GEMMA_3_PICTURES
from farfield.validation.checkpoints.families.gpt2 import GPT_2
from farfield.validation.checkpoints.families.gpt_neox import GPT_NEOX
from farfield.validation.checkpoints.families.gpt_oss import GPT_OSS
from farfield.validation.checkpoints.families.gptj import GPT_J
from farfield.validation.checkpoints.families.llama import LLAMA
from farfield.validation.checkpoints.families.mistral import MISTRAL
from farfield.validation.checkpoints.families.mpt import MPT
from farfield.validation.checkpoints.families.opt import OPT
from farfield.validation.checkpoints.families.phi import PHI
from farfield.validation.checkpoints.families.qwen import QWEN
from farfield.validation.checkpoints.families.t5 import T5
from farfield.validation.checkpoints.family import ModelFamily

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
