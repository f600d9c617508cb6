"""Train the forecaster of markets on what `spotter models dataset` wrote.

    /usr/bin/python3 train.py DATA BUNDLE [--seed N] [--epochs N] [--date TIME]

DATA is the folder of the data set, BUNDLE that to write the graph and its
manifest to. One thread and one seed give the same bytes on one kind of
processor. Python is needed for this alone: features are built, and the bundle is
judged and run, by spotter.
"""

import argparse
import hashlib
import json
import os
import sys

try:
    import numpy as np
    import torch
    from torch import nn
except ImportError as missing:
    sys.exit(f"{missing}: apt-get install -y python3-torch libopenblas0-pthread python3-numpy, and run this with /usr/bin/python3")

CLAMP = 5.0  # deviations from the mean beyond which a feature is cut

# Shares of the strata in the loss, 1 for others: few regions were recorded, and
# what is learned of these alone does not hold in another.
SHARES = {"GPU recorded": 0.3, "GPU generated": 0.5, "GPU generated, scarce": 2.0}

# How far answers are trusted, found by leaving out one of the recorded regions to
# train on, and on the rows to choose by: the part of the distance, in logits, from
# the mean answer for accelerators, and of runtime from the closed form for others.
TRUST_GPU = {"runtime": 0.5, "runtime_6h": 0.5, "capacity": 0.6, "capacity_6h": 0.6}
TRUST_CPU = {"runtime": 0.5, "runtime_6h": 0.5}
CALM, TENSE = -7.0, -4.0  # logits: below the first answers stay, above the second they are drawn to the mean


