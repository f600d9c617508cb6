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

# How far answers are trusted: the part of the distance, in logits, from the mean answer
# for accelerators, and of runtime from the closed form for others, of which nothing is
# recorded. The parts for accelerators were found by leaving out one of the recorded
# regions to train on, and on the rows to choose by. Cross-fitting says what each of
# PARTS would do: every region to train on is left out in turn, with all worlds that
# follow its law, and foretold in its later time by a network that was trained on the
# others. With two regions it asks for parts that are two to three times apart, so it
# is stated and does not choose.
TRUST_GPU = {"runtime": 0.5, "runtime_6h": 0.5, "capacity": 0.6, "capacity_6h": 0.6}
PARTS = np.round(np.arange(0.2, 1.21, 0.02), 2)
TRUST_CPU = {"runtime": 0.5, "runtime_6h": 0.5}
BINS = 10  # of a reliability plot
FOLD_THIN = 6
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

    def centres(self, training, labels):
        """Returns the mean answer for accelerators, in logits, of each label."""
        with torch.no_grad():
            z = self.logits(training.x).numpy()
        gpu = np.isin(training.stratum, training.scarce)
        return [z[gpu & training.judged(label), k].mean().item() for k, label in enumerate(labels)]

    def trust(self, training, labels, parts):
        """Sets how far answers are trusted."""
        with torch.no_grad():
            for k, (label, centre) in enumerate(zip(labels, self.centres(training, labels))):
                part = parts[label]
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

    def __init__(self, data, about, name, keep=None):
        """Reads the rows of a split, with keep those that it takes: it is given the
        column of each row's source, an index into the recorded regions or -1. Of
        types without accelerators, of which folds say nothing, it then reads one in
        FOLD_THIN."""
        table = lambda kind: np.load(os.path.join(data, f"{name}.{kind}.npy"))
        at = slice(None)
        if keep is not None:
            what = table("rows")
            common = np.char.startswith(np.array(about["strata"]), "CPU")[what[:, about["rows"].index("stratum")]]
            at = keep(what[:, about["rows"].index("source")]) & (~common | (np.arange(len(what)) % FOLD_THIN == 0))
        load = lambda kind: table(kind)[at]
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
        self.known = known
        self.y, self.weight = torch.from_numpy(y), torch.from_numpy(self.weigh(about, y, known))

    def judged(self, label):
        """Returns which rows a label is judged by: runtime where a market sells."""
        return self.open if label.startswith("runtime") else np.ones(len(self.open), dtype=bool)

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
    return net.eval()


def slope(p, y):
    """Returns that of the reliability plot: of what came true on what was foretold,
    over bins of equally many rows."""
    order = np.argsort(p, kind="stable")
    bins = [b for b in np.array_split(order, BINS) if len(b)]
    n, x, o = (np.array(v) for v in zip(*((len(b), p[b].mean(), y[b].mean()) for b in bins)))
    x, o = x - np.average(x, weights=n), o - np.average(o, weights=n)
    return (n * x * o).sum() / max((n * x * x).sum(), 1e-12)


def figures(p, closed, y):
    """Returns what the card says of answers p on rows that were left out."""
    brier = ((p - y) ** 2).mean()
    return {
        "rows": float(len(y)), "observed": y.mean(), "foretold": p.mean(), "brier": brier, "slope": slope(p, y),
        "brier_skill.closed_form": 1 - brier / ((closed - y) ** 2).mean(),
    }


def crossfit(about, data, args):
    """Returns figures of regions that were left out, with the answers trusted as far
    as they are, and the part with which what comes true rises with what is foretold
    one for one, on average over these regions."""
    labels, recorded = about["labels"], about["strata"].index("GPU recorded")
    rows = {name: np.load(os.path.join(data, f"{name}.rows.npy")) for name in ("train", "choose")}
    source, stratum = about["rows"].index("source"), about["rows"].index("stratum")
    regions = [set(r[r[:, stratum] == recorded, source].tolist()) for r in rows.values()]
    regions = sorted(regions[0] & regions[1])
    metrics, logs = {}, {label: [] for label in labels}  # of the slopes, by fold and part
    if len(regions) < 2:
        print("fewer than two recorded regions to train on: nothing is left out")
        return metrics
    for region in regions:
        training = Split(data, about, "train", lambda s: s != region)
        net = train(about, training, Split(data, about, "choose", lambda s: s != region), args)
        out = Split(data, about, "choose", lambda s: s == region)
        with torch.no_grad():
            z, closed = net.logits(out.x).numpy(), torch.sigmoid(net.closed(out.x)).numpy()
        for k, (label, centre) in enumerate(zip(labels, net.centres(training, labels))):
            at = (out.stratum == recorded) & out.known[:, k] & out.judged(label)
            y = out.y.numpy()[at, k]
            answers = lambda part: 1 / (1 + np.exp(-centre - part * (z[at, k] - centre)))
            logs[label].append(np.log(np.maximum([slope(answers(part), y) for part in PARTS], 0.05)))
            for name, x in figures(answers(TRUST_GPU[label]), closed[at, k], y).items():
                if name != "brier_skill.closed_form" or label.startswith("runtime"):
                    metrics[f"cross_fit.{about['sources'][region]}.{label}.{name}"] = round(float(x), 5)
    for label in labels:
        metrics[f"cross_fit.part.{label}"] = float(PARTS[np.argmin(np.abs(np.mean(logs[label], axis=0)))])
    for name, x in metrics.items():
        print(name, x)
    return metrics


def export(net, about, bundle, metrics, args):
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
            "hazard_families": about["accelerated_families"],
        },
        "training": {
            "fingerprint": about["fingerprint"], "data": about["data"],
            "method": f"gated network of {weights} weights, cross-entropy, AdamW, {args.epochs} epochs, seed {args.seed}, PyTorch {torch.__version__}",
        },
        "confidence": args.confidence, "metrics": metrics,
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
    metrics = crossfit(about, args.data, args)
    training = Split(args.data, about, "train")
    net = train(about, training, Split(args.data, about, "choose"), args)
    net.trust(training, about["labels"], TRUST_GPU)
    export(net, about, args.bundle, metrics, args)


if __name__ == "__main__":
    main()
