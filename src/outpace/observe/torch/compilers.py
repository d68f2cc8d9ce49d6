"""What compilers of PyTorch must not look into."""

from __future__ import annotations

from types import ModuleType

import torch


def keep_compilers_out(dynamo: ModuleType) -> None:
    """Gradients are computed outside compiled code; what stands around them must not be compiled either."""
    torch.autograd.backward = dynamo.disable(torch.autograd.backward)
