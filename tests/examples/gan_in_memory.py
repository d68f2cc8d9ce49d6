"""A GAN whose data are a tensor in memory, without a data loader: 6 rounds of 16."""

import torch
from torch import nn

torch.manual_seed(1)
images = torch.randn(96, 20)
generator = nn.Sequential(nn.Linear(5, 32), nn.ReLU(), nn.Linear(32, 20))
discriminator = nn.Sequential(nn.Linear(20, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
optimizer_d = torch.optim.Adam(discriminator.parameters())
optimizer_g = torch.optim.Adam(generator.parameters())
criterion = nn.BCEWithLogitsLoss()
for real in images.split(16):
    optimizer_d.zero_grad()
    loss_real = criterion(discriminator(real), torch.ones(16, 1))
    loss_real.backward()
    fake = generator(torch.randn(16, 5))
    loss_fake = criterion(discriminator(fake.detach()), torch.zeros(16, 1))
    loss_fake.backward()
    optimizer_d.step()

    optimizer_g.zero_grad()
    loss_g = criterion(discriminator(fake), torch.ones(16, 1))
    loss_g.backward()
    optimizer_g.step()
    print(f"LOSS {loss_real.item() + loss_fake.item() + loss_g.item():.9f}")
