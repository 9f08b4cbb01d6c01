"""IREE: the functions of with_jax.py as StableHLO, compiled for llvm-cpu."""

import functools

import iree.compiler
import iree.runtime
import jax
import with_jax

COMMON = ("--iree-llvmcpu-target-cpu=host", "--iree-opt-level=O3")
FLAGS = {"O3": (), "O3, data tiling": ("--iree-opt-data-tiling",),
         "O3, microkernels": ("--iree-opt-data-tiling", "--iree-llvmcpu-enable-ukernels=all")}


def list_settings(case, _):
    if case.kind == "copy" or case.is_model:  # of a copy it returns the argument
        return []
    has_product = case.kind in ("product", "product_bt", "mlp", "mlp_step", "chains")
    return list(FLAGS) if has_product else ["O3"]


@functools.cache
def open_device(threads):
    iree.runtime.flags.parse_flags(f"--task_topology_group_count={threads}")
    return iree.runtime.Config("local-task")


def prepare(case, setting, options):
    """Returns a function that runs a case once, one that returns its results, and no facts."""
    inputs = with_jax.get_inputs(case)
    text = jax.jit(with_jax.get_function(case)).lower(*inputs).as_text()
    code = iree.compiler.compile_str(text, input_type="stablehlo", target_backends=["llvm-cpu"],
                                     extra_args=[*COMMON, *FLAGS[setting]])
    config = open_device(options["threads"])
    module = iree.runtime.VmModule.copy_buffer(config.vm_instance, code)
    context = iree.runtime.VmContext(config.vm_instance, modules=[*config.default_vm_modules, module])
    function = module.lookup_function("main")
    arguments, results = iree.runtime.VmVariantList(len(inputs)), []
    for value in inputs:
        arguments.push_ref(iree.runtime.asdevicearray(config.device, value)._buffer_view)

    def run():
        results.clear()
        results.append(iree.runtime.VmVariantList(len(case.results)))
        context.invoke(function, arguments, results[0])

    def read():
        views = [results[0].get_as_object(i, iree.runtime.HalBufferView) for i in range(len(case.results))]
        return [iree.runtime.DeviceArray(config.device, view).to_host() for view in views]

    return run, read, {}
