"""Parquet of a fleet by Dask: python3 dask_fleet.py NAMES DIRECTORY, a target in each line of NAMES."""

import sys

import dask
import trueline

SHARES = 8

if __name__ == "__main__":
    targets = [line.rstrip("\n") for line in open(sys.argv[1])]
    share = dask.delayed(trueline.write_parquet)
    files = [f"{sys.argv[2]}/part-{i}.parquet" for i in range(SHARES)]
    shares = [share(targets[i::SHARES], files[i], for_="ssd-16k") for i in range(SHARES)]
    print(sum(dask.compute(*shares, scheduler="processes")), "rows")
