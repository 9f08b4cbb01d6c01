"""Writes a safetensors file: tensors.py OUT NAME:DTYPE:SHAPE:VALUES..., as in
x:F32:2x3:1,2,3,4,5,6; a single value fills the tensor, rank 0 is an empty shape."""

import json
import math
import struct
import sys

CODES = {"F64": "d", "F32": "f", "I64": "q", "I32": "i", "BOOL": "B"}

header, data = {}, b""
for argument in sys.argv[2:]:
    name, dtype, shape, values = argument.split(":")
    shape = [int(size) for size in shape.split("x")] if shape else []
    count = math.prod(shape)
    number = float if dtype[0] == "F" else int
    values = [number(value) for value in values.split(",")]
    values = values * count if len(values) == 1 else values
    assert len(values) == count, argument
    begin = len(data)
    data += struct.pack(f"<{count}{CODES[dtype]}", *values)
    header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [begin, len(data)]}
text = json.dumps(header).encode()
with open(sys.argv[1], "wb") as file:
    file.write(struct.pack("<Q", len(text)) + text + data)
