"""Elman RNN on MNIST images read as sequences of rows (PyTorch).

Each image is a sequence of 28 rows, resampled to 10 columns. The binary label is whether the digit has a
closed loop (0, 6, 8, 9): it can only be told from rows far apart, and 60 % of the digits have none.
"""

import argparse
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import outpace
from outpace import data

LOOPS = torch.tensor([0, 6, 8, 9])


class Classifier(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.RNN(input_size=10, hidden_size=20, batch_first=True)
        self.head = nn.Linear(20, 1)

    def forward(self, rows):
        outputs, _ = self.rnn(rows)
        return self.head(outputs[:, -1]).squeeze(1)


def dataset(images, labels) -> TensorDataset:
    pixels = torch.from_numpy(images.copy()).float() / 255
    rows = nn.functional.adaptive_avg_pool1d(pixels, 10)
    return TensorDataset(rows, torch.isin(torch.from_numpy(labels.copy()), LOOPS).float())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--data", default="sample", help="sample, full, or a folder with MNIST (default: sample)"
    )
    parser.add_argument("--epochs", type=int, help="default: 10; on the sample 40")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--lr", type=float, help="learning rate (default: 0.001; on the sample 0.005)")
    args = parser.parse_args()
    sample = args.data == "sample"
    digits = data.mnist(args.data)
    device = "cuda" if torch.cuda.is_available() else "xpu" if torch.xpu.is_available() else "cpu"
    if torch.backends.mps.is_available():
        device = "mps"
    loader = DataLoader(dataset(digits.train_images, digits.train_labels), args.batch_size, shuffle=True)
    rows, loops = dataset(digits.test_images, digits.test_labels).tensors
    model = Classifier().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr or (0.005 if sample else 0.001))
    for epoch in range(1, (args.epochs or (40 if sample else 10)) + 1):
        for batch, (x, y) in enumerate(loader):
            optimizer.zero_grad()
            loss = nn.functional.binary_cross_entropy_with_logits(model(x.to(device)), y.to(device))
            loss.backward()
            optimizer.step()
            if batch % 100 == 0 and not sys.stdout.isatty():
                share = f"{batch * args.batch_size}/{len(loader.dataset)} ({100 * batch / len(loader):.0f}%)"
                print(f"Train Epoch: {epoch} [{share}]  Loss: {loss.item():.6f}", flush=True)
    model.eval()
    with torch.no_grad():
        accuracy = ((model(rows.to(device)).cpu() > 0) == loops.bool()).float().mean().item()
    chance = max(loops.mean().item(), 1 - loops.mean().item())
    print(f"Test accuracy: {accuracy:.4f} (always the more frequent answer: {chance:.4f})")
    outpace.log(test_accuracy=accuracy, chance_accuracy=chance)


if __name__ == "__main__":
    main()
