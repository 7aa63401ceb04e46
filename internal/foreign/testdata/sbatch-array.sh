#!/bin/bash
#SBATCH --job-name=lr-sweep
#SBATCH --array=0-9:3%2
#SBATCH --gres=gpu:a100:1
#SBATCH --cpus-per-task=8
#SBATCH --mem=32G
#SBATCH --time=0-02:00:00
#SBATCH --output=logs/%x_%A_%a.out
#SBATCH --dependency=afterok:prepare
#SBATCH --requeue
#SBATCH --mail-type=END
##SBATCH --partition=old

RATES=(0.1 0.01 0.001 0.0001)
echo "task $SLURM_ARRAY_TASK_ID of $SLURM_ARRAY_TASK_COUNT"
python train.py --seed "$SLURM_ARRAY_TASK_ID"
