"""SGLang plugin for measurements: dummy weights of a size at which every part of the model changes the next token.

Not a part of the product. SGLang's own dummy weights are within 0.001, where fp8 rounds nearly all to nothing and a
wrong attention would go unseen. Here they are within 0.05 (a linear layer of 4096 inputs then keeps its input's size), and
norms are 1. Still random: no statement on what a trained model says.
"""

DUMMY = "sglang.srt.model_loader.weight_utils.initialize_dummy_weights"
RANGE = 0.05


def register() -> None:
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType

    HookRegistry.register(DUMMY, fill, HookType.AROUND)


def fill(original, model, *_args, **_kwargs) -> None:
    original(model, -RANGE, RANGE)
    for name, parameter in model.state_dict().items():
        if name.endswith("norm.weight"):
            parameter.fill_(1.0)
