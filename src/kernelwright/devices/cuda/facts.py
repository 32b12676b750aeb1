"""Facts of a CUDA device, read from the driver."""

from kernelwright.core.device import DeviceFacts
from kernelwright.devices.cuda.compiler import target_arch
from kernelwright.devices.cuda.driver import Driver


def read_facts(driver: Driver) -> DeviceFacts:
    """All facts; ``max_shared_bytes`` is the limit that a kernel may opt in to."""
    api = driver.api
    major = driver.attribute("COMPUTE_CAPABILITY_MAJOR")
    minor = driver.attribute("COMPUTE_CAPABILITY_MINOR")
    name = driver.ok(api.cuDeviceGetName(128, driver.device), "cuDeviceGetName")
    uuid = driver.ok(api.cuDeviceGetUuid(driver.device), "cuDeviceGetUuid")
    return DeviceFacts(
        name=f"cuda:{driver.ordinal}",
        kind="cuda",
        model=bytes(name).split(b"\0", 1)[0].decode("utf-8", "replace"),
        arch=target_arch(f"sm_{major}{minor}"),
        uuid=format_uuid(bytes(uuid.bytes)),
        num_sms=driver.attribute("MULTIPROCESSOR_COUNT"),
        warp_size=driver.attribute("WARP_SIZE"),
        max_threads_per_block=driver.attribute("MAX_THREADS_PER_BLOCK"),
        max_shared_bytes=driver.attribute("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"),
        l2_bytes=driver.attribute("L2_CACHE_SIZE"),
        memory_bytes=int(driver.ok(api.cuDeviceTotalMem(driver.device), "cuDeviceTotalMem")),
        registers_per_sm=driver.attribute("MAX_REGISTERS_PER_MULTIPROCESSOR"),
        shared_bytes_per_sm=driver.attribute("MAX_SHARED_MEMORY_PER_MULTIPROCESSOR"),
        max_threads_per_sm=driver.attribute("MAX_THREADS_PER_MULTIPROCESSOR"),
        max_blocks_per_sm=driver.attribute("MAX_BLOCKS_PER_MULTIPROCESSOR"),
        toolchain=f"driver for CUDA {driver.driver_version}",
    )


def format_uuid(raw: bytes) -> str:
    """NVML's spelling: ``GPU-8-4-4-4-12`` hexadecimal digits."""
    digits = raw[:16].hex()
    return f"GPU-{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
