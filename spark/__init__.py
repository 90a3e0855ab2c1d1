"""Patch logs as Delta tables, by Spark: a data source, the apply job and what keeps its tables. docs/spark.md."""
