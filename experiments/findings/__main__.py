"""Every row of the findings, counted again and held against the pages: ok or not.

python experiments/findings ROOT
"""

import sys
from pathlib import Path

from page_rows import checked

answer = checked(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
print(answer.text())
sys.exit(bool(answer.missing))
