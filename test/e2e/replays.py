"""Runs an artifact on one input after the other."""

import shutil

from safetensors.numpy import save_file


def check_replays(weir, artifact, inputs, devices=("vulkan", "sim")):
    """Checks that a run has the same bits whatever ran before it: each input alone, and behind all before it."""
    folder = weir.folder / "batches"
    for device in devices:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for i, tensors in enumerate(inputs):
            save_file(tensors, folder / f"{i}.safetensors")
            outputs = []
            for given in f"--input={folder}/{i}.safetensors", f"--batches={folder}":
                weir.run("run", artifact, f"--device={device}", given, "--output=replayed.safetensors")
                outputs.append((weir.folder / "replayed.safetensors").read_bytes())
            assert outputs[0] == outputs[1], f"run {i} on {device} is another after those before it"
