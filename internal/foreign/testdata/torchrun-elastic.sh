#!/bin/sh
torchrun --nnodes=1:2 --nproc_per_node=2 --max-restarts=3 --rdzv_backend=c10d --rdzv_endpoint=host0:29400 train.py
