"""Exact NDCG regret against training queries, on known label distributions."""
