"""Small versions of published architectures: nothing is wrong with any of them."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Bottleneck(nn.Module):
    """Of ResNet-50, the last gamma zero at first (Goyal et al., 2017)."""

    def __init__(self, inside: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inside, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, 4 * width, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(4 * width)
        self.down = nn.Sequential(
            nn.Conv2d(inside, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width)
        )
        nn.init.zeros_(self.bn3.weight)

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.bn1(self.conv1(x)))
        y = F.relu(self.bn2(self.conv2(y)))
        return F.relu(self.bn3(self.conv3(y)) + self.down(x))


class ResNet50(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 8, 7, 2, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2)
        )
        self.stages = nn.Sequential(Bottleneck(8, 8, 1), Bottleneck(32, 8, 1), Bottleneck(32, 16, 2))
        self.head = nn.Linear(64, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.stages(self.stem(x)).mean((2, 3)))


class UNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down1, self.down2, self.deep = self.double(3, 8), self.double(8, 16), self.double(16, 32)
        self.up2, self.up1 = nn.ConvTranspose2d(32, 16, 2, 2), nn.ConvTranspose2d(16, 8, 2, 2)
        self.mix2, self.mix1 = self.double(32, 16), self.double(16, 8)
        self.out = nn.Conv2d(8, 2, 1)

    @staticmethod
    def double(a: int, b: int) -> nn.Sequential:
        return nn.Sequential(
            nn.Conv2d(a, b, 3, padding=1),
            nn.ReLU(inplace=True),
            nn.Conv2d(b, b, 3, padding=1),
            nn.ReLU(inplace=True),
        )

    def forward(self, x: Tensor) -> Tensor:
        one = self.down1(x)
        two = self.down2(F.max_pool2d(one, 2))
        deep = self.deep(F.max_pool2d(two, 2))
        two = self.mix2(torch.cat([self.up2(deep), two], 1))
        return self.out(self.mix1(torch.cat([self.up1(two), one], 1)))


class Block(nn.Module):
    """Of a transformer: the norm before or behind, LayerScale and zero-initialised branches on request."""

    def __init__(self, width: int, *, post: bool = False, scale: bool = False, zero: bool = False) -> None:
        super().__init__()
        self.post = post
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width),
            nn.GELU(),
            nn.Dropout(0.1),
            nn.Linear(4 * width, width),
            nn.Dropout(0.1),
        )
        self.scale1, self.scale2 = (
            nn.Parameter(1e-5 * torch.ones(width)) if scale else 1.0 for _ in range(2)
        )
        if zero:
            nn.init.zeros_(self.out.weight)
            nn.init.zeros_(self.mlp[3].weight)

    def attend(self, x: Tensor) -> Tensor:
        q, k, v = (p.unflatten(-1, (2, -1)).transpose(1, 2) for p in self.qkv(x).chunk(3, -1))
        mixed = F.scaled_dot_product_attention(q, k, v, dropout_p=0.1 if self.training else 0.0)
        return self.out(mixed.transpose(1, 2).flatten(2))

    def forward(self, x: Tensor) -> Tensor:
        if self.post:
            x = self.norm1(x + self.attend(x))
            return self.norm2(x + self.mlp(x))
        x = x + self.scale1 * self.attend(self.norm1(x))
        return x + self.scale2 * self.mlp(self.norm2(x))


class GPT(nn.Module):
    def __init__(self, **block: bool) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(50, 16), nn.Embedding(64, 16)
        self.drop = nn.Dropout(0.1)
        self.blocks = nn.ModuleList(Block(16, **block) for _ in range(3))
        self.norm = nn.LayerNorm(16)
        self.head = nn.Linear(16, 50, bias=False)
        self.head.weight = self.tokens.weight
        self.apply(self.begin)

    @staticmethod
    def begin(module: nn.Module) -> None:
        if isinstance(module, (nn.Linear, nn.Embedding)) and bool(module.weight.any()):
            nn.init.normal_(module.weight, std=0.02)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.drop(self.tokens(ids) + self.positions(torch.arange(ids.shape[1], device=ids.device)))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class ViT(nn.Module):
    def __init__(self, **block: bool) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 16, 4, 4)
        self.token = nn.Parameter(torch.zeros(1, 1, 16))
        self.positions = nn.Parameter(torch.zeros(1, 5, 16))
        self.blocks = nn.Sequential(*(Block(16, **block) for _ in range(2)))
        self.norm, self.head = nn.LayerNorm(16), nn.Linear(16, 10)
        nn.init.zeros_(self.head.weight)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(len(x), -1, -1), x], 1) + self.positions
        return self.head(self.norm(self.blocks(x))[:, 0])


class Diffusion(nn.Module):
    """adaLN-zero: the modulation and the last layer start at zero (Peebles and Xie, 2023)."""

    def __init__(self) -> None:
        super().__init__()
        self.time = nn.Sequential(nn.Linear(1, 16), nn.SiLU(), nn.Linear(16, 16))
        self.modulate = nn.Sequential(nn.SiLU(), nn.Linear(16, 48))
        self.norm = nn.LayerNorm(16, elementwise_affine=False)
        self.inside, self.mlp, self.last = nn.Linear(8, 16), nn.Linear(16, 16), nn.Linear(16, 8)
        for layer in (self.modulate[1], self.last):
            nn.init.zeros_(layer.weight)
            nn.init.zeros_(layer.bias)

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        shift, scale, gate = self.modulate(self.time(t)).chunk(3, -1)
        h = self.inside(x)
        h = h + gate * self.mlp(F.gelu(self.norm(h) * (1 + scale) + shift))
        return self.last(h)


class LoRA(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.base = nn.Linear(8, 8).requires_grad_(False)
        self.a, self.b = nn.Linear(8, 2, bias=False), nn.Linear(2, 8, bias=False)
        self.head = nn.Linear(8, 3)
        nn.init.zeros_(self.b.weight)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(F.relu(self.base(x) + self.b(self.a(x))))


class SpatialTransformer(nn.Module):
    """The transformation starts as the identity: zeros, and a bias that says so."""

    def __init__(self) -> None:
        super().__init__()
        self.look, self.theta = nn.Linear(64, 16), nn.Linear(16, 6)
        self.conv, self.head = nn.Conv2d(1, 4, 3), nn.Linear(4, 2)
        nn.init.zeros_(self.theta.weight)
        self.theta.bias.data.copy_(torch.tensor([1.0, 0, 0, 0, 1, 0]))

    def forward(self, x: Tensor) -> Tensor:
        theta = self.theta(F.relu(self.look(x.flatten(1)))).view(-1, 2, 3)
        x = F.grid_sample(x, F.affine_grid(theta, list(x.shape), align_corners=False), align_corners=False)
        return self.head(F.relu(self.conv(x)).mean((2, 3)))


class Coupling(nn.Module):
    """A step of a normalising flow; the network inside ends in zeros."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(4, 16), nn.Linear(16, 8)
        nn.init.zeros_(self.last.weight)

    def forward(self, x: Tensor) -> Tensor:
        a, b = x.chunk(2, -1)
        scale, shift = self.last(F.relu(self.first(a))).chunk(2, -1)
        return torch.cat([a, b * scale.exp() + shift], -1)


