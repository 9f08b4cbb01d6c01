"""JAX functions as graphs for `weir compile`, as programs and as training steps: see docs/jax.md.

    predict = weir.jax.compile(f, params, x)
    step = weir.jax.compile_step(loss, params, x, y, optimizer=weir.AdamW(learning_rate=3e-4))

or, with JAX's own gradients and an optimizer of optax inside the function:

    update = weir.jax.compile(update, params, state, batch, donate_argnums=(0, 1))
"""

try:
    import jax  # noqa: F401
    import torch_mlir.ir  # noqa: F401
except ImportError as missing:
    raise ImportError(
        f"weir.jax needs the package {(missing.name or 'jax').split('.')[0].replace('_', '-')}; install weir[jax], or "
        "run scripts/setup --torch"
    ) from missing

from weir.graphs import Argument, Exported, ExportError
from weir.jax.compiling import compile, compile_step
from weir.jax.exporting import export

__all__ = ["Argument", "ExportError", "Exported", "compile", "compile_step", "export"]
