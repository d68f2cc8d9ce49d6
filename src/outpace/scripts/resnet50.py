"""ResNet-50 on synthetic images, for measuring and predicting (PyTorch)."""

import argparse
import importlib.util
import sys

import torch
from torch import nn


def network() -> nn.Module:
    """ResNet-50 with random weights, from the first of three libraries that is installed."""
    if importlib.util.find_spec("torchvision"):
        from torchvision.models import resnet50

        return resnet50(weights=None)
    if importlib.util.find_spec("timm"):
        import timm

        return timm.create_model("resnet50", pretrained=False)
    if importlib.util.find_spec("transformers"):
        from transformers import ResNetConfig, ResNetForImageClassification

        return ResNetForImageClassification(ResNetConfig(num_labels=1000))
    sys.exit("resnet50 needs one of torchvision, timm, transformers: pip install torchvision")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--data", default="synthetic", choices=["synthetic"], help="random, of the right shape"
    )
    parser.add_argument("--epochs", type=int, default=1, help="default: 1")
    parser.add_argument("--steps", type=int, default=100, help="steps per epoch, default: 100")
    parser.add_argument("--batch-size", type=int, default=32, help="default: 32")
    parser.add_argument("--lr", type=float, default=0.1, help="default: 0.1")
    parser.add_argument("--image-size", type=int, default=224, help="default: 224")
    args = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "xpu" if torch.xpu.is_available() else "cpu"
    if torch.backends.mps.is_available():
        device = "mps"
    model = network().to(device).train()
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9, weight_decay=1e-4)
    images = torch.randn(args.batch_size, 3, args.image_size, args.image_size, device=device)
    labels = torch.randint(0, 1000, (args.batch_size,), device=device)
    print(f"{sum(parameter.numel() for parameter in model.parameters()):,} parameters")
    for epoch in range(1, args.epochs + 1):
        for step in range(args.steps):
            optimizer.zero_grad()
            output = model(images)
            loss = nn.functional.cross_entropy(getattr(output, "logits", output), labels)
            loss.backward()
            optimizer.step()
            if step % 100 == 0 and not sys.stdout.isatty():
                done, total = step * args.batch_size, args.steps * args.batch_size
                share = f"{done}/{total} ({100 * step / args.steps:.0f}%)"
                print(f"Train Epoch: {epoch} [{share}]  Loss: {loss.item():.6f}", flush=True)


if __name__ == "__main__":
    main()
