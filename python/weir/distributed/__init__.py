"""Weir's steps under torch.distributed: data and tensor parallel training, and pipelines, over a process group.

    torch.distributed.init_process_group("gloo")
    step = weir.compile_step(model, loss, example={"x": x}, targets={"y": y}, pieces=True)
    parallel = weir.distributed.DataParallel(step)
    for x, y in batches_of_this_rank:
        loss = parallel(x=x, y=y)

docs/distributed.md is the guide. Launcher, transport and fault detection are PyTorch's.
"""

try:
    import torch
except ImportError as missing:
    raise ImportError("weir.distributed needs the package torch; install scripts/python-torch-packages.txt, or run "
                      "scripts/setup --torch") from missing

OLDEST = (2, 13)  # the version that the tests run with

if tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2]) < OLDEST:
    raise ImportError(f"weir.distributed needs torch {'.'.join(map(str, OLDEST))} or later, and finds "
                      f"{torch.__version__}; install scripts/python-torch-packages.txt")
if not torch.distributed.is_available():
    raise ImportError("this torch was built without torch.distributed; install one that has it")

from weir.distributed.data_parallel import DataParallel  # noqa: E402
from weir.distributed.fully_sharded import FullySharded, fully_shard  # noqa: E402
from weir.distributed.groups import FaultError  # noqa: E402
from weir.distributed.pipelines import Stages, stages  # noqa: E402
from weir.distributed.tensor_parallel import ColumnLinear, RowLinear, TensorParallel  # noqa: E402

__all__ = ["ColumnLinear", "DataParallel", "FaultError", "FullySharded", "RowLinear", "Stages", "TensorParallel",
           "fully_shard", "stages"]
