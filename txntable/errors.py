"""The errors that users catch; defined in :mod:`coordinator.errors`."""

from coordinator.errors import *  # noqa: F403  the public names of one module, under the public package
