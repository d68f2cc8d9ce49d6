"""BERT-base, masked-language training on synthetic tokens, for measuring and predicting (PyTorch)."""

import argparse
import importlib.util
import sys

import torch


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--data", default="synthetic", choices=["synthetic"], help="random, of the right shape"
    )
    parser.add_argument("--epochs", type=int, default=1, help="default: 1")
    parser.add_argument("--steps", type=int, default=100, help="steps per epoch, default: 100")
    parser.add_argument("--batch-size", type=int, default=16, help="default: 16")
    parser.add_argument("--lr", type=float, default=1e-4, help="default: 1e-4")
    parser.add_argument("--sequence-length", type=int, default=128, help="default: 128")
    args = parser.parse_args()
    if not importlib.util.find_spec("transformers"):
        sys.exit("bert-base needs transformers: pip install transformers")
    from transformers import BertConfig, BertForMaskedLM

    device = "cuda" if torch.cuda.is_available() else "xpu" if torch.xpu.is_available() else "cpu"
    if torch.backends.mps.is_available():
        device = "mps"
    config = BertConfig(max_position_embeddings=max(512, args.sequence_length))
    with torch.device(device):  # make the weights where they will be used
        model = BertForMaskedLM(config).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    tokens = torch.randint(1000, config.vocab_size, (args.batch_size, args.sequence_length), device=device)
    masked = torch.rand(tokens.shape, device=device) < 0.15
    labels = tokens.masked_fill(~masked, -100)
    inputs = tokens.masked_fill(masked, 103)  # [MASK]
    print(f"{sum(parameter.numel() for parameter in model.parameters()):,} parameters")
    for epoch in range(1, args.epochs + 1):
        for step in range(args.steps):
            optimizer.zero_grad()
            loss = model(inputs, labels=labels).loss
            loss.backward()
            optimizer.step()
            if step % 100 == 0 and not sys.stdout.isatty():
                done, total = step * args.batch_size, args.steps * args.batch_size
                share = f"{done}/{total} ({100 * step / args.steps:.0f}%)"
                print(f"Train Epoch: {epoch} [{share}]  Loss: {loss.item():.6f}", flush=True)


if __name__ == "__main__":
    main()
