"""Lets lit run Weir's tests: `weir` and `weir-opt` of this build, LLVM 22's FileCheck."""

import os

import lit.formats

config.name = "weir"
config.test_format = lit.formats.ShTest(execute_external=True)
config.suffixes = [".mlir", ".test"]
config.excludes = ["unit", "python", "fuzz", "Inputs"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.weir_build, "test")

config.environment["PATH"] = os.pathsep.join(
    [os.path.join(config.weir_build, "bin"), config.llvm_tools, os.environ["PATH"]]
)
config.substitutions.append(("%weir-source", config.weir_source))
config.substitutions.append(("%examples", os.path.join(config.weir_source, "examples")))
config.substitutions.append(("%mlir-libs", os.path.join(os.path.dirname(config.llvm_tools), "lib")))
config.substitutions.append(("%python", config.python))
config.substitutions.append(("%fake-cuda", os.path.join(config.weir_build, "test/fake-cuda")))
config.substitutions.append(("%plugin", os.path.join(config.weir_build, "lib", "libWeirPasses.so")))
# mlir-opt is built without sanitizers and cannot load what is built with them.
if not config.weir_sanitize:
    config.available_features.add("plugin")
