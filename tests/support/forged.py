"""Edit model files by hand, with a valid checksum."""

import json
from pathlib import Path

from safetensors.numpy import save_file

from spanboost.models import files
from spanboost.models.packing import unpack_arrays


def read_file(path):
    """Return the header and the unpacked arrays of a model file."""
    header, stored = files.read(Path(path))
    return header, unpack_arrays(stored, header.pop("packed", {}))


def file_arrays(path):
    """Return the arrays of a model file."""
    return read_file(path)[1]


def changed(path, edit=lambda header: None, tensors=lambda arrays: arrays):
    """Edit the header or the arrays of a model file, and update its checksum."""
    header, arrays = read_file(path)
    edit(header)
    arrays = tensors(arrays)
    header.pop("checksum")
    header["checksum"] = files._checksum(header, arrays)
    save_file(arrays, path, metadata={"spanboost": json.dumps(header)})
