"""Optimizers of a step. Formulas and defaults are PyTorch's; docs/training.md has them.

Each field but a flag is a hyperparameter: a number, or a function of the number of steps done so far, such as a
schedule. A call of the step may give another value by its name. With `maximize` a step goes up the gradient.
"""

import dataclasses
import os
from collections.abc import Callable, Mapping
from typing import Any, get_args

Rate = float | Callable[[int], float]


@dataclasses.dataclass(frozen=True, kw_only=True)
class SGD:
    """Stochastic gradient descent, as torch.optim.SGD.

    Each number may be a function of the number of steps done so far. With a momentum of 0 the step is compiled without
    it, with a dampening of 0 without that, and a call cannot give another.
    Errors: ValueError for Nesterov's momentum with a momentum of 0, or with dampening.
    """

    learning_rate: Rate = 1e-3
    momentum: Rate = 0.0
    weight_decay: Rate = 0.0
    dampening: Rate = 0.0
    nesterov: bool = False
    maximize: bool = False

    def __post_init__(self) -> None:
        if self.nesterov and (self.momentum == 0 or self.dampening != 0):
            raise ValueError("Nesterov's momentum needs a momentum, and has no dampening")

    @property
    def name(self) -> str:
        """The name for `weir compile --train`. "sgd" keeps no state."""
        if self.momentum == 0:
            return "sgd"
        if self.nesterov:
            return "nesterov"
        return "momentum" if self.dampening == 0 else "momentum-damped"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Adam:
    """Adam with weight decay added to the gradient, as torch.optim.Adam.

    Each number may be a function of the number of steps done so far. With `amsgrad` the largest second moment so far
    counts.
    """

    learning_rate: Rate = 1e-3
    weight_decay: Rate = 0.0
    beta1: Rate = 0.9
    beta2: Rate = 0.999
    epsilon: Rate = 1e-8
    amsgrad: bool = False
    maximize: bool = False

    @property
    def name(self) -> str:
        """The name for `weir compile --train`."""
        return "adam-amsgrad" if self.amsgrad else "adam"


@dataclasses.dataclass(frozen=True, kw_only=True)
class AdamW:
    """Adam with decoupled weight decay, as torch.optim.AdamW.

    Each number may be a function of the number of steps done so far. With `amsgrad` the largest second moment so far
    counts.
    """

    learning_rate: Rate = 1e-3
    weight_decay: Rate = 1e-2
    beta1: Rate = 0.9
    beta2: Rate = 0.999
    epsilon: Rate = 1e-8
    amsgrad: bool = False
    maximize: bool = False

    @property
    def name(self) -> str:
        """The name for `weir compile --train`."""
        return "adamw-amsgrad" if self.amsgrad else "adamw"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Lion:
    """Lion: steps of one length in each element, in the direction of a momentum. Defaults are its paper's.

    Each number may be a function of the number of steps done so far.
    """

    learning_rate: Rate = 1e-4
    weight_decay: Rate = 0.0
    beta1: Rate = 0.9
    beta2: Rate = 0.99
    maximize: bool = False
    name = "lion"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Adafactor:
    """Adafactor, as torch.optim.Adafactor: second moments by row and column, for parameters of up to rank 4.

    Each number may be a function of the number of steps done so far. `beta2_decay`, `epsilon1`, `epsilon2` and
    `clip` are torch's beta2_decay, eps and d.
    """

    learning_rate: Rate = 1e-2
    weight_decay: Rate = 0.0
    beta2_decay: Rate = -0.8
    epsilon1: Rate = 1.1920928955078125e-07
    epsilon2: Rate = 1e-3
    clip: Rate = 1.0
    maximize: bool = False
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

    Errors: TypeError for other optimizers than Weir's; ValueError for a group that names one which the optimizer has not.
    """
    if not isinstance(optimizer, Optimizer):
        kind = type(optimizer)
        found = repr(optimizer) if kind is str else f"a {kind.__module__}.{kind.__name__}"
        raise TypeError(f"optimizer is {found}; expected one of Weir's, as weir.SGD(learning_rate=0.1): "
                        f"{', '.join(each.__name__ for each in get_args(Optimizer))}")
    if isinstance(optimizer, Rule):
        rates = dict(optimizer.hyperparameters)
    else:
        rates = {field.name: getattr(optimizer, field.name) for field in dataclasses.fields(optimizer)
                 if field.type is not bool}
    if optimizer.name == "sgd":
        del rates["momentum"]
    if isinstance(optimizer, SGD) and optimizer.name != "momentum-damped":
        del rates["dampening"]
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
