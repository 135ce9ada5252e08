"""PyTorch on the same GPU with the same shapes and random weights:
    peer.py bandwidth | matmul | train SHAPE LAYERS TOKENS | decode SHAPE LAYERS SEQUENCES CONTEXT
Prints one JSON object per run. Training: fp32 master weights, autocast to bf16, torch.compile if it works, fused AdamW. Decoding: bf16
weights, static key/value cache, the token as a CUDA graph. Requires only torch with CUDA; installs nothing."""
import json
import statistics
import sys
import time

try:
    import torch
except ImportError:
    sys.exit("peer.py: this Python has no torch; set PYTHON to one that has it (python3 -m pip install torch), or skip the peer")
import torch.nn.functional as F
from torch import nn

SHAPES = {"1.5b": (1536, 28, 12, 2, 128, 8960, 151936, True), "7b": (3584, 28, 28, 4, 128, 18944, 152064, False),
          "toy": (256, 2, 4, 2, 64, 512, 1024, True)}
ROUNDS, NEW = 5, 128


def norm(x, w):
    y = x.float()
    return (y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype) * w.to(x.dtype)


def turn(x, cos, sin):
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


class Layer(nn.Module):
    def __init__(self, C, H, J, D, inner):
        super().__init__()
        self.H, self.J, self.D = H, J, D
        self.qkv = nn.Linear(C, (H + 2 * J) * D)
        self.o = nn.Linear(H * D, C, bias=False)
        self.gate_up = nn.Linear(C, 2 * inner, bias=False)
        self.down = nn.Linear(inner, C, bias=False)
        self.n1, self.n2 = nn.Parameter(torch.ones(C)), nn.Parameter(torch.ones(C))

    def forward(self, x, cos, sin, cache=None, at=None):
        B, T, _ = x.shape
        q, k, v = self.qkv(norm(x, self.n1)).split([self.H * self.D, self.J * self.D, self.J * self.D], -1)
        q = turn(q.view(B, T, self.H, self.D).transpose(1, 2), cos, sin)
        k = turn(k.view(B, T, self.J, self.D).transpose(1, 2), cos, sin)
        v = v.view(B, T, self.J, self.D).transpose(1, 2)
        if cache is not None:
            cache[0].index_copy_(2, at, k)
            cache[1].index_copy_(2, at, v)
            k, v = cache
        a = F.scaled_dot_product_attention(q, k, v, is_causal=cache is None, enable_gqa=True)
        x = x + self.o(a.transpose(1, 2).reshape(B, T, -1))
        gate, up = self.gate_up(norm(x, self.n2)).chunk(2, -1)
        return x + self.down(F.silu(gate) * up)


class Model(nn.Module):
    def __init__(self, C, L, H, J, D, inner, V, tied):
        super().__init__()
        self.D = D
        self.embed = nn.Embedding(V, C)
        self.layers = nn.ModuleList(Layer(C, H, J, D, inner) for _ in range(L))
        self.n = nn.Parameter(torch.ones(C))
        self.head = nn.Linear(C, V, bias=False)
        if tied:
            self.head.weight = self.embed.weight

    def angles(self, pos, dtype):
        f = 1e6 ** (-torch.arange(0, self.D, 2, device=pos.device).float() / self.D)
        a = pos[:, None].float() * f
        return a.cos().to(dtype), a.sin().to(dtype)

    def forward(self, ids, pos, caches=None):
        x = self.embed(ids)
        cos, sin = self.angles(pos, torch.bfloat16)
        for i, layer in enumerate(self.layers):
            x = layer(x, cos, sin, None if caches is None else caches[i], pos)
        return self.head(norm(x, self.n))


def model_of(name, layers, dtype):
    C, L, H, J, D, inner, V, tied = SHAPES[name]
    with torch.device("cuda"):
        torch.set_default_dtype(dtype)
        m = Model(C, layers or L, H, J, D, inner, V, tied)
        torch.set_default_dtype(torch.float32)
    for p in m.parameters():
        if p.dim() > 1:
            nn.init.normal_(p, 0, 0.02)
    return m, (C, layers or L, H, J, D, inner, V)


