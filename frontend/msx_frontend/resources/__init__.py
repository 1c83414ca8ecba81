"""Needs of a worker group before it can start: devices, ports, processes, memory; which groups have them or wait."""
