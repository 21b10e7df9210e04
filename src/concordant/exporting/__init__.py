"""Models for where they are served: ONNX, the trees' own files, Elasticsearch, plain JSON; each checked."""

from concordant.exporting.files import FORMATS, Exported, export

__all__ = ["FORMATS", "Exported", "export"]
