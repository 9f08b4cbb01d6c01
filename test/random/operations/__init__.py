"""All operations that random graphs are made of."""

from operations.contractions import Contract, Convolve, HalfContract, Pool, Reduce, Running, Whole, Windows
from operations.elementwise import Binary, Cast, Half, Index, Integers, Named, Pair, Select, Unary
from operations.layout import (
    Broadcast, Collapse, Concat, Constant, Elements, Expand, Gather, Insert, Pad, Slice, Sort, Transpose, Window,
)
from operations.loops import CountedLoop, Loop
from operations.norms import (
    Activation, Attention, BatchNorm, CrossEntropy, CrossEntropyVjp, Logsumexp, Norm, NormVjp, Softmax, SoftmaxVjp,
)

OPERATIONS = {operation.__name__: operation() for operation in [
    Unary, Binary, Named, Select, Index, Integers, Half, Cast, Pair, Transpose, Window, Slice, Pad, Concat, Insert,
    Elements, Gather, Broadcast, Constant, Reduce, Contract, Convolve, Pool, Windows, Whole, Collapse, Expand, Softmax,
    SoftmaxVjp, Attention, Logsumexp, Norm, NormVjp, BatchNorm, Activation, CrossEntropy, CrossEntropyVjp,
    HalfContract, Running, Loop, Sort, CountedLoop]}
# The first seeds of the kinds that came later, so that the graphs of earlier seeds stay what they are.
SINCE = {"Attention": 100000, "HalfContract": 100000, "Running": 200000, "Loop": 1000000, "Sort": 1100000,
         "CountedLoop": 1200000}
# Weights of the kinds that are drawn more often than the others, which have 1.
WEIGHTS = {"Unary": 4, "Binary": 4, "Reduce": 4, "Contract": 3, "NormVjp": 2, "Named": 2, "Integers": 2,
           "Windows": 3, "HalfContract": 6, "Attention": 6, "Running": 4, "Loop": 4, "Sort": 4,
           "CountedLoop": 6}
