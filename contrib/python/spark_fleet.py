"""Parquet of a fleet by Spark: python3 spark_fleet.py NAMES DIRECTORY, a target in each line of NAMES."""

import sys

import trueline
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema


def rows(parts):
    targets = (target for part in parts for target in part["value"].to_pylist())
    return trueline.batches(targets, for_="ssd-16k")


if __name__ == "__main__":
    names = SparkSession.builder.getOrCreate().read.text(sys.argv[1])
    found = names.repartition(8).mapInArrow(rows, from_arrow_schema(trueline.SCHEMA))
    found.write.parquet(sys.argv[2], mode="append")
