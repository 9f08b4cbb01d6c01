"""Optimizers of a step. Formulas and defaults are PyTorch's; docs/training.md has them.

Every field is a hyperparameter: a number, or a function of the number of steps done so far, such as a schedule. A call
of the step may give another value by its name.
"""

import dataclasses
from collections.abc import Callable

Rate = float | Callable[[int], float]


@dataclasses.dataclass(frozen=True, kw_only=True)
class SGD:
    """Stochastic gradient descent; with `momentum`, that of torch.optim.SGD without dampening or Nesterov's step."""

    learning_rate: Rate = 1e-3
    momentum: Rate = 0.0
    weight_decay: Rate = 0.0

    @property
    def name(self) -> str:
        """As `weir compile --train` has it. Without momentum there is no state."""
        return "sgd" if self.momentum == 0 else "momentum"


@dataclasses.dataclass(frozen=True, kw_only=True)
class AdamW:
    """Adam with decoupled weight decay: torch.optim.AdamW."""

    learning_rate: Rate = 1e-3
    weight_decay: Rate = 1e-2
    beta1: Rate = 0.9
    beta2: Rate = 0.999
    epsilon: Rate = 1e-8

    @property
    def name(self) -> str:
        """As `weir compile --train` has it."""
        return "adamw"


Optimizer = SGD | AdamW


def get_hyperparameters(optimizer: Optimizer) -> dict[str, Rate]:
    """The hyperparameters that the compiled step takes, by name."""
    rates = {field.name: getattr(optimizer, field.name) for field in dataclasses.fields(optimizer)}
    if optimizer.name == "sgd":
        del rates["momentum"]
    return rates
