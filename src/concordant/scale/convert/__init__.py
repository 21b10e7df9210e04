"""Conversion of any source to Parquet files whose row groups hold whole queries, in bounded memory."""