class Experts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.router = nn.Linear(8, 4, bias=False)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 8)) for _ in range(4)
        )

    def forward(self, x: Tensor) -> Tensor:
        chosen = self.router(x).softmax(-1).argmax(-1)
        out = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            where = (chosen == number).nonzero().flatten()
            if len(where):
                out = out.index_add(0, where, expert(x[where]))
        return x + out


class VAE(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(16, 12), nn.ReLU())
        self.mean, self.spread = nn.Linear(12, 3), nn.Linear(12, 3)
        self.decoder = nn.Sequential(nn.Linear(3, 12), nn.ReLU(), nn.Linear(12, 16))

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        h = self.encoder(x)
        mean, spread = self.mean(h), self.spread(h)
        return self.decoder(mean + torch.randn_like(mean) * (spread / 2).exp()), x, mean, spread


class GAN(nn.Module):
    """Both networks in one module; the forward draws samples, the loss asks the other one."""

    def __init__(self) -> None:
        super().__init__()
        self.generator = nn.Sequential(
            nn.ConvTranspose2d(4, 8, 4, bias=False),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.ConvTranspose2d(8, 1, 4, 2, 1),
        )
        self.discriminator = nn.Sequential(nn.Conv2d(1, 8, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(8, 1, 4))

    def loss(self, z: Tensor) -> Tensor:
        return F.softplus(-self.discriminator(self(z))).mean()

    def forward(self, z: Tensor) -> Tensor:
        return self.generator(z).tanh()


class Masked(nn.Module):
    """A token that is used only if something is masked."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.token = nn.Linear(4, 4), nn.Parameter(torch.zeros(4))

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        if mask is not None:
            x = torch.where(mask[..., None], self.token, x)
        return F.relu(self.layer(x))


class Frozen(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.backbone = ResNet50().requires_grad_(False)
        self.backbone.head = nn.Identity()
        self.head = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Dropout(0.5), nn.Linear(32, 5))

    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            h = self.backbone(x)
        return self.head(h)


class Translator(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(30, 16)
        self.body = nn.Transformer(16, 2, 1, 1, 32, batch_first=True)
        self.out = nn.Linear(16, 30)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(target.shape[1], device=target.device)
        return self.out(self.body(self.tokens(source), self.tokens(target), tgt_mask=mask))


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.out = nn.Embedding(30, 8), nn.Linear(24, 3)
        self.lstm = nn.LSTM(8, 12, 2, batch_first=True, bidirectional=True, dropout=0.2)

    def forward(self, ids: Tensor) -> Tensor:
        start = self.tokens.weight.new_zeros(4, len(ids), 12)
        return self.out(self.lstm(self.tokens(ids), (start, start))[0][:, -1])


class Separable(nn.Module):
    """Depthwise and pointwise convolutions with a linear bottleneck, as in MobileNetV2."""

    def __init__(self) -> None:
        super().__init__()
        self.wide = nn.Sequential(nn.Conv2d(8, 32, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU6())
        self.depth = nn.Sequential(nn.Conv2d(32, 32, 3, padding=1, groups=32, bias=False), nn.BatchNorm2d(32))
        self.narrow = nn.Sequential(nn.Conv2d(32, 8, 1, bias=False), nn.BatchNorm2d(8))
        self.gate = nn.Sequential(nn.Linear(32, 8), nn.ReLU(), nn.Linear(8, 32), nn.Sigmoid())

    def forward(self, x: Tensor) -> Tensor:
        h = F.relu6(self.depth(self.wide(x)))
        return x + self.narrow(h * self.gate(h.mean((2, 3)))[..., None, None])


def weight_normed() -> nn.Module:
    normed = nn.utils.parametrizations.weight_norm
    return nn.Sequential(normed(nn.Linear(6, 8)), nn.Tanh(), normed(nn.Linear(8, 2)))


def mlp() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(16, 32), nn.ReLU(), nn.Dropout(0.5), nn.Linear(32, 10))


SOUND: dict[str, tuple[Any, list[Any]]] = {
    "mlp": (mlp, [(3, 4, 4)]),
    "resnet50 with zero gammas": (ResNet50, [(2, 3, 32, 32)]),
    "unet": (UNet, [(2, 3, 16, 16)]),
    "gpt with tied weights": (GPT, [(2, 7)]),
    "gpt, norm behind": (lambda: GPT(post=True), [(2, 7)]),
    "gpt, zero branches": (lambda: GPT(zero=True), [(2, 7)]),
    "vit, zero head": (ViT, [(2, 3, 8, 8)]),
    "vit, layer scale": (lambda: ViT(scale=True), [(2, 3, 8, 8)]),
    "adaln-zero": (Diffusion, [(5, 8), (5, 1)]),
    "lora": (LoRA, [(5, 8)]),
    "spatial transformer": (SpatialTransformer, [(2, 1, 8, 8)]),
    "coupling": (Coupling, [(5, 8)]),
    "experts": (Experts, [(3, 8)]),
    "vae": (VAE, [(5, 16)]),
    "gan": (GAN, [(2, 4, 1, 1)]),
    "masked": (Masked, [(2, 3, 4)]),
    "frozen backbone": (Frozen, [(2, 3, 32, 32)]),
    "nn.Transformer": (Translator, [torch.ones(2, n, dtype=torch.long) for n in (5, 4)]),
    "lstm": (Recurrent, [(2, 5)]),
    "mobilenet": (Separable, [(2, 8, 6, 6)]),
    "weight norm": (weight_normed, [(4, 6)]),
    "encoder": (lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, norm_first=True), 2,
                                              enable_nested_tensor=False), [(5, 2, 8)]),
}  # fmt: skip