def timed(f, rounds=ROUNDS, warm=3):
    took = []
    for i in range(warm + rounds):
        torch.cuda.synchronize()
        began = time.perf_counter()
        f()
        torch.cuda.synchronize()
        if i >= warm:
            took.append(time.perf_counter() - began)
    return statistics.median(took)


def product_flops(C, L, H, J, D, inner, V):
    return 2 * (L * (C * (H + 2 * J) * D + H * D * C + 3 * C * inner) + C * V)


def bandwidth():
    x = torch.empty(1 << 30, device="cuda").normal_()
    y = torch.empty_like(x)
    return {"bench": "bandwidth", "read_gbs": 4e-9 * x.numel() / timed(lambda: x.sum(), 10), "copy_gbs": 8e-9 * x.numel() / timed(lambda: y.copy_(x), 10)}


def matmul():
    a, b = (torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    return {"bench": "matmul", "tflops": 2e-12 * 8192**3 / timed(lambda: a @ b, 20)}


def train(name, layers, tokens):
    m, s = model_of(name, layers, torch.float32)
    optimizer = torch.optim.AdamW(m.parameters(), lr=1e-6, fused=True)
    ids, pos = torch.randint(0, s[-1], (1, tokens + 1), device="cuda"), torch.arange(tokens, device="cuda")

    def loss_of(run):
        with torch.autocast("cuda", torch.bfloat16):
            return F.cross_entropy(run(ids[:, :-1], pos).float().view(-1, s[-1]), ids[0, 1:])

    def step(run):
        loss_of(run).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    how, run = "compile", torch.compile(m)
    try:
        step(run)
    except Exception as e:  # no compiler on the machine
        how, run = "eager (%s)" % type(e).__name__, m
    seconds = timed(lambda: step(run))
    C, L, H, J, D, inner, V = s
    flops = 3 * (product_flops(*s) * tokens + 2 * L * H * D * tokens**2)
    return {"bench": "train", "shape": name, "layers": L, "tokens": tokens, "how": how, "seconds": seconds, "tflops": 1e-12 * flops / seconds,
            "mfu_989": flops / seconds / 989e12, "memory_gib": torch.cuda.max_memory_allocated() / 2**30}


@torch.no_grad()
def decode(name, layers, n, context):
    m, s = model_of(name, layers, torch.bfloat16)
    C, L, H, J, D, inner, V = s
    caches = [torch.randn(2, n, J, context, D, device="cuda", dtype=torch.bfloat16) for _ in range(L)]
    caches = [(c[0], c[1]) for c in caches]
    ids, pos = torch.randint(0, V, (n, 1), device="cuda"), torch.tensor([context - 1], device="cuda")

    def token():
        p = torch.softmax(m(ids, pos, caches)[:, -1].float(), -1)
        ids.copy_((p / torch.empty_like(p).exponential_()).argmax(-1, keepdim=True))

    for _ in range(3):
        token()
    torch.cuda.synchronize()
    graph, how = torch.cuda.CUDAGraph(), "graph"
    try:
        with torch.cuda.graph(graph):
            token()
        run = graph.replay
    except Exception as e:
        how, run = "eager (%s)" % type(e).__name__, token
    seconds = timed(lambda: [run() for _ in range(NEW)]) / NEW
    size = product_flops(*s) + 4 * L * J * D * n * context
    return {"bench": "decode", "shape": name, "layers": L, "sequences": n, "context": context, "how": how, "seconds_per_token": seconds,
            "tokens_per_second": n / seconds, "bytes": size, "gbs": 1e-9 * size / seconds}


if __name__ == "__main__":
    if not torch.cuda.is_available():
        sys.exit("peer.py: torch %s finds no GPU" % torch.__version__)
    what, rest = sys.argv[1], [a if a in SHAPES else int(a) for a in sys.argv[2:]]
    result = {"bandwidth": bandwidth, "matmul": matmul, "train": train, "decode": decode}[what](*rest)
    print(json.dumps({**result, "peer": "torch " + torch.__version__}))
