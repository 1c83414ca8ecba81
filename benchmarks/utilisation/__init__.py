"""How busy a server keeps its device, and where a lone request's time goes."""
