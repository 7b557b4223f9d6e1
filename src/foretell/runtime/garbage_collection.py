"""How often the memory of a process that serves is searched for what nobody refers to any more.

What an exchange keeps (orders, accounts, code) refers to itself in no circle that could be freed, so
to walk through it again and again is a waste that grows with it.
"""

import gc
from typing import Final

NEW_OBJECTS_MAX: Final = 20_000
"""How many more objects are made than freed between two looks at the new ones."""
LOOKS_PER_GENERATION: Final = 20


def settle_memory() -> None:
    """Take what is there by now for permanent, and look for garbage less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(NEW_OBJECTS_MAX, LOOKS_PER_GENERATION, LOOKS_PER_GENERATION)
