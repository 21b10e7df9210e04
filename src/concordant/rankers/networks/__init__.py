"""Parts of NeuralRanker: training set, batches, training (launched or recorded), scores, checkpoints."""
