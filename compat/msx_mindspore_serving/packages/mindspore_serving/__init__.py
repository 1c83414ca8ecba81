"""The names that start scripts, servables and clients of MindSpore Serving import. MSX answers behind them."""
