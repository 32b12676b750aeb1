"""The only code that knows a device API: ``cuda``, ``cpu`` and ``recorded``."""
