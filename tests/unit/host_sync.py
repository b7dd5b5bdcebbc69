"""A mode of torch in which no operation may wait for the device."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

WAITING = {
    "_linalg_check_errors",  # linalg's checked functions: did it work?
    "_local_scalar_dense",  # .item(), float(), int(), bool(), if
    "equal",
    "is_nonzero",
    "masked_select",
    "nonzero",  # where with one argument
    "_unique2",
}
"""Operations whose result, or its size, the processor must read from the device."""


INDEXING = {"index", "index_put", "index_put_"}
"""These wait where an index is a mask."""


class NoHostSync(TorchDispatchMode):
    """While active, an operation that would wait for a device fails, whatever the device."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        name = func.overloadpacket.__name__
        given = kwargs or {}
        moved = name == "_to_copy" and given.get("device") is not None
        masked = name in INDEXING and any(
            index is not None and index.dtype == torch.bool for index in args[1]
        )
        if name in WAITING or moved or masked:
            raise AssertionError(f"{func} waits for the device")
        return func(*args, **given)
