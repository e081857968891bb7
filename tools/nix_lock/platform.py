"""The platform that the lock is for: CPython 3.12 on x86_64-linux with glibc 2.36 or newer."""

from packaging.tags import Tag, compatible_tags, cpython_tags

PYTHON = (3, 12)
GLIBC = (2, 36)  # Debian 12 has this one, so that what runs on NixOS is tried there too; sglang's wheel asks for 2.34
UV_PLATFORM = f"x86_64-manylinux_{GLIBC[0]}_{GLIBC[1]}"

# what environment markers are evaluated with (PEP 508)
MARKERS = {
    "implementation_name": "cpython",
    "implementation_version": "3.12.0",
    "os_name": "posix",
    "platform_machine": "x86_64",
    "platform_python_implementation": "CPython",
    "platform_release": "",
    "platform_system": "Linux",
    "platform_version": "",
    "python_full_version": "3.12.0",
    "python_version": "3.12",
    "sys_platform": "linux",
}

PLATFORMS = [
    *(f"manylinux_2_{minor}_x86_64" for minor in range(GLIBC[1], 4, -1)),
    "manylinux2014_x86_64",
    "manylinux2010_x86_64",
    "manylinux1_x86_64",
    "linux_x86_64",
]


def supported_tags() -> list[Tag]:
    """Tags of wheels that run here, best first."""
    return [
        *cpython_tags(PYTHON, platforms=PLATFORMS),
        *compatible_tags(PYTHON, interpreter="cp312", platforms=PLATFORMS),
    ]
