"""Export of models to ONNX, the formats of tree libraries, Elasticsearch and plain JSON; each checked."""

from concordant.store.export.export_file import FORMATS, Exported, export

__all__ = ["FORMATS", "Exported", "export"]
