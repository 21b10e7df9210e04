"""Model files: a fitted model as JSON and arrays in one zip; loading runs nothing that the file says."""

from concordant.persistence.files import describe, digest_of, load, save

__all__ = ["describe", "digest_of", "load", "save"]
