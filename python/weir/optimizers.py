"""Optimizers of a step. Formulas and defaults are PyTorch's; docs/training.md has them.

Every field is a hyperparameter: a number, or a function of the number of steps done so far, such as a schedule. A call
of the step may give another value by its name.
"""

import dataclasses
import os
from collections.abc import Callable, Mapping
from typing import Any

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
class Adam:
    """Adam with weight decay added to the gradient, as torch.optim.Adam.

    Each field is a number, or a function of the number of steps done so far.
    """

    learning_rate: Rate = 1e-3
    weight_decay: Rate = 0.0
    beta1: Rate = 0.9
    beta2: Rate = 0.999
    epsilon: Rate = 1e-8
    name = "adam"


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
    name = "adamw"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Lion:
    """Lion: steps of one length in each element, in the direction of a momentum. Defaults are its paper's.

    Each field is a number, or a function of the number of steps done so far.
    """

    learning_rate: Rate = 1e-4
    weight_decay: Rate = 0.0
    beta1: Rate = 0.9
    beta2: Rate = 0.99
    name = "lion"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Adafactor:
    """Adafactor, as torch.optim.Adafactor: second moments by row and column, for parameters of up to rank 4.

    Each field is a number, or a function of the number of steps done so far. `beta2_decay`, `epsilon1`, `epsilon2` and
    `clip` are torch's beta2_decay, eps and d.
    """

    learning_rate: Rate = 1e-2
    weight_decay: Rate = 0.0
    beta2_decay: Rate = -0.8
    epsilon1: Rate = 1.1920928955078125e-07
    epsilon2: Rate = 1e-3
    clip: Rate = 1.0
    name = "adafactor"


class Rule:
    """An optimizer by an update rule of the user's own: graph text, as docs/training.md describes it.

    weir.Rule("rule.mlir", learning_rate=0.1) reads a file when the step is compiled.
    """

    def __init__(self, path: str | os.PathLike, **hyperparameters: Rate):
        self.name = os.fspath(path)
        self.hyperparameters = hyperparameters


class Group:
    """Parameters with hyperparameters of their own, as in weir.Group("*.bias", "norm*", weight_decay=0.0).

    A parameter belongs to the first group with a pattern (*, ?, [a-z]) that its name fits. Hyperparameters that the
    group does not name are the optimizer's.
    """

    def __init__(self, *patterns: str, **hyperparameters: Rate):
        if not patterns:
            raise TypeError("a group needs a pattern of names")
        self.patterns = patterns
        self.hyperparameters = hyperparameters


Optimizer = SGD | Adam | AdamW | Lion | Adafactor | Rule


def get_hyperparameters(optimizer: Optimizer, groups: Mapping[str, Group] | None = None) -> dict[str, Rate]:
    """Returns the hyperparameters that a compiled step may take, by name.

    Errors: ValueError for a group that names one which the optimizer has not.
    """
    if isinstance(optimizer, Rule):
        rates = dict(optimizer.hyperparameters)
    else:
        rates = {field.name: getattr(optimizer, field.name) for field in dataclasses.fields(optimizer)}
    if optimizer.name == "sgd":
        del rates["momentum"]
    all_rates: dict[str, Any] = dict(rates)
    for name, group in (groups or {}).items():
        if unknown := [rate for rate in group.hyperparameters if rate not in rates]:
            raise ValueError(f"group {name} sets {unknown[0]}, which the optimizer has not; it has {', '.join(rates)}")
        all_rates |= {f"{name}.{rate}": value for rate, value in (rates | group.hyperparameters).items()}
    return all_rates


def get_options(groups: Mapping[str, Group] | None) -> list[str]:
    """Returns the options of `weir compile` for groups. Errors: ValueError for patterns with a comma."""
    for name, group in (groups or {}).items():
        if any("," in pattern for pattern in group.patterns):
            raise ValueError(f"group {name} has a pattern with a comma; give each pattern as an argument of its own")
    return [f"--train-group={name}={','.join(group.patterns)}" for name, group in (groups or {}).items()]
