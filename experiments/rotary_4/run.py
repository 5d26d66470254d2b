"""Read the registered rows under each setting.

    python experiments/rotary_4/run.py --model FILE.gguf --out measured.jsonl

The model and the reading are those of `experiments/rotary_3/run.py`, on the rows beside this file.
All settings of a row are read in turn, so that what is read before the end is paired.
"""

import importlib.util
from pathlib import Path

HERE = Path(__file__).parent
SETTINGS = (
    "text cut to 8192",
    "Self-Extend, groups of 2 from 2048",
    "YaRN 1.5",
    "Llama 3 1.5",
)


def main():
    """Read the rows that have no line yet."""
    spec = importlib.util.spec_from_file_location("before", HERE.parent / "rotary_3/run.py")
    before = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(before)
    before.HERE, before.TEXTS = HERE, ("cmake", "matplotlib")
    before.SETTINGS = {name: before.SETTINGS[name] for name in SETTINGS}
    before.FIRST = len(SETTINGS)
    before.main()


if __name__ == "__main__":
    main()
