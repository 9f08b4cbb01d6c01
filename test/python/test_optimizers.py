"""Options of a compiled step, beside its optimizer, against PyTorch in f64."""

import copy

import numpy
import pytest
import torch
from torch import nn
from torch.nn import functional

import weir

RATE = 0.1


def make_batch(seed, dtype=torch.float32):
    generator = torch.Generator().manual_seed(seed)
    return (torch.randn(7, 6, generator=generator) * (1 + seed)).to(dtype), torch.randint(0, 4, (7,), generator=generator)


def make_module(seed=3):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(6, 9), nn.GELU(), nn.LayerNorm(9), nn.Linear(9, 4))


def make_step(module, dtype=torch.float32, loss=functional.cross_entropy, **options):
    x, y = make_batch(0, dtype)
    return weir.compile_step(module, loss, example=(x,), targets={"y": y},
                             **{"optimizer": weir.SGD(learning_rate=RATE), **options})


def follow(reference, groups=None, steps=4, microbatches=1, change=lambda parameters: None, after=lambda: None):
    """Trains a module as PyTorch does; returns the losses of each step's last microbatch."""
    optimizer = torch.optim.SGD(groups or reference.parameters(), lr=RATE)
    losses = []
    for step in range(steps):
        optimizer.zero_grad()
        for number in range(microbatches):
            x, y = make_batch(step * microbatches + number)
            loss = functional.cross_entropy(reference(x.double()), y)
            (loss / microbatches).backward()
        change(list(reference.parameters()))
        optimizer.step()
        after()
        losses.append(loss.item())
    return losses


def compare(step, reference):
    trained = step.state_dict()
    for name, value in reference.state_dict().items():
        torch.testing.assert_close(trained[name].to(value.dtype), value, rtol=1e-3, atol=1e-5)


def test_gradients_are_clipped_by_their_norm():
    """Once far beyond the norm, and once far below it."""
    for norm in (0.05, 1e6):
        module = make_module()
        reference = copy.deepcopy(module).double()
        losses = follow(reference, change=lambda parameters: nn.utils.clip_grad_norm_(parameters, norm))
        with make_step(module, clip_norm=norm) as step:
            for number, expected in enumerate(losses):
                x, y = make_batch(number)
                assert float(step(x, y=y)) == pytest.approx(expected, rel=1e-4)
            compare(step, reference)


def test_groups_have_hyperparameters_of_their_own():
    module = make_module()
    reference = copy.deepcopy(module).double()
    named = dict(reference.named_parameters())
    biases = [value for name, value in named.items() if name.endswith("bias")]
    others = [value for name, value in named.items() if not name.endswith("bias")]
    losses = follow(reference, [{"params": biases, "lr": 0.01}, {"params": others, "weight_decay": 0.5}])
    groups = {"biases": weir.Group("*.bias", weight_decay=0.0, learning_rate=lambda step: 0.01)}
    with make_step(module, optimizer=weir.SGD(learning_rate=RATE, weight_decay=0.5), groups=groups) as step:
        for number, expected in enumerate(losses):
            x, y = make_batch(number)
            assert float(step(x, y=y)) == pytest.approx(expected, rel=1e-4)
        compare(step, reference)


def test_a_group_of_all_parameters_leaves_no_others():
    with make_step(make_module(), groups={"all": weir.Group("*")}) as step:
        names = {argument.name for argument in step.entries["main.step"].arguments}
        assert "all.learning_rate" in names and "learning_rate" not in names
        x, y = make_batch(0)
        step(x, y=y, **{"all.learning_rate": 0.5})


