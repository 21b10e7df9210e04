"""Model files: a fitted model as JSON and arrays in one zip; loading runs no code from the file."""

from concordant.store.model_file import describe, digest_of, load, save

__all__ = ["describe", "digest_of", "load", "save"]
