"""What a device computes: one module or package for each kind of device, behind the Protocol of `interface`."""
