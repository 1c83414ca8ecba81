"""MindSpore Serving's API: `/model/{name}:{method}` and MSService/Predict, whose instances are jobs of their own."""
