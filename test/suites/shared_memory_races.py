"""Runs the shaders of the validation layers' tests of races in workgroup memory through `weir check-shader`.

    shared_memory_races.py FOLDER [--filter=REGEX] [--every=N] [--json=OUT.json]

FOLDER is tests/unit of a checkout of https://github.com/KhronosGroup/Vulkan-ValidationLayers, which is not part of
Weir; without it, it is what WEIR_VALIDATION_LAYERS_TESTS names. A test of a class Negative... has a race, one of
Positive... has none. GLSL is compiled by glslangValidator, from PATH or WEIR_GLSLANG, and assembly by spirv-as. A racy
shader is found if its races are refuted, and missed if it is proved free of them; a clean one is proved, or a false
alarm. Both may be unknown, and not compiled if these tools refuse it, as they do Slang. The exit status is 1 if one is
missed or a false alarm, and 77 if there is no folder or no compiler.
"""

import pathlib
import re

from shaders import run_all

TEST = re.compile(r"^TEST_F\((Negative|Positive)\w*, (\w+)\) \{(.*?)^\}", re.M | re.S)
SOURCE = re.compile(r'R"(glsl|asm|slang)?\((.*?)\)(?:glsl|asm|slang)?"', re.S)


def find_tests(folder):
    for path in sorted(pathlib.Path(folder).glob("gpu_av_shared_memory_data_race*.cpp")):
        for kind, name, body in TEST.findall(path.read_text()):
            if source := SOURCE.search(body):
                language = source[1] or ("asm" if "OpCapability" in source[2] else "glsl")
                yield name, kind == "Negative", language, source[2].lstrip(), "1"


if __name__ == "__main__":
    run_all(__doc__, "WEIR_VALIDATION_LAYERS_TESTS", find_tests, ("races",))