class Forecaster(nn.Module):
    """What is learned is the difference from the closed form, in logits: gates
    choose among the features, two layers join them, and a linear path beside them
    keeps what needs no joining. An untrained network is the closed form."""

    def __init__(self, about, width):
        super().__init__()
        names, labels, n = about["feature_names"], about["labels"], about["normalisation"]
        features, outputs = len(names), len(labels)
        self.hazard = names.index("closed_form_hazard")
        self.mean, self.scale = n["mean"][self.hazard], n["scale"][self.hazard]
        # Hours of each label of runtime, and 0 for capacity, of which the closed
        # form foretells another thing.
        hours = [(6.0 if l.endswith("_6h") else 1.0) if l.startswith("runtime") else 0.0 for l in labels]
        self.register_buffer("hours", torch.tensor(hours))
        self.gpu = names.index("gpu")
        self.gpu_mean, self.gpu_scale = n["mean"][self.gpu], n["scale"][self.gpu]
        for name, value in (("near", 0.0), ("far", 0.0), ("beyond", 1.0)):
            self.register_buffer(name, torch.full((outputs,), value))
        self.gate = nn.Linear(features, features)
        self.first = nn.Linear(features, width)
        self.second = nn.Linear(width, width // 2)
        self.last = nn.Linear(width // 2, outputs)
        self.beside = nn.Linear(features, outputs)
        self.drop = nn.Dropout(0.1)
        for zero in (self.last, self.beside):
            nn.init.zeros_(zero.weight)
            nn.init.constant_(zero.bias, 0.0)

    def closed(self, x):
        hazard = torch.exp(x[:, self.hazard : self.hazard + 1] * self.scale + self.mean)
        z = torch.clamp(hazard * self.hours, 1e-6, 10.0)
        runtime = z + torch.log(1.0 - torch.exp(-z))  # the logit of 1 - exp(-z)
        known = (self.hours > 0).float()
        return runtime * known - 3.0 * (1.0 - known)

    def trust(self, training, labels):
        """Sets how far answers are trusted."""
        with torch.no_grad():
            z = self.logits(training.x)
            gpu = torch.from_numpy(np.isin(training.stratum, training.scarce))
            open_ = torch.from_numpy(training.open)
            for k, label in enumerate(labels):
                centre = z[gpu & (open_ | (not label.startswith("runtime"))), k].mean().item()
                part = TRUST_GPU[label]
                middle = (centre + part * (TENSE - centre) - CALM) / (TENSE - CALM)
                self.near[k], self.far[k] = middle - 1.0, part - middle
                self.beyond[k] = TRUST_CPU.get(label, 1.0)

    def answers(self, x):
        """Logits as far as they are trusted."""
        z, closed = self.logits(x), self.closed(x)
        gpu = x[:, self.gpu : self.gpu + 1] * self.gpu_scale + self.gpu_mean
        drawn = z + self.near * torch.relu(z - CALM) + self.far * torch.relu(z - TENSE)
        return gpu * drawn + (1.0 - gpu) * (closed + self.beyond * (z - closed))

    def logits(self, x):
        closed = self.closed(x)
        x = torch.clamp(x, -CLAMP, CLAMP)
        x = x * torch.sigmoid(self.gate(x))
        h = torch.tanh(self.first(x))
        h = torch.tanh(self.second(self.drop(h)))
        return closed + self.last(h) + self.beside(x)


class Graph(nn.Module):
    """What is exported: probabilities, one tensor for each label."""

    def __init__(self, net, outputs):
        super().__init__()
        self.net, self.outputs = net, outputs

    def forward(self, x):
        p = torch.sigmoid(self.net.answers(x))
        return tuple(p[:, i : i + 1] for i in range(self.outputs))


class Split:
    """The rows of one split, normalised."""

    def __init__(self, data, about, name):
        load = lambda kind: np.load(os.path.join(data, f"{name}.{kind}.npy"))
        n = about["normalisation"]
        x = (load("features") - np.float32(n["mean"])) / np.float32(n["scale"])
        self.x = torch.from_numpy(x.astype(np.float32))
        y = load("labels")
        rows = load("rows")
        self.stratum = rows[:, about["rows"].index("stratum")]
        self.open = rows[:, about["rows"].index("open")] == 1
        self.scarce = [about["strata"].index(s) for s in ("GPU recorded", "GPU generated, scarce")]
        known = ~np.isnan(y)
        y = np.nan_to_num(y)
        self.y, self.weight = torch.from_numpy(y), torch.from_numpy(self.weigh(about, y, known))

    def weigh(self, about, y, known):
        """Weights that make a stratum's loss that of its own mean when nothing is
        foretold but that: else what is rare would not count. A runtime counts
        where launches are made, in open markets, above all."""
        w = known.astype(np.float32)
        runtime = np.array([name.startswith("runtime") for name in about["labels"]])
        w *= np.where(runtime[None, :] & ~self.open[:, None], 0.2, 1.0).astype(np.float32)
        for s, text in enumerate(about["strata"]):
            at = self.stratum == s
            if not at.any():
                continue
            share = SHARES.get(text, 1.0)
            for k in range(y.shape[1]):
                total = w[at, k].sum()
                p = np.clip((w[at, k] * y[at, k]).sum() / max(total, 1), 1e-6, 1 - 1e-6)
                entropy = -(p * np.log(p) + (1 - p) * np.log(1 - p))
                w[at, k] *= share / max(entropy * total, 1e-9)
        return w


def loss(net, split, at=None):
    x, y, w = (split.x, split.y, split.weight) if at is None else (split.x[at], split.y[at], split.weight[at])
    return (nn.functional.binary_cross_entropy_with_logits(net.logits(x), y, reduction="none") * w).sum()


def train(about, training, choosing, args):
    torch.manual_seed(args.seed)
    net = Forecaster(about, args.width)
    mean = {k: v.clone() for k, v in net.state_dict().items()}  # of the last steps' weights
    steps = args.epochs * (len(training.x) // args.batch)
    optimiser = torch.optim.AdamW(net.parameters(), lr=args.rate, weight_decay=args.decay)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, max_lr=args.rate, total_steps=steps)
    draw = torch.Generator().manual_seed(args.seed)
    best, kept = float("inf"), None
    for epoch in range(args.epochs):
        net.train()
        order = torch.randperm(len(training.x), generator=draw)
        for i in range(len(training.x) // args.batch):
            at = order[i * args.batch : (i + 1) * args.batch]
            optimiser.zero_grad()
            # A batch stands for all rows, so that the weights' sum stays as it is.
            l = loss(net, training, at) * (len(training.x) / args.batch)
            l.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimiser.step()
            schedule.step()
            for k, v in net.state_dict().items():
                mean[k].mul_(1 - args.blend).add_(v, alpha=args.blend)
        last = {k: v.clone() for k, v in net.state_dict().items()}
        net.load_state_dict(mean)
        net.eval()
        with torch.no_grad():
            chosen = loss(net, choosing).item()
        if chosen < best:
            best, kept = chosen, {k: v.clone() for k, v in mean.items()}
        net.load_state_dict(last)
        print(f"epoch {epoch + 1:3d}  loss {l.item():.4f}  on rows to choose by {chosen:.4f}", flush=True)
    net.load_state_dict(kept)
    net.eval().trust(training, about["labels"])
    return net


def export(net, about, bundle, args):
    os.makedirs(bundle, exist_ok=True)
    names = about["labels"]
    path = os.path.join(bundle, "forecaster.onnx")
    batch = {0: "rows"}
    torch.onnx.export(
        Graph(net, len(names)), torch.zeros(2, len(about["feature_names"])), path, opset_version=17,
        input_names=["features"], output_names=names, dynamic_axes={"features": batch, **{n: batch for n in names}},
    )
    with open(path, "rb") as f:
        graph = f.read()
    weights = sum(p.numel() for p in net.parameters())
    manifest = {
        "schema_version": "v2", "generated_at": args.date, "cloud": "aws", "supported_instance_families": about["families"],
        "artifacts": {"forecaster": {"path": "forecaster.onnx", "sha256": hashlib.sha256(graph).hexdigest()}},
        "forecaster": {
            "graph": "forecaster.onnx", "features": about["features"], "feature_names": about["feature_names"],
            "normalisation": about["normalisation"], "input": "features", "outputs": {n: n for n in names},
            "labels": dict(zip(names, about["label_texts"])), "horizon_hours": 1,
        },
        "training": {
            "fingerprint": about["fingerprint"], "data": about["data"],
            "method": f"gated network of {weights} weights, cross-entropy, AdamW, {args.epochs} epochs, seed {args.seed}, PyTorch {torch.__version__}",
        },
        "confidence": args.confidence,
    }
    with open(os.path.join(bundle, "MODEL_MANIFEST.json"), "w") as f:
        json.dump(manifest, f, indent=2)
        f.write("\n")
    print(f"{weights} weights, {len(graph)} bytes, written to {bundle}")


def main():
    p = argparse.ArgumentParser(description="Train the forecaster of markets.")
    p.add_argument("data")
    p.add_argument("bundle")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--epochs", type=int, default=5)
    p.add_argument("--batch", type=int, default=1024)
    p.add_argument("--width", type=int, default=32)
    p.add_argument("--rate", type=float, default=3e-3)
    p.add_argument("--decay", type=float, default=5e-2)
    p.add_argument("--blend", type=float, default=0.02, help="how fast the mean of the weights follows")
    p.add_argument("--confidence", type=float, default=0.8)
    p.add_argument("--date", default="2026-11-22T19:00:00Z", help="what the manifest says of when it was made")
    args = p.parse_args()
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    with open(os.path.join(args.data, "dataset.json")) as f:
        about = json.load(f)
    net = train(about, Split(args.data, about, "train"), Split(args.data, about, "choose"), args)
    export(net, about, args.bundle, args)


if __name__ == "__main__":
    main()
