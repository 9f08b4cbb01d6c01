"""Parses and verifies every example in the dialects' td files with weir-opt.

Each ```mlir block of an op's description is piped through weir-opt. An op that
is no terminator and has no such block is an error.
"""

import pathlib
import re
import subprocess
import sys

OP = re.compile(r"^def (\w+)\s*:\s*\w+_Op<\"([\w.]+)\"(.*?)^}", re.MULTILINE | re.DOTALL)
EXAMPLE = re.compile(r"```mlir\n(.*?)```", re.DOTALL)


def main():
    errors, examples = [], 0
    for td in sorted(pathlib.Path(sys.argv[1]).glob("*/*.td")):
        text = td.read_text()
        ops = OP.findall(text)
        if text.count("_Op<\"") != len(ops):
            errors.append(f"{td.name}: found {len(ops)} ops of {text.count('_Op<' + chr(34))}")
        inside = sum(len(EXAMPLE.findall(body)) for _, _, body in ops)
        if len(EXAMPLE.findall(text)) != inside:
            errors.append(f"{td.name}: an example lies outside any op")
        for _, mnemonic, body in ops:
            blocks = EXAMPLE.findall(body)
            if not blocks and "Terminator" not in body:
                errors.append(f"{td.name}: op {mnemonic} has no example")
            for block in blocks:
                examples += 1
                run = subprocess.run(["weir-opt"], input=block, capture_output=True, text=True)
                if run.returncode:
                    errors.append(f"{td.name}: the example of {mnemonic} fails:\n{run.stderr}")
                elif f".{mnemonic}" not in run.stdout:
                    errors.append(f"{td.name}: the example of {mnemonic} does not show it")
    print("\n".join(errors) or f"{examples} examples pass")
    return 1 if errors or not examples else 0


if __name__ == "__main__":
    sys.exit(main())
