"""The safetensors format in a few lines: an 8-byte header size, a JSON object, the bytes of the tensors."""

import json
import pathlib
import struct

from ._server import needed

TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8"}
READ = {**TYPES, "BF16": "<u2"}  # the upper half of F32


def write(path, arrays, metadata=None):
    """Writes NumPy arrays by name, and metadata, which are texts by name."""
    header = {"__metadata__": metadata} if metadata else {}
    data = b""
    for name, array in arrays.items():
        dtype = next((key for key, code in TYPES.items() if array.dtype == code), None)
        if dtype is None:
            raise ValueError(f"{name}: safetensors of type {array.dtype} are not written here, only {list(TYPES)}")
        content = array.astype(TYPES[dtype]).tobytes()
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(text)) + text + data)


def read(path):
    """Returns the arrays and the metadata of a file. Raises ValueError when it is none of these."""
    numpy = needed("numpy", "arrays")
    content, arrays = pathlib.Path(path).read_bytes(), {}
    try:
        start = 8 + struct.unpack_from("<Q", content)[0]
        header = json.loads(content[8:start])
        metadata = header.pop("__metadata__", {})
        for name, entry in header.items():
            begin, end = entry["data_offsets"]
            if entry["dtype"] not in READ:
                raise ValueError(f"{name}: safetensors of type {entry['dtype']} are not read here, only {list(READ)}")
            array = numpy.frombuffer(content[start + begin:start + end], READ[entry["dtype"]])
            array = (array.astype("<u4") << 16).view("<f4") if entry["dtype"] == "BF16" else array
            arrays[name] = array.reshape(entry["shape"]).copy()
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError, struct.error) as error:
        raise ValueError(f"{path}: is not a safetensors file, or is damaged ({error!r}); restore it") from error
    return arrays, metadata
