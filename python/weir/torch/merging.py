"""Joins several graphs to one module, whose functions are entries of one artifact."""

from torch_mlir import ir


def merge(texts: list[str]) -> str:
    """Returns one module with the functions of several. The functions' names must differ."""
    if len(texts) == 1:
        return texts[0]
    with ir.Context() as context, ir.Location.unknown():
        context.allow_unregistered_dialects = True
        modules = [ir.Module.parse(text) for text in texts]
        whole = modules[0]
        for module in modules[1:]:
            for function in module.body.operations:
                whole.body.append(function.operation.clone())
        return whole.operation.get_asm(enable_debug_info=True).rstrip() + "\n"
