"""A connection to a Ray cluster, and what must be right with it before anything is written."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from unskew.core.errors import UserError
from unskew.core.version import VERSION


@contextmanager
def ray_cluster(address: str) -> Iterator[None]:
    """A connection to the cluster at the address, or to a local one; an existing connection is reused."""
    import ray

    started_here = not ray.is_initialized()
    if started_here:
        try:
            ray.init(address=address or None, log_to_driver=False, configure_logging=False)
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise UserError(f"--address {address}: cannot reach a Ray cluster ({str(error).strip().splitlines()[0]})") from None
    try:
        yield
    finally:
        if started_here:
            ray.shutdown()


def ray_cores(address: str) -> int:
    """Cores of the cluster."""
    return int(ray_amount(address, "CPU")) or 1


def ray_amount(address: str, what: str) -> float:
    """How much the nodes of the cluster have of a resource, such as CPU or GPU."""
    import ray

    with ray_cluster(address):
        return float(ray.cluster_resources().get(what, 0))


def check_ray(address: str) -> None:
    """Reject a request for Ray before writing anything, if Ray is not installed or nothing answers at the address."""
    try:
        import ray
    except ImportError:
        raise UserError("--executor ray needs Ray: pip install 'unskew[ray]'") from None
    if not ray.is_initialized():
        check_address(address)


def check_address(address: str) -> None:
    """Raise if nothing answers at the address; Ray itself would wait for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not port.isdigit():  # empty, or "auto"
        return
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
    except OSError as error:
        raise UserError(f"--address {address}: no Ray cluster answers there ({error.strerror or error})") from None


def check_nodes(address: str) -> None:
    """Raise unless every node of the cluster has this version of the package: a worker without it dies with a page of traceback."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    def version() -> str:
        """Pickled by value, as it is no name of a module: a node without the package can still run it."""
        try:
            from unskew.core import version as there
        except ImportError:
            return ""
        return str(there.VERSION)

    with ray_cluster(address):
        asked = []  # several nodes may have one address: those of a cluster on one machine
        for node in ray.nodes():
            if node["Alive"]:
                place = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
                asked.append((node["NodeManagerAddress"], ray.remote(num_cpus=0, scheduling_strategy=place)(version).remote()))
        for address_of, answer in asked:
            check_version(address_of, _answer(answer, address_of))


def check_version(node: str, there: str) -> None:
    """Raise unless this node has our version; empty: it has none."""
    if there != VERSION:
        has = f"has unskew {there}" if there else "does not have unskew"
        raise UserError(f"--executor ray: the node {node} {has}; install unskew {VERSION} on every node of the cluster")


def _answer(answer: Any, node: str) -> str:
    import ray

    try:
        return str(ray.get(answer, timeout=120))
    except ray.exceptions.GetTimeoutError:
        raise UserError(f"--executor ray: the node {node} starts no worker within two minutes; see its Ray logs") from None
