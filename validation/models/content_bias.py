"""A user's bias modules that depend on what is read: told from others, taken apart for far keys.

A bias of content between a query at `i` and a key at `j` is made of what lies between them. A far
key represents several positions and enters as often: they are its *weight*. Two forms are known,
by the methods of the module:

    steps(k)            sum over j < l <= i of steps(k)_l: FoX, CABLE, data-dependent slopes
    gates(q, k) and     counted(q, c), with c = sum over j <= l <= i of gates(q, k)_il: CoPE
    counted(q, c)

A module whose bias depends on positions alone, as in FIRE, is asked at the positions of far keys.
One with no such form is refused: nothing says what a far key would get.
"""

from __future__ import annotations

from typing import Any, Protocol

import torch
from torch import Tensor, nn

from farfield.theory.answers.errors import InputError, refuse

TOKENS = 6  # of the row on which a module is tried


class Content(Protocol):
    """A bias that depends on what is read."""

    def between(self, q: Tensor, k: Tensor, i: Tensor, j: Tensor, weight: Tensor) -> Tensor:
        """The bias of queries `q` at `i` to keys `k` at `j`, shape (rows, heads, len(i), len(j)).

        Queries and keys have the shape (rows, heads, length, size), before positions enter. Keys
        come in any order, each represents `weight` positions, (len(j),).
        """


class StepBias:
    """A sum over the tokens between: each adds a number of its own."""

    def __init__(self, module: Any) -> None:
        self.module = module

    def between(self, q: Tensor, k: Tensor, i: Tensor, j: Tensor, weight: Tensor) -> Tensor:
        """As `Content.between`."""
        places, order = j.sort()
        passed = (self.module.steps(k) * weight)[..., order].double().cumsum(-1)
        passed = nn.functional.pad(passed, (1, 0))
        until, after = (torch.searchsorted(places, at, right=True) for at in (i, j))
        return (passed[..., until, None] - passed[..., None, after]).to(q.dtype)


class CountBias:
    """A function of the query and of how many keys it counts from itself back to a key."""

    def __init__(self, module: Any) -> None:
        self.module = module

    def between(self, q: Tensor, k: Tensor, i: Tensor, j: Tensor, weight: Tensor) -> Tensor:
        """As `Content.between`."""
        order = j.argsort(descending=True)
        gates = self.module.gates(q, k) * weight * (j <= i[:, None])
        counts = torch.empty_like(gates)
        counts[..., order] = gates[..., order].cumsum(-1)
        bias: Tensor = self.module.counted(q, counts)
        return bias


def of_positions(module: nn.Module, heads: int, size: int) -> bool:
    """Whether a bias depends on the positions of query and key alone, not on what is read."""
    random, places = torch.Generator().manual_seed(0), torch.arange(TOKENS)
    some = places[1::2]
    with torch.no_grad():
        try:
            x, y = (torch.randn(1, heads, TOKENS, size, generator=random) for _ in range(2))
            first, second = module(x, x, places, places), module(y, y, places, places)
            apart = module(x[:, :, some], x[:, :, some], some, some)
        except (RuntimeError, TypeError, ValueError, IndexError):
            return False
    same = first.shape == second.shape and torch.equal(first, second)
    part = first[..., some[:, None], some]
    return same and part.shape == apart.shape and torch.allclose(part, apart, atol=1e-6)


def content_of(module: nn.Module, heads: int, size: int) -> Content:
    """What a bias module adds between far keys.

    Raises:
        InputError: it has no form that far keys can have, one token's part of it reads other
            tokens, or its parts do not add up to it.
    """
    name = type(module).__name__
    known: Content
    if callable(getattr(module, "steps", None)):
        known = StepBias(module)
    elif all(callable(getattr(module, part, None)) for part in ("gates", "counted")):
        known = CountBias(module)
    else:
        raise InputError(
            f"the bias {name} depends on more than the distance, and has no form that far keys can "
            "have; accepted are biases p(n), rotations, windows, no positions, and modules with "
            "steps(k), or with gates(q, k) and counted(q, c)"
        )
    random, places = torch.Generator().manual_seed(0), torch.arange(TOKENS)
    q, k = (torch.randn(1, heads, TOKENS, size, generator=random) for _ in range(2))
    seen, one = places <= places[:, None], torch.ones(TOKENS)

    def parts(k: Tensor) -> Tensor:
        return known.between(q, k, places, places, one).where(seen, 0)

    with torch.no_grad():
        try:
            whole = module(q, k, places, places).where(seen, 0)
            found = parts(k)
            first, last = parts(_turned_over(k, 0)), parts(_turned_over(k, TOKENS - 1))
        except (RuntimeError, TypeError, ValueError, IndexError) as error:
            raise InputError(
                f"the bias {name} cannot be taken apart ({type(error).__name__}); accepted are "
                "steps(k) of shape (rows, heads, keys), or gates(q, k) of shape (rows, heads, "
                "queries, keys) and counted(q, c) of the shape of c"
            ) from None
    refuse(
        not torch.allclose(found[..., 1:], first[..., 1:], rtol=0, atol=1e-5)
        or not torch.allclose(found[..., :-1, :], last[..., :-1, :], rtol=0, atol=1e-5),
        f"a gate of the bias {name} reads other tokens, before its own or in the future; accepted "
        "is a gate of its own token",
    )
    refuse(
        not torch.allclose(whole.expand_as(found), found, rtol=1e-3, atol=1e-4),
        f"the parts of the bias {name} do not add up to it; accepted are sums of steps(k) over the "
        "tokens after a key, or counted(q, c), c the sum of gates(q, k) from the query to the key",
    )
    return known


def _turned_over(k: Tensor, at: int) -> Tensor:
    """Keys, one of them with the other sign."""
    k = k.clone()
    k[:, :, at] *= -1
    return k
