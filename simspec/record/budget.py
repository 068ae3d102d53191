"""How many tokens are read at once, and what is done when memory runs out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from simspec.calibration.forwards import out_of_memory

# More is faster until the logits fill memory: 512 rows of a vocabulary of 49,152 in float32 are 100 MB.
TOKENS_AT_ONCE = 512


@dataclass
class Budget:
    """Tokens that one forward reads of blocks that leave the text; halved when memory runs out.

    A halved budget stays halved for the rest of the run. It changes the shapes of forwards and
    so can change a recorded number in its last digits, and a token where two are nearly tied.

    Attributes:
        tokens: at most so many, but at least one block.
        say: called once, with a line to show, when memory first runs out.
    """

    tokens: int = TOKENS_AT_ONCE
    say: Callable[[str], None] | None = None
    halved: int = 0

    def shrink(self, error: RuntimeError | MemoryError, used: int) -> None:
        """Read fewer than ``used`` tokens from here on, or raise ``error`` where that cannot help."""
        if not out_of_memory(error) or used <= 1:
            raise error
        self.tokens = max(1, min(self.tokens, used) // 2)
        self.halved += 1
        if self.halved == 1 and self.say:
            self.say(f"out of memory: going on with {self.tokens} tokens of blocks at once, or fewer")
