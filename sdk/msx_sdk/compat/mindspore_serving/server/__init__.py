"""What start scripts and servables import."""
