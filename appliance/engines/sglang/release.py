"""Whether the SGLang that is installed here is the one that a plan was made for."""

from appliance.documents import Plan
from appliance.errors import InputError
from appliance.recon.engine import installed


def require(plan: Plan) -> None:
    """Raise InputError unless the plan's version of SGLang is installed in this environment."""
    found = installed("sglang")
    if found is None:
        raise InputError(f"SGLang is not installed in this environment; the plan expects sglang {plan.engine.version}")
    if found != plan.engine.version:
        raise InputError(f"SGLang {found} is installed; the plan expects {plan.engine.version}")
