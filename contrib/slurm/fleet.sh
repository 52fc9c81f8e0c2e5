#!/bin/sh
# fleet.sh DIRECTORY: every image beneath it, each array task one share of them.
#
#   sbatch --array=0-7 fleet.sh /images
#   cat rows-*.jsonl > fleet.jsonl
#
# A task that is requeued goes on from its own rows.
#SBATCH --job-name=trueline-fleet
#SBATCH --mem=512M
#SBATCH --requeue
# A finding is a row, and no failure of the task.
trueline check -r "$1" --follow --quiet --fail-on never --shard "$SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT" \
    --rows --into "rows-$SLURM_ARRAY_TASK_ID.jsonl"