def test_microbatches_are_accumulated(tmp_path):
    """Three a step; a checkpoint in the middle of a step continues with the same bits."""
    module = make_module()
    reference = copy.deepcopy(module).double()
    losses = follow(reference, microbatches=3)
    batches = [make_batch(number) for number in range(3 * len(losses))]
    with make_step(module, accumulate=True) as step, make_step(module, accumulate=True) as resumed:
        for number, (x, y) in enumerate(batches):
            if number % 3 < 2:
                step.accumulate(x, y=y)
            else:
                assert float(step(x, y=y)) == pytest.approx(losses[number // 3], rel=1e-4)
            if number == 6:
                step.save(tmp_path / "middle.safetensors")
        compare(step, reference)
        resumed.load(tmp_path / "middle.safetensors")
        for number, (x, y) in list(enumerate(batches))[7:]:
            (resumed if number % 3 == 2 else resumed.accumulate)(x, y=y)
        for name, value in step.state_dict().items():
            assert torch.equal(value, resumed.state_dict()[name])
    with make_step(module) as step, pytest.raises(ValueError, match="without accumulate"):
        step.accumulate(*batches[0][:1], y=batches[0][1])


def test_averages_of_parameters():
    module = make_module()
    reference = copy.deepcopy(module).double()
    averages = {name: value.detach().clone() for name, value in reference.named_parameters()}

    def average():
        for name, value in reference.named_parameters():
            averages[name] = 0.8 * averages[name] + 0.2 * value.detach()

    losses = follow(reference, after=average)
    with make_step(module, ema=0.8) as step:
        for number in range(len(losses)):
            x, y = make_batch(number)
            step(x, y=y)
        for name, value in step.averages().items():
            numpy.testing.assert_allclose(value, averages[name].numpy(), rtol=1e-3, atol=1e-5)
        assert set(step.averages()) == set(averages)
    with make_step(module) as step, pytest.raises(ValueError, match="without ema"):
        step.averages()


def test_a_step_with_infinite_gradients_is_skipped():
    """In f16: the first scale overflows until it was halved often enough; then training goes on."""
    module = make_module().half()
    reference = copy.deepcopy(module).double()
    scaled = lambda output, y: 4 * functional.cross_entropy(output.float(), y)
    with make_step(module, torch.float16, scaled, loss_scale=True) as step:
        held = step._execution
        x, y = make_batch(0, torch.float16)
        skipped = 0
        while True:
            before, scale = step.state_dict(), float(held.read(["loss_scale"])["loss_scale"])
            step(x, y=y)
            after = float(held.read(["loss_scale"])["loss_scale"])
            if after == scale:
                break
            assert after == scale / 2
            assert all(torch.equal(value, before[name]) for name, value in step.state_dict().items())
            skipped += 1
        assert 0 < skipped < 20
        loss = 4 * functional.cross_entropy(reference(x.double()), y)
        loss.backward()
        torch.optim.SGD(reference.parameters(), lr=RATE).step()
        for name, value in reference.state_dict().items():
            torch.testing.assert_close(step.state_dict()[name].double(), value, rtol=0.02, atol=0.02)


def test_parameters_of_16_bits_have_masters(tmp_path):
    """Steps that bfloat16 alone would round away add up; loading the module's values starts the masters anew."""
    module = make_module().bfloat16()
    start = {name: value.clone() for name, value in module.state_dict().items()}
    loss = lambda output, y: functional.cross_entropy(output.float(), y)
    with make_step(module, torch.bfloat16, loss, optimizer=weir.SGD(learning_rate=1e-4)) as step:
        x, y = make_batch(0, torch.bfloat16)
        step(x, y=y)
        masters = step._execution.read([name + ".master" for name in start])
        assert any(not numpy.array_equal(masters[name + ".master"], start[name].float().numpy()) for name in start)
        for name, value in step.state_dict().items():
            assert value.dtype == torch.bfloat16
            assert torch.equal(value, torch.from_numpy(masters[name + ".master"]).bfloat16())
        for _ in range(200):
            step(x, y=y)
        assert any(not torch.equal(value, start[name]) for name, value in step.state_dict().items())
        step.load_state_dict(start)
        masters = step._execution.read([name + ".master" for name in start])
        assert all(numpy.array_equal(masters[name + ".master"], start[name].float().numpy()) for name in start)


@pytest.mark.parametrize("device", ["cpu", "vulkan"])
def test_state_in_host_memory_has_the_same_bits(device, tmp_path):
    """20 steps with and without; state of 16-bit parameters has masters and averages; checkpoints fit both."""
    loss = lambda output, y: functional.cross_entropy(output.float(), y)
    options = dict(loss=loss, optimizer=weir.AdamW(learning_rate=1e-3), clip_norm=1.0, ema=0.9, device=device)
    with make_step(make_module().bfloat16(), torch.bfloat16, **options) as plain, \
            make_step(make_module().bfloat16(), torch.bfloat16, offload="state", **options) as offloaded:
        held = offloaded._execution.held.values()
        state = {tensor.name for tensor in held if tensor.in_host}
        assert state == {tensor.name for tensor in held if tensor.kind == "state" and tensor.shape}
        assert len(state) == 4 * len(offloaded.state_dict())
        assert "of it in host memory" in repr(offloaded) and "in host memory" not in repr(plain)
        for number in range(20):
            x, y = make_batch(number, torch.bfloat16)
            assert float(plain(x, y=y)) == float(offloaded(x, y=y))
            if number == 9:
                plain.save(tmp_path / "middle.safetensors")
                offloaded.load(tmp_path / "middle.safetensors")
        for name, value in plain._execution.read().items():
            assert numpy.array_equal(value, offloaded._execution.read([name])[name]), name
    with pytest.raises(ValueError, match="offload is 'params'; expected None or \"state\""):
        make_step(make_module(), offload="params")


RULE = """
func.func @update(%p: f32 {weir.kind = "param"}, %g: f32 {weir.kind = "gradient"},
                  %rate: f32 {weir.name = "rate"}) -> f32 {
  %change = arith.mulf %rate, %g : f32
  %new = arith.subf %p, %change : f32
  return %new : f32
}
"""


def test_a_rule_of_ones_own(tmp_path):
    (tmp_path / "rule.mlir").write_text(RULE)
    module = make_module()
    reference = copy.deepcopy(module).double()
    losses = follow(reference)
    with make_step(module, optimizer=weir.Rule(tmp_path / "rule.mlir", rate=RATE)) as step:
        for number in range(len(losses)):
            x, y = make_batch(number)
            step(x, y=y)
        compare(step, reference)
    with pytest.raises(TypeError, match="hyperparameter rate, which was not given"):
        make_step(module, optimizer=weir.Rule(tmp_path / "rule.mlir"))
    with pytest.raises(weir.CompileError, match="kinds are param, gradient and state"):
        (tmp_path / "bad.mlir").write_text(RULE.replace("gradient", "slope"))
        make_step(module, optimizer=weir.Rule(tmp_path / "bad.mlir", rate=RATE))
    with pytest.raises(ValueError, match="group a sets momentum, which the optimizer has not"):
        make_step(module, groups={"a": weir.Group("*", momentum=0.1)})
    with pytest.raises(weir.CompileError, match="has no parameter in group 'a'"):
        make_step(module, groups={"a": weir.Group("none*")})


def test_a_step_predicts_with_its_parameters():
    """In evaluation mode, whatever the mode of the module; a batch of another size."""
    torch.manual_seed(5)
    module = nn.Sequential(nn.Linear(6, 9), nn.BatchNorm1d(9), nn.Dropout(0.5), nn.Linear(9, 4))
    module[0].weight.requires_grad_(False)
    inputs = torch.randn(3, 6)
    with make_step(module, predict=(inputs,)) as step:
        assert set(step.entries) == {"main.step", "predict"} and module[2].training
        for number in range(3):
            x, y = make_batch(number)
            step(x, y=y)
        module.load_state_dict(step.state_dict())
        torch.testing.assert_close(step.predict(inputs), module.eval()(inputs), rtol=1e-4, atol=1e-5)
    with make_step(make_module()) as step, pytest.raises(ValueError, match="without predict=EXAMPLE"):
        step.predict(inputs)


def test_settings_that_make_no_sense_are_refused():
    for settings in ({}, {"momentum": 0.9, "dampening": 0.1}):
        with pytest.raises(ValueError, match="Nesterov's momentum needs a momentum, and has no dampening"):
            weir.SGD(nesterov=True, **settings)
    with pytest.raises(ValueError, match="group a sets maximize, which the optimizer has not"):
        make_step(make_module(), groups={"a": weir.Group("*", maximize=True)})


def test_a_step_up_the_gradient():
    """Clipped by its norm, with dampening: in two groups."""
    module = make_module()
    reference = copy.deepcopy(module).double()
    optimizer = torch.optim.SGD(reference.parameters(), lr=RATE, momentum=0.9, dampening=0.3, maximize=True)
    settings = weir.SGD(learning_rate=RATE, momentum=0.9, dampening=0.3, maximize=True)
    with make_step(module, optimizer=settings, clip_norm=0.5, groups={"biases": weir.Group("*.bias")}) as step:
        for number in range(4):
            x, y = make_batch(number)
            optimizer.zero_grad()
            functional.cross_entropy(reference(x.double()), y).backward()
            nn.utils.clip_grad_norm_(reference.parameters(), 0.5)
            optimizer.step()
            step(x, y=y)
        compare(step, reference)
