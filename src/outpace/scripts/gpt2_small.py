"""GPT-2 small, language-model training on synthetic tokens, for measuring and predicting (PyTorch)."""

import argparse
import importlib.util
import sys

import torch
from torch.nn import functional as F


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--data", default="synthetic", choices=["synthetic"], help="random, of the right shape"
    )
    parser.add_argument("--epochs", type=int, default=1, help="default: 1")
    parser.add_argument("--steps", type=int, default=100, help="steps per epoch, default: 100")
    parser.add_argument("--batch-size", type=int, default=4, help="default: 4")
    parser.add_argument("--lr", type=float, default=3e-4, help="default: 3e-4")
    parser.add_argument("--sequence-length", type=int, default=1024, help="default: 1024")
    args = parser.parse_args()
    if not importlib.util.find_spec("transformers"):
        sys.exit("gpt2-small needs transformers: pip install transformers")
    from transformers import GPT2Config, GPT2LMHeadModel

    device = "cuda" if torch.cuda.is_available() else "xpu" if torch.xpu.is_available() else "cpu"
    if torch.backends.mps.is_available():
        device = "mps"
    config = GPT2Config(n_positions=max(1024, args.sequence_length), use_cache=False)
    with torch.device(device):  # make the weights where they will be used
        model = GPT2LMHeadModel(config).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    tokens = torch.randint(0, config.vocab_size, (args.batch_size, args.sequence_length), device=device)
    print(f"{sum(parameter.numel() for parameter in model.parameters()):,} parameters")
    for epoch in range(1, args.epochs + 1):
        for step in range(args.steps):
            optimizer.zero_grad()
            logits = model(tokens).logits[:, :-1]  # each position predicts the next token
            loss = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
            loss.backward()
            optimizer.step()
            if step % 100 == 0 and not sys.stdout.isatty():
                done, total = step * args.batch_size, args.steps * args.batch_size
                share = f"{done}/{total} ({100 * step / args.steps:.0f}%)"
                print(f"Train Epoch: {epoch} [{share}]  Loss: {loss.item():.6f}", flush=True)


if __name__ == "__main__":
    main()
