"""What NeuralRanker is made of: lesson, batches, training (launched or recorded), scores, checkpoints."""
