#!/usr/bin/env python3
"""Compare daisy bench with llama.cpp's llama-bench on the same files, interleaved in one run.

    compare.py --daisy bin/daisy --llama DIR [--threads 1,2] [--rounds 9] MODEL.gguf...

DIR holds llama-bench (and llama-batched-bench for --sequences). Each round runs one after the other, in turn first;
the figure is the median of the rounds' ratios. Decode is measured at the depth of the prompt on both sides. One thread
is pinned to the first core. Prints a Markdown table: medians in tokens per second and ratios.
"""

import argparse
import json
import os
import statistics
import subprocess


def run(cmd, cores):
    pin = ["taskset", "-c", ",".join(str(c) for c in range(cores))]
    return subprocess.run(pin + cmd, check=True, capture_output=True, text=True).stdout


def daisy(a, model, threads, sequences):
    out = json.loads(run([a.daisy, "bench", "--model", model, "--threads", str(threads), "--json", "--repeat", "1",
                          "--prompt-tokens", str(a.prompt), "--gen-tokens", str(a.gen), "--sequences", str(sequences)],
                         threads))
    return out["prefill_tokens_per_second"], out["decode_tokens_per_second"]


def llama(a, model, threads, sequences):
    if sequences > 1:
        out = run([os.path.join(a.llama, "llama-batched-bench"), "-m", model, "-t", str(threads), "-npp", str(a.prompt),
                   "-ntg", str(a.gen), "-npl", str(sequences), "-c", str(sequences * (a.prompt + a.gen) + 256)], threads)
        row = [r for r in out.splitlines() if r.startswith("|")][-1].split("|")
        return 0.0, float(row[8])
    bench = [os.path.join(a.llama, "llama-bench"), "-m", model, "-t", str(threads), "-r", "1", "-o", "json"]
    prefill = json.loads(run(bench + ["-p", str(a.prompt), "-n", "0"], threads))[0]["avg_ts"]
    decode = json.loads(run(bench + ["-p", "0", "-n", str(a.gen), "-d", str(a.prompt)], threads))[0]["avg_ts"]
    return prefill, decode


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--daisy", required=True)
    p.add_argument("--llama", required=True)
    p.add_argument("--threads", default="1,2")
    p.add_argument("--sequences", default="1")
    p.add_argument("--rounds", type=int, default=9)
    p.add_argument("--prompt", type=int, default=128)
    p.add_argument("--gen", type=int, default=32)
    p.add_argument("models", nargs="+")
    a = p.parse_args()
    print(f"prompt {a.prompt}, decode {a.gen} at depth {a.prompt}, {a.rounds} rounds, medians; TLS plays no part\n")
    print("| model | threads | sequences | prefill daisy | llama.cpp | ratio | decode daisy | llama.cpp | ratio |")
    print("|---|---|---|---|---|---|---|---|---|", flush=True)
    for model in a.models:
        for threads in map(int, a.threads.split(",")):
            for sequences in map(int, a.sequences.split(",")):
                ours, theirs = [], []
                for i in range(a.rounds):
                    pair = [(ours, daisy), (theirs, llama)]
                    for into, measure in pair if i % 2 == 0 else reversed(pair):
                        into.append(measure(a, model, threads, sequences))
                cells = []
                for k in range(2):
                    x, y = [o[k] for o in ours], [t[k] for t in theirs]
                    if not all(x) or not all(y):
                        cells += ["", "", ""]
                        continue
                    ratio = statistics.median(u / v for u, v in zip(x, y))
                    cells += [f"{statistics.median(x):.1f}", f"{statistics.median(y):.1f}", f"{ratio:.2f}"]
                print("|", " | ".join([os.path.basename(model), str(threads), str(sequences)] + cells), "|", flush=True)


if __name__ == "__main__":
    main()
