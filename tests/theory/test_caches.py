"""Every cache of the engine and of the sums stands in CONTRIBUTING.md with what bounds it.

`python tests/theory/test_caches.py` prints them as they are.
"""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
KEPT = ("lru_cache", "cache", "cached_property", "remembered", "remembered_by_precision")
PLAIN = {"cache": "once", "cached_property": "the object", "remembered": "the object"}
PLAIN["remembered_by_precision"] = "the object"


def bound(decorator):
    """What bounds a cache; None for other decorators."""
    call = decorator if isinstance(decorator, ast.Call) else None
    target = call.func if call else decorator
    name = target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", "")
    if name not in KEPT:
        return None
    if name != "lru_cache":
        return PLAIN[name]
    given = [*call.args, *(k.value for k in call.keywords)]
    return str(eval(ast.unparse(given[0])))


def caches(path):
    """The functions of a module that keep their values, and attributes that are such functions."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        decorators = getattr(node, "decorator_list", ())
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            kept = bound(node.value.func)
            name = ast.unparse(node.targets[0]).removeprefix("self.")
        else:
            kept = next(filter(None, map(bound, decorators)), None)
            name = getattr(node, "name", "")
        if kept:
            yield f"{name} ({kept})"


def listed():
    for room in ("theory", "numerics"):
        for path in sorted((ROOT / room).rglob("*.py")):
            if found := sorted(caches(path)):
                module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
                yield f"{module}: {', '.join(found)}"


def test_every_cache_is_listed_with_its_bound():
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = re.search(r"<!-- caches -->\n\n(.*?)\n\n<!-- end caches -->", page, re.DOTALL)
    assert table is not None
    rows = re.findall(r"^\* `([\w.]+)`: (.*?)\.$", table[1].replace("\n  ", " "), re.M)
    told = [f"{module}: {names.replace('`', '')}" for module, names in rows]
    assert told == list(listed())


if __name__ == "__main__":
    print(*listed(), sep="\n")
