"""What every connection has, whatever it speaks."""
