"""Optimizers of a step. Formulas and defaults are PyTorch's; docs/training.md has them.

Every field is a hyperparameter: a number, or a function of the number of steps done so far, such as a schedule. A call
of the step may give another value by its name.
"""

import dataclasses
from collections.abc import Callable

Rate = float | Callable[[int], float]


@dataclasses.dataclass(frozen=True, kw_only=True)
class SGD:
    """Stochastic gradient descent, as torch.optim.SGD without dampening and without Nesterov's momentum.

    Each field is a number, or a function of the number of steps done so far. With a momentum of 0 the step is compiled
    without it, and a call cannot give another.
    """

    learning_rate: Rate = 1e-3
    momentum: Rate = 0.0
    weight_decay: Rate = 0.0

    @property
    def name(self) -> str:
        """The name for `weir compile --train`: "sgd" or "momentum". "sgd" keeps no state."""
        return "sgd" if self.momentum == 0 else "momentum"


@dataclasses.dataclass(frozen=True, kw_only=True)
class AdamW:
    """Adam with decoupled weight decay, as torch.optim.AdamW.

    Each field is a number, or a function of the number of steps done so far.
    """

    learning_rate: Rate = 1e-3
    weight_decay: Rate = 1e-2
    beta1: Rate = 0.9
    beta2: Rate = 0.999
    epsilon: Rate = 1e-8

    @property
    def name(self) -> str:
        """The name for `weir compile --train`."""
        return "adamw"


Optimizer = SGD | AdamW


def get_hyperparameters(optimizer: Optimizer) -> dict[str, Rate]:
    """Returns the hyperparameters that the compiled step takes, by name."""
    rates = {field.name: getattr(optimizer, field.name) for field in dataclasses.fields(optimizer)}
    if optimizer.name == "sgd":
        del rates["momentum"]
    return rates
