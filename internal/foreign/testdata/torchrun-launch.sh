#!/bin/bash
python -m torch.distributed.launch --nproc_per_node=$GPUS --use_env main.py --batch-size 256
