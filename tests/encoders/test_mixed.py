"""Cutting a model by its layers changes nothing but the precision that each part may have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from encoders.mixed import Mixed, choose_half_layers, count_layers, cut_layers, layer_of

WIDTH = 64


@pytest.fixture(scope="module")
def model_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six layers, of which the second and the last also need the mask and the very first values."""
    openvino: Any = pytest.importorskip("openvino")
    from openvino import opset13 as op

    random = np.random.default_rng(3)
    ids = op.parameter([-1, -1], np.int64, name="ids")
    mask = op.parameter([-1, -1], np.int64, name="mask")
    table = op.constant(random.normal(size=(50, WIDTH)).astype(np.float32))
    weights = op.unsqueeze(op.convert(mask, np.float32), op.constant(2))
    start = value = op.multiply(op.gather(table, ids, op.constant(0)), weights)
    for number in range(6):
        matrix = op.constant((random.normal(size=(WIDTH, WIDTH)) / 8).astype(np.float32))
        node = op.tanh(op.matmul(value, matrix, False, False))
        node.set_friendly_name(f"model.layer.{number}.out")
        if number in {1, 5}:
            node = op.add(op.multiply(node, weights), start)
            node.set_friendly_name(f"model.layer.{number}.sum")
        value = node
    pooled = op.reduce_mean(op.multiply(value, weights), op.constant(1))
    file = tmp_path_factory.mktemp("model") / "model.xml"
    openvino.save_model(openvino.Model([pooled], [ids, mask], "layers"), str(file), compress_to_fp16=False)
    return file


def _batch() -> tuple[np.ndarray, np.ndarray]:
    ids = np.random.default_rng(5).integers(0, 50, (3, 7))
    mask = np.ones_like(ids)
    mask[1, 4:] = 0
    return ids, mask


def test_layers_are_read_from_names():
    assert layer_of("__module.m.0.model.encoder.layer.11.output/aten::add") == 11
    assert layer_of("model.layers.3.mlp") == 3
    assert layer_of("embeddings.LayerNorm") is None


@pytest.mark.parametrize("bounds", [(2, 4), (1, 5), (3, 3), (1, 2)])
def test_parts_together_are_the_whole(model_file: Path, bounds: tuple[int, int]):
    import openvino

    core: Any = openvino.Core()
    ids, mask = _batch()
    exact = {"INFERENCE_PRECISION_HINT": "f32"}
    whole = core.compile_model(str(model_file), "CPU", exact)([ids, mask])[0]
    model = core.read_model(str(model_file))
    assert count_layers(model) == 6
    parts = cut_layers(model, bounds)
    given: list[list[np.ndarray]] = []
    for number, part in enumerate(parts):
        inputs = [ids, mask] if number == 0 else [given[source][output] for source, output in part.inputs]
        found = core.compile_model(part.model, "CPU", exact)(inputs)
        given.append([np.array(found[place]) for place in range(len(part.model.outputs))])
    assert np.allclose(given[-1][0], whole, atol=1e-6)


def test_halved_layers_keep_what_was_measured(model_file: Path):
    batch = _batch()
    half, least = choose_half_layers(model_file, [batch])
    exact, mixed = Mixed(model_file)(*batch), Mixed(model_file, half)(*batch)
    cosine = np.einsum("ij,ij->i", exact, mixed) / np.linalg.norm(exact, axis=1) / np.linalg.norm(mixed, axis=1)
    assert cosine.min() == pytest.approx(least, abs=1e-6)
    assert least > 0.9999
