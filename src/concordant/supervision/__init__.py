"""What people know about a ranking: queries, the four kinds of labels, readers, datasets, generators."""
