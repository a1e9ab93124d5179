"""What the tool says of small runs, word for word and number for number: their bits are the same on
every machine. OPENRNN_REGENERATE_DOCS=1 writes the file anew."""
import hashlib
import math
import os
import re
import shlex
from pathlib import Path

import numpy
import openrnn
from tool.tool_runs import tool, write_text

KEPT = Path(__file__).with_name("words.txt")
CALLS = """
train --input text.txt --out text --units 9 --layers 2 --embedding 5 --batch 3 --seq-len 11 \
 --steps 60 --dropout 0.2 --seed 7 --lr 0.02 --valid-every 20 --patience 2 --save-seconds 0 \
 --threads 1
train --out text --resume --threads 1 --save-seconds 0
eval text --input text.txt
eval text/model.ckpt-0 --input text.txt
eval text/best --input other.txt --context text.txt
generate text --length 50
generate text --length 50 --prime "the cat" --seed 3 --temperature 0.5
generate text --length 50 --top-k 2
generate text --length 20 --temperature 0
inspect text
plot text --output text.svg
forecast text --input table.csv
train --task series --input table.csv --out table --units 5 --steps 40 --batch 8 --seq-len 12 \
 --horizon 2 --valid-every 20 --save-seconds 0 --threads 1
eval table --input table.csv
forecast table --input table.csv
forecast table --input table.csv --horizon 9 --plot
inspect table
plot table --output table.svg
generate table
train --task series --input table.csv --out gru --cell gru --columns sea,3 --target one \
 --units 4 --seq-len 9 --steps 20 --forget-bias 0 --reset-after false --save-seconds 0 --threads 1
forecast gru --input table.csv --horizon 3
convert table/model.ckpt-40 net.pt
convert net.pt net.safetensors
convert net.safetensors net.onnx
convert net.onnx net.npz
convert net.npz net.h5
convert net.h5 other.pt --to safetensors
inspect net.pt
inspect net.onnx --json
run net.pt --input x.npy --output y.npy
run net.pt --input x.npy --output z.npy --stream 3 --state state.safetensors
run net.onnx --input table.csv --output t.npy
inspect gru --fast
check-cells table --input text.txt
doctor extra
eval text --input empty.txt
check-cells text --input empty.txt
check-cells gru --input text.txt
plot . --output x.svg
train --columns ""
train --columns a,,b
train --out text --resume --valid other.txt
train --out text --resume --input other.txt
train --out net.pt --input text.txt
train --out text --input text.txt
convert net.pt net.pt
convert text.txt x.pt
run net.pt --input x.npy --output y.npy --lengths short.npy
run net.pt --input x.npy --output y.npy --lengths long.npy
run net.pt --input x.npy --output y.npy --lengths x.npy
run net.pt --input x.npy --output y.npy --network other
run net.pt --input wide.npy --output y.npy
run net.pt --input wide.npy --output y.npy --batch-major
run both.openrnn --input x.npy --output both.npy --batch-major
run both.openrnn --input x.npy --output both.npy --stream 2
inspect both.openrnn
convert both.openrnn both.npz
bench --only "LSTM L9"
bench --cells --only U7
bench --gradients --only U7
bench --load . --megabytes 1 --only nothing
bench --only "LSTM L1 U64 B1 " --seconds 0.01 --threads 1
bench --only "GRU L1 U256 B16" --seconds 0.01 --threads 1
bench --only "GRU L1 U64 B1 " --seconds 0.01 --threads 1 --weights-dtype float16
bench --cells --only "GRU U32 B1 T50 none" --threads 1
bench --gradients --only jvp --threads 1
bench --load . --megabytes 1 --only npz
"""


def said_of(call, folder):
    """Both outputs, without the lines that the machine's speed decides."""
    done = tool(*shlex.split(call), cwd=folder)
    if call.startswith("bench"):
        done.stdout = re.sub(r"^.*, 1 threads, engine .*, FMA", "CPU, 1 threads, FMA", done.stdout)
        done.stdout = re.sub(r" *\b\d+(\.\d+)?\b", " .", done.stdout)
        # How many figures a line has depends on the processor's instruction sets and caches.
        done.stdout = re.sub(r"( \.){2,}.*", " ..", done.stdout)
    errors = [f"! {line}\n" for line in done.stderr.splitlines() if not line.startswith("step ")]
    return f"$ openrnn {call}\n{done.stdout}" + "".join(errors) + f"= {done.returncode}\n"


def write_inputs(folder):
    write_text(folder, size=2000)
    write_text(folder, "other.txt", size=300, seed=2)
    rows = [f"{day},{5 * math.sin(day / 3):.3f},{day % 7},{day * day % 11 / 4}"
            for day in range(90)]
    (folder / "table.csv").write_text(
        "date,sea,week,wind\n" + "".join("d" + row + "\n" for row in rows), encoding="utf-8")
    values = numpy.arange(7 * 2 * 3, dtype=numpy.float32).reshape(7, 2, 3) % 5 / 4 - 0.5
    numpy.save(folder / "x.npy", values)
    numpy.save(folder / "wide.npy", numpy.zeros((4, 2, 5), numpy.float32))
    numpy.save(folder / "short.npy", numpy.array([3, -1], numpy.int32))
    numpy.save(folder / "long.npy", numpy.array([8, 7], numpy.int64))
    (folder / "empty.txt").write_bytes(b"")
    both = openrnn.layers.LSTM(2, direction="bidirectional")
    both.build([None, None, 3])
    both.kernel.assign(numpy.arange(both.kernel.shape[0], dtype=numpy.float32) % 7 / 8 - 0.375)
    openrnn.save(folder / "both.openrnn", both)


def test_the_words_are_the_kept_ones(tmp_path):
    write_inputs(tmp_path)
    calls = CALLS.strip().splitlines()
    found = "".join(said_of(call, tmp_path) for call in calls)
    for name in ("text.svg", "table.svg", "y.npy", "z.npy", "t.npy", "net.onnx", "net.h5"):
        found += f"{name} {hashlib.sha256((tmp_path / name).read_bytes()).hexdigest()[:16]}\n"
    if os.environ.get("OPENRNN_REGENERATE_DOCS"):
        KEPT.write_text(found, encoding="utf-8")
    assert found == KEPT.read_text(encoding="utf-8")
