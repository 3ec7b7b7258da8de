"""usage: utterances.py FOLDER [NUMBER]: random utterances for measuring "nnopt run", 200 to 1500 frames long.

Writes feats.ark, compressed matrices of 40 columns, and ivectors.ark, a vector of 100 elements for each.
"""
import random, struct, sys

folder, number = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 200
rnd = random.Random(1)
frames = 0
with open(folder + "/feats.ark", "wb") as feats, open(folder + "/ivectors.ark", "wb") as ivectors:
    for i in range(number):
        key = b"utterance-%04d " % i
        rows, cols = rnd.randint(200, 1500), 40
        frames += rows
        # Least value, range, size; for each column the 0th, 25th, 75th and 100th percentile in 16 bits; the elements by columns.
        feats.write(key + b"\0BCM " + struct.pack("<ffii", -5, 10, rows, cols) + struct.pack("<4H", 0, 24000, 41000, 65535) * cols)
        feats.write(rnd.randbytes(rows * cols))
        ivectors.write(key + b"\0BFV \4" + struct.pack("<i", 100) + struct.pack("<100f", *(rnd.gauss(0, 1) for _ in range(100))))
print(number, "utterances,", frames, "frames")
