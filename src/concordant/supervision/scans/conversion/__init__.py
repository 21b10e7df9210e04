"""Any source becomes Parquet whose row groups hold whole queries, in bounded memory."""
