"""The models of graphs.py in PyTorch."""

import torch
from torch.nn import functional


class Model:
    """A model on tensors by the names of a graph's arguments. The methods that are named as families of graphs.py return
    the loss."""

    def __init__(self, values):
        self.values = values

    def __getitem__(self, name):
        return self.values[name]

    def linear(self, x, name):
        bias = self[f"{name}.bias"] if f"{name}.bias" in self.values else None
        return functional.linear(x, self[f"{name}.weight"], bias)

    def conv(self, x, name, stride=1, padding=None):
        weight = self[f"{name}.weight"]
        bias = self[f"{name}.bias"] if f"{name}.bias" in self.values else None
        padding = weight.shape[-1] // 2 if padding is None else padding
        return functional.conv2d(x, weight, bias, stride, padding, groups=x.shape[1] // weight.shape[1])

    def conv_norm(self, x, name, stride=1):
        x = self.conv(x, f"{name}.conv", stride)
        return functional.batch_norm(x, None, None, self[f"{name}.norm.weight"], self[f"{name}.norm.bias"], True)

    def layer_norm(self, x, name):
        return functional.layer_norm(x, x.shape[-1:], self[f"{name}.weight"], self[f"{name}.bias"])

    def rms_norm(self, x, name):
        return functional.rms_norm(x, x.shape[-1:], self[f"{name}.weight"], 1e-5)

    def split(self, x, heads):
        return x.unflatten(-1, (heads, -1)).transpose(1, 2)

    def attention(self, q, k, v, causal):
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=True)
        return mixed.transpose(1, 2).flatten(2)

    def cross_entropy(self, scores, targets):
        return functional.cross_entropy(scores.flatten(0, -2), targets.flatten())

    def llama(self, layers, heads, kv_heads, sequence, hidden, tied=False, **_):
        size = hidden // heads
        x = self["embed.weight"][self["tokens"]]
        rates = 10000.0 ** (-torch.arange(size // 2, device=x.device).double() * 2 / size)
        angles = torch.outer(torch.arange(sequence, device=x.device).double(), rates).repeat(1, 2)
        cosines, sines = angles.cos().to(x.dtype), angles.sin().to(x.dtype)

        def rotate(x):
            first, second = x.chunk(2, -1)
            return x * cosines + torch.cat([-second, first], -1) * sines

        def project(x, name):
            y = self.linear(x, name)
            if f"{name}.up" in self.values:
                y = y + 2 * (x @ self[f"{name}.down"].T @ self[f"{name}.up"].T)
            return y

        for i in range(layers):
            name = f"layers.{i}"
            y = self.rms_norm(x, f"{name}.input_norm")
            q = rotate(self.split(project(y, f"{name}.q"), heads))
            k = rotate(self.split(project(y, f"{name}.k"), kv_heads))
            v = self.split(project(y, f"{name}.v"), kv_heads)
            x = x + project(self.attention(q, k, v, True), f"{name}.o")
            y = self.rms_norm(x, f"{name}.post_norm")
            x = x + project(functional.silu(project(y, f"{name}.gate")) * project(y, f"{name}.up"), f"{name}.down")
        x = self.rms_norm(x, "norm")
        return self.cross_entropy(x @ self["embed.weight"].T if tied else self.linear(x, "head"), self["next"])

    def block(self, x, name, heads, activation, causal):
        q, k, v = (self.split(part, heads) for part in
                   self.linear(self.layer_norm(x, f"{name}.attention_norm"), f"{name}.qkv").chunk(3, -1))
        x = x + self.linear(self.attention(q, k, v, causal), f"{name}.mix")
        return x + self.linear(activation(self.linear(self.layer_norm(x, f"{name}.mlp_norm"), f"{name}.up")), f"{name}.down")

    def gpt2(self, layers, heads, **_):
        def activation(x):
            return functional.gelu(x, approximate="tanh")

        x = self["embed.weight"][self["tokens"]] + self["place.weight"]
        for i in range(layers):
            x = self.block(x, f"blocks.{i}", heads, activation, True)
        return self.cross_entropy(self.layer_norm(x, "norm") @ self["embed.weight"].T, self["next"])

    def vit(self, layers, heads, patch, batch, **_):
        x = self.conv(self["images"], "patches", patch, 0).flatten(2).transpose(1, 2)
        x = torch.cat([self["token"].expand(batch, -1, -1), x], 1) + self["places"]
        for i in range(layers):
            x = self.block(x, f"blocks.{i}", heads, functional.gelu, False)
        return self.cross_entropy(self.linear(self.layer_norm(x, "norm")[:, 0], "head"), self["classes"])

    def classify(self, x):
        return self.cross_entropy(self.linear(x.mean((2, 3)), "head"), self["classes"])

    def resnet(self, layers, stages=4, **_):
        relu = torch.relu
        x = functional.max_pool2d(relu(self.conv_norm(self["images"], "stem", 2)), 3, 2, 1)
        last = 2 if layers >= 50 else 1
        for stage in range(stages):
            i = 0
            while f"stages.{stage}.{i}.0.conv.weight" in self.values:
                name, y = f"stages.{stage}.{i}", x
                # The 3 x 3 convolution of a stage's first block halves the image.
                strides = [2 if stage and not i and part == last - 1 else 1 for part in range(last)]
                for part, stride in enumerate(strides):
                    y = relu(self.conv_norm(y, f"{name}.{part}", stride))
                y = self.conv_norm(y, f"{name}.{last}")
                has_shortcut = f"{name}.shortcut.conv.weight" in self.values
                x = relu(y + (self.conv_norm(x, f"{name}.shortcut", strides[-1]) if has_shortcut else x))
                i += 1
        return self.classify(x)

    def mobilenet(self, version=1, **_):
        relu = torch.relu if version == 1 else functional.relu6
        x = relu(self.conv_norm(self["images"], "stem", 2))
        if version == 1:
            for stage, stride in (0, 1), (1, 2):
                x = relu(self.conv_norm(x, f"stages.{stage}.0.0", stride))
                x = relu(self.conv_norm(x, f"stages.{stage}.0.1"))
            return self.classify(x)
        for name, stride in ("0.0", 1), ("1.0", 2), ("1.1", 1):
            name, y = f"stages.{name}", x
            if f"{name}.0.conv.weight" in self.values:
                y = relu(self.conv_norm(y, f"{name}.0"))
            y = self.conv_norm(relu(self.conv_norm(y, f"{name}.1", stride)), f"{name}.2")
            x = x + y if x.shape == y.shape else y
        return self.classify(relu(self.conv_norm(x, "last")))

    def unet(self, groups, **_):
        def norm(x, name):
            return functional.silu(
                functional.group_norm(x, groups, self[f"{name}.weight"], self[f"{name}.bias"]))

        def block(x, name):
            y = self.conv(norm(x, f"{name}.norm0"), f"{name}.conv0")
            y = self.conv(norm(y, f"{name}.norm1"), f"{name}.conv1")
            return y + (self.conv(x, f"{name}.shortcut") if x.shape != y.shape else x)

        top = block(self.conv(self["images"], "first"), "down.0.0")
        low = block(self.conv(top, "down.0.half", 2), "down.1.0")
        x = block(torch.cat([block(low, "middle"), low], 1), "up.1.0")
        x = self.conv(functional.interpolate(x, scale_factor=2, mode="nearest"), "up.1.twice")
        x = block(torch.cat([x, top], 1), "up.0.0")
        return functional.mse_loss(self.conv(norm(x, "last.norm"), "last.conv"), self["targets"])
