#!/usr/bin/env bash
#SBATCH -J resnet-ddp
#SBATCH -A vision
#SBATCH -N 2
#SBATCH --ntasks-per-node=4
#SBATCH --gpus-per-node=4
#SBATCH -c 6
#SBATCH --mem-per-cpu=4G
#SBATCH -t 12:00:00
#SBATCH -p gpu -q normal
#SBATCH --signal=USR1@120
#SBATCH --exclusive

module load cuda 2>/dev/null || true
export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
srun --kill-on-bad-exit=1 python train.py --world "$SLURM_NTASKS" --rank "$SLURM_PROCID"
