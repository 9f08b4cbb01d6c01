"""Running sums, products, maxima and the like of long rows, for arrays of any package: block by block.

The compiler makes a scan of n reductions over n masked elements, each of a place: n steps in one order. A long row is
cut into blocks instead, for two reasons. An f32 sum of n terms in a row loses up to n units of the last place. The
gradient of a product is not a scan, and takes n * n steps.
"""

from collections.abc import Callable
from typing import Any

WIDTH = 128  # elements of a block
LONGEST = 512  # elements of a row that stays whole


def accumulate(values: Any, scan: Callable, combine: Callable, fill: Callable, join: Callable) -> Any:
    """Returns the running results along the last dimension.

    `scan(values)`: those of a short row. `combine(before, values)`: of what precedes a block and the block's own.
    `fill(shape)`: neutral elements. `join([x, y])`: arrays one behind the other along the last dimension.
    """
    size, outer = values.shape[-1], tuple(values.shape[:-1])
    if size <= LONGEST:
        return scan(values)
    width = next((width for width in range(WIDTH, WIDTH // 2, -1) if size % width == 0), WIDTH)
    count = -(-size // width)
    if count * width > size:
        values = join([values, fill((*outer, count * width - size))])
    blocks = scan(values.reshape((*outer, count, width)))
    totals = accumulate(blocks[..., -1], scan, combine, fill, join)
    before = join([fill((*outer, 1)), totals[..., :-1]])
    return combine(before[..., None], blocks).reshape((*outer, count * width))[..., :size]
