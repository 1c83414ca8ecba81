"""What a worker group needs before it can start: devices, ports, processes, memory; which groups have them or wait."""
