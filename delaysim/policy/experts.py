"""How a mixture of experts is computed."""

from transformers import PreTrainedModel

from delaysim.errors import UserError
from delaysim.settings.models import NO_EXPERTS


def set_experts(model: PreTrainedModel, implementation: str) -> None:
    """Compute experts by this one of EXPERTS_IMPLEMENTATIONS, in place. Raises UserError of a dense model."""
    parts = (part for part in model.modules() if isinstance(part, PreTrainedModel))
    if not any(part._can_set_experts_implementation() for part in parts):
        raise UserError(f"experts_implementation={implementation}: {NO_EXPERTS}")  # transformers would say nothing
    model.set_experts_implementation(implementation)
