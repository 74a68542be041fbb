"""The TensorRT delegate's ahead-of-time side for ExecuTorch 1.5: puts engines that exist into programs. Builds none.

Importing this module imports ExecuTorch and torch (extra `executorch`). An engine is never held in memory: its file is
hashed, named in the delegate's blob, and copied by ExecuTorch (`FileBackedData`) when the program is written. Methods
that run one engine share one entry of the program's named data.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from executorch.exir._serialize._cord import FileBackedData
from executorch.exir._serialize._named_data_store import NamedDataStore
from executorch.exir.backend.backend_details import BackendDetails, PreprocessResult
from executorch.exir.backend.compile_spec_schema import CompileSpec
from executorch.exir.backend.partitioner import DelegationSpec, Partitioner, PartitionResult
from executorch.exir.backend.utils import tag_constant_data

from linkcheck.executorch.blob import ENGINE_ALIGNMENT, Binding, TensorRTBlob, serialize
from linkcheck.executorch.engine_file import stage_engine
from linkcheck.executorch.facts import TENSORRT_BACKEND

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from linkcheck.executorch.blob import Alias

#: The compile spec that leads from a delegate to the partitioner that made it. It stays in the program; at run time
#: nobody reads it.
_ORDER_KEY = "linkcheck_engine"
_BUDGET_KEY = "weight_streaming_budget"

#: Orders by the value of that compile spec, as long as their partitioners are there.
_orders: WeakValueDictionary[str, _Order] = WeakValueDictionary()
_numbers = count()


class _Order:
    """What one method is to get: its partitioner's engine, and what the engine calls the method's values."""

    def __init__(self, partitioner: TensorRTPartitioner, names: dict[str, str] | None) -> None:
        self.partitioner = partitioner
        #: Name of a value in the method's graph -> the engine's; None: the same.
        self.names = names

    def bind(self, signature: Any) -> tuple[Binding, ...]:
        """The bindings of a subgraph with `signature`, in the order in which the delegate is called."""
        inputs = [Binding(self._name(str(name)), True) for name in signature.user_inputs]
        return (*inputs, *(Binding(self._name(str(name)), False) for name in signature.user_outputs))

    def _name(self, value: str) -> str:
        if self.names is None:
            return value
        if value not in self.names:
            known = ", ".join(self.names)
            raise ValueError(
                f"the engine is called with {value}, for which no name is given; names are given for {known}"
            )
        return self.names[value]


class TensorRTPartitioner(Partitioner):  # type: ignore[misc, unused-ignore]
    """Gives the operators of a method to one engine.

    `engine` is the path of a plan file, bytes, a TensorRT IHostMemory, or a function that makes one of these from the
    ExportedProgram of the operators. `input_names` and `output_names` are the engine's names of the method's inputs and
    outputs, in the method's order: that of the subgraph is another one, as ExecuTorch meets them. For an engine that
    does not run the whole method they are mappings, from the names that values have in the method's graph. Without
    them the engine's names are those of the graph.

    `covers` says which operators the engine runs (all, when it is None); they must make one subgraph.
    `weight_streaming_budget` is in bytes.
    """

    def __init__(
        self,
        engine: Any,
        *,
        input_names: Sequence[str] | Mapping[str, str] | None = None,
        output_names: Sequence[str] | Mapping[str, str] | None = None,
        aliased_io: Sequence[Alias] = (),
        device_id: int = 0,
        hardware_compatible: bool = False,
        target_platform: str = "",
        weight_streaming_budget: int | None = None,
        covers: Callable[[Any], bool] | None = None,
    ) -> None:
        super().__init__()
        self.engine = engine
        self.input_names = input_names
        self.output_names = output_names
        self.aliased_io = tuple(aliased_io)
        self.device_id = device_id
        self.hardware_compatible = hardware_compatible
        self.target_platform = target_platform
        self.covers = covers
        self.weight_streaming_budget = weight_streaming_budget
        self.backend = TENSORRT_BACKEND
        self._orders: list[_Order] = []

    def partition(self, exported_program: Any) -> PartitionResult:
        """Tag the operators that the engine runs, and the constants that only they use.

        Raises ValueError when the names do not fit the method.
        """
        order = _Order(self, self._name_values(exported_program.graph_signature))
        number = str(next(_numbers))
        _orders[number] = order
        self._orders.append(order)
        specs = [CompileSpec(_ORDER_KEY, number.encode())]
        if self.weight_streaming_budget is not None:
            specs.append(CompileSpec(_BUDGET_KEY, str(self.weight_streaming_budget).encode()))
        tag = f"linkcheck_tensorrt_{number}"
        for node in exported_program.graph.nodes:
            if node.op == "call_function" and (self.covers is None or self.covers(node)):
                node.meta.setdefault("delegation_tag", tag)
        tag_constant_data(exported_program)
        _leave_mutated_buffers(exported_program)
        return PartitionResult(exported_program, {tag: DelegationSpec(self.backend, specs)})

    def _name_values(self, signature: Any) -> dict[str, str] | None:
        names: dict[str, str] = {}
        for what, own, given in (
            ("inputs", signature.user_inputs, self.input_names),
            ("outputs", signature.user_outputs, self.output_names),
        ):
            if given is None:
                continue
            if isinstance(given, Mapping):
                names.update(given)
            elif len(given) == len(own):
                names.update(zip(map(str, own), given, strict=True))
            else:
                listed = ", ".join(map(str, own))
                raise ValueError(f"the method has {len(own)} {what} ({listed}), and {len(given)} are named")
        return names or None


class TensorRTBackend(BackendDetails):  # type: ignore[misc, unused-ignore]
    """Writes the blob of one delegate. ExecuTorch finds it by its name, which is the backend's id at run time."""

    @staticmethod
    def preprocess(edge_program: Any, compile_specs: list[CompileSpec]) -> PreprocessResult:
        """The blob, and the engine as named data. `edge_program` is the subgraph that the engine stands for.

        Raises ValueError when the names do not fit the subgraph, MalformedBlobError for what no blob may say, and what
        `stage_engine` raises.
        """
        order = find_order(compile_specs)
        wanted = order.partitioner
        bindings = order.bind(edge_program.graph_signature)
        engine = stage_engine(wanted.engine(edge_program) if callable(wanted.engine) else wanted.engine)
        data = FileBackedData(engine.path, cleanup=engine.is_copy, sha256=engine.sha256)
        blob = TensorRTBlob(
            bindings,
            wanted.aliased_io,
            device_id=wanted.device_id,
            hardware_compatible=wanted.hardware_compatible,
            target_platform=wanted.target_platform,
            engine_key=engine.key,
        )
        store = NamedDataStore()
        store.add_named_data(engine.key, data, alignment=ENGINE_ALIGNMENT)
        return PreprocessResult(processed_bytes=serialize(blob), data_store_output=store.get_named_data_store_output())


def find_order(compile_specs: list[CompileSpec]) -> _Order:
    """The order that a subgraph with `compile_specs` was tagged for. Raises ValueError when there is none."""
    numbers = [spec.value.decode() for spec in compile_specs if spec.key == _ORDER_KEY]
    order = _orders.get(numbers[0]) if len(numbers) == 1 else None
    if order is None:
        raise ValueError("the subgraph was not tagged by a TensorRTPartitioner that is still there")
    return order


def _leave_mutated_buffers(exported_program: Any) -> None:
    """Leave buffers that the method writes outside of the delegate: an engine keeps no state between calls."""
    signature = exported_program.graph_signature
    mutated = set(signature.buffers_to_mutate.values())
    for node in exported_program.graph.nodes:
        if node.op == "placeholder" and signature.inputs_to_buffers.get(node.name) in mutated:
            node.meta.pop("delegation_tag", None)
