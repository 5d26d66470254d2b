"""Series whose verdicts were found by hand: the battery and, beyond its families, some more."""

import json
from pathlib import Path

BATTERY, SERIES = (
    [*map(json.loads, (Path(__file__).parent / "data" / f"{name}.jsonl").open(encoding="utf-8"))]
    for name in ("battery", "series")
)
