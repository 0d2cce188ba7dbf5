"""A converted model whose middle layers compute in bfloat16 where the processor has units for it.

In bfloat16 throughout, all-mpnet-base-v2 falls to a cosine of 0.9998 to float32, which is too little. The loss is not
spread evenly: rounding in the first layers upsets a few texts badly, and what the last layers round nothing evens out
any more. With the first quarter and the last sixth of the layers in float32, 360 texts of ten collections kept 0.99997
(half of them 0.999995), and a processor with matrix units (AMX) is half as fast again as with float32 alone. What may be halved is measured once for each model,
on the machine that converts it; a processor without such units computes everything in float32.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

LEAST_COSINE = 0.99997
"""What halved layers must keep to float32 on every calibration text: a third of the loss that is allowed."""

_LAYER = re.compile(r"\.layers?\.(\d+)\.")


def load_library() -> Any:
    """Import OpenVINO without its telemetry, which would write to the user's home and call out."""
    if "openvino" not in sys.modules:
        sys.modules["openvino_telemetry"] = None  # type: ignore[assignment]  # OpenVINO then takes its own stub
    import openvino

    return openvino


def has_half(core: Any) -> bool:
    """Tell whether this processor computes bfloat16 by itself."""
    return "BF16" in core.get_property("CPU", "OPTIMIZATION_CAPABILITIES")


def layer_of(name: str) -> int | None:
    """Read the number of the layer that a node belongs to from its name; None outside the layers."""
    found = _LAYER.search(name)
    return int(found.group(1)) if found else None


def count_layers(model: Any) -> int:
    """Count a model's layers; 0 where its nodes do not tell."""
    return 1 + max((layer_of(node.get_friendly_name()) or 0 for node in model.get_ops()), default=-1)


@dataclass(slots=True)
class Part:
    """A run of a model's layers. `inputs` say which output of which earlier part each of its inputs is."""

    model: Any
    inputs: list[tuple[int, int]] = field(default_factory=list)


def cut_layers(model: Any, bounds: Sequence[int]) -> list[Part]:
    """Cut a model before each layer of `bounds`, which rise. The model itself is used up.

    A node belongs to the earliest part in which everything that it needs is there.
    """
    openvino = load_library()
    from openvino import opset13

    make_model: Any = openvino.Model
    parts = [Part(None) for _ in range(len(bounds) + 1)]
    results: list[dict[tuple[str, int], Any]] = [{} for _ in parts]
    parameters: list[dict[tuple[str, int], Any]] = [{} for _ in parts]
    stages: dict[str, int] = {}
    for node in model.get_ordered_ops():
        name = node.get_friendly_name()
        if node.get_type_name() == "Constant":
            continue
        own = layer_of(name)
        sources = [(port, port.get_source_output()) for port in node.inputs()]
        before = [stages.get(value.get_node().get_friendly_name(), 0) for _, value in sources]
        stage = max([0, *before] if own is None else [sum(own >= bound for bound in bounds), *before])
        stages[name] = stage
        for (port, value), source_stage in zip(sources, before, strict=True):
            source = value.get_node()
            if source_stage == stage or source.get_type_name() == "Constant":
                continue
            key = (source.get_friendly_name(), value.get_index())
            results[source_stage].setdefault(key, opset13.result(value))
            if key not in parameters[stage]:
                parameters[stage][key] = opset13.parameter(value.get_partial_shape(), value.get_element_type())
                parts[stage].inputs.append((source_stage, list(results[source_stage]).index(key)))
            port.replace_source_output(parameters[stage][key].output(0))
    last = len(parts) - 1
    for number, part in enumerate(parts):
        ends = model.get_results() if number == last else list(results[number].values())
        starts = model.get_parameters() if number == 0 else list(parameters[number].values())
        part.model = make_model(ends, starts, f"part {number}")
    return parts


class Mixed:
    """A converted model, ready to run on all of this machine's cores. Not thread-safe.

    `half` are the first layer that computes in bfloat16 and the first that does not any more; equal ones mean none.
    """

    def __init__(self, file: Path, half: tuple[int, int] = (0, 0)) -> None:
        openvino = load_library()
        core = openvino.Core()
        model = core.read_model(str(file))
        self._parts = [Part(model)]
        precisions = ["f32"]
        if half[0] < half[1] and has_half(core):
            self._parts = cut_layers(model, half)
            precisions = ["f32", "bf16", "f32"]
        self._requests: list[Any] = []
        for part, precision in zip(self._parts, precisions, strict=True):
            settings = {"INFERENCE_PRECISION_HINT": precision, "PERFORMANCE_HINT": "LATENCY"}
            self._requests.append(core.compile_model(part.model, "CPU", settings).create_infer_request())

    def __call__(self, ids: np.ndarray, mask: np.ndarray) -> np.ndarray:
        """Embed (n, length) ids with their mask: (n, width), not normalised."""
        self._requests[0].infer([ids, mask], share_inputs=True)
        for part, request in zip(self._parts[1:], self._requests[1:], strict=True):
            for place, (number, output) in enumerate(part.inputs):
                request.set_input_tensor(place, self._requests[number].get_output_tensor(output))
            request.infer()
        return np.array(self._requests[-1].get_output_tensor(0).data)


def choose_half_layers(file: Path, batches: list[tuple[np.ndarray, np.ndarray]]) -> tuple[tuple[int, int], float]:
    """Find which layers may be halved, and the least cosine to float32 that was seen with them.

    Tries a wide middle, then a narrow one; ((0, 0), 1.0) when neither keeps `LEAST_COSINE`, or nothing is gained.
    """
    openvino = load_library()
    core = openvino.Core()
    n_layers = count_layers(core.read_model(str(file))) if has_half(core) else 0
    exact = Mixed(file)
    wanted = [exact(*batch) for batch in batches]
    for half in ((-(-n_layers // 4), n_layers - -(-n_layers // 6)), (-(-n_layers // 3), n_layers - -(-n_layers // 3))):
        if half[0] >= half[1]:
            break
        mixed = Mixed(file, half)
        least = min(_least_cosine(mixed(*batch), right) for batch, right in zip(batches, wanted, strict=True))
        if least >= LEAST_COSINE:
            return half, least
    return (0, 0), 1.0


def _least_cosine(found: np.ndarray, wanted: np.ndarray) -> float:
    lengths = np.linalg.norm(found, axis=1) * np.linalg.norm(wanted, axis=1)
    return float((np.einsum("ij,ij->i", found, wanted) / lengths).min())
