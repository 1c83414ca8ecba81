"""Archives: their URLs, their download, and the folders that hold them."""
