#!/bin/bash
# One node, four GPUs.
export OMP_NUM_THREADS=8
torchrun --standalone --nproc-per-node=4 -m project.train --epochs 5
